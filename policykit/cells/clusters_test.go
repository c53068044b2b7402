package cells

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// drawCluster draws nodes of one size, or of two, with or without racks, and a level within them.
func drawCluster(r *rand.Rand) (*core.Cluster, []GroupConfig) {
	c := &core.Cluster{Accelerators: []string{"t4"}}
	size, perRack := []int{2, 4, 8}[r.IntN(3)], 1+r.IntN(3)
	for i := range perRack * (1 + r.IntN(4)) {
		n := core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("node-%d", i), Devices: size}
		if perRack > 1 {
			n.Rack = fmt.Sprintf("rack-%d", i/perRack)
		}
		if r.IntN(8) == 0 {
			n.Devices = 1 + r.IntN(size)
		}
		c.Nodes = append(c.Nodes, n)
	}
	if r.IntN(2) == 0 && size > 2 {
		return c, []GroupConfig{{Name: "switch", Devices: 2}}
	}
	return c, nil
}

// drawClusters draws tenants whose cells can be had at once.
func drawClusters(r *rand.Rand, tenants int) (*core.Cluster, Config) {
	for {
		c, groups := drawCluster(r)
		levels, err := Shape(c, 0, groups)
		if err != nil {
			continue // the largest node is too small for the level
		}
		chain := newChain(c, 0, levels)
		config := Config{Levels: groups}
		for i, quota := range drawQuota(r, levels, chain.Sound(nil), tenants) {
			t := TenantConfig{Name: fmt.Sprintf("tenant-%d", i)}
			for k, n := range quota {
				if n > 0 {
					t.Cells = append(t.Cells, CellConfig{Level: levels[k].Name, Count: n})
				}
			}
			if len(t.Cells) > 0 {
				config.Tenants = append(config.Tenants, t)
			}
		}
		if ds := config.CheckCluster(c); len(ds) > 0 {
			panic(ds.Error())
		}
		return c, config
	}
}

// counted is the quotas of today: a tenant may have so many devices, of whichever nodes have them, a job the fewest nodes it can.
type counted struct {
	free []int // by node
	left []int // by tenant
	of   map[int][]int
}

func (c *counted) seat(job, tenant, n, perNode int) bool {
	nodes, left := slices.Clone(c.free), n
	for left > 0 {
		part, best := min(left, perNode), -1
		for i, free := range nodes {
			if free >= part && (best < 0 || free < nodes[best]) {
				best = i
			}
		}
		if best < 0 || c.left[tenant] < n {
			return false
		}
		nodes[best] -= part
		left -= part
	}
	taken := make([]int, len(nodes))
	for i := range nodes {
		taken[i] = c.free[i] - nodes[i]
	}
	c.free, c.of[job] = nodes, taken
	c.left[tenant] -= n
	return true
}

func (c *counted) leave(job, tenant, n int) {
	taken, ran := c.of[job]
	if !ran {
		return
	}
	for i := range taken {
		c.free[i] += taken[i]
	}
	c.left[tenant] += n
	delete(c.of, job)
}

