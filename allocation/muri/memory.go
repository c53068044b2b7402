package muri

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// What no fact of a job tells: which part of its service it received in groups.

var (
	_ core.Snapshotter = (*policy)(nil)
	_ core.Forker      = (*policy)(nil)
)

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

// Fork goes on with the accounts and with the numbers of the kinds, which decide between groups that are as good: they are in the order in which the kinds were met.
// O(jobs submitted so far + kinds).
func (p *policy) Fork(*rand.Rand) any {
	f := &policy{
		attained: p.attained, largest: p.largest, standing: p.standing,
		accounts: slices.Clone(p.accounts), present: slices.Clone(p.present), classes: slices.Clone(p.classes),
	}
	f.grouper = p.grouper.fork()
	return f
}

// fork is a grouper that knows the same kinds by the same numbers. What follows from them it finds out again.
func (g *Grouper) fork() Grouper {
	f := Grouper{Model: g.Model, Largest: g.Largest, Exchange: g.Exchange, Steady: g.Steady}
	if g.kinds != nil {
		f.kinds, f.profiles = maps.Clone(g.kinds), slices.Clone(g.profiles)
		f.periods, f.splits = map[kinds]float64{}, map[[2]kinds]uint8{}
	}
	return f
}
