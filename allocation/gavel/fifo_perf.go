package gavel

import (
	"context"
	"math/rand/v2"

	"github.com/quartet-sched/quartet/core"
)

// NewFIFOPerf serves jobs in the order of their submission, each on the type on which it is fastest of those with
// enough devices left. The first that fits nowhere holds up all behind it. Running jobs may have to move: each
// computation begins with an empty cluster.
//
// Blind to types, a job stays on its type until it ends, and a new one takes any type with enough devices, drawn at
// random.
//
// Source: Gavel (OSDI'20), section 5 and artifact. O(jobs × types) a computation.
func NewFIFOPerf() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "fifo_perf",
		OneType: true,
		Summary: "first submitted, first served, each job on its fastest free type",
		Description: "Serves jobs in submission order; each takes the fastest type with enough devices left, and the first that fits nowhere holds up those behind it. " +
			"Jobs move when a faster type becomes free. With type_blind, a job takes a type at random and stays there. O(jobs × types).",
		Source: source,
	}, wholeRounds{defaults}, func(c wholeRounds, s core.Settings) (core.Allocator, error) {
		p := &fifoPerf{stay: c.TypeBlind, rand: s.Rand}
		c.TypeBlind = false // it still names the type
		return newMechanism(c.Rounds, p, s), nil
	})
}

type fifoPerf struct {
	stay    bool
	rand    *rand.Rand
	left    []int
	fitting []int
}

// strict keeps the order: nobody runs before its turn.
func (p *fifoPerf) strict() bool { return true }

func (p *fifoPerf) divide(_ context.Context, d *problem) error {
	p.left = p.left[:0]
	for _, w := range d.capacity {
		p.left = append(p.left, int(w))
	}
	for _, m := range d.jobs {
		t := m.settled()
		if stays := p.stay && t >= 0 && m.devices <= p.left[t]; !stays {
			clear(m.x)
			continue
		}
		p.left[t] -= m.devices
	}
	blocked := false
	for _, m := range d.jobs {
		if blocked || m.settled() >= 0 {
			continue
		}
		t, fits := p.choose(m)
		if blocked = !fits; t >= 0 {
			p.left[t] -= m.devices
			m.x[t] = 1
		}
	}
	return nil
}

// choose is the type for a job, -1 for none. It fits if some type has enough devices left, be it one that cannot run
// it.
func (p *fifoPerf) choose(m *member) (t int, fits bool) {
	p.fitting = p.fitting[:0]
	for t, left := range p.left {
		if m.devices > left {
			continue
		}
		if fits = true; m.rates[t] > 0 {
			p.fitting = append(p.fitting, t)
		}
	}
	if len(p.fitting) == 0 {
		return -1, fits
	}
	if p.stay {
		return p.fitting[p.rand.IntN(len(p.fitting))], true
	}
	best := p.fitting[0]
	for _, t := range p.fitting {
		if m.rates[t] > m.rates[best] {
			best = t
		}
	}
	return best, true
}
