package core

import "testing"

func TestCapacityFor(t *testing.T) {
	c := &Cluster{
		Accelerators: []string{"t4", "v100"},
		Nodes: []Node{
			{Accelerator: 0, Devices: 4},
			{Accelerator: 1, Devices: 2},
			{Accelerator: 1, Devices: 3, Health: Down},
			{Accelerator: 0, Devices: 2, Health: Draining},
		},
	}
	cases := map[string]struct {
		accelerators []string
		mixes        bool
		want         int
	}{
		"any type":                {nil, false, 6},
		"one type":                {[]string{"v100"}, false, 5},
		"the larger of two":       {[]string{"v100", "t4"}, false, 6},
		"one that is absent":      {[]string{"a100", "v100"}, false, 5},
		"none there is":           {[]string{"a100"}, false, 0},
		"all of a job that mixes": {nil, true, 11},
		"those a job mixes":       {[]string{"a100", "v100"}, true, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &JobSpec{Accelerators: tc.accelerators, MixesTypes: tc.mixes}
			var all Capacity
			all.Count(c)
			if got, _ := all.For(c, spec); got != tc.want {
				t.Errorf("Capacity.For: %d, want %d", got, tc.want)
			}
			if got := c.CapacityFor(spec); got != tc.want {
				t.Errorf("capacity %d, want %d", got, tc.want)
			}
			if allocs := testing.AllocsPerRun(10, func() { c.CapacityFor(spec) }); allocs != 0 {
				t.Errorf("%v allocations, want none", allocs)
			}
		})
	}
	if got := (&Cluster{}).CapacityFor(&JobSpec{}); got != 0 {
		t.Errorf("an empty cluster has capacity %d, want 0", got)
	}
}

// What pools may grow to counts, unless nobody has them grow.
func TestCapacityOfPools(t *testing.T) {
	pool := func(health ...Health) *Cluster {
		c := &Cluster{Accelerators: []string{"t4"}, MayGrow: true, Pools: []Pool{{Name: "p", Devices: 2, Max: 3}}, Nodes: []Node{{Devices: 1}}}
		for _, h := range health {
			c.Nodes = append(c.Nodes, Node{Devices: 2, Pool: "p", Health: h})
		}
		return c
	}
	fixed := pool(Ready)
	fixed.MayGrow = false
	cases := map[string]struct {
		cluster *Cluster
		want    int
	}{
		"none yet":                      {pool(), 7},
		"some":                          {pool(Ready, Provisioning), 7},
		"one is gone":                   {pool(Gone, Gone, Ready), 7},
		"one leaves beside all":         {pool(Draining, Ready, Ready, Provisioning), 9},
		"nobody has it grow":            {fixed, 3},
		"one leaves, and others remain": {pool(Draining, Ready), 7},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var k Capacity
			k.Count(tc.cluster)
			if got, _ := k.For(tc.cluster, &JobSpec{}); got != tc.want {
				t.Errorf("capacity %d, want %d", got, tc.want)
			}
		})
	}
}

func TestCapacityOfOneType(t *testing.T) {
	c := &Cluster{Accelerators: []string{"t4", "v100", "k80"}, Nodes: []Node{{Accelerator: 0, Devices: 4}, {Accelerator: 1, Devices: 5}, {Accelerator: 0, Devices: 4}}}
	capacity := Capacity{OneType: true}
	for range 2 { // counted again, nothing adds up
		capacity.Count(c)
	}
	cases := map[string]struct {
		accelerators []string
		want         int
		widest       AcceleratorID
	}{
		"the widest":          {nil, 8, 0},
		"of those it can use": {[]string{"v100", "k80"}, 5, 1},
		"a type without node": {[]string{"k80"}, 0, AnyAccelerator},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, widest := capacity.For(c, &JobSpec{Accelerators: tc.accelerators, MixesTypes: true})
			if got != tc.want || widest != tc.widest {
				t.Errorf("%d devices of type %d, want %d of %d", got, widest, tc.want, tc.widest)
			}
		})
	}
}

