package allocation

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
	"github.com/quartet-sched/quartet/policykit/synergy"
)

// Who comes first of those that finish-time fairness orders.
const (
	worstFirst = "worst"
	bestFirst  = "best"
)

// FTFConfig configures NewFTF.
type FTFConfig struct {
	// First says who comes first: worst, the job that is worst off, or best, a slip of the simulator of Synergy.
	First string `config:"first" doc:"worst: who is worst off comes first; best: who is best off, a slip of the simulator of Synergy, for its figures" enum:"worst|best"`
	// Queue says what happens to the jobs behind one that does not fit; see package queue.
	Queue string `config:"queue" doc:"what happens to the jobs behind one that does not fit: backfill lets them pass, blocking makes them wait, all leaves it to placement" enum:"backfill|blocking|all"`
	// StepTimes reads the true step times and steps left of a profiled job where elasticity gives no curve.
	StepTimes bool `config:"step_times" doc:"read the true step times and steps left of a profiled job without a curve from elasticity; a real backend has none: there the declared work counts as seconds"`
	// Speed says how fast a job that is sensitive to CPUs and memory is taken to be: synergy.BaseSpeed or synergy.PresentSpeed.
	Speed string `config:"speed" doc:"how fast a job is reckoned to be that is sensitive to CPUs and memory: base, as with the part of them that belongs to its devices; present, as with what it has if it runs, and with what it runs best with if it waits" enum:"base|present"`
}

// CountsFractions says that its walk does.
func (FTFConfig) CountsFractions() {}

// Capabilities are those that reading step times needs, besides the work left.
func (c FTFConfig) Capabilities() []core.Capability {
	return queue.StepTimeCapabilities(c.StepTimes)
}

// NewFTF serves the job first that is worst off: whose time from its submission to its end, if it ran from now on, is the longest against that alone.
//
// Source: finish-time fairness (Themis, NSDI'20) as the order that the simulator of Synergy (OSDI'22) makes of it, where by a slip the best off come first. Themis itself
// auctions devices: see themis. Alone is as long as the job has run and still needs at the speed of its base, on the devices that it asks for. Jobs of unknown length come
// last. O(candidates) a round when few change places.
func NewFTF() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "ftf",
		Summary: "the job that is worst off against running alone first",
		Description: "Orders jobs by the seconds since their submission plus those that they still need, as srtf reckons them, over the seconds that they need from beginning to end alone. Preemptive; ties go to the job submitted first. " +
			"O(candidates) a round when few change places.",
		Source:       "Synergy, OSDI'22; Themis, NSDI'20",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, FTFConfig{First: worstFirst, Queue: queue.Backfill, StepTimes: true, Speed: synergy.BaseSpeed}, func(c FTFConfig, _ core.Settings) (core.Allocator, error) {
		p := &ftf{steps: c.StepTimes, speeds: synergy.NewSpeeds(c.Speed), best: c.First == bestFirst, ranks: queue.Order{Drifts: true}, walk: queue.Walk{Discipline: c.Queue}, standing: core.Standing{UntilSeconds: math.Inf(1)}}
		return p, nil
	})
}

type ftf struct {
	steps    bool
	speeds   synergy.Speeds
	best     bool // comes first
	ranks    queue.Order
	walk     queue.Walk
	standing core.Standing
}

func (p *ftf) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	now, perNode := v.NowSeconds, v.Cluster.LargestNode()
	p.speeds.Begin(v)
	p.walk.Begin(v)
	p.walk.KeepPinned(v, candidates)
	for _, r := range p.ranks.ArrangeChanged(v, candidates, func(c *core.Candidate) float64 {
		n := p.walk.Replicas(v, c)
		seconds, _ := queue.RemainingSeconds(c, now, n, perNode, p.steps)
		state := synergy.State{ArrivalSeconds: c.SubmitSeconds, RemainingSeconds: seconds / p.speeds.Of(c, n), DurationSeconds: aloneSeconds(c, now, seconds)}
		if p.best {
			return synergy.MisreadFTF(&state, now, synergy.Capacity{})
		}
		return synergy.FTF(&state, now, synergy.Capacity{})
	}) {
		if !p.walk.Offer(v, &candidates[r.Index]) {
			break
		}
	}
	p.standing = core.Standing{UntilSeconds: now}
	return p.walk.Grants(), nil
}

// aloneSeconds is how long a job takes from beginning to end as fast as it is for what it still needs; what it still needs where nothing is known of the whole.
func aloneSeconds(c *core.Candidate, now, remaining float64) float64 {
	switch left := c.RemainingWork(now); {
	case c.Sensitivity != nil && c.Sensitivity.IterationSeconds > 0:
		return c.TotalWork * c.Sensitivity.IterationSeconds
	case c.TotalWork > 0 && left > 0:
		return remaining * c.TotalWork / left
	}
	return remaining
}

// Standing is for this round: as time passes, those that wait become worse off.
func (p *ftf) Standing() core.Standing { return p.standing }

// Precedes is true: a job may take the devices of those behind it.
func (p *ftf) Precedes() bool { return true }
