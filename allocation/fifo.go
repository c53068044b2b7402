package allocation

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// FIFOConfig configures NewFIFO.
type FIFOConfig struct {
	// Queue says what happens to the jobs behind one that does not fit; see package queue.
	Queue string `config:"queue" doc:"what happens to the jobs behind one that does not fit: backfill lets them pass, blocking makes them wait, all leaves it to placement" enum:"backfill|blocking|all"`
	// Preemptive lets a job take the devices of running jobs that were submitted after it.
	Preemptive bool `config:"preemptive" doc:"let a job take the devices of those that run and were submitted after it"`
}

// CountsFractions says that its walk does.
func (FIFOConfig) CountsFractions() {}

// NewFIFO serves jobs in submission order and, unless it is preemptive, never takes devices away from one that runs. A job that lost
// its devices with a node waits in its old place. O(candidates) a round.
//
// A job that does not fit blocks those behind it on the accelerator types that it can use.
func NewFIFO() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "fifo",
		Summary: "first submitted, first served, without preemption",
		Description: "Running jobs keep their devices, unless preemptive is set; waiting ones are granted what they request in submission order. " +
			"A job that lost its devices with a node waits in its old place. With queue blocking, a job that does not fit makes those behind it wait that can use a type which it can use. O(candidates) a round.",
	}, FIFOConfig{Queue: queue.Blocking}, func(c FIFOConfig, _ core.Settings) (core.Allocator, error) {
		return &fifo{preemptive: c.Preemptive, walk: queue.Walk{Discipline: c.Queue, Keeps: !c.Preemptive}}, nil
	})
}

type fifo struct {
	preemptive bool
	walk       queue.Walk
}

func (p *fifo) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.walk.Begin(v)
	p.walk.KeepPinned(v, candidates)
	first := len(candidates) // of those that wait
	for i := range candidates {
		if c := &candidates[i]; c.State == core.Running && !p.preemptive {
			p.walk.Keep(v, c)
		} else {
			first = min(first, i)
		}
	}
	for i := first; i < len(candidates); i++ {
		if c := &candidates[i]; (p.preemptive || c.State != core.Running) && !p.walk.Offer(v, c) {
			break
		}
	}
	return p.walk.Grants(), nil
}

// Standing is for ever, unless a running job loses its devices in the round and takes its place among the waiting ones.
// A job that is seated moves ahead of the waiting ones, who keep their order and find no more devices than before;
// nothing here depends on the time. Where devices are shared, one may be seated that they did not suffice for: everyone is granted then. With preemption the
// order is the same whoever runs.
func (p *fifo) Standing() core.Standing {
	return p.walk.Standing(core.Standing{UntilSeconds: math.Inf(1), IfSeated: p.walk.Kept()})
}

// Precedes reports whether a job may take the devices of those behind it: with preemption.
func (p *fifo) Precedes() bool { return p.preemptive }
