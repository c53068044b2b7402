package gavel

import (
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
	Booked  []learnedBooking `json:",omitempty"`
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
	if f, books := p.policy.(*finishTimes); books {
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
			id: a.Job, granted: a.Granted, executed: a.Executed, devices: a.Devices, shared: a.Shared,
			speed: a.Speed, x: a.X, rates: make([]float64, of), share: a.Share, seconds: a.Seconds, deficit: a.Short,
		})
	}
	if len(l.Devices) != l.Types {
		return fmt.Errorf("there are %d accelerator types, and devices of %d", l.Types, len(l.Devices))
	}
	p.jobTable.members, p.jobTable.types, p.reset, p.due, p.devices = members, l.Types, l.Reset, l.Due, l.Devices
	if f, books := p.policy.(*finishTimes); books {
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
