package themis

import (
	"encoding/json"
	"fmt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// What no fact of a job tells: until when its lease lasts, and how much was asked for before it came.

var _ core.Snapshotter = (*themis)(nil)

// learnedLeases is what a themis hands to the next.
type learnedLeases struct {
	Devices, Integral, AsOf float64 // of the demand
	Jobs                    []learnedLease
}

type learnedLease struct {
	Job           core.JobID
	Before, Until float64
}

// Snapshot is the leases of the jobs of the last round, and the demand until then.
func (p *themis) Snapshot() ([]byte, error) {
	l := learnedLeases{Devices: p.demand.devices, Integral: p.demand.integral, AsOf: p.demand.asOf}
	for _, id := range p.present {
		l.Jobs = append(l.Jobs, learnedLease{id, p.accounts[id].before, p.accounts[id].until})
	}
	return json.Marshal(l)
}

// Restore takes them up.
func (p *themis) Restore(learned []byte) error {
	var l learnedLeases
	if err := json.Unmarshal(learned, &l); err != nil {
		return err
	}
	for i, j := range l.Jobs {
		if j.Job < 0 || i > 0 && j.Job <= l.Jobs[i-1].Job {
			return fmt.Errorf("job %d has no lease of its own", j.Job)
		}
	}
	p.demand = demand{l.Devices, l.Integral, l.AsOf}
	for _, j := range l.Jobs {
		p.accounts = queue.Grown(p.accounts, j.Job)
		p.accounts[j.Job] = account{known: true, before: j.Before, until: j.Until}
		p.present = append(p.present, j.Job)
	}
	return nil
}
