package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// uneven is two types: two nodes with CPUs for two replicas that ask for two CPUs each, and one with CPUs for six of its eight devices.
func uneven() *Cluster {
	return &Cluster{Accelerators: []string{"t4", "v100"}, CountsResources: true, Nodes: []Node{
		{ID: 0, Accelerator: 0, Devices: 4, CPUs: 4}, {ID: 1, Accelerator: 0, Devices: 4, CPUs: 4}, {ID: 2, Accelerator: 1, Devices: 8, CPUs: 13},
	}}
}

// rising is a curve whose rate is the number of replicas, up to eight.
func rising(n int) []float64 { return []float64{1, 2, 3, 4, 5, 6, 7, 8}[:n] }

// What a job may be granted ends where idle nodes do, of each type.
func TestNarrow(t *testing.T) {
	alike := []Curve{{rising(8), rising(8)}}
	for name, tc := range map[string]struct {
		cluster  func(*Cluster)
		spec     JobSpec
		response Response
		want     Response
	}{
		"by type": {nil, JobSpec{CPUs: 2}, Response{MinReplicas: 1, MaxReplicas: 8, Curves: alike}, Response{MinReplicas: 1, MaxReplicas: 6, Curves: []Curve{
			{rising(4), rising(4)}, {rising(6), rising(6)},
		}}},
		"a type that it does not allow": {nil, JobSpec{CPUs: 2, Accelerators: []string{"t4"}}, Response{MinReplicas: 1, MaxReplicas: 8}, Response{MinReplicas: 1, MaxReplicas: 4}},
		"a type that holds none": {nil, JobSpec{CPUs: 5}, Response{MinReplicas: 1, MaxReplicas: 8, Curves: alike}, Response{MinReplicas: 1, MaxReplicas: 2, Curves: []Curve{
			{rising(0), rising(0)}, {rising(2), rising(2)},
		}}},
		"never below the least":        {nil, JobSpec{CPUs: 2}, Response{MinReplicas: 7, MaxReplicas: 8}, Response{MinReplicas: 7, MaxReplicas: 7}},
		"who asks for nothing is free": {nil, JobSpec{}, Response{MinReplicas: 1, MaxReplicas: 8, Curves: alike}, Response{MinReplicas: 1, MaxReplicas: 8, Curves: alike}},
		"as many as a type holds": {nil, JobSpec{CPUs: 1}, Response{MinReplicas: 1, MaxReplicas: 8, Curves: []Curve{{rising(8), rising(8)}}}, Response{MinReplicas: 1, MaxReplicas: 8, Curves: []Curve{
			{rising(8), rising(8)},
		}}},
		"one number of replicas":        {nil, JobSpec{CPUs: 2}, Response{MinReplicas: 8, MaxReplicas: 8, Curves: alike}, Response{MinReplicas: 8, MaxReplicas: 8, Curves: alike}},
		"CPUs are not counted":          {func(c *Cluster) { c.CountsResources = false }, JobSpec{CPUs: 2}, Response{MinReplicas: 1, MaxReplicas: 8, Curves: alike}, Response{MinReplicas: 1, MaxReplicas: 8, Curves: alike}},
		"nodes that are gone":           {func(c *Cluster) { c.Nodes[2].Health = Gone }, JobSpec{CPUs: 2}, Response{MinReplicas: 1, MaxReplicas: 8}, Response{MinReplicas: 1, MaxReplicas: 4}},
		"nodes that are down come back": {func(c *Cluster) { c.Nodes[2].Health = Down }, JobSpec{CPUs: 2}, Response{MinReplicas: 1, MaxReplicas: 8}, Response{MinReplicas: 1, MaxReplicas: 6}},
		"of all types that it mixes":    {nil, JobSpec{CPUs: 2, MixesTypes: true}, Response{MinReplicas: 1, MaxReplicas: 16, Curves: alike}, Response{MinReplicas: 1, MaxReplicas: 10, Curves: alike}},
		"nodes that pools may get": {func(c *Cluster) {
			c.MayGrow, c.Pools = true, []Pool{{Name: "p", Accelerator: 1, Devices: 2, Max: 2, CPUs: 3}}
		}, JobSpec{CPUs: 2}, Response{MinReplicas: 1, MaxReplicas: 16}, Response{MinReplicas: 1, MaxReplicas: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{}
			s.view.Cluster = uneven()
			if tc.cluster != nil {
				tc.cluster(s.view.Cluster)
			}
			got := tc.response
			s.narrow(&Job{JobSpec: &tc.spec}, &got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff([]Curve{{rising(8), rising(8)}}, alike); diff != "" {
		t.Errorf("curves that others share changed:\n%s", diff)
	}
}

// Which types hold a job depends on its least number of replicas, of a candidate on that which its elasticity tells of.
func TestCanRunOn(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster func(*Cluster)
		spec    JobSpec
		told    int // the least number that elasticity tells of; 0 for nobody asked
		want    [2]bool
	}{
		"one replica":              {nil, JobSpec{CPUs: 2, MinReplicas: 1}, 0, [2]bool{true, true}},
		"too many CPUs":            {nil, JobSpec{CPUs: 5, MinReplicas: 1}, 0, [2]bool{false, true}},
		"too much memory":          {func(c *Cluster) { c.Nodes[2].MemoryGB = 1 }, JobSpec{MemoryGB: 2, MinReplicas: 1}, 0, [2]bool{true, false}},
		"too many CPUs everywhere": {nil, JobSpec{CPUs: 14, MinReplicas: 1}, 0, [2]bool{false, false}},
		"a gang":                   {nil, JobSpec{CPUs: 2, MinReplicas: 5}, 0, [2]bool{false, true}},
		"a gang that just fits":    {nil, JobSpec{CPUs: 2, MinReplicas: 4}, 0, [2]bool{true, true}},
		"a gang that mixes types":  {nil, JobSpec{CPUs: 2, MinReplicas: 9, MixesTypes: true}, 9, [2]bool{true, true}},
		"elasticity tells more":    {nil, JobSpec{CPUs: 2, MinReplicas: 1}, 5, [2]bool{false, true}},
		"elasticity tells less":    {nil, JobSpec{CPUs: 2, MinReplicas: 5}, 1, [2]bool{true, true}},
		"a type not allowed":       {nil, JobSpec{CPUs: 2, MinReplicas: 1, Accelerators: []string{"v100"}}, 1, [2]bool{false, true}},
		"not counted":              {func(c *Cluster) { c.CountsResources = false }, JobSpec{CPUs: 99, MinReplicas: 99}, 99, [2]bool{true, true}},
		"of shared devices, their memory": {func(c *Cluster) {
			c.CountsResources, c.Sharing, c.Nodes[2].DeviceMemoryGB = false, TimeSlice, 16
		}, JobSpec{DeviceMemoryGB: 17, MinReplicas: 1}, 1, [2]bool{true, false}},
		"of slices, their part": {func(c *Cluster) {
			c.CountsResources, c.Sharing, c.Nodes[2].DeviceMemoryGB = false, Mig, 16
		}, JobSpec{DeviceMemoryGB: 5, Share: &Share{Milli: 125}, MinReplicas: 1}, 1, [2]bool{true, false}},
		"nodes to come": {func(c *Cluster) {
			c.MayGrow, c.Pools = true, []Pool{{Name: "p", Devices: 1, Max: 1, CPUs: 9}}
		}, JobSpec{CPUs: 9, MinReplicas: 1}, 1, [2]bool{true, true}},
		"nodes that never come": {func(c *Cluster) {
			c.Pools = []Pool{{Name: "p", Devices: 1, Max: 1, CPUs: 9}}
		}, JobSpec{CPUs: 9, MinReplicas: 1}, 1, [2]bool{false, true}},
		"nodes that are gone": {func(c *Cluster) { c.Nodes[2].Health = Gone }, JobSpec{CPUs: 2, MinReplicas: 1}, 1, [2]bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			c := uneven()
			if tc.cluster != nil {
				tc.cluster(c)
			}
			candidate := Candidate{Job: &Job{JobSpec: &tc.spec}}
			if tc.told > 0 {
				candidate.Response = &Response{MinReplicas: tc.told, MaxReplicas: tc.told}
			}
			if got := [2]bool{candidate.CanRunOn(c, 0), candidate.CanRunOn(c, 1)}; got != tc.want {
				t.Errorf("can run on %v: %v, want %v", c.Accelerators, got, tc.want)
			}
		})
	}
}
