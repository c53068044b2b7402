package gpufraction

import (
	"encoding/json"
	"fmt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// What no fact of a job tells: when it had how much, and whether it is still to make up for what it missed.

var _ core.Snapshotter = (*gpuFraction)(nil)

// learnedAttainment is what a gpu_fraction hands to the next of a job.
type learnedAttainment struct {
	Job            core.JobID
	AsOf, Attained float64
	Held           int
	Behind         bool
	Spans          []span
}

// Snapshot is what the jobs of the last round had.
func (p *gpuFraction) Snapshot() ([]byte, error) {
	jobs := []learnedAttainment{}
	for _, id := range p.present {
		a := &p.attained[id]
		jobs = append(jobs, learnedAttainment{id, a.asOf, a.attained, a.held, a.behind, a.spans})
	}
	return json.Marshal(jobs)
}

// Restore takes it up.
func (p *gpuFraction) Restore(learned []byte) error {
	var jobs []learnedAttainment
	if err := json.Unmarshal(learned, &jobs); err != nil {
		return err
	}
	for i, j := range jobs {
		if j.Job < 0 || i > 0 && j.Job <= jobs[i-1].Job || len(j.Spans) == 0 {
			return fmt.Errorf("job %d has no attainment of its own", j.Job)
		}
		for k, s := range j.Spans {
			if k > 0 && s.From <= j.Spans[k-1].From || !(s.Rate >= 0 && s.Rate <= 1) {
				return fmt.Errorf("job %d attains %v from %v s on, after %v s", j.Job, s.Rate, s.From, j.Spans[max(k-1, 0)].From)
			}
		}
	}
	for _, j := range jobs {
		p.attained = queue.Grown(p.attained, j.Job)
		p.attained[j.Job] = attainment{known: true, asOf: j.AsOf, attained: j.Attained, held: j.Held, behind: j.Behind, spans: j.Spans}
		p.present = append(p.present, j.Job)
	}
	return nil
}
