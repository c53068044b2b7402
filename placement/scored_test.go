package placement

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/mig"
)

// byScores are the placements by score.
func byScores() map[string]core.Factory[core.Placer] {
	return map[string]core.Factory[core.Placer]{
		"fgd": NewFGD(), "fragmentation": NewFragmentation(), "best_fit": NewBestFit(), "dot_product": NewDotProduct(), "packing": NewPacking(),
		"clustering": NewClustering(), "random": NewRandom(),
	}
}

// drawShared is a cluster whose jobs share devices, or have CPUs and memory of their own, or both.
func drawShared(t *rapid.T) *core.Cluster {
	c := &core.Cluster{
		Accelerators: []string{"t4", "a100"}, CountsResources: rapid.Bool().Draw(t, "count"),
		Sharing:              rapid.SampledFrom([]core.Sharing{core.Exclusive, core.Fractional, core.Mig}).Draw(t, "sharing"),
		OversubscribesMemory: rapid.Bool().Draw(t, "oversubscribe"),
	}
	for i := range core.NodeID(rapid.IntRange(1, 5).Draw(t, "nodes")) {
		n := core.Node{
			ID: i, Accelerator: core.AcceleratorID(rapid.IntRange(0, 1).Draw(t, "type")), Devices: rapid.IntRange(1, 4).Draw(t, "devices"),
			CPUs: float64(rapid.IntRange(0, 16).Draw(t, "cpus")), MemoryGB: float64(rapid.IntRange(0, 16).Draw(t, "memory")),
			Unusable:       core.DeviceSet(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "broken")),
			DeviceMemoryGB: float64(rapid.SampledFrom([]int{0, 16, 80}).Draw(t, "device memory")),
		}
		if rapid.IntRange(0, 7).Draw(t, "down") == 0 {
			n.Health = core.Down
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

func drawSharing(t *rapid.T, id core.JobID, sharing core.Sharing) *core.Job {
	spec := &core.JobSpec{
		ID: id, Requested: rapid.IntRange(1, 6).Draw(t, "replicas"), CPUs: float64(rapid.IntRange(0, 6).Draw(t, "job cpus")) / 2,
		MemoryGB: float64(rapid.IntRange(0, 6).Draw(t, "job memory")) / 2, MixesTypes: rapid.Bool().Draw(t, "mixes"),
		Accelerators: rapid.SampledFrom([][]string{nil, nil, {"t4"}, {"a100"}}).Draw(t, "types"),
	}
	if rapid.Bool().Draw(t, "needs device memory") {
		spec.DeviceMemoryGB = rapid.SampledFrom([]float64{2, 6, 10, 11}).Draw(t, "job device memory")
	}
	if sharing != core.Exclusive && rapid.IntRange(0, 3).Draw(t, "shares") < 3 {
		spec.Requested, spec.Share = rapid.IntRange(1, 6).Draw(t, "parts"), &core.Share{Milli: rapid.SampledFrom([]int{0, 200, 500, 501, 1000}).Draw(t, "milli")}
		if sharing == core.Mig && spec.Share.Milli > 0 {
			spec.Share.Profile = mig.Of(rapid.SampledFrom(mig.Profiles()).Draw(t, "profile")).Name
		}
	}
	spec.MinReplicas = rapid.IntRange(1, spec.Requested).Draw(t, "least")
	j := core.NewJob(spec)
	j.State = core.Waiting
	return j
}

// roomFor is how many replicas of a job a node has room for.
func roomFor(c *core.Cluster, left *core.Shares, j *core.JobSpec, n *core.Node) (most int) {
	if n.Health != core.Ready || !j.Accepts(c, n.Accelerator) {
		return 0
	}
	for device := range n.Devices {
		if left.FitsOn(j, n.ID, device) && left.FitsAt(j, n.ID, most+1) {
			most++
		}
	}
	return most
}

// While jobs come, change, stay and go, every seating keeps to what there is, who may stay stays, and whoever is refused finds no node with room for all of it, nor,
// if it is larger than any or elastic, several. One on several nodes fits on none.
func TestPlacementsByScoreKeepToWhatThereIs(t *testing.T) {
	for name, factory := range byScores() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				config := &ScoredConfig{Spread: rapid.SampledFrom([]string{spreadElastic, spreadLarger}).Draw(t, "spread")}
				policy, err := factory.New(config, core.Settings{Rand: rand.New(rand.NewPCG(1, 2))}) //nolint:gosec // a test
				if err != nil {
					t.Fatal(err)
				}
				v := &core.View{Cluster: drawShared(t)}
				for range rapid.IntRange(1, 8).Draw(t, "rounds") {
					v.Round++
					for range rapid.IntRange(0, 4).Draw(t, "arrivals") {
						v.Jobs = append(v.Jobs, drawSharing(t, core.JobID(len(v.Jobs)), v.Cluster.Sharing))
					}
					if rapid.IntRange(0, 5).Draw(t, "break") == 0 {
						n := &v.Cluster.Nodes[rapid.IntRange(0, len(v.Cluster.Nodes)-1).Draw(t, "which node")]
						n.Health = core.Down - n.Health // up and down
						v.HealthChanges++
					}
					var grants []core.Grant
					for i, j := range v.Jobs {
						switch {
						case j == nil:
						case rapid.IntRange(0, 5).Draw(t, "end") == 0:
							v.Jobs[i] = nil
						case rapid.IntRange(0, 5).Draw(t, "hold back") > 0:
							grants = append(grants, core.Grant{Job: j.ID, Accelerator: core.AnyAccelerator, Replicas: j.Requested})
						}
					}
					seating, err := policy.Place(context.Background(), v, grants)
					if err != nil {
						t.Fatal(err)
					}
					follow(t, v, seating, config.Spread == spreadElastic)
				}
			})
		})
	}
}

