package core

import "testing"

// What a rejected job is told that it lacks, on two t4 of 16 GB each, a v100 of 32 GB and nodes of the one that have more CPUs.
func TestLacks(t *testing.T) {
	nodes := []Node{
		{Accelerator: 0, Devices: 2, CPUs: 8, MemoryGB: 40, DeviceMemoryGB: 16}, {Accelerator: 1, Devices: 1, CPUs: 4, MemoryGB: 64.5, DeviceMemoryGB: 32},
	}
	share := func(milli int) *Share { return &Share{Milli: milli} }
	device := func(wanted, available float64) MissingResource {
		return MissingResource{"device memory", wanted, available, "GB", "device"}
	}
	cases := map[string]struct {
		sharing   Sharing
		fixed     bool // the cluster does not grow
		whole     bool // CPUs and memory are not counted
		nodes     []Node
		pools     []Pool
		spec      JobSpec
		want      MissingResource
		wantNames string
	}{
		"nothing":                        {sharing: TimeSlice},
		"as much as there is":            {sharing: TimeSlice, spec: JobSpec{DeviceMemoryGB: 32}, wantNames: "the 32 GB of device memory"},
		"a little more":                  {sharing: TimeSlice, spec: JobSpec{DeviceMemoryGB: 32.001}, want: device(32.001, 32), wantNames: "the 32.001 GB of device memory"},
		"of the type it names":           {sharing: TimeSlice, spec: JobSpec{DeviceMemoryGB: 32, Accelerators: []string{"t4"}}, want: device(32, 16), wantNames: "the 32 GB of device memory"},
		"of the best it names":           {sharing: TimeSlice, spec: JobSpec{DeviceMemoryGB: 32, Accelerators: []string{"t4", "v100"}}, wantNames: "the 32 GB of device memory"},
		"of none that there is":          {sharing: TimeSlice, spec: JobSpec{DeviceMemoryGB: 32, Accelerators: []string{"h100"}}, wantNames: "the 32 GB of device memory"},
		"not counted":                    {sharing: Exclusive, whole: true, spec: JobSpec{DeviceMemoryGB: 64, CPUs: 99}},
		"memory of shared devices alone": {sharing: TimeSlice, whole: true, spec: JobSpec{DeviceMemoryGB: 33}, want: device(33, 32), wantNames: "the 33 GB of device memory"},
		"of devices that nobody shares":  {spec: JobSpec{DeviceMemoryGB: 64}},
		"CPUs not counted":               {sharing: TimeSlice, whole: true, spec: JobSpec{CPUs: 99, MemoryGB: 999}},
		"CPUs":                           {spec: JobSpec{CPUs: 9}, want: MissingResource{"CPUs", 9, 8, "CPUs", "node"}, wantNames: "the 9 CPUs"},
		"memory":                         {spec: JobSpec{CPUs: 8, MemoryGB: 65}, want: MissingResource{"memory", 65, 64.5, "GB", "node"}, wantNames: "the 8 CPUs and the 65 GB of memory"},
		"all three": {
			sharing: TimeSlice, spec: JobSpec{DeviceMemoryGB: 33, CPUs: 9, MemoryGB: 65}, want: device(33, 32),
			wantNames: "the 33 GB of device memory, the 9 CPUs and the 65 GB of memory",
		},
		"each on another node": {spec: JobSpec{CPUs: 8, MemoryGB: 64}, wantNames: "the 8 CPUs and the 64 GB of memory"},
		"not known":            {sharing: TimeSlice, nodes: []Node{{Devices: 1}}, spec: JobSpec{DeviceMemoryGB: 99, CPUs: 99, MemoryGB: 99}, wantNames: "the 99 GB of device memory, the 99 CPUs and the 99 GB of memory"},
		"a node that is gone": {
			sharing: TimeSlice, nodes: []Node{{Devices: 1, DeviceMemoryGB: 16}, {Devices: 1, DeviceMemoryGB: 80, Health: Gone}}, spec: JobSpec{DeviceMemoryGB: 80},
			want: device(80, 16), wantNames: "the 80 GB of device memory",
		},
		"a node that is down": {
			sharing: TimeSlice, nodes: []Node{{Devices: 1, DeviceMemoryGB: 16}, {Devices: 1, DeviceMemoryGB: 80, Health: Down}}, spec: JobSpec{DeviceMemoryGB: 80},
			wantNames: "the 80 GB of device memory",
		},
		"a pool": {sharing: TimeSlice, pools: []Pool{{Name: "p", Devices: 1, Max: 1, DeviceMemoryGB: 48}}, spec: JobSpec{DeviceMemoryGB: 48}, wantNames: "the 48 GB of device memory"},
		"a pool that lacks it": {
			sharing: TimeSlice, pools: []Pool{{Name: "p", Devices: 1, Max: 1, DeviceMemoryGB: 48}}, spec: JobSpec{DeviceMemoryGB: 49}, want: device(49, 48), wantNames: "the 49 GB of device memory",
		},
		"a pool that has all its nodes": {
			sharing: TimeSlice, nodes: []Node{{Devices: 1, DeviceMemoryGB: 16}, {Devices: 1, DeviceMemoryGB: 40, Pool: "p"}}, pools: []Pool{{Name: "p", Devices: 1, Max: 1, DeviceMemoryGB: 48}},
			spec: JobSpec{DeviceMemoryGB: 48}, want: device(48, 40), wantNames: "the 48 GB of device memory",
		},
		"a pool of a cluster that cannot grow": {
			sharing: TimeSlice, fixed: true, pools: []Pool{{Name: "p", Devices: 1, Max: 1, DeviceMemoryGB: 48}}, spec: JobSpec{DeviceMemoryGB: 48}, want: device(48, 32), wantNames: "the 48 GB of device memory",
		},
		"a pool of no nodes": {
			sharing: TimeSlice, pools: []Pool{{Name: "p", Devices: 1, DeviceMemoryGB: 48}}, spec: JobSpec{DeviceMemoryGB: 48}, want: device(48, 32), wantNames: "the 48 GB of device memory",
		},
		"a slice":                             {sharing: Mig, spec: JobSpec{DeviceMemoryGB: 17, Share: share(500)}, want: MissingResource{"device memory", 17, 16, "GB", "slice of its profile"}, wantNames: "the 17 GB of device memory"},
		"nothing of a device that is divided": {sharing: Mig, spec: JobSpec{DeviceMemoryGB: 32, Share: share(0)}, wantNames: "the 32 GB of device memory"},
		"a part":                              {sharing: Fractional, spec: JobSpec{DeviceMemoryGB: 17, Share: share(500)}, wantNames: "the 17 GB of device memory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{Accelerators: []string{"t4", "v100"}, Nodes: nodes, Sharing: tc.sharing, CountsResources: !tc.whole, Pools: tc.pools, MayGrow: tc.pools != nil && !tc.fixed}
			if tc.nodes != nil {
				c.Nodes = tc.nodes
			}
			if got := c.MissingResource(&tc.spec); got != tc.want {
				t.Errorf("lacks %+v, want %+v", got, tc.want)
			}
			if got := c.Counted(&tc.spec); got != tc.wantNames {
				t.Errorf("asks for %q, want %q", got, tc.wantNames)
			}
			var all Capacity
			all.Count(c)
			if capacity, _ := all.For(c, &tc.spec); tc.want.What != "" && capacity > 0 {
				t.Errorf("it lacks %+v, and there is room for %d replicas", tc.want, capacity)
			}
		})
	}
}
