package cells

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// Jobs as large as cells that come the largest first fit a budget just where they find seats in the virtual cluster. In another order, or of other sizes, those
// that lie in no more pieces than they have to fit. What is left is what is idle.
func TestBudgetsCountWhatFindsSeats(t *testing.T) {
	for seed := range uint64(2_000) {
		r := rand.New(rand.NewPCG(seed, 7))
		cluster, config := drawClusters(r, 3)
		v, idle := NewClusters(config), NewClusters(config)
		v.Join(cluster)
		budgets := v.Budgets(nil)
		if len(budgets) != len(config.Tenants) {
			t.Fatalf("%d budgets of %d tenants", len(budgets), len(config.Tenants))
		}
		if len(budgets) == 0 {
			continue
		}
		levels, inOrder := v.chains[0].levels, r.IntN(2) == 0
		var sizes []int
		for range 30 {
			if n := levels[r.IntN(len(levels))].Devices; inOrder || r.IntN(2) == 0 {
				sizes = append(sizes, n)
			} else {
				sizes = append(sizes, 1+r.IntN(2*n))
			}
		}
		if inOrder {
			slices.SortFunc(sizes, func(a, b int) int { return b - a })
		}
		for _, n := range sizes {
			i := r.IntN(len(budgets))
			b, of := &budgets[i], Tenant(i)
			idle.nodes = nil
			idle.Join(cluster)
			if _, ok := idle.Seat(of, 0, n, true, nil); ok != b.Holds(n) {
				t.Fatalf("seed %d: %d devices are held by the idle cluster: %t, want %t", seed, n, b.Holds(n), ok)
			}
			fits := b.Fits(n)
			seats, ok := v.Seat(of, 0, n, true, nil)
			if ascending := slices.IsSortedFunc(seats, func(a, b core.Seat) int { return int(a.Node) - int(b.Node) }); ok && (core.Replicas(seats) != n || !ascending) {
				t.Fatalf("seed %d: %d devices are %v", seed, n, seats)
			}
			for k := range seats {
				if k > 0 && seats[k].Node == seats[k-1].Node {
					t.Fatalf("seed %d: %v has a node twice", seed, seats)
				}
			}
			if inOrder && ok != fits || ok && !fits {
				t.Fatalf("seed %d: %d devices fit: %t, and find seats: %t", seed, n, fits, ok)
			}
			if ok {
				b.Take(n)
			}
			if b.Devices() != v.Devices(of, 0) || b.Left() != v.Idle(of, 0) {
				t.Fatalf("seed %d: %d of %d devices are left, want %d of %d", seed, b.Left(), b.Devices(), v.Idle(of, 0), v.Devices(of, 0))
			}
		}
	}
}

// A virtual cluster of a rack of two nodes, a node and two devices, on nodes of four.
func TestBudget(t *testing.T) {
	t.Parallel()
	v := NewClusters(Config{Tenants: []TenantConfig{
		{Name: "a", Cells: []CellConfig{{Level: LevelRack, Count: 1}, {Level: LevelNode, Count: 1}}}, {Name: "b", Cells: []CellConfig{{Level: LevelDevice, Count: 2}}},
	}})
	v.Join(fourNodes())
	for name, tc := range map[string]struct {
		of    Tenant
		takes []int
		n     int
		fits  bool
		left  int
	}{
		"all of it":                   {0, nil, 12, true, 12},
		"more than that":              {0, nil, 13, false, 12},
		"nothing":                     {0, []int{12}, 0, true, 0},
		"another one of nothing":      {0, []int{12}, 1, false, 0},
		"the rack beside a node":      {0, []int{4}, 8, true, 8},
		"the rack beside two nodes":   {0, []int{4, 4}, 8, false, 4},
		"a node of the rack":          {0, []int{4, 4}, 4, true, 4},
		"a device more than there is": {0, []int{4, 4, 3}, 2, false, 1},
		"the last device":             {0, []int{4, 4, 3}, 1, true, 1},
		"a node where each has a job": {0, []int{4, 4, 1}, 4, false, 3},
		"the rest of that node":       {0, []int{4, 4, 1}, 3, true, 3},
		"small ones share a node":     {0, []int{1, 1, 1, 1}, 8, true, 8},
		"five of them do not":         {0, []int{1, 1, 1, 1, 1}, 8, false, 7},
		"what is taken beyond it":     {0, []int{13}, 1, false, -1},
		"two devices":                 {1, nil, 2, true, 2},
		"three of two":                {1, nil, 3, false, 2},
		"one, and one is taken":       {1, []int{1}, 1, true, 1},
	} {
		b := v.Budgets(nil)[tc.of]
		for _, n := range tc.takes {
			b.Take(n)
		}
		if got := b.Fits(tc.n); got != tc.fits || b.Left() != tc.left {
			t.Errorf("%s: fits %t with %d devices left, want %t with %d", name, got, b.Left(), tc.fits, tc.left)
		}
		if b.Clear(); b.Left() != b.Devices() {
			t.Errorf("%s: of nobody %d devices of %d are left", name, b.Left(), b.Devices())
		}
	}
}