// follow checks a seating, and lets its jobs run. Where elastic ones are spread they wait for no node.
func follow(t *rapid.T, v *core.View, seating core.Seating, spread bool) {
	c := v.Cluster
	var left core.Shares
	left.Reset(c)
	placed, slicesOf := map[core.JobID]bool{}, map[core.JobID][]uint8{}
	for _, p := range slices.SortedStableFunc(slices.Values(seating.Placed), func(a, b core.Placement) int { // those who stay keep their slices
		return moves(v, a) - moves(v, b)
	}) {
		j := v.Jobs[p.Job]
		starts := j.Slices()
		if moves(v, p) == 1 {
			starts = nil
		}
		on := map[core.NodeID]core.DeviceSet{}
		for _, s := range p.Seats {
			if on[s.Node]&s.Devices != 0 {
				t.Fatalf("job %d has two replicas on a device: %v", p.Job, p.Seats)
			}
			on[s.Node] |= s.Devices
		}
		if !left.OccupySlices(j.JobSpec, p.Seats, starts) || core.Replicas(p.Seats) != j.Requested {
			t.Fatalf("job %d of %d replicas, %+v, %v CPUs, %v GB: seats %v of %+v", p.Job, j.Requested, j.Share, j.CPUs, j.MemoryGB, p.Seats, seating.Placed)
		}
		types := map[core.AcceleratorID]bool{}
		for _, s := range p.Seats {
			types[c.Nodes[s.Node].Accelerator] = true
		}
		if len(types) > 1 && !j.MixesTypes {
			t.Fatalf("job %d mixes types: %v", p.Job, p.Seats)
		}
		placed[p.Job], slicesOf[p.Job] = true, left.Slices(j.JobSpec, p.Seats)
	}
	for _, p := range seating.Placed {
		if len(p.Seats) == 1 || moves(v, p) == 0 {
			continue
		}
		var others core.Shares
		others.Reset(c)
		for _, o := range seating.Placed {
			if o.Job != p.Job && !others.OccupySlices(v.Jobs[o.Job].JobSpec, o.Seats, slicesOf[o.Job]) {
				t.Fatalf("job %d cannot be where it is", o.Job)
			}
		}
		for i := range c.Nodes {
			if j := v.Jobs[p.Job]; roomFor(c, &others, j.JobSpec, &c.Nodes[i]) >= j.Requested {
				t.Fatalf("job %d is spread over %v, and node %d has room for all %d replicas", p.Job, p.Seats, i, j.Requested)
			}
		}
	}
	for _, u := range seating.Unseated {
		j, idle := v.Jobs[u.Job], [2]int{}
		last := !slices.ContainsFunc(seating.Placed, func(p core.Placement) bool { return p.Job > u.Job && moves(v, p) == 1 })
		if u.Message == shortOfMemory && !lacksMemory(c, &left, j, u, last) {
			t.Fatalf("job %d of %d replicas, %+v and %v GB, is told %s of %+v", u.Job, j.Requested, j.Share, j.DeviceMemoryGB, u.Explain(), c)
		}
		if u.Wanted <= u.Available && u.Reason == core.WaitingForDevices || u.Wanted <= 0 {
			t.Fatalf("job %d of %d replicas, %+v, is told %s", u.Job, j.Requested, j.Share, u.Explain())
		}
		byType, largest := [2]int{}, 0
		for i := range c.Nodes {
			n := &c.Nodes[i]
			k := roomFor(c, &left, j.JobSpec, n)
			if k >= j.Requested {
				t.Fatalf("job %d of %d replicas, %+v, is refused, and node %d has room", u.Job, j.Requested, j.Share, i)
			}
			byType[n.Accelerator] += k
			if j.Accepts(c, n.Accelerator) {
				idle[n.Accelerator] = max(idle[n.Accelerator], c.SeatsOn(j.JobSpec, n))
			}
		}
		largest = max(idle[0], idle[1])
		most := max(byType[0], byType[1])
		if j.MixesTypes {
			most = byType[0] + byType[1]
		}
		if (j.Requested > largest || spread && j.Requested > j.MinReplicas) && most >= j.Requested {
			t.Fatalf("job %d of %d replicas, elastic or larger than any node, is refused, and several have room for %d", u.Job, j.Requested, most)
		}
	}
	for _, j := range v.Jobs {
		if j == nil {
			continue
		}
		i := slices.IndexFunc(seating.Placed, func(p core.Placement) bool { return p.Job == j.ID })
		if j.State == core.Running && i >= 0 && !core.SameSeats(j.Seats, seating.Placed[i].Seats) && usable(c, j.Seats) {
			t.Fatalf("job %d moves from %v to %v", j.ID, j.Seats, seating.Placed[i].Seats)
		}
		if j.State, j.Seats, j.Sliced, j.Held = core.Waiting, nil, nil, 0; i >= 0 {
			j.State, j.Sliced, j.Seats, j.Held = core.Running, &core.Sliced{Starts: slicesOf[j.ID]}, slices.Clone(seating.Placed[i].Seats), core.Replicas(seating.Placed[i].Seats)
		}
	}
}