func TestMayHave(t *testing.T) {
	nodes := []Node{{Devices: 4, Pool: "p"}, {ID: 1, Devices: 2}, {ID: 2, Devices: 8, Pool: "p", Health: Gone}}
	for name, tc := range map[string]struct {
		grows bool
		pools []Pool
		want  int
	}{
		"no pools":                {true, nil, 6},
		"two more nodes":          {true, []Pool{{Name: "p", Devices: 4, Max: 3}}, 14},
		"two pools":               {true, []Pool{{Name: "p", Devices: 4, Max: 1}, {Name: "q", Devices: 3, Max: 2}}, 12},
		"more nodes than at most": {true, []Pool{{Name: "p", Devices: 4, Max: 0}}, 6},
		"nobody makes it grow":    {false, []Pool{{Name: "p", Devices: 4, Max: 3}}, 6},
	} {
		c := &Cluster{Accelerators: []string{"t4"}, Nodes: nodes, Pools: tc.pools, MayGrow: tc.grows}
		if got := c.MayHave(); got != tc.want {
			t.Errorf("%s: %d devices, want %d", name, got, tc.want)
		}
	}
}

// What a node holds of jobs like one: the seats of a single job, and the replicas of several together.
func TestHolds(t *testing.T) {
	const without = 1 << 30
	for name, tc := range map[string]struct {
		cluster Cluster
		node    Node
		spec    JobSpec
		seats   int
		alike   float64
	}{
		"whole devices":                 {Cluster{}, Node{Devices: 4, CPUs: 1}, JobSpec{CPUs: 2}, 4, 4},
		"no devices":                    {Cluster{CountsResources: true}, Node{CPUs: 8}, JobSpec{CPUs: 2}, 0, 0},
		"CPUs":                          {Cluster{CountsResources: true}, Node{Devices: 4, CPUs: 7}, JobSpec{CPUs: 2}, 3, 3},
		"memory":                        {Cluster{CountsResources: true}, Node{Devices: 4, CPUs: 7, MemoryGB: 5}, JobSpec{CPUs: 2, MemoryGB: 2}, 2, 2},
		"CPUs that nobody tells of":     {Cluster{CountsResources: true}, Node{Devices: 4}, JobSpec{CPUs: 2}, 4, 4},
		"too many CPUs":                 {Cluster{CountsResources: true}, Node{Devices: 4, CPUs: 1}, JobSpec{CPUs: 2}, 0, 0},
		"halves":                        {Cluster{Sharing: Fractional}, Node{Devices: 4}, JobSpec{Share: &Share{Milli: 500}}, 4, 8},
		"more than half":                {Cluster{Sharing: Fractional}, Node{Devices: 4}, JobSpec{Share: &Share{Milli: 501}}, 4, 4},
		"thousandths":                   {Cluster{Sharing: Fractional}, Node{Devices: 4}, JobSpec{Share: &Share{Milli: 1}}, 4, 4000},
		"halves, the memory of devices": {Cluster{Sharing: Fractional}, Node{Devices: 4, DeviceMemoryGB: 16}, JobSpec{DeviceMemoryGB: 9, Share: &Share{Milli: 500}}, 4, 4},
		"tenths that want CPUs":         {Cluster{Sharing: Fractional, CountsResources: true}, Node{Devices: 2, CPUs: 8}, JobSpec{CPUs: 1, Share: &Share{Milli: 100}}, 2, 8},
		"CPUs alone":                    {Cluster{Sharing: Fractional, CountsResources: true}, Node{Devices: 2, CPUs: 8}, JobSpec{CPUs: 1, Share: &Share{}}, 2, 8},
		"nothing":                       {Cluster{Sharing: Fractional}, Node{Devices: 2}, JobSpec{Share: &Share{}}, 2, without},
		"slices, by compute":            {Cluster{Sharing: Mig}, Node{Devices: 2}, JobSpec{Share: &Share{Milli: 100, Profile: "2g"}}, 2, 6},
		"slices, by memory":             {Cluster{Sharing: Mig}, Node{Devices: 2}, JobSpec{Share: &Share{Milli: 400, Profile: "3g"}}, 2, 4},
		"whole, of slices":              {Cluster{Sharing: Mig}, Node{Devices: 2}, JobSpec{}, 2, 2},
		"turns":                         {Cluster{Sharing: TimeSlice, MaxOwners: 4}, Node{Devices: 2}, JobSpec{}, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			seats, alike := tc.cluster.Holds(&tc.spec, &tc.node, tc.node.Devices)
			pool := &Pool{Devices: tc.node.Devices, CPUs: tc.node.CPUs, MemoryGB: tc.node.MemoryGB, DeviceMemoryGB: tc.node.DeviceMemoryGB}
			if s, a := tc.cluster.PoolHolds(&tc.spec, pool); s != seats || a != alike {
				t.Errorf("a node of a pool has %d seats and holds %v, another one %d and %v", s, a, seats, alike)
			}
			if seats != tc.seats || min(alike, without) != tc.alike {
				t.Errorf("%d seats, and holds %v, want %d and %v", seats, alike, tc.seats, tc.alike)
			}
		})
	}
}
