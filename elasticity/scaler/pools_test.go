package scaler

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// poolsView is a cluster of t4 and v100 with nodes of pools as their bounds say, and fixed ones.
func poolsView(now float64, pools []core.Pool, sizes []int, fixed ...core.Node) *core.View {
	c := &core.Cluster{Accelerators: []string{"t4", "v100"}, Pools: pools, MayGrow: true}
	for i, p := range pools {
		for range sizes[i] {
			c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(len(c.Nodes)), Pool: p.Name, Accelerator: p.Accelerator, Devices: p.Devices})
		}
	}
	for _, n := range fixed {
		n.ID = core.NodeID(len(c.Nodes))
		c.Nodes = append(c.Nodes, n)
	}
	return &core.View{Cluster: c, NowSeconds: now, Devices: c.UsableDevices()}
}

func scalerOf(t interface{ Fatal(...any) }, f core.Factory[core.ClusterScaler], raw map[string]any) core.ClusterScaler {
	config, problems := f.Decode(raw)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	scaler, err := f.New(config, core.Settings{ID: "scaler"})
	if err != nil {
		t.Fatal(err)
	}
	return scaler
}

// jobFor is a job that runs on types only, or on all if none is named.
func jobFor(r *core.Response, on ...string) core.Candidate {
	return core.Candidate{Job: &core.Job{JobSpec: &core.JobSpec{Accelerators: on}}, Response: r}
}

// onBoth is the same job, which runs on devices of several types at once.
func onBoth(c core.Candidate) core.Candidate {
	c.MixesTypes = true
	return c
}

// on is a job that holds a device of a node.
func (c candidates) on(node core.NodeID) candidates {
	j := c[len(c)-1].Job
	j.Seats, j.Held, j.State = []core.Seat{{Node: node, Devices: core.DeviceSet(1)}}, 1, core.Running
	return c
}

type candidates []core.Candidate

// faster is the same of a job that is so many times as fast on v100.
func faster(times float64, r *core.Response) *core.Response {
	v := core.Curve{}
	for _, rate := range r.Curves[0].OneNode {
		v.OneNode = append(v.OneNode, times*rate)
	}
	v.ManyNodes = v.OneNode
	r.Curves = append(r.Curves[:1:1], v)
	return r
}

// atLeast is the same of a job that needs so many devices.
func atLeast(replicas int, r *core.Response) *core.Response {
	r.MinReplicas = replicas
	return r
}

// slowerOnOne is a job that is no faster on more than four t4, and is on v100.
func slowerOnOne() *core.Response {
	r := flat(4, 8, 1)
	r.Curves = append(r.Curves[:1:1], flat(8, 8, 1).Curves[0])
	return r
}

