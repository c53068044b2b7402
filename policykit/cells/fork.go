package cells

import (
	"maps"
	"slices"
)

// Fork is the same cells, bound to the same jobs' devices. Neither sees what becomes of the other. O(devices).
func (v *Clusters) Fork() *Clusters {
	f := &Clusters{Config: v.Config, ranks: v.ranks, nodes: slices.Clone(v.nodes), chains: slices.Clone(v.chains), tenants: slices.Clone(v.tenants)}
	for t := range f.chains {
		k := &f.chains[t]
		k.Forest, k.seats, k.first, k.at = k.fork(), slices.Clone(k.seats), maps.Clone(k.first), slices.Clone(k.at)
	}
	for i := range f.tenants {
		of := &f.tenants[i]
		of.quota, of.unbound, of.bound = slices.Clone(of.quota), slices.Clone(of.unbound), slices.Clone(of.bound)
	}
	return f
}

func (f *Forest) fork() *Forest {
	return &Forest{
		levels: f.levels, cells: slices.Clone(f.cells), heads: slices.Clone(f.heads), guests: f.guests,
		withheld: slices.Clone(f.withheld), unusable: slices.Clone(f.unusable),
	}
}
