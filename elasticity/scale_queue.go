package elasticity

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// QueueScalerConfig configures NewQueueScaler.
type QueueScalerConfig struct {
	Pool string `config:"pool" doc:"pool that is sized; the first if empty"`
}

// NewQueueScaler keeps as many nodes as the jobs need with their least numbers of devices, as cluster autoscalers of Kubernetes do:
// they count what was asked for, and know nothing of how fast jobs are. A pool's down_cooldown is how long nodes may be unneeded.
// O(jobs).
func NewQueueScaler() core.Factory[core.ClusterScaler] {
	return core.NewFactory(core.Info{
		Type:         "queue",
		Summary:      "keeps as many nodes as the jobs need with their least numbers of devices",
		Description:  "Counts what jobs ask for and knows nothing of how fast they are, as cluster autoscalers do.",
		Source:       "Kubernetes Cluster Autoscaler",
		Capabilities: []core.Capability{core.CapabilityScaleCluster},
	}, QueueScalerConfig{}, func(c QueueScalerConfig, _ core.Settings) (core.ClusterScaler, error) {
		return &queueScaler{scaled{pool: c.Pool}}, nil
	})
}

type queueScaler struct{ scaled }

func (s *queueScaler) Scale(_ context.Context, v *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	pool, ok, err := s.look(v, plan)
	if !ok {
		return core.ClusterTarget{}, err
	}
	need := 0
	for _, r := range s.jobs {
		need += r.MinReplicas
	}
	nodes := (max(need-s.others, 0) + pool.Devices - 1) / pool.Devices
	return target(pool, nodes, "%d jobs need %d devices, and %d are there besides", len(s.jobs), need, s.others), nil
}
