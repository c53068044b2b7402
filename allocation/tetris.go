package allocation

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
	"github.com/quartet-sched/quartet/policykit/synergy"
)

// TetrisConfig configures NewTetris.
type TetrisConfig struct {
	// Queue says what happens to the jobs behind one that does not fit; see package queue.
	Queue string `config:"queue" doc:"what happens to the jobs behind one that does not fit: backfill lets them pass, blocking makes them wait, all leaves it to placement" enum:"backfill|blocking|all"`
	// StepTimes reads the true step times and steps left of a profiled job where elasticity gives no curve.
	StepTimes bool `config:"step_times" doc:"read the true step times and steps left of a profiled job without a curve from elasticity; a real backend has none: there the declared work counts as seconds"`
	// Speed says how fast a job that is sensitive to CPUs and memory is taken to be: synergy.BaseSpeed or synergy.PresentSpeed.
	Speed string `config:"speed" doc:"how fast a job is reckoned to be that is sensitive to CPUs and memory: base, as with the part of them that belongs to its devices; present, as with what it has if it runs, and with what it runs best with if it waits" enum:"base|present"`
}

// CountsFractions says that its walk does.
func (TetrisConfig) CountsFractions() {}

// Capabilities are those that reading step times needs, besides the work left.
func (c TetrisConfig) Capabilities() []core.Capability {
	return queue.StepTimeCapabilities(c.StepTimes)
}

// NewTetris serves the job first whose remaining seconds times the parts of the cluster that it wants are the least.
//
// Source: Grandl et al., Tetris (SIGCOMM'14), as the order that the simulator of Synergy (OSDI'22) makes of it: the parts of the devices, the CPUs and the memory are
// added. How jobs are aligned with servers, which is the other half of Tetris, is for placement: dot_product is the nearest. Jobs of unknown length come last.
// O(candidates) a round when few change places.
func NewTetris() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "tetris",
		Summary: "least remaining time times wanted devices, CPUs and memory first",
		Description: "Orders jobs by the seconds they still need, as srtf reckons them, times the sum of the parts of the cluster's devices, CPUs and memory that they want. Preemptive; ties go to the job submitted first. " +
			"Alignment with servers is for placement. O(candidates) a round when few change places.",
		Source:       "Tetris, SIGCOMM'14; Synergy, OSDI'22",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, TetrisConfig{Queue: queue.Backfill, StepTimes: true, Speed: synergy.BaseSpeed}, func(c TetrisConfig, _ core.Settings) (core.Allocator, error) {
		return &tetris{steps: c.StepTimes, speeds: synergy.NewSpeeds(c.Speed), order: queue.Order{Drifts: c.Speed == synergy.PresentSpeed}, walk: queue.Walk{Discipline: c.Queue}}, nil
	})
}

type tetris struct {
	steps  bool
	speeds synergy.Speeds
	fleet  synergy.Fleet
	order  queue.Order
	walk   queue.Walk
}

func (p *tetris) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	now, perNode := v.NowSeconds, v.Cluster.LargestNode()
	p.fleet.CountIn(v)
	p.speeds.Begin(v)
	p.walk.Begin(v)
	p.walk.KeepPinned(v, candidates)
	for _, r := range p.order.ArrangeChanged(v, candidates, func(c *core.Candidate) float64 {
		n := p.walk.Replicas(v, c)
		seconds, _ := queue.RemainingSeconds(c, now, n, perNode, p.steps)
		state := p.fleet.Wanted(c.JobSpec, n)
		state.RemainingSeconds = seconds / p.speeds.Of(c, n)
		return synergy.Tetris(&state, now, p.fleet.Capacity)
	}) {
		if !p.walk.Offer(v, &candidates[r.Index]) {
			break
		}
	}
	return p.walk.Grants(), nil
}

// Standing is that of srtf: what a running job still needs only falls, and what it wants stays.
func (p *tetris) Standing() core.Standing {
	s := core.Standing{UntilSeconds: math.Inf(1), IfSeated: p.walk.Fitted()}
	switch {
	case p.speeds.Differ():
		s = core.Standing{UntilSeconds: p.speeds.Now()}
	case p.walk.Discipline == queue.All:
		s.IfSeated = 0
	}
	return p.walk.Standing(s)
}

// Precedes is true: a job may take the devices of those behind it.
func (p *tetris) Precedes() bool { return true }
