package scaler

import (
	"context"
	"fmt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// GoodputConfig configures NewGoodput.
type GoodputConfig struct {
	// Pool is the only pool that is sized; empty for all of them.
	Pool string `config:"pool" doc:"the only pool that is sized; if empty, all are: the cheapest grows first, and the dearest shrinks first"`
	// Up is the yield of a device, as a part of one alone, above which the pool grows.
	Up float64 `config:"up" doc:"the pool grows while a device yields more than this part of what one alone does" min:"0" max:"1"`
	// To is the yield of a device that the pool then grows to.
	To float64 `config:"to" doc:"and then to where a device yields about this part" min:"0" max:"1"`
}

// CheckCluster refuses a pool that the cluster does not have.
func (c GoodputConfig) CheckCluster(k *core.Cluster) core.Diagnostics {
	return checkPool(c.Pool, k)
}

// NewGoodput grows a pool while a further device is still worth its while.
//
// Source: Pollux (OSDI'21), section 5.4.1, of a single job. Of several jobs what a device yields is the largest sum of their speed-ups
// on the devices of a cluster, over the number of those. By the rates of the job elasticity: over goodput it is Pollux's scaler, over
// throughput the throughput-based one that it is compared with. It never shrinks a pool with jobs, for the publication says nothing
// of that; one without any goes back to its least. Deviations: the devices are divided exactly (optim.Division), not by a dry run of
// the composition's allocation; and nodes that make nothing faster are left out. O(nodes × division) a round.
func NewGoodput() core.Factory[core.ClusterScaler] {
	return core.NewFactory(core.Info{
		Type:    "goodput",
		Summary: "grows a pool while a further device is still worth its while",
		Description: "Goes by the rates that the job elasticity gives: with goodput it grows as training becomes able to use large batches, " +
			"with throughput at once. Without jobs the pool goes back to its least.",
		Source:       "Pollux, OSDI'21",
		Capabilities: []core.Capability{core.CapabilityScaleCluster},
	}, GoodputConfig{Up: 2. / 3, To: 0.5}, func(c GoodputConfig, _ core.Settings) (core.ClusterScaler, error) {
		return &goodputScaler{config: c, scaled: scaled{pool: c.Pool}}, nil
	})
}

type goodputScaler struct {
	config GoodputConfig
	scaled
}

func (s *goodputScaler) Scale(_ context.Context, v *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	return s.scale(v, plan, s)
}

func (s *goodputScaler) nodes(l *ladder) (nodes int, why string) {
	if n := l.enough(); n > l.size && l.devices(l.at) > 0 {
		return n, fmt.Sprintf("no job runs on fewer than %d nodes", n)
	}
	yields := func(nodes int) float64 {
		if l.devices(nodes) == 0 {
			return 1 // and so a first node is wanted
		}
		return l.yields(nodes)
	}
	least := max(l.least, min(1, l.most))
	n := goodput.Ramp{Up: s.config.Up, To: s.config.To}.Nodes(l.at, least, l.most, yields)
	for n > max(l.size, least) && l.speedup(n-1) >= l.speedup(n) {
		n-- // the last one makes nothing faster
	}
	n = max(n, least)
	return n, fmt.Sprintf("a device yields %.2f of one alone on %d nodes, and %.2f on %d", yields(l.at), l.size, yields(n), n)
}
