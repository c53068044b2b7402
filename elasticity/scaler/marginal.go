package scaler

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// MarginalConfig configures NewMarginal.
type MarginalConfig struct {
	// Pool is the only pool that is sized; empty for all of them.
	Pool string `config:"pool" doc:"the only pool that is sized; if empty, all are: the cheapest grows first, and the dearest shrinks first"`
	// ValueOfTime is what an hour less of a job is worth, in node hours.
	ValueOfTime float64 `config:"value_of_time" doc:"what an hour less of a job is worth, in node hours, of the dearest pool where prices differ; 0 is the cheapest cluster" min:"0" max:"1e9"`
	// Pause is how long work stands still when the pool changes.
	Pause time.Duration `config:"pause" doc:"how long work stands still when the pool changes" min:"0s"`
	// Horizon is how long a size is expected to be right.
	Horizon time.Duration `config:"horizon" doc:"for how long a size is expected to be right: the pause is charged against that, or against the work left where it is less" min:"0s"`
}

// CheckCluster refuses a pool that the cluster does not have.
func (c MarginalConfig) CheckCluster(k *core.Cluster) core.Diagnostics { return checkPool(c.Pool, k) }

// CountedRestart is the pause that a change of the pool is charged, and the setting that says so.
func (c MarginalConfig) CountedRestart() (pause time.Duration, setting string) {
	return c.Pause, "pause"
}

// NewMarginal sizes a pool so that nodes and waiting together cost the least.
//
// Idea: of a job, node hours plus the value of its time fall apart into those of its moments, so that at each moment the best number
// of nodes is the one with the least (nodes + value) over the rate; no policy is cheaper at the run time that it yields, but for the
// pauses. These are charged against the time that is left, where it is known. Of several jobs the value is the sum of theirs, for an
// hour is one of each, and the rate the sum of their speed-ups, as the division of the devices that makes it the largest has them.
// O(nodes × division) a round.
func NewMarginal() core.Factory[core.ClusterScaler] {
	return core.NewFactory(core.Info{
		Type:    "marginal",
		Summary: "sizes a pool so that nodes and waiting together cost the least",
		Description: "Has one parameter: what an hour of a job is worth, in node hours. It grows and shrinks. " +
			"Without jobs the pool goes back to its least.",
		Capabilities: []core.Capability{core.CapabilityScaleCluster},
	}, MarginalConfig{ValueOfTime: 4, Pause: 30 * time.Second, Horizon: 15 * time.Minute}, func(c MarginalConfig, _ core.Settings) (core.ClusterScaler, error) {
		return &marginal{config: c, scaled: scaled{pool: c.Pool}}, nil
	})
}

type marginal struct {
	config MarginalConfig
	scaled
}

func (s *marginal) Scale(_ context.Context, v *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	return s.scale(v, plan, s)
}

func (s *marginal) nodes(l *ladder) (nodes int, why string) {
	n := goodput.Marginal(l.at, l.least, l.most, s.valueOfTime(l), s.config.Pause.Seconds(), s.stands(l), l.hours, l.speedup)
	return n, fmt.Sprintf("%d nodes cost %.2f node hours for each hour of one device, %d nodes %.2f", l.at, s.cost(l, l.at), n, s.cost(l, n))
}

// valueOfTime is what an hour less is worth to all jobs, in node hours.
func (s *marginal) valueOfTime(l *ladder) float64 { return s.config.ValueOfTime * float64(len(l.jobs)) }

// cost is what a unit of speed-up costs on so many nodes.
func (s *marginal) cost(l *ladder, nodes int) float64 {
	return (l.hours(nodes) + s.valueOfTime(l)) / l.speedup(nodes)
}

// stands is for how long a size is right: the horizon, or what is left to do on the present nodes where that is known and less.
func (s *marginal) stands(l *ladder) float64 {
	horizon := s.config.Horizon.Seconds()
	if left := s.secondsLeft(l); left > 0 {
		return min(horizon, left)
	}
	return horizon
}

// secondsLeft is how long all work takes that is left on the present nodes; 0 where that is not known.
func (s *marginal) secondsLeft(l *ladder) float64 {
	alone := 0.0 // seconds of all jobs on one device each
	for _, r := range l.jobs {
		list := sharesOf(r, l.accelerator, r.MinReplicas, l.perNode)
		if math.IsNaN(r.RemainingWork) || len(list) == 0 {
			return 0
		}
		rate := r.Rate(l.accelerator, r.MinReplicas, l.perNode) / list[0].Value
		alone += r.RemainingWork / rate
	}
	if speedup := l.speedup(l.at); speedup > 0 {
		return alone / speedup
	}
	return 0
}