// A guest that cannot be sent away keeps tenants from its devices until it may be, and who they are of is told.
func TestGuestsThatStay(t *testing.T) {
	t.Parallel()
	v := NewClusters(Config{Tenants: []TenantConfig{{Name: "a", Cells: []CellConfig{{Level: LevelNode, Count: 1}}}}})
	c := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "node-0", Devices: 4}}}
	v.Join(c)
	guest, ok := v.Host(0, 1, nil)
	if !ok || core.Replicas(guest) != 1 || v.Unused(0) != 3 {
		t.Fatalf("a guest on %v, %d unused", guest, v.Unused(0))
	}
	v.Stay(guest, true)
	if seats, ok := v.Seat(0, 0, 4, false, nil); ok {
		t.Errorf("a tenant on %v, with a guest that stays", seats)
	}
	v.Stay(guest, false)
	seats, ok := v.Seat(0, 0, 4, false, nil)
	if !ok {
		t.Fatal("a tenant has no seat, and the guest may be sent away")
	}
	if got := v.OpportunisticSeats(seats, nil); len(got) != 1 || got[0] != guest[0] {
		t.Errorf("guests on %v, want %v", got, guest)
	}
	v.Depart(guest)
	if got := v.OpportunisticSeats(seats, nil); len(got) != 0 {
		t.Errorf("guests on %v that left", got)
	}
	if v.Idle(0, 0) != 0 || v.Unused(0) != 0 {
		t.Errorf("%d idle and %d unused of a full node", v.Idle(0, 0), v.Unused(0))
	}
	v.Leave(0, seats)
	if v.Idle(0, 0) != 4 || v.Unused(0) != 4 {
		t.Errorf("%d idle and %d unused of an idle node", v.Idle(0, 0), v.Unused(0))
	}
}