func TestScalersOfSeveralPools(t *testing.T) {
	t.Parallel()
	const t4, v100 = core.AcceleratorID(0), core.AcceleratorID(1)
	demand := core.Pool{Name: "demand", Devices: 4, Max: 4, PricePerHour: 4}
	spot := core.Pool{Name: "spot", Devices: 4, Max: 2, PricePerHour: 1, Spot: true}
	v100s := core.Pool{Name: "v100s", Accelerator: v100, Devices: 4, Max: 4, PricePerHour: 10}
	least := func(p core.Pool, nodes int) core.Pool { p.Min = nodes; return p }
	later := func(p core.Pool, from, price float64) core.Pool {
		p.Prices = []core.Price{{FromSeconds: from, PerHour: price}}
		return p
	}
	costs := func(p core.Pool, price float64) core.Pool { p.PricePerHour = price; return p }
	eight := candidates{jobFor(unknowns(8))}
	for name, tc := range map[string]struct {
		factory func() core.Factory[core.ClusterScaler]
		config  map[string]any
		now     float64
		pools   []core.Pool
		sizes   []int
		fixed   []core.Node
		jobs    []core.Candidate
		want    string
	}{
		"the cheapest grows first":                       {pools: []core.Pool{demand, spot}, sizes: []int{0, 0}, jobs: eight, want: "spot 2, demand 0"},
		"and then the next":                              {pools: []core.Pool{demand, spot}, sizes: []int{0, 0}, jobs: candidates{jobFor(unknowns(16))}, want: "spot 2, demand 2"},
		"all of them are not enough":                     {pools: []core.Pool{demand, spot}, sizes: []int{1, 0}, jobs: candidates{jobFor(unknowns(160))}, want: "spot 2, demand 4"},
		"the dearest shrinks first":                      {pools: []core.Pool{demand, spot}, sizes: []int{2, 2}, jobs: eight, want: "spot 2, demand 0"},
		"what is there does not move for a price":        {pools: []core.Pool{demand, spot}, sizes: []int{2, 0}, jobs: eight, want: "spot 0, demand 2"},
		"but grows where it is cheaper":                  {pools: []core.Pool{demand, spot}, sizes: []int{1, 0}, jobs: eight, want: "spot 1, demand 1"},
		"none is below its least":                        {pools: []core.Pool{least(demand, 1), spot}, sizes: []int{1, 1}, jobs: candidates{jobFor(unknowns(4))}, want: "spot 0, demand 1"},
		"one that is below its least comes first":        {pools: []core.Pool{least(demand, 2), spot}, sizes: []int{0, 0}, jobs: eight, want: "spot 0, demand 2"},
		"the price of the moment, before":                {now: 59, pools: []core.Pool{demand, later(spot, 60, 5)}, sizes: []int{0, 0}, jobs: eight, want: "spot 2, demand 0"},
		"the price of the moment":                        {now: 60, pools: []core.Pool{demand, later(spot, 60, 5)}, sizes: []int{0, 0}, jobs: eight, want: "demand 2, spot 0"},
		"the same price: in their order":                 {pools: []core.Pool{demand, costs(spot, 4)}, sizes: []int{0, 0}, jobs: eight, want: "demand 2, spot 0"},
		"no prices: in their order":                      {pools: []core.Pool{costs(demand, 0), costs(spot, 0)}, sizes: []int{0, 0}, jobs: eight, want: "demand 2, spot 0"},
		"a price is that of a device":                    {pools: []core.Pool{demand, {Name: "small", Devices: 1, Max: 9, PricePerHour: 2}}, sizes: []int{0, 0}, jobs: eight, want: "demand 2, small 0"},
		"only the pool that is named":                    {config: map[string]any{"pool": "demand"}, pools: []core.Pool{demand, spot}, sizes: []int{0, 1}, jobs: eight, want: "demand 1"},
		"a job is on devices of one type":                {pools: []core.Pool{v100s, spot}, sizes: []int{0, 0}, jobs: candidates{jobFor(unknowns(16))}, want: "spot 0, v100s 4"},
		"unless it mixes types":                          {pools: []core.Pool{v100s, spot}, sizes: []int{0, 0}, jobs: candidates{onBoth(jobFor(unknowns(16)))}, want: "spot 2, v100s 2"},
		"as all jobs do":                                 {pools: []core.Pool{v100s, spot}, sizes: []int{0, 0}, jobs: candidates{onBoth(jobFor(unknowns(16))), jobFor(unknowns(4))}, want: "spot 1, v100s 4"},
		"a faster type may be cheaper":                   {pools: []core.Pool{costs(spot, 3), v100s}, sizes: []int{0, 0}, jobs: candidates{jobFor(faster(4, atLeast(8, flat(8, 8, 1))))}, want: "spot 0, v100s 2"},
		"and may not":                                    {pools: []core.Pool{costs(spot, 3), v100s}, sizes: []int{0, 0}, jobs: candidates{jobFor(faster(3, atLeast(8, flat(8, 8, 1))))}, want: "spot 2, v100s 0"},
		"a type for those that can run on it only":       {pools: []core.Pool{v100s, spot}, sizes: []int{0, 0}, jobs: candidates{jobFor(unknowns(8), "v100")}, want: "spot 0, v100s 2"},
		"each its own":                                   {pools: []core.Pool{v100s, spot}, sizes: []int{0, 0}, jobs: candidates{jobFor(unknowns(8), "v100"), jobFor(unknowns(4), "t4")}, want: "spot 1, v100s 2"},
		"who can run on both counts with the cheaper":    {pools: []core.Pool{v100s, spot}, sizes: []int{0, 0}, jobs: candidates{jobFor(unknowns(4), "v100"), jobFor(unknowns(4))}, want: "spot 1, v100s 1"},
		"if there is room beside the others":             {pools: []core.Pool{v100s, spot}, sizes: []int{0, 0}, jobs: candidates{jobFor(unknowns(8)), jobFor(unknowns(4), "t4"), jobFor(unknowns(4), "v100")}, want: "spot 1, v100s 3"},
		"or with what it holds":                          {pools: []core.Pool{v100s, spot}, sizes: []int{1, 0}, jobs: candidates{jobFor(unknowns(4), "t4"), jobFor(unknowns(4))}.on(0), want: "spot 1, v100s 1"},
		"too large for all: where there may be the most": {pools: []core.Pool{v100s, spot}, sizes: []int{0, 0}, jobs: candidates{jobFor(unknowns(1), "t4"), jobFor(unknowns(99))}, want: "spot 1, v100s 4"},
		"nodes that are there come first":                {pools: []core.Pool{spot}, sizes: []int{0}, fixed: []core.Node{{Accelerator: v100, Devices: 8}}, jobs: candidates{jobFor(unknowns(4), "t4"), jobFor(unknowns(8))}, want: "spot 1"},
		"those that a job cannot run on do not help":     {pools: []core.Pool{spot}, sizes: []int{0}, fixed: []core.Node{{Accelerator: v100, Devices: 8}}, jobs: candidates{jobFor(unknowns(8), "t4")}, want: "spot 2"},
		"a pool that nobody can use shrinks":             {pools: []core.Pool{least(v100s, 1), spot}, sizes: []int{3, 0}, jobs: candidates{jobFor(unknowns(4), "t4")}, want: "spot 1, v100s 1"},
		"a job that can run nowhere":                     {pools: []core.Pool{v100s, spot}, sizes: []int{1, 1}, jobs: candidates{jobFor(unknowns(4), "a100"), jobFor(unknowns(4), "t4")}, want: "spot 1, v100s 0"},
		"a pool of more than it may have":                {pools: []core.Pool{demand, spot}, sizes: []int{0, 5}, jobs: candidates{jobFor(unknowns(12))}, want: "spot 2, demand 1"},
		"as dear on both: the first type":                {pools: []core.Pool{costs(v100s, 1), spot}, sizes: []int{0, 0}, jobs: candidates{jobFor(unknowns(4)), jobFor(unknowns(1), "v100")}, want: "spot 1, v100s 1"},
		"as large on both: the first type":               {pools: []core.Pool{costs(v100s, 1), costs(demand, 9)}, sizes: []int{0, 0}, jobs: candidates{jobFor(unknowns(99)), jobFor(unknowns(1), "v100")}, want: "demand 4, v100s 1"},
		"none sized that it can run on":                  {pools: []core.Pool{spot}, sizes: []int{1}, jobs: candidates{jobFor(unknowns(4), "v100")}, fixed: []core.Node{{Accelerator: v100, Devices: 4}}, want: "spot 0"},
		"speed counts by the device":                     {pools: []core.Pool{costs(spot, 3), costs(v100s, 10)}, sizes: []int{0, 0}, jobs: candidates{jobFor(faster(3.5, atLeast(8, flat(8, 8, 1))))}, want: "spot 0, v100s 2"},
		"the pool with room beside the others":           {pools: []core.Pool{spot, costs(demand, 9), v100s}, sizes: []int{0, 0, 0}, jobs: candidates{jobFor(unknowns(8), "t4"), jobFor(unknowns(8), "t4"), jobFor(unknowns(4)), jobFor(unknowns(1), "v100")}, want: "spot 2, demand 3, v100s 1"},
		"goodput: by the rates of its type":              {factory: NewGoodput, pools: []core.Pool{v100s}, sizes: []int{1}, fixed: []core.Node{{Devices: 4}}, jobs: candidates{jobFor(slowerOnOne(), "v100")}, want: "v100s 2"},
		"goodput: beside a larger node of its type":      {factory: NewGoodput, pools: []core.Pool{demand}, sizes: []int{1}, fixed: []core.Node{{Devices: 8}, {Accelerator: v100, Devices: 64}}, jobs: candidates{jobFor(bound(8), "t4")}, want: "demand 1"},
		"goodput: over both":                             {factory: NewGoodput, pools: []core.Pool{demand, spot}, sizes: []int{1, 0}, jobs: candidates{jobFor(flat(12, 64, 1))}, want: "spot 2, demand 1"},
		"goodput: room for the largest":                  {factory: NewGoodput, pools: []core.Pool{demand}, sizes: []int{2}, jobs: candidates{jobFor(flat(1, 4, 1)), jobFor(atLeast(12, flat(12, 12, 1)))}, want: "demand 3"},
		"throughput: room for the largest":               {factory: NewThroughput, pools: []core.Pool{demand}, sizes: []int{4}, jobs: candidates{jobFor(atLeast(12, flat(1, 16, 1)))}, want: "demand 3"},
		"marginal: room for the largest":                 {factory: NewMarginal, config: map[string]any{"value_of_time": 0.0}, pools: []core.Pool{demand}, sizes: []int{1}, jobs: candidates{jobFor(flat(1, 4, 1)), jobFor(atLeast(12, flat(12, 12, 1)))}, want: "demand 3"},
		"too large for all pools: is not waited for":     {factory: NewMarginal, config: map[string]any{"value_of_time": 0.0}, pools: []core.Pool{demand}, sizes: []int{1}, jobs: candidates{jobFor(flat(1, 4, 1)), jobFor(atLeast(17, flat(17, 17, 1)))}, want: "demand 1"},
		"throughput: a step":                             {factory: NewThroughput, pools: []core.Pool{demand, spot}, sizes: []int{1, 1}, jobs: candidates{jobFor(flat(64, 64, 1))}, want: "spot 2, demand 1"},
		"throughput: a step of larger nodes adds less a device": {
			factory: NewThroughput, config: map[string]any{"threshold": 0.6},
			pools: []core.Pool{{Name: "small", Devices: 2, Max: 2, PricePerHour: 1}, {Name: "large", Devices: 8, Max: 2, PricePerHour: 8}}, sizes: []int{2, 0},
			jobs: candidates{jobFor(flat(8, 64, 1))}, want: "small 2, large 0",
		},
		"marginal: time buys cheap nodes": {
			factory: NewMarginal, config: map[string]any{"value_of_time": 0.5, "pause": "0s"},
			pools: []core.Pool{demand, costs(spot, 0.4)}, sizes: []int{1, 0}, jobs: candidates{jobFor(lasting(slowing(64)))}, want: "spot 2, demand 1",
		},
		"marginal: and no dear ones": {
			factory: NewMarginal, config: map[string]any{"value_of_time": 0.5, "pause": "0s"},
			pools: []core.Pool{demand, costs(spot, 4)}, sizes: []int{1, 0}, jobs: candidates{jobFor(lasting(slowing(64)))}, want: "demand 2, spot 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.factory == nil {
				tc.factory = NewQueue
			}
			scaler := scalerOf(t, tc.factory(), tc.config)
			for range 2 { // it remembers nothing
				got, err := scaler.Scale(t.Context(), poolsView(tc.now, tc.pools, tc.sizes, tc.fixed...), &core.Plan{Candidates: tc.jobs})
				if err != nil {
					t.Fatal(err)
				}
				var list []string
				for _, p := range got.Pools {
					list = append(list, fmt.Sprintf("%s %d", p.Pool, p.Nodes))
				}
				if is := strings.Join(list, ", "); is != tc.want {
					t.Errorf("%s, want %s", is, tc.want)
				}
			}
		})
	}
}

