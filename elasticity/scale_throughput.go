package elasticity

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// ThroughputScalerConfig configures NewThroughputScaler.
type ThroughputScalerConfig struct {
	Pool      string  `config:"pool" doc:"pool that is sized; the first if empty"`
	Threshold float64 `config:"threshold" doc:"a node is worth its while when it adds more than this part of what those that are there yield on average" min:"0" max:"1"`
	Spawn     int     `config:"spawn" doc:"nodes by which the pool changes at once" min:"1"`
}

// NewThroughputScaler grows a pool step by step while the nodes of a step add enough, and takes those back that do not.
//
// Source: Or, Zhang and Freedman, Resource Elasticity in Distributed Deep Learning (MLSys'20), the rule by efficiency with its
// threshold of 0.1 and a step of one worker. Over the job elasticity throughput it goes by samples a second, as published.
//
// Deviations: rates are those that the job elasticity tells for the best division of the devices among all jobs, where the source
// measures one job, so that a size is judged before it is tried; and a step is of nodes. Without jobs the pool goes back to its least.
// O(jobs × devices × levels) for each of the three sizes looked at.
func NewThroughputScaler() core.Factory[core.ClusterScaler] {
	return core.NewFactory(core.Info{
		Type:    "throughput",
		Summary: "grows a pool step by step while each adds enough",
		Description: "Compares what the nodes of a step add with what nodes yield on average, by the rates that the job elasticity tells. " +
			"Without jobs the pool goes back to its least.",
		Source:       "Or et al., MLSys'20",
		Capabilities: []core.Capability{core.CapabilityScaleCluster},
	}, ThroughputScalerConfig{Threshold: 0.1, Spawn: 1}, func(c ThroughputScalerConfig, _ core.Settings) (core.ClusterScaler, error) {
		return &throughputScaler{config: c, scaled: scaled{pool: c.Pool}}, nil
	})
}

type throughputScaler struct {
	config ThroughputScalerConfig
	scaled
}

func (s *throughputScaler) Scale(_ context.Context, v *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	pool, ok, err := s.look(v, plan)
	if !ok {
		return core.ClusterTarget{}, err
	}
	if len(s.jobs) == 0 {
		return target(pool, pool.Min, "there are no jobs"), nil
	}
	size := min(v.Cluster.PoolSize(pool.Name), pool.Max)
	if n := s.enough(pool, size); n > size+s.config.Spawn {
		return target(pool, n, "no job runs on fewer than %d nodes", n), nil
	}
	fewer, more := max(size-s.config.Spawn, pool.Min), min(size+s.config.Spawn, pool.Max)
	switch {
	case fewer < size && !s.adds(fewer, size):
		return target(pool, fewer, "%d nodes add less than %.2f of the average over %d", size, s.config.Threshold, fewer), nil
	case size < more && s.adds(size, more):
		return target(pool, more, "%d nodes add more than %.2f of the average over %d", more, s.config.Threshold, size), nil
	}
	return target(pool, size, "%d nodes add enough, and %d would not", size, more), nil
}

// adds reports whether the nodes of a step are worth their while.
func (s *throughputScaler) adds(fewer, more int) bool {
	before, after := s.speedup(fewer), s.speedup(more)
	if before <= 0 {
		return after > 0
	}
	return (after-before)/float64((more-fewer)*s.each) > s.config.Threshold*before/float64(s.devices(fewer))
}
