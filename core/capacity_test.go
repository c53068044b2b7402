package core

import "testing"

func TestCapacityFor(t *testing.T) {
	c := &Cluster{
		Accelerators: []string{"t4", "v100"},
		Nodes: []Node{
			{Accelerator: 0, Devices: 4}, {Accelerator: 1, Devices: 2}, {Accelerator: 1, Devices: 3, Health: Down},
			{Accelerator: 0, Devices: 2, Health: Draining},
		},
	}
	cases := map[string]struct {
		accelerators []string
		want         int
	}{
		"any type":           {nil, 6},
		"one type":           {[]string{"v100"}, 5},
		"the larger of two":  {[]string{"v100", "t4"}, 6},
		"one that is absent": {[]string{"a100", "v100"}, 5},
		"none there is":      {[]string{"a100"}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := &JobSpec{Accelerators: tc.accelerators}
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
