package core

import "testing"

// A placement that takes what is not left is told what it lacks, device by device and node by node.
func TestWhatAPlacementLacks(t *testing.T) {
	first := []Seat{{Node: 0, Devices: 1}}
	holder := &JobSpec{ID: 0, Share: &Share{Milli: 500}, DeviceMemoryGB: 8, CPUs: 3, MemoryGB: 3}
	for name, tc := range map[string]struct {
		how   Sharing
		spec  JobSpec
		seats []Seat
		rule  string
	}{
		"parts":                       {Fractional, JobSpec{Share: &Share{Milli: 501}}, first, RuleDeviceLeft},
		"memory of a device":          {Fractional, JobSpec{Share: &Share{Milli: 250}, DeviceMemoryGB: 9}, first, RuleDeviceLeft},
		"turns":                       {TimeSlice, JobSpec{}, first, RuleDeviceLeft},
		"a slice":                     {Mig, JobSpec{}, first, RuleDeviceLeft},
		"CPUs":                        {Fractional, JobSpec{Share: &Share{Milli: 250}, CPUs: 2}, first, RuleNodeLeft},
		"memory":                      {Fractional, JobSpec{Share: &Share{Milli: 250}, MemoryGB: 1.5}, first, RuleNodeLeft},
		"CPUs, on whole devices":      {Exclusive, JobSpec{CPUs: 2}, []Seat{{Node: 0, Devices: 2}}, RuleNodeLeft},
		"a device twice":              {Exclusive, JobSpec{}, first, RuleDeviceOnce},
		"a device that is not there":  {Fractional, JobSpec{Share: &Share{Milli: 1}}, []Seat{{Node: 0, Devices: 4}}, RuleDeviceOnce},
		"a node that is not there":    {Fractional, JobSpec{Share: &Share{Milli: 1}}, []Seat{{Node: 7, Devices: 1}}, RuleDeviceOnce},
		"a node below all":            {Fractional, JobSpec{Share: &Share{Milli: 1}}, []Seat{{Node: -1, Devices: 1}}, RuleDeviceOnce},
		"the second of several seats": {Fractional, JobSpec{CPUs: 1, Share: &Share{Milli: 1}}, []Seat{{Node: 1, Devices: 1}, {Node: 0, Devices: 3}}, RuleNodeLeft},
	} {
		t.Run(name, func(t *testing.T) {
			node := Node{Devices: 2, DeviceMemoryGB: 16, CPUs: 4, MemoryGB: 4}
			other := node
			other.ID = 1
			c := &Cluster{Sharing: tc.how, MaxOwners: 1, CountsResources: true, Accelerators: []string{"t4"}, Nodes: []Node{node, other}}
			o := occupancy{shares: new(Shares)}
			o.shares.Reset(c)
			if !o.shares.Occupy(holder, first) {
				t.Fatal("the first job does not fit")
			}
			spec := tc.spec
			spec.ID = 1
			p := &Placement{Job: 1, Seats: tc.seats}
			if o.occupy(&Job{JobSpec: &spec}, p) {
				t.Fatal("the placement lacks nothing")
			}
			if got, what := o.lacking(&Job{JobSpec: &spec}, p); got != tc.rule || what == "" {
				t.Errorf("breaks %q, %q, want %q", got, what, tc.rule)
			}
		})
	}
	o := occupancy{}
	if got, _ := o.lacking(&Job{JobSpec: &JobSpec{}}, &Placement{Seats: first}); got != RuleDeviceOnce {
		t.Errorf("breaks %q where whole devices alone are counted, want %q", got, RuleDeviceOnce)
	}
}
