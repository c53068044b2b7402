package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/device"
	"github.com/quartet-sched/quartet/core/backend/journal"
)

// UUIDs of devices.
const (
	idA = "GPU-aaaaaaaa-0000-0000-0000-000000000000"
	idB = "GPU-bbbbbbbb-0000-0000-0000-000000000000"
	idC = "GPU-cccccccc-0000-0000-0000-000000000000"
	idD = "GPU-dddddddd-0000-0000-0000-000000000000"
)

// twoTypes is a cluster whose nodes take turns in type.
func twoTypes() *core.Cluster {
	return &core.Cluster{Accelerators: []string{"t4", "h100"}, Nodes: []core.Node{
		{ID: 0, Name: "a", Accelerator: 0, Devices: 1}, {ID: 1, Name: "b", Accelerator: 1, Devices: 1}, {ID: 2, Name: "c", Accelerator: 0, Devices: 2},
	}}
}

func foundDevices() device.Found {
	return device.Found{Devices: []device.Device{
		{Index: 0, UUID: idA, Model: "Tesla T4"},
		{Index: 1, UUID: idB, Model: "Tesla T4"},
		{Index: 2, UUID: idC, Model: "NVIDIA H100 PCIe"},
		{Index: 3, UUID: idD, Model: "Tesla T4"},
	}}
}

// without is what is found when a device is gone.
func without(id string) device.Found {
	var rest device.Found
	for _, d := range foundDevices().Devices {
		if d.UUID != id {
			rest.Devices = append(rest.Devices, d)
		}
	}
	return rest
}

// divided is what is found when a device was divided by MIG.
func divided(id string) device.Found {
	found := foundDevices()
	for i := range found.Devices {
		found.Devices[i].MIG = found.Devices[i].UUID == id
	}
	return found
}