// A pool that shrinks for want of jobs says whether there are any.
func TestScalersTellWhyNobody(t *testing.T) {
	t.Parallel()
	pools := []core.Pool{{Name: "p", Devices: 4, Max: 2}}
	for want, jobs := range map[string]candidates{"there are no jobs": nil, "no job is for its devices": {jobFor(unknowns(4), "v100")}} {
		got, err := scalerOf(t, NewMarginal(), nil).Scale(t.Context(), poolsView(0, pools, []int{1}), &core.Plan{Candidates: jobs})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Pools) != 1 || got.Pools[0].Message != want {
			t.Errorf("%+v, want %q", got.Pools, want)
		}
	}
}

// Whatever the pools and jobs: sizes are within the bounds, those who can run on one type only find room there if its pools may have it, and
// from nothing a pool has more than its least only when the cheaper ones of its type have their most.
func TestQueueOverRandomPools(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var pools []core.Pool
		for i := range rapid.IntRange(1, 4).Draw(t, "pools") {
			p := core.Pool{
				Name: fmt.Sprint("p", i), Accelerator: core.AcceleratorID(rapid.IntRange(0, 1).Draw(t, "type")), Devices: rapid.IntRange(1, 4).Draw(t, "devices"),
				Max: rapid.IntRange(0, 5).Draw(t, "most"), PricePerHour: float64(rapid.IntRange(0, 3).Draw(t, "price")),
			}
			p.Min = rapid.IntRange(0, p.Max).Draw(t, "least")
			pools = append(pools, p)
		}
		var jobs []core.Candidate
		var need [2]int
		for range rapid.IntRange(1, 6).Draw(t, "jobs") {
			n := rapid.IntRange(1, 6).Draw(t, "replicas")
			switch on := rapid.IntRange(0, 2).Draw(t, "on"); on {
			case 2:
				jobs = append(jobs, jobFor(unknowns(n)))
			default:
				jobs, need[on] = append(jobs, jobFor(unknowns(n), []string{"t4", "v100"}[on])), need[on]+n
			}
		}
		got, err := scalerOf(t, NewQueue(), nil).Scale(t.Context(), poolsView(0, pools, make([]int, len(pools))), &core.Plan{Candidates: jobs})
		if err != nil {
			t.Fatal(err)
		}
		var most, has [2]int
		size := map[string]int{}
		for _, target := range got.Pools {
			size[target.Pool] = target.Nodes
		}
		for i := range pools {
			p := &pools[i]
			n, told := size[p.Name]
			if !told || n < p.Min || n > p.Max {
				t.Fatalf("%d nodes of %+v, told %v", n, p, told)
			}
			most[p.Accelerator] += p.Max * p.Devices
			has[p.Accelerator] += n * p.Devices
			for k := range pools {
				o := &pools[k]
				if cheaper := o.PricePerHour/float64(o.Devices) < p.PricePerHour/float64(p.Devices); n > p.Min && cheaper && o.Accelerator == p.Accelerator && size[o.Name] < o.Max {
					t.Fatalf("%+v has %d and the cheaper %+v %d", p, n, o, size[o.Name])
				}
			}
		}
		for on := range has {
			if has[on] < min(need[on], most[on]) {
				t.Fatalf("%d devices of type %d for %d of at most %d: %+v", has[on], on, need[on], most[on], got.Pools)
			}
		}
	})
}