// Two types, each with cells of its own: a tenant has of each what it is promised, and there alone. Cells that say no type are of none of several, and those of levels
// that there are not are left out.
func TestCellsOfSeveralTypes(t *testing.T) {
	t.Parallel()
	v := NewClusters(Config{Tenants: []TenantConfig{
		{Name: "a", Cells: []CellConfig{{LevelNode, "v100", 1}, {LevelNode, "", 1}, {LevelRack, "v100", 1}}},
		{Name: "b", Cells: []CellConfig{{LevelDevice, "t4", 3}, {LevelNode, "v100", 1}, {LevelNode, "k80", 1}}},
	}})
	c := fourNodes()
	c.Accelerators = []string{"t4", "v100", "p100"}
	c.Nodes = append(c.Nodes, core.Node{ID: 4, Name: "v-0", Accelerator: 1, Devices: 8}, core.Node{ID: 5, Name: "v-1", Accelerator: 1, Devices: 8})
	v.Join(c)
	want := [2][3]int{{0, 8, 0}, {3, 8, 0}}
	for of := range Tenant(2) {
		for on := range core.AcceleratorID(3) {
			n := want[of][on]
			if devices, idle := v.Devices(of, on), v.Idle(of, on); devices != n || idle != n {
				t.Errorf("tenant %d has %d devices of type %d, of which %d are idle, want %d", of, devices, on, idle, n)
			}
			if b := &v.Budgets(nil)[int(of)*3+int(on)]; b.Devices() != n || !b.Holds(n) || b.Holds(n+1) {
				t.Errorf("the budget of tenant %d has %d devices of type %d, want %d", of, b.Devices(), on, n)
			}
			if _, ok := v.Seat(of, on, n+1, false, nil); ok {
				t.Errorf("tenant %d has more than %d devices of type %d", of, n, on)
			}
			if n == 0 {
				v.Budgets(nil)[int(of)*3+int(on)].Take(1) // of what it has not
				continue
			}
			seats, ok := v.Seat(of, on, n, false, nil)
			if !ok || core.Replicas(seats) != n || v.Idle(of, on) != 0 {
				t.Errorf("tenant %d is on %v, %d idle, want %d devices of type %d", of, seats, v.Idle(of, on), n, on)
			}
			for _, s := range seats {
				if c.Nodes[s.Node].Accelerator != on {
					t.Errorf("tenant %d is on %v, want type %d", of, seats, on)
				}
			}
		}
	}
	for on, carried := range []bool{true, true, false} {
		if got := v.Carried(core.AcceleratorID(on)); got != carried {
			t.Errorf("type %d is carried: %t, want %t", on, got, carried)
		}
	}
}

// Cells are made anew where the nodes are other ones, and not where they are better or worse.
func TestJoin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*core.Cluster)
		want   bool
	}{
		"nothing":            {func(*core.Cluster) {}, false},
		"a node is down":     {func(c *core.Cluster) { c.Nodes[1].Health = core.Down }, false},
		"another rack":       {func(c *core.Cluster) { c.Nodes[1].Rack = "rack-9" }, true},
		"more devices":       {func(c *core.Cluster) { c.Nodes[1].Devices = 8 }, true},
		"another type":       {func(c *core.Cluster) { c.Accelerators, c.Nodes[1].Accelerator = []string{"t4", "v100"}, 1 }, true},
		"one more":           {func(c *core.Cluster) { c.Nodes = append(c.Nodes, core.Node{ID: 4, Name: "new", Devices: 4}) }, true},
		"nodes that are not": {func(c *core.Cluster) { c.Nodes = c.Nodes[:3] }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := NewClusters(Config{Tenants: []TenantConfig{{Name: "a", Cells: []CellConfig{{LevelNode, "t4", 1}}}}})
			c := fourNodes()
			if !v.Join(c) {
				t.Error("the first nodes are no news")
			}
			seatsOf(t, v, 0, 1, true)
			tc.change(c)
			if got := v.Join(c); got != tc.want || len(v.Bindings()) > 0 == tc.want {
				t.Errorf("cells are made anew: %t, and %v is bound; want %t", got, v.Bindings(), tc.want)
			}
		})
	}
	v := NewClusters(Config{Tenants: []TenantConfig{{Name: "a", Cells: []CellConfig{{LevelNode, "", 1}}}}})
	c := fourNodes()
	c.Nodes[0].Health = core.Down
	v.Join(c)
	if got := seatsOf(t, v, 0, 4, true); got[0].Node == 0 {
		t.Errorf("on %v, of which the first node was down from the beginning", got)
	}
}

