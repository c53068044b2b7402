package engine

import (
	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/allocation/pollux"
	"github.com/quartet-sched/quartet/allocation/tiresias"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/elasticity/scaler"
	"github.com/quartet-sched/quartet/placement"
)

// catalog lists what the tests inside this package compose of: they cannot import the list of all built-ins, which imports this package.
func catalog() configs.Catalog {
	return configs.Catalog{
		Workload:   []core.Factory[workload.Source]{workload.NewGenerated()},
		Admission:  []core.Factory[core.Admitter]{admission.NewAcceptAll()},
		Allocation: []core.Factory[core.Allocator]{allocation.NewFIFO(), allocation.NewLAS(), tiresias.New(), pollux.New()},
		Placement:  []core.Factory[core.Placer]{placement.NewConsolidated(), placement.NewProposed()},
		Elasticity: []core.Factory[core.Elasticity]{elasticity.NewFixed(), elasticity.NewGoodput()},
		Scaler:     []core.Factory[core.ClusterScaler]{scaler.NewNone()},
		Backend:    []core.Factory[backend.Opener]{sim.NewSimulator()},
	}
}
