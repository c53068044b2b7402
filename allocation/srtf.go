package allocation

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// SRTFConfig configures NewSRTF.
type SRTFConfig struct {
	Preemptive     bool   `config:"preemptive" doc:"let a shorter job take the devices of a longer one that runs"`
	WeighByDevices bool   `config:"weigh_by_devices" doc:"order by remaining seconds times replicas (shortest service first) instead of remaining seconds"`
	Queue          string `config:"queue" doc:"what happens to the jobs behind one that does not fit: backfill lets them pass, blocking makes them wait, all leaves it to placement" enum:"backfill|blocking|all"`
	StepTimes      bool   `config:"step_times" doc:"read the true step times and steps left of a profiled job whose curve elasticity does not tell; a real backend has none: there the declared work counts as seconds"`
	Speed          string `config:"speed" doc:"how fast a job is reckoned to be that is sensitive to CPUs and memory: base, as with the part of them that belongs to its devices; present, as with what it has if it runs, and with what it runs best with if it waits" enum:"base|present"`
}

// CountsParts says that its walk does.
func (SRTFConfig) CountsParts() {}

// Capabilities are those that reading step times needs, besides the work left.
func (c SRTFConfig) Capabilities() []core.Capability {
	if c.StepTimes {
		return []core.Capability{core.CapabilityStepTimes}
	}
	return nil
}

// NewSRTF serves the job with the least time left first, which it learns from an oracle.
//
// Source: shortest remaining time first, as in Blox (EuroSys'24) and, with weigh_by_devices, the shortest-gpu schedule
// of Tiresias (NSDI'19). The time left is the work left over the rate at the granted replicas where elasticity tells
// both; otherwise the steps left times the step time for a profiled job, unless step_times is off, and the declared seconds left.
// The publications know every length; here one of unknown length counts as the longest. O(candidates) a round when few
// change places.
func NewSRTF() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "srtf",
		Summary: "shortest remaining time first, with or without preemption",
		Description: "Orders jobs by the seconds they still need at the replicas they request; ties go to the job submitted first. " +
			"Those are the work left over the rate where elasticity tells both; otherwise the steps left times the step time for a profiled job, unless step_times is off, and the declared work left, taken as seconds. " +
			"The publications know every length; here jobs of unknown length come last. O(candidates) a round when few change places.",
		Source:       "Blox, EuroSys'24; Tiresias, NSDI'19 (shortest, shortest-gpu); Synergy, OSDI'22 (speed)",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, SRTFConfig{Preemptive: true, Queue: queue.Backfill, StepTimes: true, Speed: baseSpeed}, func(c SRTFConfig, _ core.Settings) (core.Allocator, error) {
		return &srtf{preemptive: c.Preemptive, weigh: c.WeighByDevices, steps: c.StepTimes, speeds: speeds{present: c.Speed == presentSpeed}, walk: queue.Walk{Discipline: c.Queue, Keeps: !c.Preemptive}}, nil
	})
}

type srtf struct {
	preemptive, weigh, steps bool
	speeds                   speeds
	order                    queue.Order
	walk                     queue.Walk
}

func (p *srtf) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	now, perNode := v.NowSeconds, v.Cluster.LargestNode()
	p.walk.Begin(v)
	p.walk.KeepPinned(v, candidates)
	p.speeds.begin(v)
	ranks := p.order.Arrange(candidates, func(c *core.Candidate) float64 {
		n := p.walk.Replicas(v, c)
		seconds, _ := remainingSeconds(c, now, n, perNode, p.steps)
		seconds /= p.speeds.of(c, n)
		if p.weigh {
			seconds *= float64(n)
		}
		return seconds
	})
	if !p.preemptive {
		for _, r := range ranks {
			if c := &candidates[r.Index]; c.State == core.Running {
				p.walk.Keep(v, c)
			}
		}
	}
	for _, r := range ranks {
		c := &candidates[r.Index]
		if !p.preemptive && c.State == core.Running {
			continue
		}
		if !p.walk.Offer(v, c) {
			break
		}
	}
	return p.walk.Grants(), nil
}

// remainingSeconds is the time a job still needs on n replicas; NaN when unknown. With steps it is read from the true step times,
// where there are any. declared says that the declared work stands in, of which less is left as time passes.
func remainingSeconds(c *core.Candidate, now float64, n, perNode int, steps bool) (seconds float64, declared bool) {
	rate := c.Response.Rate(core.AnyAccelerator, n, perNode)
	switch {
	case rate > 0 && !math.IsNaN(c.Response.RemainingWork):
		return c.Response.RemainingWork / rate, false
	case steps && c.StepTimes != nil: // the declared work counts iterations
		return c.StepsLeft * stepTime(c.StepTimes, n, perNode), false
	case c.TotalWork > 0 && c.Sensitivity != nil && c.Sensitivity.IterationSeconds > 0:
		return c.RemainingWork(now) * c.Sensitivity.IterationSeconds, true
	case c.TotalWork > 0:
		return c.RemainingWork(now), true
	}
	return math.NaN(), false
}

// stepTime is the seconds of a step on n replicas, consolidated; NaN when they cannot run so.
func stepTime(times *core.StepTimes, n, perNode int) float64 {
	table := times.ManyNodes
	if n <= perNode {
		table = times.OneNode
	}
	if n > len(table) || !(table[n-1] > 0) {
		return math.NaN()
	}
	return table[n-1]
}

// Standing is for ever once every fitting grant runs. From then on the key of a running job never grows and that of
// a waiting one stands still, so running jobs only move up: each waiting job still finds at least those ahead of it
// that left too few devices before. A grant that fits but was not seated breaks the argument: pushed back, it may free
// its count. Without preemption the waiting jobs keep their order behind the running ones, unless one of those loses
// its devices; and when everyone is granted, only the order among running jobs can change.
func (p *srtf) Standing() core.Standing {
	s := core.Standing{UntilSeconds: math.Inf(1), IfSeated: p.walk.Fitted()}
	switch {
	case p.speeds.differ:
		return core.Standing{UntilSeconds: p.speeds.now}
	case !p.preemptive:
		s.IfSeated = p.walk.Kept()
	case p.walk.Discipline == queue.All:
		s.IfSeated = 0
	}
	return p.walk.Standing(s)
}