// Sharing safety, for jobs: on 10,000 clusters each tenant's jobs are seated as on a private cluster of its cells, and none of those
// that would be is refused. Counted quotas refuse some of the same stream, though the tenant has devices left: sharing anomalies.
func TestASharedClusterServesLikePrivateOnes(t *testing.T) {
	served, anomalies := 0, 0
	for seed := range uint64(10_000) {
		r := rand.New(rand.NewPCG(seed, 2))
		cluster, config := drawClusters(r, 3)
		shared := NewClusters(config)
		shared.Join(cluster)
		var alone []*Clusters
		byCount := counted{of: map[int][]int{}}
		perNode := 0
		for _, n := range cluster.Nodes {
			byCount.free = append(byCount.free, n.Devices)
			perNode = max(perNode, n.Devices)
		}
		for i := range config.Tenants {
			alone = append(alone, NewClusters(config))
			alone[i].Join(cluster)
			byCount.left = append(byCount.left, shared.Devices(Tenant(i), 0))
		}
		type job struct {
			id, n       int
			of          Tenant
			seats, solo []core.Seat
		}
		var jobs []job
		var guests [][]core.Seat // who give way
		strict := r.IntN(2) == 0
		for step := range 50 {
			if len(config.Tenants) > 0 && r.IntN(5) > 1 {
				of := Tenant(r.IntN(len(config.Tenants)))
				n := 1 + r.IntN(max(min(shared.Devices(of, 0), 2*perNode), 1))
				solo, fits := alone[of].Seat(of, 0, n, strict, nil)
				seats, ok := shared.Seat(of, 0, n, strict, nil)
				if ok != fits {
					t.Fatalf("seed %d step %d: %d devices for tenant %d: %v on the shared cluster, %v on its own", seed, step, n, of, ok, fits)
				}
				if !ok {
					continue
				}
				if core.Replicas(seats) != n {
					t.Fatalf("seed %d: seated on %v, wants %d devices", seed, seats, n)
				}
				served++
				used := shared.OpportunisticSeats(seats, nil)
				guests = slices.DeleteFunc(guests, func(guest []core.Seat) bool {
					gives := slices.ContainsFunc(guest, func(s core.Seat) bool {
						return slices.ContainsFunc(used, func(u core.Seat) bool { return u.Node == s.Node && u.Devices&s.Devices != 0 })
					})
					if gives {
						shared.Depart(guest)
					}
					return gives
				})
				if !byCount.seat(step, int(of), n, perNode) {
					anomalies++
				}
				jobs = append(jobs, job{step, n, of, seats, solo})
			} else if len(jobs) > 0 {
				i := r.IntN(len(jobs))
				shared.Leave(jobs[i].of, jobs[i].seats)
				alone[jobs[i].of].Leave(jobs[i].of, jobs[i].solo)
				byCount.leave(jobs[i].id, int(jobs[i].of), jobs[i].n)
				jobs = slices.Delete(jobs, i, i+1)
			} else if guest, ok := shared.Host(0, 1+r.IntN(perNode), nil); ok {
				guests = append(guests, guest)
			}
			checkForest(t, shared.chains[0].Forest)
		}
		for _, guest := range guests {
			jobs = append(jobs, job{seats: guest})
		}
		var ledger core.Ledger
		ledger.Reset(cluster)
		for _, j := range jobs {
			if !ledger.Occupy(j.seats) {
				t.Fatalf("seed %d: a device is given twice", seed)
			}
		}
	}
	t.Logf("%d jobs inside a virtual cluster: 0 refused with cells, %d with counted quotas", served, anomalies)
	if anomalies == 0 {
		t.Error("counted quotas refuse none of the jobs")
	}
}

// A restart that knows where cells were bound and who runs where goes on as if there had been none.
func TestRestart(t *testing.T) {
	for seed := range uint64(1_000) {
		r := rand.New(rand.NewPCG(seed, 3))
		cluster, config := drawClusters(r, 3)
		if len(config.Tenants) == 0 {
			continue
		}
		before, after := NewClusters(config), NewClusters(config)
		before.Join(cluster)
		after.Join(cluster)
		running := map[int][]core.Seat{}
		for i := range 20 {
			of := Tenant(i % len(config.Tenants))
			if seats, ok := before.Seat(of, 0, 1+r.IntN(4), false, nil); ok {
				running[i] = seats
			}
		}
		for i := range 20 {
			if seats, runs := running[i]; runs && r.IntN(2) == 0 {
				before.Leave(Tenant(i%len(config.Tenants)), seats)
				delete(running, i)
			}
		}
		for _, b := range before.Bindings() {
			if err := after.Bind(b); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		for i := range 20 {
			if seats, runs := running[i]; runs && !after.Adopt(Tenant(i%len(config.Tenants)), seats) {
				t.Fatalf("seed %d: job %d is not taken over", seed, i)
			}
		}
		after.Settle()
		if diff := cmp.Diff(before.Bindings(), after.Bindings()); diff != "" {
			t.Fatalf("seed %d: bound (-before +after):\n%s", seed, diff)
		}
		for k := range before.chains[0].cells {
			if a, b := before.chains[0].cells[k], after.chains[0].cells[k]; a.idle != b.idle || a.busy != b.busy || a.state != b.state {
				t.Fatalf("seed %d: cell %d is %+v before and %+v after", seed, k, a, b)
			}
		}
	}
}

func fourNodes() *core.Cluster {
	c := &core.Cluster{Accelerators: []string{"t4"}}
	for i := range 4 {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("node-%d", i), Devices: 4, Rack: fmt.Sprintf("rack-%d", i/2)})
	}
	return c
}

