package elasticity

import (
	"context"
	"math"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// MarginalConfig configures NewMarginal.
type MarginalConfig struct {
	Pool        string        `config:"pool" doc:"pool that is sized; the first if empty"`
	ValueOfTime float64       `config:"value_of_time" doc:"what an hour less of a job is worth, in node hours; 0 is the cheapest cluster" min:"0"`
	Pause       time.Duration `config:"pause" doc:"how long work stands still when the pool changes" min:"0s"`
	Horizon     time.Duration `config:"horizon" doc:"for how long a size is expected to be right: the pause is charged against that, or against the work left where it is less" min:"0s"`
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
	pool, ok, err := s.look(v, plan)
	if !ok {
		return core.ClusterTarget{}, err
	}
	if len(s.jobs) == 0 {
		return target(pool, pool.Min, "there are no jobs"), nil
	}
	size := min(v.Cluster.PoolSize(pool.Name), pool.Max)
	n := goodput.Marginal(size, pool.Min, pool.Max, s.valueOfTime(), s.config.Pause.Seconds(), s.stands(size), s.speedup)
	return target(pool, n, "%d nodes cost %.2f node hours for each hour of one device, %d nodes %.2f", size, s.cost(size), n, s.cost(n)), nil
}

// valueOfTime is what an hour less is worth to all jobs, in node hours.
func (s *marginal) valueOfTime() float64 { return s.config.ValueOfTime * float64(len(s.jobs)) }

// cost is what a unit of speed-up costs on so many nodes.
func (s *marginal) cost(nodes int) float64 {
	return (float64(nodes) + s.valueOfTime()) / s.speedup(nodes)
}

// stands is for how long a size is right: the horizon, or what is left to do on so many nodes where that is known and less.
func (s *marginal) stands(nodes int) float64 {
	horizon := s.config.Horizon.Seconds()
	if left := s.secondsLeft(nodes); left > 0 {
		return min(horizon, left)
	}
	return horizon
}

// secondsLeft is how long all work takes that is left on so many nodes; 0 where that is not known.
func (s *marginal) secondsLeft(nodes int) float64 {
	alone := 0.0 // seconds of all jobs on one device each
	for _, r := range s.jobs {
		list := sharesOf(r, s.accelerator, r.MinReplicas, s.perNode)
		if math.IsNaN(r.RemainingWork) || len(list) == 0 {
			return 0
		}
		rate := r.Rate(s.accelerator, r.MinReplicas, s.perNode) / list[0].Value
		alone += r.RemainingWork / rate
	}
	if speedup := s.speedup(nodes); speedup > 0 {
		return alone / speedup
	}
	return 0
}
