package allocation

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
	"github.com/quartet-sched/quartet/policykit/synergy"
)

// SRTFConfig configures NewSRTF.
type SRTFConfig struct {
	// Preemptive lets a shorter job take the devices of a longer one that runs.
	Preemptive bool `config:"preemptive" doc:"let a shorter job take the devices of a longer one that runs"`
	// WeighByDevices orders by remaining seconds times replicas instead of remaining seconds.
	WeighByDevices bool `config:"weigh_by_devices" doc:"order by remaining seconds times replicas (shortest service first) instead of remaining seconds"`
	// Queue says what happens to the jobs behind one that does not fit; see package queue.
	Queue string `config:"queue" doc:"what happens to the jobs behind one that does not fit: backfill lets them pass, blocking makes them wait, all leaves it to placement" enum:"backfill|blocking|all"`
	// StepTimes reads the true step times and steps left of a profiled job where elasticity gives no curve.
	StepTimes bool `config:"step_times" doc:"read the true step times and steps left of a profiled job without a curve from elasticity; a real backend has none: there the declared work counts as seconds"`
	// Speed says how fast a job that is sensitive to CPUs and memory is taken to be: synergy.BaseSpeed or synergy.PresentSpeed.
	Speed string `config:"speed" doc:"how fast a job is reckoned to be that is sensitive to CPUs and memory: base, as with the part of them that belongs to its devices; present, as with what it has if it runs, and with what it runs best with if it waits" enum:"base|present"`
}

// CountsFractions says that its walk does.
func (SRTFConfig) CountsFractions() {}

// Capabilities are those that reading step times needs, besides the work left.
func (c SRTFConfig) Capabilities() []core.Capability {
	return queue.StepTimeCapabilities(c.StepTimes)
}

// NewSRTF serves the job with the least time left first, which it learns from an oracle.
//
// Source: shortest remaining time first, as in Blox (EuroSys'24) and, with weigh_by_devices, the shortest-gpu schedule
// of Tiresias (NSDI'19). The time left is the work left over the rate at the granted replicas where elasticity gives
// both; otherwise the steps left times the step time for a profiled job, unless step_times is off, and the declared seconds left.
// The publications know every length; here one of unknown length counts as the longest. O(candidates) a round when few
// change places.
func NewSRTF() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "srtf",
		Summary: "shortest remaining time first, with or without preemption",
		Description: "Orders jobs by the seconds they still need at the replicas they request; ties go to the job submitted first. " +
			"Those are the work left over the rate where elasticity gives both; otherwise the steps left times the step time for a profiled job, unless step_times is off, and the declared work left, taken as seconds. " +
			"The publications know every length; here jobs of unknown length come last. O(candidates) a round when few change places.",
		Source:       "Blox, EuroSys'24; Tiresias, NSDI'19 (shortest, shortest-gpu); Synergy, OSDI'22 (speed)",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, SRTFConfig{Preemptive: true, Queue: queue.Backfill, StepTimes: true, Speed: synergy.BaseSpeed}, func(c SRTFConfig, _ core.Settings) (core.Allocator, error) {
		return &srtf{
			preemptive: c.Preemptive, weigh: c.WeighByDevices, steps: c.StepTimes, speeds: synergy.NewSpeeds(c.Speed),
			order: queue.Order{Drifts: c.Speed == synergy.PresentSpeed}, walk: queue.Walk{Discipline: c.Queue, Keeps: !c.Preemptive},
		}, nil
	})
}

type srtf struct {
	preemptive, weigh, steps bool
	speeds                   synergy.Speeds
	order                    queue.Order
	walk                     queue.Walk
}

func (p *srtf) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	now, perNode := v.NowSeconds, v.Cluster.LargestNode()
	p.walk.Begin(v)
	p.walk.KeepPinned(v, candidates)
	p.speeds.Begin(v)
	ranks := p.order.ArrangeChanged(v, candidates, func(c *core.Candidate) float64 {
		n := p.walk.Replicas(v, c)
		seconds, _ := queue.RemainingSeconds(c, now, n, perNode, p.steps)
		seconds /= p.speeds.Of(c, n)
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

// Standing is for ever once every fitting grant runs. From then on the key of a running job never grows and that of
// a waiting one stands still, so running jobs only move up: each waiting job still finds at least those ahead of it
// that left too few devices before. A grant that fits but was not seated breaks the argument: pushed back, it may free
// its count. Without preemption the waiting jobs keep their order behind the running ones, unless one of those loses
// its devices; and when everyone is granted, only the order among running jobs can change.
func (p *srtf) Standing() core.Standing {
	s := core.Standing{UntilSeconds: math.Inf(1), IfSeated: p.walk.Fitted()}
	switch {
	case p.speeds.Differ():
		return core.Standing{UntilSeconds: p.speeds.Now()}
	case !p.preemptive:
		s.IfSeated = p.walk.Kept()
	case p.walk.Discipline == queue.All:
		s.IfSeated = 0
	}
	return p.walk.Standing(s)
}

// Precedes reports whether a job may take the devices of those behind it: with preemption.
func (p *srtf) Precedes() bool { return p.preemptive }
