package synergy_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	. "github.com/quartet-sched/quartet/policykit/synergy"
)

func resources(cpus, memory float64) core.Resources {
	return core.Resources{CPUs: cpus, MemoryGB: memory}
}

// Two nodes of four a100 with 8 and 16 CPUs, one of two t4 that tells no CPUs, and one of eight v100.
func fleetView() *core.View {
	c := coretest.MakeCluster().Nodes(2, "a100", 4).Nodes(1, "t4", 2).Nodes(1, "v100", 8).Obj()
	c.CountsResources = true
	for i, cpus := range []float64{8, 16, 0, 64} {
		c.Nodes[i].CPUs, c.Nodes[i].MemoryGB = cpus, 40
	}
	return coretest.MakeView(c).Obj()
}

func TestFleet(t *testing.T) {
	t.Parallel()
	greedy := &core.Sensitivity{Base: resources(2, 10), Ideal: resources(6, 10), Speedup: 3}
	for name, tc := range map[string]struct {
		spec     core.JobSpec
		replicas int
		on       core.AcceleratorID
		change   func(*core.Cluster)
		want     Job
	}{
		"the part is that of the poorest, the demand that of the richest": {
			core.JobSpec{Accelerators: []string{"a100"}, Sensitivity: greedy},
			4, core.AnyAccelerator, nil,
			Job{Devices: 4, Kinds: 1, Fair: resources(8, 40), Demand: core.Demand{Resources: resources(16, 40), Speed: 2}},
		},
		"on one type": {
			core.JobSpec{Sensitivity: greedy},
			1, 2, nil,
			Job{Devices: 1, Kinds: 1 << 2, Fair: resources(8, 5), Demand: core.Demand{Resources: resources(6, 10), Speed: 3}},
		},
		"a node that tells nothing is short of nothing": {
			core.JobSpec{Sensitivity: greedy},
			2, 1, nil,
			Job{Devices: 2, Kinds: 1 << 1, Fair: resources(12, 40), Demand: core.Demand{Resources: resources(12, 20), Speed: 3}},
		},
		"larger than a server": {
			core.JobSpec{Accelerators: []string{"a100"}, Sensitivity: greedy},
			6, core.AnyAccelerator, nil,
			Job{Devices: 6, Kinds: 1, Fair: resources(12, 60), Demand: core.Demand{Resources: resources(12, 60), Speed: 1}},
		},
		"what it asks for, and its part of the rest": {
			core.JobSpec{CPUs: 1, MixesTypes: true},
			2, core.AnyAccelerator, nil,
			Job{Devices: 2, Kinds: 0b111, Mixes: true, Fair: resources(4, 10), Demand: core.Demand{Resources: resources(2, 10), Speed: 1}},
		},
		"no type": {core.JobSpec{Accelerators: []string{"p100"}}, 1, core.AnyAccelerator, nil, Job{Devices: 1, Demand: core.Demand{Speed: 1}}},
		"nobody counts": {
			core.JobSpec{CPUs: 9, Sensitivity: greedy},
			1, core.AnyAccelerator, func(c *core.Cluster) { c.CountsResources = false },
			Job{Devices: 1, Kinds: 0b111, Demand: core.Demand{Speed: 1}},
		},
		"nodes that are down have nothing": {
			core.JobSpec{Accelerators: []string{"a100"}},
			1, core.AnyAccelerator, func(c *core.Cluster) { c.Nodes[0].Health = core.Down },
			Job{Devices: 1, Kinds: 1, Fair: resources(4, 10), Demand: core.Demand{Resources: resources(4, 10), Speed: 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := fleetView()
			var f Fleet
			f.CountIn(v)
			if tc.change != nil {
				tc.change(v.Cluster)
				v.HealthChanges++
				f.CountIn(v)
			}
			if diff := cmp.Diff(tc.want, f.Job(&tc.spec, tc.replicas, tc.on)); diff != "" {
				t.Errorf("job (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFleetServers(t *testing.T) {
	t.Parallel()
	v := fleetView()
	var f Fleet
	f.CountIn(v)
	if diff := cmp.Diff(Capacity{Devices: 18, Resources: resources(88, 160)}, f.Capacity); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
	if got, want := f.Server(&v.Cluster.Nodes[2]), (Server{Devices: 2, Resources: resources(math.Inf(1), 40), Kind: 1}); got != want {
		t.Errorf("a server that tells no CPUs is %+v, want %+v", got, want)
	}
	v.Cluster.Nodes[3].Health = core.Draining
	v.HealthChanges++
	f.CountIn(v)
	if got := f.Server(&v.Cluster.Nodes[3]); got.Devices != 0 || f.Devices != 10 {
		t.Errorf("a draining node has %d devices, the cluster %d", got.Devices, f.Devices)
	}
}

// What was counted is counted anew in another cluster, and where nodes were added.
func TestFleetOfAnotherCluster(t *testing.T) {
	t.Parallel()
	var f Fleet
	f.CountIn(fleetView())
	other := fleetView()
	other.Cluster.CountsResources = false
	f.CountIn(other)
	if want := (Capacity{Devices: 18}); f.Capacity != want {
		t.Errorf("a cluster that counts devices alone has %+v, want %+v", f.Capacity, want)
	}
	endless := resources(math.Inf(1), math.Inf(1))
	if got, want := f.Server(&other.Cluster.Nodes[0]), (Server{Devices: 4, Resources: endless}); got != want {
		t.Errorf("its server is %+v, want %+v", got, want)
	}
	added := other.Cluster.Nodes[0]
	added.ID = core.NodeID(len(other.Cluster.Nodes))
	other.Cluster.Nodes = append(other.Cluster.Nodes, added)
	f.CountIn(other)
	if f.Devices != 22 {
		t.Errorf("with four more there are %d devices, want 22", f.Devices)
	}
	without := fleetView()
	without.Cluster.Nodes[1].MemoryGB = 0
	f.CountIn(without)
	if got, want := f.Server(&without.Cluster.Nodes[1]), (Server{Devices: 4, Resources: resources(16, math.Inf(1))}); got != want {
		t.Errorf("a server that tells no memory is %+v, want %+v", got, want)
	}
}