func seatsOf(t *testing.T, v *Clusters, of Tenant, n int, strict bool) []core.Seat {
	t.Helper()
	seats, ok := v.Seat(of, 0, n, strict, nil)
	if !ok {
		t.Fatalf("%d devices are refused to tenant %d", n, of)
	}
	return seats
}

// A virtual cluster loses cells when nodes break only if there are not enough sound ones.
func TestDegraded(t *testing.T) {
	c := fourNodes()
	v := NewClusters(Config{Tenants: []TenantConfig{{Name: "a", Cells: []CellConfig{{Level: LevelNode, Count: 3}}}}})
	v.Join(c)
	seatsOf(t, v, 0, 4, true) // node-0
	c.Nodes[1].Health = core.Down
	v.Join(c)
	if got := seatsOf(t, v, 0, 8, true); got[0].Node != 2 || got[1].Node != 3 {
		t.Errorf("on %v, want the sound nodes 2 and 3", got)
	}
	v.Leave(0, []core.Seat{{Node: 3, Devices: 15}})
	c.Nodes[3].Unusable = 1
	v.Join(c)
	if _, ok := v.Seat(0, 0, 4, false, nil); ok {
		t.Error("a node is seated on a broken one")
	}
	c.Nodes[1].Health = core.Ready
	v.Join(c)
	if got := seatsOf(t, v, 0, 4, true); got[0].Node != 1 {
		t.Errorf("on %v, want node 1, which is mended", got)
	}
}

