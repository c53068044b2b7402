package gavel

import (
	"context"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// NewAlloX ends jobs early on average: it puts those that wait into the queues of the free devices, so that the sum of
// their completion times is least, and starts the first of each queue. A job that has started keeps its type.
//
// Source: AlloX (EuroSys'20), as Gavel (OSDI'20), section 7, has it. That serves jobs of one device; here, one with
// more is queued like them, and starts when enough devices are left. Exact (optim.Queues): O(w² T log w) for w waiting
// jobs and T types at worst, O(w log w) while devices of one type only are free.
func NewAlloX() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "allox",
		OneType: true,
		Summary: "least mean completion time, by matching jobs to places in the queues of devices",
		Description: "Matches waiting jobs to places in the queues of the free devices, so that the sum of completion times is least, and starts the first of each queue; " +
			"jobs keep the type they started on. Jobs must know their remaining work. O(w² T log w) for w waiting jobs and T types at worst.",
		Source:       "AlloX, EuroSys 2020; " + source + ", section 7",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, wholeRounds{defaults}, func(c wholeRounds, s core.Settings) (core.Allocator, error) {
		return newMechanism(c.Rounds, new(alloX), s), nil
	})
}

type alloX struct {
	solver  optim.Queues
	left    []int // devices by type
	waiting []*member
	lengths [][]float64 // seconds of the waiting jobs, by type
}

// slowest stands in for the rate of a job where it cannot run.
const slowest = 1e-10

func (p *alloX) strict() bool { return false }

func (p *alloX) divide(ctx context.Context, d *problem) error {
	p.begin(d)
	if !slices.ContainsFunc(p.left, func(free int) bool { return free > 0 }) {
		return nil
	}
	queues, err := p.solver.Solve(ctx, p.lengths, p.left)
	if err != nil {
		return err
	}
	for t, queue := range queues.Order {
		for _, i := range queue[:min(p.left[t], len(queue))] {
			if m := p.waiting[i]; m.devices <= p.left[t] && m.rates[t] > 0 {
				p.left[t] -= m.devices
				m.x[t] = 1
			}
		}
	}
	return nil
}

// begin parts the jobs that keep their type, while there are devices for them, from those that wait.
func (p *alloX) begin(d *problem) {
	p.left, p.waiting, p.lengths = p.left[:0], p.waiting[:0], p.lengths[:0]
	for _, w := range d.capacity {
		p.left = append(p.left, int(w))
	}
	work, cells := d.workLeft(), make([]float64, len(d.jobs)*len(d.capacity))
	for i, m := range d.jobs {
		if t := m.settled(); t >= 0 && m.devices <= p.left[t] {
			p.left[t] -= m.devices
			continue
		}
		clear(m.x)
		row := cells[i*len(d.capacity) : (i+1)*len(d.capacity)]
		for t, rate := range m.rates {
			row[t] = work[i] / max(rate, slowest)
		}
		p.waiting, p.lengths = append(p.waiting, m), append(p.lengths, row)
	}
}
