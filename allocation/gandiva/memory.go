package gandiva

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/pace"
)

// What no fact of a job tells: whose turn it is, and how fast jobs were alone and together.

var _ core.Snapshotter = (*gandiva)(nil)

// learnedTurns is what a gandiva hands to the next.
type learnedTurns struct {
	Floor, Last float64
	Contended   bool
	Jobs        []learnedTurn
	Alone       []pace.Learned
}

// learnedTurn is that of a job.
type learnedTurn struct {
	Job        core.JobID
	Turn       float64
	Mate, With core.JobID
	Since      float64
	Silent     float64 `json:",omitempty"`
	Apart      []core.JobID
	Granted    bool
}

// Snapshot is the turns, the pairs and the rates.
func (p *gandiva) Snapshot() ([]byte, error) {
	l := learnedTurns{Floor: p.floor, Last: p.last, Contended: p.contended, Alone: p.paces.Learned()}
	for _, id := range slices.Sorted(maps.Keys(p.jobs)) {
		j := p.jobs[id]
		l.Jobs = append(l.Jobs, learnedTurn{id, j.turn, j.mate, j.with, j.since, j.silent, j.apart, j.granted})
	}
	return json.Marshal(l)
}

// Restore takes them up.
func (p *gandiva) Restore(learned []byte) error {
	var l learnedTurns
	if err := json.Unmarshal(learned, &l); err != nil {
		return err
	}
	known, err := pace.Restored(l.Alone)
	if err != nil {
		return err
	}
	jobs := map[core.JobID]*gandivaJob{}
	for _, j := range l.Jobs {
		if j.Job < 0 || jobs[j.Job] != nil {
			return fmt.Errorf("job %d has no turn of its own", j.Job)
		}
		jobs[j.Job] = &gandivaJob{turn: j.Turn, mate: j.Mate, with: j.With, since: j.Since, silent: j.Silent, apart: j.Apart, granted: j.Granted, sum: math.NaN()}
	}
	for id, j := range jobs {
		if m := jobs[j.mate]; j.mate != none && (m == nil || m.mate != id || j.mate == id) {
			return fmt.Errorf("job %d is packed with job %d, which is not packed with it", id, j.mate)
		}
	}
	p.floor, p.last, p.contended, p.asked, p.jobs, p.paces = l.Floor, l.Last, l.Contended, true, jobs, known
	return nil
}