// Within a virtual cluster small jobs share cells, and a job takes whole cells before parts.
func TestSeatsInside(t *testing.T) {
	v := NewClusters(Config{Tenants: []TenantConfig{{Name: "a", Cells: []CellConfig{{Level: LevelNode, Count: 3}}}}, Levels: []GroupConfig{{Name: "switch", Devices: 2}}})
	v.Join(fourNodes())
	var got [][]core.Seat
	for _, n := range []int{1, 2, 1, 6, 2} {
		got = append(got, seatsOf(t, v, 0, n, true))
	}
	want := [][]core.Seat{
		{{Node: 0, Devices: 1}},
		{{Node: 0, Devices: 0b1100}},
		{{Node: 0, Devices: 2}},
		{{Node: 1, Devices: 15}, {Node: 2, Devices: 3}},
		{{Node: 2, Devices: 0b1100}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seats (-want +got):\n%s", diff)
	}
	v.Leave(0, got[0])
	v.Leave(0, got[4])
	if _, ok := v.Seat(0, 0, 3, true, nil); ok {
		t.Error("a strict job lies in pieces")
	}
	if got := seatsOf(t, v, 0, 3, false); len(got) != 2 {
		t.Errorf("on %v, want the pieces of two nodes", got)
	}
}

// OpportunisticSeats lie on the free cells of the highest level.
func TestGuestsKeepTheirDistance(t *testing.T) {
	v := NewClusters(Config{Tenants: []TenantConfig{{Name: "a", Cells: []CellConfig{{Level: LevelNode, Count: 2}}}}})
	v.Join(fourNodes())
	seatsOf(t, v, 0, 1, true)
	first, _ := v.Host(0, 2, nil)
	if first[0].Node != 2 {
		t.Errorf("a guest on %v, want node 2, of a rack that is free", first)
	}
	if got := seatsOf(t, v, 0, 4, true); got[0].Node != 1 {
		t.Errorf("a node at %v, want node 1, which has no guest", got)
	}
	if _, ok := v.Host(0, 10, nil); ok || v.Unused(0) != 9 {
		t.Errorf("ten devices for a guest, of %d", v.Unused(0))
	}
	all, ok := v.Host(0, 9, nil)
	if !ok || core.Replicas(all) != 9 || v.Unused(0) != 0 {
		t.Errorf("a guest on %v, want all that is left", all)
	}
	v.Depart(first)
	if got, _ := v.Host(0, 2, nil); !slices.Equal(got, first) {
		t.Errorf("a guest on %v, want %v, which another one left", got, first)
	}
}

func TestCheckCluster(t *testing.T) {
	c := fourNodes()
	c.Accelerators = append(c.Accelerators, "v100")
	c.Nodes = append(c.Nodes, core.Node{ID: 4, Name: "spot-0", Accelerator: 1, Devices: 8, Pool: "spot"})
	c.Pools = []core.Pool{{Name: "spot", Accelerator: 1, Devices: 8, Max: 2}}
	of := func(cells ...CellConfig) []TenantConfig { return []TenantConfig{{Name: "a", Cells: cells}} }
	for name, tc := range map[string]struct {
		config Config
		want   string
	}{
		"valid": {Config{Tenants: of(CellConfig{LevelRack, "t4", 1}, CellConfig{LevelNode, "t4", 1}, CellConfig{LevelDevice, "t4", 4})}, ""},
		"a node too many": {
			Config{Tenants: append(of(CellConfig{LevelRack, "t4", 1}), TenantConfig{Name: "b", Cells: []CellConfig{{LevelNode, "t4", 3}}})},
			`tenants[1].cells[0]: tenant "b" cannot have 3 more cells of level node on t4: with those of the tenants before it, 1 node is missing; take cells from a tenant, or add nodes`,
		},
		"no such level": {Config{Tenants: of(CellConfig{"nodes", "t4", 1})}, `tenants[0].cells[0].level: there is no level "nodes" on t4; did you mean "node"? valid levels: device, node, rack`},
		"no such type":  {Config{Tenants: of(CellConfig{LevelNode, "a100", 1})}, `tenants[0].cells[0].accelerator: no node that stays has accelerators of type "a100"; did you mean "v100"? valid types: t4, v100`},
		"no type":       {Config{Tenants: of(CellConfig{LevelNode, "", 1})}, `tenants[0].cells[0].accelerator: required in a cluster of several accelerator types, but missing; valid types: t4, v100`},
		"nodes that may go": {
			Config{Tenants: of(CellConfig{LevelNode, "v100", 1})}, `tenants[0].cells[0].accelerator: no node that stays has accelerators of type "v100"`,
		},
		"a level that does not divide": {
			Config{Tenants: of(CellConfig{LevelNode, "t4", 1}), Levels: []GroupConfig{{Name: "switch", Devices: 3}}},
			`levels: on t4 a node of 4 devices cannot be divided into several of level switch, of 3`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.config.CheckCluster(c).Error(); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	c := Config{
		Tenants: []TenantConfig{{Name: "a"}, {Name: "a", Cells: []CellConfig{{LevelNode, "", 1}}}},
		Levels:  []GroupConfig{{Name: LevelRack, Nodes: 2}, {Name: "row", Nodes: 2, Devices: 2}, {Name: "row", Nodes: 4}, {Name: "one", Devices: 1}},
	}
	want := `levels[0].name: there always is a level rack
levels[1]: give either devices or nodes, more than one
levels[2].name: there are two levels "row"
levels[3]: give either devices or nodes, more than one
tenants[0].cells: must not be empty; a tenant without cells needs no entry
tenants[1].name: tenant "a" is listed twice`
	if got := c.Validate().Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
}
