package muri

import (
	"encoding/json"
	"fmt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/queue"
)

// What no fact of a job tells: which part of its service it received in groups.

var _ core.Snapshotter = (*policy)(nil)

type learned struct {
	Job           core.JobID
	Key, Attained float64
	Owners        int
}

// Snapshot is the accounts of the jobs of the last round.
func (p *policy) Snapshot() ([]byte, error) {
	all := []learned{}
	for _, id := range p.present {
		a := &p.accounts[id]
		all = append(all, learned{id, a.key, a.attained, a.owners})
	}
	return json.Marshal(all)
}

// Restore takes them up.
func (p *policy) Restore(data []byte) error {
	var all []learned
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	for i, l := range all {
		if l.Job < 0 || l.Owners < 1 || i > 0 && l.Job <= all[i-1].Job {
			return fmt.Errorf("job %d has no account of its own", l.Job)
		}
	}
	for _, l := range all {
		p.accounts = queue.Grown(p.accounts, l.Job)
		p.accounts[l.Job] = account{known: true, key: l.Key, attained: l.Attained, owners: l.Owners}
		p.present = append(p.present, l.Job)
	}
	return nil
}