func TestDeal(t *testing.T) {
	cases := map[string]struct {
		cluster *core.Cluster
		found   device.Found
		want    []string
		wantErr []string // parts of the problems, in order
	}{
		"by type, in order": {cluster: twoTypes(), found: foundDevices(), want: []string{idA, idC, idB, idD}},
		"fewer than there are": {
			cluster: &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "a", Devices: 2}}}, found: foundDevices(), want: []string{idA, idB},
		},
		"too few of a type": {
			cluster: twoTypes(), found: without(idB),
			wantErr: []string{`cluster.nodes: node "c" wants 2 of type "t4", this machine has 1 left; found on this machine: 2 of type "t4", 1 of type "h100"`},
		},
		"another type": {
			cluster: machine(), found: foundDevices(),
			wantErr: []string{`node "a" wants 2 of type "gpu", this machine has 0`, `node "b" wants 2 of type "gpu", this machine has 0`},
		},
		"no devices": {
			cluster: machine(), found: device.Found{Reason: "no NVIDIA driver"},
			wantErr: []string{"no device to schedule: no NVIDIA driver", `node "b"`},
		},
		"a divided device": {
			cluster: twoTypes(), found: divided(idC),
			wantErr: []string{`node "b" wants 1 of type "h100", this machine has 0 left; found on this machine: 3 of type "t4"; device 2 is left out, it is divided by MIG`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := adopt(tc.cluster, nil, &supply{found: &tc.found, taken: map[string]bool{}})
			problems, _ := errors.AsType[core.Diagnostics](err)
			if !wantProblems(t, problems, tc.wantErr) {
				return
			}
			if diff := cmp.Diff(tc.want, got.flat()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// wantProblems compares problems with what they should say, and reports whether there are none.
func wantProblems(t *testing.T, problems core.Diagnostics, want []string) bool {
	t.Helper()
	if len(problems) != len(want) {
		t.Fatalf("problems %v, want %d", problems, len(want))
	}
	for i, part := range want {
		if !strings.Contains(problems[i].String(), part) {
			t.Errorf("problem %q, want %q", problems[i], part)
		}
	}
	return len(want) == 0
}

// nodesAre is a cluster of nodes of one type with so many devices.
func nodesAre(list ...any) *core.Cluster {
	c := &core.Cluster{Accelerators: []string{"t4"}}
	for i := 0; i < len(list); i += 2 {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(len(c.Nodes)), Name: list[i].(string), Devices: list[i+1].(int)})
	}
	return c
}

// A run keeps the ids of its nodes and the names of its devices, whatever the config says by now.
func TestARunKeepsItsDevices(t *testing.T) {
	before := &journal.Meta{
		Nodes:   []journal.Node{{Name: "a", Accelerator: "t4", Devices: 2}, {Name: "b", Accelerator: "t4", Devices: 1}},
		Devices: []string{"0", "1", "2"},
	}
	cases := map[string]struct {
		cluster *core.Cluster
		meta    *journal.Meta
		want    map[string][]string // by node
		ids     string
	}{
		"as it was":           {nodesAre("a", 2, "b", 1), before, map[string][]string{"a": {"0", "1"}, "b": {"2"}}, "a b"},
		"in another order":    {nodesAre("b", 1, "a", 2), before, map[string][]string{"a": {"0", "1"}, "b": {"2"}}, "a b"},
		"a node grows":        {nodesAre("a", 4, "b", 1), before, map[string][]string{"a": {"0", "1", "3", "4"}, "b": {"2"}}, "a b"},
		"a node comes":        {nodesAre("c", 2, "a", 2, "b", 1), before, map[string][]string{"a": {"0", "1"}, "b": {"2"}, "c": {"3", "4"}}, "a b c"},
		"a node shrinks":      {nodesAre("a", 1, "b", 1), before, map[string][]string{"a": {"0"}, "b": {"2"}}, "a b"},
		"a node goes":         {nodesAre("b", 1), before, map[string][]string{"a": {}, "b": {"2"}}, "a b"},
		"one for another":     {nodesAre("b", 1, "c", 2), before, map[string][]string{"a": {}, "b": {"2"}, "c": {"0", "1"}}, "a b c"},
		"a node comes back":   {nodesAre("a", 1), &journal.Meta{Nodes: []journal.Node{{Name: "a", Accelerator: "t4"}}}, map[string][]string{"a": {"0"}}, "a"},
		"nodes were not told": {nodesAre("a", 2, "b", 1), &journal.Meta{Devices: before.Devices}, map[string][]string{"a": {"0", "1"}, "b": {"2"}}, "a b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := adopt(tc.cluster, tc.meta, &supply{taken: map[string]bool{}})
			if err != nil {
				t.Fatal(err)
			}
			got, ids := map[string][]string{}, []string{}
			for i, n := range tc.cluster.Nodes {
				got[n.Name] = d.names[i]
				ids = append(ids, n.Name)
				if n.ID != core.NodeID(i) || n.Devices != len(d.names[i]) {
					t.Errorf("node %q has id %d and %d devices", n.Name, n.ID, n.Devices)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || strings.Join(ids, " ") != tc.ids {
				t.Errorf("nodes %v, want %q; names -want +got\n%s", ids, tc.ids, diff)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	dealt := []string{idD, idC, idB, idA} // not as they would be dealt today
	cases := map[string]struct {
		found device.Found
		names []string
		want  []string
		kept  []string
	}{
		"all there":   {found: foundDevices(), names: dealt, kept: dealt},
		"one is gone": {found: without(idB), names: dealt, want: []string{`node "c" wants 2 of type "t4", this machine has 0 left`}},
		"all gone":    {names: dealt, want: []string{`node "a" wants 1`, `node "b" wants 1`, `node "c" wants 2`}},
		"other count": {found: foundDevices(), names: dealt[1:], want: []string{"has 3 devices, the cluster declares 4"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := adopt(twoTypes(), &journal.Meta{Devices: tc.names}, &supply{found: &tc.found, taken: map[string]bool{}})
			problems, _ := errors.AsType[core.Diagnostics](err)
			if !wantProblems(t, problems, tc.want) {
				return
			}
			if diff := cmp.Diff(tc.kept, d.flat()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestDeclaredDevicesAreNumbered(t *testing.T) {
	o := &Opener{config: Config{Devices: declaredDevices}}
	got, err := o.adopt(context.Background(), machine(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3"}, got.flat()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The devices come from a stand-in for nvidia-smi.
func TestDiscoveredDevicesAreNamed(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho '0, " + idA + ", Tesla T4, 15360, [N/A]'\necho '1, " + idB + ", Tesla T4, 15360, [N/A]'\n"
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv(visibleDevices, "") // to be set back,
	if err := os.Unsetenv(visibleDevices); err != nil {
		t.Fatal(err)
	}
	found, err := device.Discover(context.Background())
	if found.Source == "NVML" || err != nil && strings.Contains(err.Error(), "NVML") {
		t.Skipf("this machine has a driver of its own, which is asked before nvidia-smi (run the test where there is none): %v, %v", found, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cluster := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "a", Devices: 2}}}
	o := &Opener{config: Config{Devices: discoveredDevices}}
	got, err := o.adopt(context.Background(), cluster, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{idA, idB}, got.flat()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got, err = o.adopt(context.Background(), cluster, &journal.Meta{Devices: []string{idB, idA}}, nil); err != nil || got.flat()[0] != idB {
		t.Errorf("got %v, %v; want the order of the scheduler before", got, err)
	}
	if _, err = o.adopt(context.Background(), machine(), nil, nil); err == nil {
		t.Error("got no error for a cluster of another type")
	}
}
