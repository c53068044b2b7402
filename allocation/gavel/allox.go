package gavel

import (
	"cmp"
	"context"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// NewAlloX ends jobs early on average: it matches those that wait to places in the queues of the free devices, a
// place counting as often as there are jobs behind it, and starts the first of each queue. A job that has started
// keeps its type.
//
// Source: AlloX (EuroSys'20), as Gavel (OSDI'20), section 7, has it. That serves jobs of one device; here, one with
// more is matched like them, and starts when enough devices are left. Exact: devices of a type are alike, and the
// places of a rank in their queues are one, that takes as many jobs as there are devices. O(w² p) for w waiting jobs
// and p such ranks, w/f of each type with f free devices; O(w log w) while devices of one type only are free.
func NewAlloX() core.Factory[core.Allocator] {
	return newFactory(core.Info{
		Type:    "allox",
		Summary: "least mean completion time, by matching jobs to places in the queues of devices",
		Description: "Matches waiting jobs to places in the queues of the free devices, so that the sum of completion times is least, and starts the first of each queue; " +
			"jobs keep the type they started on. Jobs must know their remaining work. O(w² p) for w waiting jobs and p ranks in the queues.",
		Source:       "AlloX, EuroSys 2020; " + source + ", section 7",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, func(Rounds, core.Settings) policy { return new(alloX) })
}

type alloX struct {
	solver  optim.Transport
	left    []int // devices by type
	waiting []queued
	places  []place
	room    []int // jobs that each place takes
}

// place is one in the queues of the devices of a type: the first from behind, the second, and so on.
type place struct{ on, fromBehind int }

// queued is a job that waits, and its place.
type queued struct {
	*member
	left float64 // work
	best float64 // least seconds to its end where devices are free
	at   place
}

// slowest stands in for the rate of a job where it cannot run.
const slowest = 1e-10

func (p *alloX) strict() bool { return false }

func (p *alloX) divide(ctx context.Context, d *problem) error {
	p.begin(d)
	if len(p.waiting) == 0 || len(p.places) == 0 {
		return nil
	}
	if p.places[0].on == p.places[len(p.places)-1].on { // one type: the shortest jobs first
		for i := range p.waiting {
			p.waiting[i].at = p.places[i/p.room[0]]
		}
		p.start()
		return nil
	}
	costs, cells, supply := make([][]float64, len(p.waiting)), make([]float64, len(p.waiting)*len(p.places)), make([]int, len(p.waiting))
	for i, w := range p.waiting {
		costs[i], cells, supply[i] = cells[:len(p.places):len(p.places)], cells[len(p.places):], 1
		for k, at := range p.places {
			costs[i][k] = float64(at.fromBehind) * w.left / max(w.rates[at.on], slowest)
		}
	}
	matching, err := p.solver.Solve(ctx, costs, supply, p.room)
	if err != nil {
		return err
	}
	for i, flow := range matching.Flow {
		p.waiting[i].at = p.places[slices.Index(flow, 1)]
	}
	p.start()
	return nil
}

// begin parts the jobs that keep their type, while there are devices for them, from those that wait, and lists the
// places for these, the longest first.
func (p *alloX) begin(d *problem) {
	p.left, p.waiting, p.places, p.room = p.left[:0], p.waiting[:0], p.places[:0], p.room[:0]
	for _, w := range d.capacity {
		p.left = append(p.left, int(w))
	}
	work := d.workLeft()
	for i, m := range d.jobs {
		if t := m.settled(); t >= 0 && m.devices <= p.left[t] {
			p.left[t] -= m.devices
			continue
		}
		clear(m.x)
		p.waiting = append(p.waiting, queued{member: m, left: work[i]})
	}
	for i := range p.waiting {
		w := &p.waiting[i]
		rate := slowest
		for t, free := range p.left {
			if free > 0 {
				rate = max(rate, w.rates[t])
			}
		}
		w.best = w.left / rate
	}
	slices.SortStableFunc(p.waiting, func(a, b queued) int { return cmp.Compare(b.best, a.best) })
	for t, free := range p.left {
		if free == 0 {
			continue
		}
		for k := range (len(p.waiting) + free - 1) / free { // no queue need be longer
			p.places, p.room = append(p.places, place{t, k + 1}), append(p.room, free)
		}
	}
}

// start gives the devices of each type to the jobs that nobody is before, those of the longest queues first.
func (p *alloX) start() {
	slices.SortStableFunc(p.waiting, func(a, b queued) int {
		return cmp.Or(cmp.Compare(b.at.fromBehind, a.at.fromBehind), cmp.Compare(a.left/a.rates[a.at.on], b.left/b.rates[b.at.on]), cmp.Compare(a.id, b.id))
	})
	heads := slices.Clone(p.left)
	for _, w := range p.waiting {
		t := w.at.on
		if heads[t]--; heads[t] >= 0 && w.devices <= p.left[t] && w.rates[t] > 0 {
			p.left[t] -= w.devices
			w.x[t] = 1
		}
	}
}
