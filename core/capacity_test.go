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
