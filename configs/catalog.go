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
	Admission  []core.Factory[core.Admitter]
	Allocation []core.Factory[core.Allocator]
	Placement  []core.Factory[core.Placer]
	Elasticity []core.Factory[core.Elasticity]
	Scaler     []core.Factory[core.ClusterScaler]
	Workload   []core.Factory[workload.Source]
	Backend    []core.Factory[backend.Opener]
}

// WithAdmission adds admitters.
func (c Catalog) WithAdmission(f ...core.Factory[core.Admitter]) Catalog {
	c.Admission = with(c.Admission, f)
	return c
}

// WithAllocation adds allocators.
func (c Catalog) WithAllocation(f ...core.Factory[core.Allocator]) Catalog {
	c.Allocation = with(c.Allocation, f)
	return c
}

// WithPlacement adds placers.
func (c Catalog) WithPlacement(f ...core.Factory[core.Placer]) Catalog {
	c.Placement = with(c.Placement, f)
	return c
}

// WithElasticity adds job elasticities.
func (c Catalog) WithElasticity(f ...core.Factory[core.Elasticity]) Catalog {
	c.Elasticity = with(c.Elasticity, f)
	return c
}

// WithScaler adds cluster scalers.
func (c Catalog) WithScaler(f ...core.Factory[core.ClusterScaler]) Catalog {
	c.Scaler = with(c.Scaler, f)
	return c
}

// WithWorkload adds sources of jobs.
func (c Catalog) WithWorkload(f ...core.Factory[workload.Source]) Catalog {
	c.Workload = with(c.Workload, f)
	return c
}

// WithBackend adds backends, such as that of real processes.
func (c Catalog) WithBackend(f ...core.Factory[backend.Opener]) Catalog {
	c.Backend = with(c.Backend, f)
	return c
}

// Beside adds the policies of another catalog whose types the receiver does not have, such as those of plugins.
func (c Catalog) Beside(other Catalog) Catalog {
	c.Admission = beside(c.Admission, other.Admission)
	c.Allocation = beside(c.Allocation, other.Allocation)
	c.Placement = beside(c.Placement, other.Placement)
	c.Elasticity = beside(c.Elasticity, other.Elasticity)
	c.Scaler = beside(c.Scaler, other.Scaler)
	return c
}

func beside[S any](list, more []core.Factory[S]) []core.Factory[S] {
	return with(list, slices.DeleteFunc(slices.Clone(more), func(f core.Factory[S]) bool {
		return slices.ContainsFunc(list, func(known core.Factory[S]) bool { return known.Type == f.Type })
	}))
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