// lacksMemory reports whether nodes that have all else that a refused job needs have no more memory of their devices than it is told, and, if nobody was
// seated since, whether there is such a node.
func lacksMemory(c *core.Cluster, left *core.Shares, j *core.Job, u core.Verdict, last bool) bool {
	light := *j.JobSpec
	light.DeviceMemoryGB = 0
	lacks := !last
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Health != core.Ready || !j.Accepts(c, n.Accelerator) || roomFor(c, left, &light, n) < j.Requested {
			continue
		}
		enough := 0
		for device := range n.Devices {
			memory := left.DeviceMemoryLeft(n.ID, device)
			if c.Sharing == core.Mig {
				memory = n.DeviceMemoryGB * float64(mig.Of(j.Slice()).Memory) / mig.Slices
			}
			if left.FitsOn(&light, n.ID, device) && memory > u.Available+1e-3 {
				enough++
			}
		}
		if lacks = true; enough >= j.Requested {
			return false
		}
	}
	return lacks && u.Wanted == j.DeviceMemoryGB && u.Available < u.Wanted
}

// moves is 1 for a placement that gives a job other seats than it has.
func moves(v *core.View, p core.Placement) int {
	if j := v.Jobs[p.Job]; j.State == core.Running && core.SameSeats(j.Seats, p.Seats) {
		return 0
	}
	return 1
}

func usable(c *core.Cluster, seats []core.Seat) bool {
	return !slices.ContainsFunc(seats, func(s core.Seat) bool { return s.Devices&^c.Nodes[s.Node].Usable() != 0 })
}

// A job that finds room for some of its replicas alone is drawn for in vain, and again in the next round.
func TestRandomStandsUnlessItDrewInVain(t *testing.T) {
	for name, tc := range map[string]struct {
		placement core.Factory[core.Placer]
		how       core.Sharing
		replicas  int // of a job that needs two nodes, one of which has two devices left
		want      float64
	}{
		"in vain":                {NewRandom(), core.Fractional, 7, 60},
		"in vain, whole devices": {NewRandom(), core.Exclusive, 7, math.Inf(1)},
		"with success":           {NewRandom(), core.Fractional, 6, math.Inf(1)},
		"without draws":          {NewBestFit(), core.Fractional, 7, math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			c := coretest.MakeCluster().Nodes(2, "t4", 4).Obj()
			c.Sharing = tc.how
			v := coretest.MakeView(c).Now(60).Jobs(
				coretest.MakeJob("a").Replicas(2).Running(0, coretest.Seat(0, 0, 1)), coretest.MakeJob("b").Replicas(tc.replicas).Waiting(),
			).Obj()
			p := coretest.Component(tc.placement, nil, nil)
			grants := []core.Grant{{Job: 0, Accelerator: core.AnyAccelerator, Replicas: 2}, {Job: 1, Accelerator: core.AnyAccelerator, Replicas: tc.replicas}}
			seating, err := p.Place(t.Context(), v, grants)
			if err != nil || (len(seating.Placed) == 2) != (tc.replicas == 6) {
				t.Fatalf("seated %+v, error %v", seating, err)
			}
			if until := p.(core.Steady).Standing().UntilSeconds; until != tc.want {
				t.Errorf("stands until %v s, want %v", until, tc.want)
			}
			if _, err := p.Place(t.Context(), v, grants[:1]); err != nil || !math.IsInf(p.(core.Steady).Standing().UntilSeconds, 1) {
				t.Errorf("a round in which nothing is drawn does not stand, or error %v", err)
			}
		})
	}
}
