package scaler

import (
	"context"
	"fmt"

	"github.com/quartet-sched/quartet/core"
)

// ThroughputConfig configures NewThroughput.
type ThroughputConfig struct {
	// Pool is the only pool that is sized; empty for all of them.
	Pool string `config:"pool" doc:"the only pool that is sized; if empty, all are: the cheapest grows first, and the dearest shrinks first"`
	// Threshold is the part of the average yield that one more node must add.
	Threshold float64 `config:"threshold" doc:"a node is worth its while when it adds more than this part of what those that are there yield on average" min:"0" max:"1"`
	// Spawn is by how many nodes the pool changes at once.
	Spawn int `config:"spawn" doc:"nodes by which the pool changes at once" min:"1"`
}

// CheckCluster refuses a pool that the cluster does not have.
func (c ThroughputConfig) CheckCluster(k *core.Cluster) core.Diagnostics {
	return checkPool(c.Pool, k)
}

// NewThroughput grows a pool step by step while the nodes of a step add enough, and takes those back that do not.
//
// Source: Or, Zhang and Freedman, Resource Elasticity in Distributed Deep Learning (MLSys'20), the rule by efficiency with its
// threshold of 0.1 and a step of one worker. Over the job elasticity throughput it goes by samples a second, as published.
//
// Deviations: rates are those that the job elasticity gives for the best division of the devices among all jobs, where the source
// measures one job, so that a size is judged before it is tried; and a step is of nodes. Without jobs the pool goes back to its least.
// O(jobs × devices × levels) for each of the three sizes looked at.
func NewThroughput() core.Factory[core.ClusterScaler] {
	return core.NewFactory(core.Info{
		Type:    "throughput",
		Summary: "grows a pool step by step while each adds enough",
		Description: "Compares what the nodes of a step add with what nodes yield on average, by the rates that the job elasticity gives. " +
			"Without jobs the pool goes back to its least.",
		Source:       "Or et al., MLSys'20",
		Capabilities: []core.Capability{core.CapabilityScaleCluster},
	}, ThroughputConfig{Threshold: 0.1, Spawn: 1}, func(c ThroughputConfig, _ core.Settings) (core.ClusterScaler, error) {
		return &throughputScaler{config: c, scaled: scaled{pool: c.Pool}}, nil
	})
}

type throughputScaler struct {
	config ThroughputConfig
	scaled
}

func (s *throughputScaler) Scale(_ context.Context, v *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	return s.scale(v, plan, s)
}

func (s *throughputScaler) nodes(l *ladder) (nodes int, why string) {
	size := l.at
	if n := l.enough(); n > size+s.config.Spawn {
		return n, fmt.Sprintf("no job runs on fewer than %d nodes", n)
	}
	fewer, more := max(size-s.config.Spawn, l.least), min(size+s.config.Spawn, l.most)
	switch {
	case fewer < size && !s.adds(l, fewer, size):
		return fewer, fmt.Sprintf("%d nodes add less than %.2f of the average over %d", size, s.config.Threshold, fewer)
	case size < more && s.adds(l, size, more):
		return more, fmt.Sprintf("%d nodes add more than %.2f of the average over %d", more, s.config.Threshold, size)
	}
	return size, fmt.Sprintf("%d nodes add enough, and %d would not", size, more)
}

// adds reports whether the nodes of a step are worth their while.
func (s *throughputScaler) adds(l *ladder, fewer, more int) bool {
	before, after := l.speedup(fewer), l.speedup(more)
	if before <= 0 {
		return after > 0
	}
	return (after-before)/float64(l.devices(more)-l.devices(fewer)) > s.config.Threshold*before/float64(l.devices(fewer))
}
