package gavel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// What no fact of a job tells: its shares, what it received of them, and since when they hold.

var _ core.Snapshotter = (*mechanism)(nil)

// learnedShares is what a mechanism hands to the next.
type learnedShares struct {
	Policy  string // whose shares they are
	Types   int
	Reset   float64 // moment of the shares
	Due     bool
	Devices []float64 // by type, in the last round
	Jobs    []learnedAccount
	Pairs   []learnedPair    `json:",omitempty"`
	Booked  []learnedBooking `json:",omitempty"`
}

// learnedPair is the account of two jobs that share devices.
type learnedPair struct {
	Jobs                  [2]core.JobID // ascending
	Granted               core.AcceleratorID
	Share, Seconds, Short []float64
}

// learnedAccount is the account of a job.
type learnedAccount struct {
	Job                             core.JobID
	Granted                         core.AcceleratorID
	Executed                        float64
	Devices                         int
	Shared                          bool
	Speed, X, Share, Seconds, Short []float64
}

// learnedBooking is what finish-time fairness booked for a job.
type learnedBooking struct {
	Job        core.JobID
	Seconds    float64
	Remaining  *float64 // nil when unknown
	Unit, Rate float64
}

// Snapshot is the accounts of the jobs.
func (p *mechanism) Snapshot() ([]byte, error) {
	l := learnedShares{Policy: fmt.Sprintf("%T", p.policy), Types: len(p.devices), Reset: p.reset, Due: p.due, Devices: p.devices}
	for _, m := range p.jobTable.members {
		l.Jobs = append(l.Jobs, learnedAccount{m.id, m.granted, m.executed, m.devices, m.shared, m.speed, m.x, m.share, m.seconds, m.deficit})
	}
	if p.pairs != nil {
		for _, both := range p.pairs.list {
			l.Pairs = append(l.Pairs, learnedPair{both.ids, both.granted, both.share, both.seconds, both.deficit})
		}
	}
	if f := p.books(); f != nil {
		for _, id := range slices.Sorted(maps.Keys(f.booked)) {
			b := f.booked[id]
			kept := learnedBooking{Job: id, Seconds: b.seconds, Unit: b.unit, Rate: b.rate}
			if !math.IsNaN(b.remaining) {
				kept.Remaining = &b.remaining
			}
			l.Booked = append(l.Booked, kept)
		}
	}
	return json.Marshal(l)
}

// Restore takes the accounts up. Those of another policy, or on other accelerator types, are of no use.
func (p *mechanism) Restore(learned []byte) error {
	var l learnedShares
	if err := json.Unmarshal(learned, &l); err != nil {
		return err
	}
	if policy := fmt.Sprintf("%T", p.policy); l.Policy != policy {
		return fmt.Errorf("the shares are those of %s", l.Policy)
	}
	of := l.Types // of the problem
	if p.config.TypeBlind {
		of = 1
	}
	members := make([]*member, 0, len(l.Jobs))
	for i, a := range l.Jobs {
		if a.Job < 0 || i > 0 && a.Job <= l.Jobs[i-1].Job || a.Granted < core.AnyAccelerator || int(a.Granted) >= l.Types || len(a.X) != of ||
			slices.ContainsFunc([][]float64{a.Speed, a.Share, a.Seconds, a.Short}, func(list []float64) bool { return len(list) != l.Types }) {
			return fmt.Errorf("job %d has no account of its own", a.Job)
		}
		members = append(members, &member{
			id: a.Job, granted: a.Granted, executed: a.Executed, devices: a.Devices, shared: a.Shared, together: -1,
			speed: a.Speed, x: a.X, rates: make([]float64, of), share: a.Share, seconds: a.Seconds, deficit: a.Short,
		})
	}
	if len(l.Devices) != l.Types {
		return fmt.Errorf("there are %d accelerator types, and devices of %d", l.Types, len(l.Devices))
	}
	if err := p.restorePairs(&l, members); err != nil {
		return err
	}
	p.jobTable.members, p.jobTable.types, p.reset, p.due, p.devices = members, l.Types, l.Reset, l.Due, l.Devices
	if f := p.books(); f != nil {
		f.booked = map[core.JobID]booking{}
		for _, b := range l.Booked {
			kept := booking{b.Seconds, math.NaN(), b.Unit, b.Rate}
			if b.Remaining != nil {
				kept.remaining = *b.Remaining
			}
			f.booked[b.Job] = kept
		}
	}
	return nil
}

// books is the bookings of finish-time fairness; nil for other policies.
func (p *mechanism) books() *finishTimes {
	switch f := p.policy.(type) {
	case *finishTimes:
		return f
	case *finishTimesPacked:
		return &f.finishTimes
	}
	return nil
}

// restorePairs takes up the accounts of pairs. Members are by JobID.
func (p *mechanism) restorePairs(l *learnedShares, members []*member) error {
	if p.pairs == nil && len(l.Pairs) > 0 {
		return fmt.Errorf("%d pairs where jobs share no devices", len(l.Pairs))
	}
	var list []*pair
	for i, a := range l.Pairs {
		both := &pair{ids: a.Jobs, granted: a.Granted, share: a.Share, seconds: a.Seconds, deficit: a.Short}
		for k, id := range a.Jobs {
			at, found := slices.BinarySearchFunc(members, id, func(m *member, id core.JobID) int { return cmp.Compare(m.id, id) })
			if !found {
				return fmt.Errorf("job %d is in a pair, and has no account of its own", id)
			}
			both.members[k] = members[at]
		}
		if a.Jobs[0] >= a.Jobs[1] || i > 0 && compareIDs(l.Pairs[i-1].Jobs, a.Jobs) >= 0 || a.Granted < core.AnyAccelerator || int(a.Granted) >= l.Types ||
			len(a.Share) != l.Types || len(a.Seconds) != l.Types || len(a.Short) != l.Types {
			return fmt.Errorf("jobs %d and %d have no account of theirs", a.Jobs[0], a.Jobs[1])
		}
		if a.Granted != core.AnyAccelerator {
			for k, m := range both.members {
				m.with, m.together = both, a.Jobs[1-k]
			}
		}
		list = append(list, both)
	}
	if p.pairs != nil {
		p.pairs.list = list
	}
	return nil
}
