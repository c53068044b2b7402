package gavel

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// NewAlloX ends jobs early on average: it matches those that wait to places in the queues of the free devices, a place
// counting as often as there are jobs behind it, and starts the first of each queue. A job that has started keeps its type.
//
// Source: AlloX (EuroSys'20), as Gavel (OSDI'20), section 7, has it. That serves jobs of one device; here, one with more is
// matched like them, and starts when enough devices are left. Exact, O(w² × w f) for w waiting jobs and f free devices.
func NewAlloX() core.Factory[core.Allocator] {
	return newFactory(core.Info{
		Type:    "allox",
		Summary: "least mean completion time, by matching jobs to places in the queues of devices",
		Description: "Matches waiting jobs to places in the queues of the free devices, so that the sum of completion times is least, and starts the first of each queue; " +
			"jobs keep the type they started on. Jobs must know their remaining work. O(w³ f) for w waiting jobs and f free devices.",
		Source:       "AlloX, EuroSys 2020; " + source + ", section 7",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, func(Rounds, core.Settings) policy { return new(alloX) })
}

type alloX struct {
	solver  optim.Assigner
	left    []int
	waiting []*member
	places  []place
}

// place is one in the queue of a device: the first from behind, the second, and so on.
type place struct{ on, device, fromBehind int }

// slowest stands in for the rate of a job where it cannot run.
const slowest = 1e-10

func (p *alloX) strict() bool { return false }

func (p *alloX) divide(ctx context.Context, d *problem) error {
	p.begin(d)
	if len(p.waiting) == 0 || len(p.places) == 0 {
		return nil
	}
	left := d.workLeft()
	costs := make([][]float64, 0, len(p.waiting))
	for i, m := range d.jobs {
		if p.keeps(m) {
			continue
		}
		row := make([]float64, len(p.places))
		for k, at := range p.places {
			row[k] = float64(at.fromBehind) * left[i] / max(m.rates[at.on], slowest)
		}
		costs = append(costs, row)
	}
	matching, err := p.solver.Solve(ctx, costs)
	if err != nil {
		return err
	}
	p.start(matching.Columns)
	return nil
}

// begin parts the jobs that keep their type from those that wait, and lists the places for these.
func (p *alloX) begin(d *problem) {
	p.left, p.waiting, p.places = p.left[:0], p.waiting[:0], p.places[:0]
	for _, w := range d.capacity {
		p.left = append(p.left, int(w))
	}
	for _, m := range d.jobs {
		if !p.keeps(m) {
			clear(m.x)
			p.waiting = append(p.waiting, m)
			continue
		}
		for t, x := range m.x {
			p.left[t] -= int(x) * m.devices
		}
	}
	for t, free := range p.left {
		for device := range max(free, 0) {
			for k := range p.waiting {
				p.places = append(p.places, place{t, device, k + 1})
			}
		}
	}
}

// keeps reports whether the job has a type for itself.
func (p *alloX) keeps(m *member) bool {
	for t, x := range m.x {
		if m.shared && x == 1 && m.rates[t] > 0 {
			return true
		}
	}
	return false
}

// start gives each device to the first of its queue, those of the longest queues first.
func (p *alloX) start(columns []int) {
	type device struct{ on, number int }
	first := map[device]int{}
	for i, k := range columns {
		at := p.places[k]
		of := device{at.on, at.device}
		if other, taken := first[of]; !taken || p.places[columns[other]].fromBehind < at.fromBehind {
			first[of] = i
		}
	}
	for i, m := range p.waiting {
		at := p.places[columns[i]]
		if first[device{at.on, at.device}] == i && m.devices <= p.left[at.on] && m.rates[at.on] > 0 {
			p.left[at.on] -= m.devices
			m.x[at.on] = 1
		}
	}
}
