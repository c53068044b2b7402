package scaler

import (
	"context"
	"fmt"

	"github.com/quartet-sched/quartet/core"
)

// QueueConfig configures NewQueue.
type QueueConfig struct {
	// Pool is the only pool that is sized; empty for all of them.
	Pool string `config:"pool" doc:"the only pool that is sized; if empty, all are: the cheapest grows first, and the dearest shrinks first"`
}

// CheckCluster refuses a pool that the cluster does not have.
func (c QueueConfig) CheckCluster(k *core.Cluster) core.Diagnostics {
	return checkPool(c.Pool, k)
}

// NewQueue keeps as many nodes as the jobs need with their least numbers of devices, as cluster autoscalers of Kubernetes do:
// they count what was asked for, and know nothing of how fast jobs are. A pool's down_cooldown is how long nodes may be unneeded.
// O(jobs).
func NewQueue() core.Factory[core.ClusterScaler] {
	return core.NewFactory(core.Info{
		Type:         "queue",
		Summary:      "keeps as many nodes as the jobs need with their least numbers of devices",
		Description:  "Counts what jobs ask for and knows nothing of how fast they are, as cluster autoscalers do.",
		Source:       "Kubernetes Cluster Autoscaler",
		Capabilities: []core.Capability{core.CapabilityScaleCluster},
	}, QueueConfig{}, func(c QueueConfig, _ core.Settings) (core.ClusterScaler, error) {
		return &queueScaler{scaled{pool: c.Pool}}, nil
	})
}

type queueScaler struct{ scaled }

func (s *queueScaler) Scale(_ context.Context, v *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	return s.scale(v, plan, s)
}

func (s *queueScaler) nodes(l *ladder) (nodes int, why string) {
	if l.counts() {
		return l.hold(), fmt.Sprintf("%d jobs fill them, and %d devices that are there besides", len(l.jobs), l.others)
	}
	need := 0
	for _, r := range l.jobs {
		need += r.MinReplicas
	}
	for nodes < l.most && l.devices(nodes) < need {
		nodes++
	}
	return nodes, fmt.Sprintf("%d jobs need %d devices, and %d are there besides", len(l.jobs), need, l.others)
}
