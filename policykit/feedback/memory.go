package feedback

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// What no fact of a job tells: in which order jobs joined their queues, and what was forgotten when they rose.

var _ core.Snapshotter = (*Queues)(nil)

// learned is what such queues hand to the next.
type learned struct {
	Thresholds []float64
	Queues     [][]core.JobID
	Forgotten  []float64 // in the order of the queues, one after the other
}

// Snapshot is the queues.
func (p *Queues) Snapshot() ([]byte, error) {
	l := learned{Thresholds: p.thresholds, Queues: p.Lists}
	for _, queue := range p.Lists {
		for _, id := range queue {
			l.Forgotten = append(l.Forgotten, p.jobs[id].forgotten)
		}
	}
	return json.Marshal(l)
}

// Restore takes the queues up. Those of other thresholds are of no use.
func (p *Queues) Restore(data []byte) error {
	var l learned
	if err := json.Unmarshal(data, &l); err != nil {
		return err
	}
	if !slices.Equal(l.Thresholds, p.thresholds) || len(l.Queues) != len(p.Lists) {
		return fmt.Errorf("the queues are those of thresholds %v", l.Thresholds)
	}
	total := 0
	seen := map[core.JobID]bool{}
	for _, queue := range l.Queues {
		for _, id := range queue {
			if total++; id < 0 || seen[id] || total > len(l.Forgotten) {
				return fmt.Errorf("job %d has no place of its own in the queues", id)
			}
			seen[id] = true
		}
	}
	for i, ids := range l.Queues {
		for _, id := range ids {
			p.jobs = queue.Grown(p.jobs, id)
			p.jobs[id].forgotten, l.Forgotten = l.Forgotten[0], l.Forgotten[1:]
			p.join(id, i)
		}
	}
	return nil
}
