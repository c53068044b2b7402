package configs

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// Catalog lists the components that a config may name, by the slot they fill. Its With methods return a catalog with more
// components and leave the receiver as it is; a component takes the place of an earlier one of its type.
type Catalog struct {
	Admission  []core.Factory[core.Admitter]      // policies that admit jobs
	Allocation []core.Factory[core.Allocator]     // policies that say how many devices each job gets
	Placement  []core.Factory[core.Placer]        // policies that say which devices
	Elasticity []core.Factory[core.Elasticity]    // policies that say what a job does with devices
	Scaler     []core.Factory[core.ClusterScaler] // policies that say how many nodes the cluster has
	Workload   []core.Factory[workload.Source]    // sources of jobs
	Backend    []core.Factory[backend.Opener]     // what runs the jobs, such as the simulator
}

// With adds the components of another catalog.
func (c Catalog) With(more Catalog) Catalog {
	return Catalog{
		with(c.Admission, more.Admission), with(c.Allocation, more.Allocation), with(c.Placement, more.Placement),
		with(c.Elasticity, more.Elasticity), with(c.Scaler, more.Scaler), with(c.Workload, more.Workload), with(c.Backend, more.Backend),
	}
}

// WithAdmission adds admitters.
func (c Catalog) WithAdmission(f ...core.Factory[core.Admitter]) Catalog {
	return c.With(Catalog{Admission: f})
}

// WithAllocation adds allocators.
func (c Catalog) WithAllocation(f ...core.Factory[core.Allocator]) Catalog {
	return c.With(Catalog{Allocation: f})
}

// WithPlacement adds placers.
func (c Catalog) WithPlacement(f ...core.Factory[core.Placer]) Catalog {
	return c.With(Catalog{Placement: f})
}

// WithElasticity adds policies of what jobs do with devices.
func (c Catalog) WithElasticity(f ...core.Factory[core.Elasticity]) Catalog {
	return c.With(Catalog{Elasticity: f})
}

// WithScaler adds cluster scalers.
func (c Catalog) WithScaler(f ...core.Factory[core.ClusterScaler]) Catalog {
	return c.With(Catalog{Scaler: f})
}

// WithWorkload adds sources of jobs.
func (c Catalog) WithWorkload(f ...core.Factory[workload.Source]) Catalog {
	return c.With(Catalog{Workload: f})
}

// WithBackend adds backends, such as that of real processes.
func (c Catalog) WithBackend(f ...core.Factory[backend.Opener]) Catalog {
	return c.With(Catalog{Backend: f})
}

// Beside adds the policies of another catalog whose types the receiver does not have, such as those of plugins.
func (c Catalog) Beside(other Catalog) Catalog {
	other.Workload, other.Backend = nil, nil
	return c.With(other).With(c)
}

func with[S any](list, more []core.Factory[S]) []core.Factory[S] {
	list = slices.Clone(list)
	for _, f := range more {
		if i := slices.IndexFunc(list, func(known core.Factory[S]) bool { return known.Type == f.Type }); i >= 0 {
			list[i] = f
		} else {
			list = append(list, f)
		}
	}
	return list
}

func (c Catalog) admission() []core.Factory[core.Admitter]    { return c.Admission }
func (c Catalog) allocation() []core.Factory[core.Allocator]  { return c.Allocation }
func (c Catalog) placement() []core.Factory[core.Placer]      { return c.Placement }
func (c Catalog) elasticity() []core.Factory[core.Elasticity] { return c.Elasticity }
func (c Catalog) scaler() []core.Factory[core.ClusterScaler]  { return c.Scaler }
