// Package backend holds what every backend has in common.
package backend

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// Opener opens a backend on a cluster for a workload. It is what the factory of a backend builds.
type Opener interface {
	// Check reports what in its settings does not go with a cluster or with the rounds on it. Paths are those inside its
	// config.
	Check(c *core.Cluster, o core.RoundOptions) core.Diagnostics
	Open(ctx context.Context, c *core.Cluster, w *workload.Workload) (core.Backend, error)
	Capabilities() []core.Capability
}