func TestWhoseCells(t *testing.T) {
	t.Parallel()
	v := NewClusters(Config{Tenants: []TenantConfig{{Name: "a"}, {Name: "b"}}})
	for name, tc := range map[string]struct {
		job  core.JobSpec
		want Tenant
	}{
		"of a tenant":          {core.JobSpec{Tenant: "b"}, 1},
		"best effort":          {core.JobSpec{Tenant: "b", BestEffort: true}, Guest},
		"of one without cells": {core.JobSpec{Tenant: "c"}, Guest},
		"of nobody":            {core.JobSpec{}, Guest},
	} {
		if got := v.Tenant(&tc.job); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestConfigsAreEqual(t *testing.T) {
	t.Parallel()
	with := func(change func(*Config)) Config {
		c := Config{
			Tenants: []TenantConfig{{Name: "a", Cells: []CellConfig{{LevelNode, "t4", 1}, {LevelDevice, "t4", 2}}}, {Name: "b"}},
			Levels:  []GroupConfig{{Name: "switch", Devices: 2}},
		}
		change(&c)
		return c
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		want   bool
	}{
		"the same":        {func(*Config) {}, true},
		"another tenant":  {func(c *Config) { c.Tenants[1].Name = "c" }, false},
		"other cells":     {func(c *Config) { c.Tenants[0].Cells[1].Count = 3 }, false},
		"one cell less":   {func(c *Config) { c.Tenants[0].Cells = c.Tenants[0].Cells[:1] }, false},
		"one tenant less": {func(c *Config) { c.Tenants = c.Tenants[:1] }, false},
		"another level":   {func(c *Config) { c.Levels[0].Devices = 4 }, false},
		"no level":        {func(c *Config) { c.Levels = nil }, false},
	} {
		if got := with(func(*Config) {}).Equal(with(tc.change)); got != tc.want {
			t.Errorf("%s: equal %t, want %t", name, got, tc.want)
		}
	}
}

// What a restart tells that is not so is refused, and changes nothing.
func TestBindWhatIsNot(t *testing.T) {
	t.Parallel()
	sound := CellBinding{Tenant: "a", Level: LevelNode, Node: "node-1"}
	with := func(change func(*CellBinding)) CellBinding {
		b := sound
		change(&b)
		return b
	}
	for name, tc := range map[string]struct {
		first *CellBinding // bound before
		bound CellBinding
		want  string
	}{
		"sound":                   {nil, sound, ""},
		"the other":               {&sound, with(func(b *CellBinding) { b.Node = "node-2" }), ""},
		"no such tenant":          {nil, with(func(b *CellBinding) { b.Tenant = "c" }), "no such tenant"},
		"no such node":            {nil, with(func(b *CellBinding) { b.Node = "node-9" }), "no such tenant or device"},
		"a node that is gone":     {nil, with(func(b *CellBinding) { b.Node = "gone" }), "no such tenant or device"},
		"a device below 0":        {nil, with(func(b *CellBinding) { b.Device = -1 }), "no such tenant or device"},
		"one behind the last":     {nil, with(func(b *CellBinding) { b.Device = 4 }), "no such tenant or device"},
		"no such level":           {nil, with(func(b *CellBinding) { b.Level = "row" }), "no more cells of level"},
		"a level that it has not": {nil, with(func(b *CellBinding) { b.Level = LevelRack }), "no more cells of level"},
		"not its first device":    {nil, with(func(b *CellBinding) { b.Device = 3 }), "it is not free"},
		"twice":                   {&sound, sound, "it is not free"},
		"another tenant's":        {&CellBinding{Tenant: "b", Level: LevelDevice, Node: "node-1", Device: 2}, sound, "it is not free"},
		"one more than there are": {&CellBinding{Tenant: "b", Level: LevelDevice, Node: "node-1", Device: 2}, CellBinding{Tenant: "b", Level: LevelDevice, Node: "node-2"}, "no more cells of level"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := NewClusters(Config{Tenants: []TenantConfig{{Name: "a", Cells: []CellConfig{{Level: LevelNode, Count: 2}}}, {Name: "b", Cells: []CellConfig{{Level: LevelDevice, Count: 1}}}}})
			c := fourNodes()
			c.Nodes = append(c.Nodes, core.Node{ID: 4, Name: "gone", Devices: 4, Health: core.Gone})
			v.Join(c)
			if tc.first != nil {
				if err := v.Bind(*tc.first); err != nil {
					t.Fatal(err)
				}
			}
			before := len(v.Bindings())
			err := v.Bind(tc.bound)
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%v, want %q", err, tc.want)
			case err == nil && len(v.Bindings()) != before+1, err != nil && len(v.Bindings()) != before:
				t.Errorf("%v is bound after %d", v.Bindings(), before)
			}
			v.Settle()
			if left := v.Bindings(); len(left) > 0 {
				t.Errorf("%v is bound, which nobody uses", left)
			}
		})
	}
}
