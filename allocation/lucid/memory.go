package lucid

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/pace"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// What no fact of a job tells: how long it was when it was new, and how fast applications are together.

var _ core.Snapshotter = (*lucid)(nil)

// learnedSizes is what a lucid hands to the next.
type learnedSizes struct {
	Sizes  []learnedSize
	Beside []learnedBeside
	Recent []float64
	Alone  []pace.Learned
}

// learnedSize is what a job was served by; negative for one of unknown length.
type learnedSize struct {
	Job  core.JobID
	Size float64
}

// learnedBeside is what an application was seen to have of its rate alone.
type learnedBeside struct {
	Application, Other string
	Part               float64
}

// Snapshot is the sizes of jobs when they were new, and how fast applications were together.
func (p *lucid) Snapshot() ([]byte, error) {
	l := learnedSizes{Recent: p.recent, Alone: p.paces.Learned()}
	for _, id := range p.present {
		size := p.sizes[id]
		if math.IsInf(size, 1) {
			size = -1
		}
		l.Sizes = append(l.Sizes, learnedSize{id, size})
	}
	for at, part := range p.beside {
		l.Beside = append(l.Beside, learnedBeside{at[0], at[1], part})
	}
	slices.SortFunc(l.Beside, func(a, b learnedBeside) int {
		return slices.Compare([]string{a.Application, a.Other}, []string{b.Application, b.Other})
	})
	return json.Marshal(l)
}

// Restore takes them up.
func (p *lucid) Restore(learned []byte) error {
	var l learnedSizes
	if err := json.Unmarshal(learned, &l); err != nil {
		return err
	}
	known, err := pace.Restored(l.Alone)
	if err != nil {
		return err
	}
	var sizes []float64
	for i, s := range l.Sizes {
		if s.Job < 0 || i > 0 && s.Job <= l.Sizes[i-1].Job {
			return fmt.Errorf("job %d has no size of its own", s.Job)
		}
		sizes = queue.Grown(sizes, s.Job)
		if sizes[s.Job] = s.Size; s.Size < 0 {
			sizes[s.Job] = math.Inf(1)
		}
	}
	p.sizes, p.recent, p.paces, p.beside = sizes, l.Recent, known, make(map[[2]string]float64, len(l.Beside))
	for _, b := range l.Beside {
		p.beside[[2]string{b.Application, b.Other}] = b.Part
	}
	return nil
}
