package pollux

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// powers are the kinds of mean that the objective is tested at: the sum, the product, the published one, nearly the least.
var powers = []float64{1, 0, -1, -10}

// drawQuestion draws up to four jobs, some of which run and some of which are pinned, on nodes of equal size.
func drawQuestion(t *rapid.T, nodes int) (*core.View, []core.Candidate) {
	return drawJobs(t, rapid.IntRange(1, 4).Draw(t, "jobs"), nodes, rapid.IntRange(1, 6).Draw(t, "devices of a node"))
}

func drawJobs(t *rapid.T, jobs, nodes, devices int) (*core.View, []core.Candidate) {
	v := &core.View{NowSeconds: 3600, Round: 60, IntervalSeconds: 60, Cluster: &core.Cluster{Accelerators: []string{"t4"}}}
	free := make([]core.DeviceSet, nodes)
	spanned := make([]bool, nodes) // by a job held: interference is avoided, so by one at most
	for i := range nodes {
		v.Cluster.Nodes = append(v.Cluster.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("n%d", i), Devices: devices})
		free[i] = core.FirstDevices(devices)
	}
	v.Devices = nodes * devices
	var candidates []core.Candidate
	for i := range jobs {
		least := rapid.IntRange(1, 3).Draw(t, "least")
		most := least + rapid.IntRange(0, 4).Draw(t, "more")
		j := core.NewJob(&core.JobSpec{
			ID: core.JobID(i), Name: fmt.Sprintf("j%d", i), Weight: 1, Requested: least, MinReplicas: least, MaxReplicas: most,
			SubmitSeconds: rapid.Float64Range(0, 3600).Draw(t, "submitted"), Pinned: rapid.IntRange(0, 3).Draw(t, "pinned") == 0,
		})
		j.State = core.Waiting
		node, held := rapid.IntRange(0, nodes-1).Draw(t, "node"), rapid.IntRange(0, most).Draw(t, "held")
		if held >= least && held <= free[node].Count() {
			seat := core.Seat{Node: core.NodeID(node), Devices: free[node].Lowest(held)}
			free[node] &^= seat.Devices
			j.State, j.Seats, j.Held = core.Running, []core.Seat{seat}, held
		}
		if next := node + 1; j.Held >= 1 && j.Held < most && next < nodes && !spanned[node] && !spanned[next] && free[next].Count() > 0 && rapid.Bool().Draw(t, "spans") {
			seat := core.Seat{Node: core.NodeID(next), Devices: free[next].Lowest(1)}
			free[next] &^= seat.Devices
			j.Seats, j.Held = append(j.Seats, seat), j.Held+1
			spanned[node], spanned[next] = true, true
		}
		var curve core.Curve
		rates := rapid.Float64Range(0.1, 10)
		for range most {
			curve.OneNode = append(curve.OneNode, rates.Draw(t, "rate on one node"))
			curve.ManyNodes = append(curve.ManyNodes, rates.Draw(t, "rate on many nodes"))
		}
		candidates = append(candidates, core.Candidate{Job: j, Response: &core.Response{
			Job: j.ID, MinReplicas: least, MaxReplicas: most, RemainingWork: math.NaN(), Curves: []core.Curve{curve},
		}})
		v.Jobs, v.Active = append(v.Jobs, j), append(v.Active, j.ID)
	}
	return v, candidates
}

// search answers a question and returns the policy with what it knows of it.
func search(t *rapid.T, power float64, v *core.View, candidates []core.Candidate) *allocator {
	config := Default
	config.FairnessP = power
	return searchWith(t, config, v, candidates)
}

func searchWith(t *rapid.T, config Config, v *core.View, candidates []core.Candidate) *allocator {
	config.Reference = "one" // whatever the size of the cluster
	p := &allocator{config: config, granted: map[core.JobID]bool{}}
	grants, err := p.Allocate(t.Context(), v, candidates)
	if err != nil {
		t.Fatal(err)
	}
	granted := make(map[core.JobID]*core.Grant)
	for i := range grants {
		granted[grants[i].Job] = &grants[i]
	}
	for _, c := range candidates {
		g := granted[c.ID]
		if c.MustStay(v.Cluster, c.Response) && (g == nil || !core.SameSeats(g.Proposed, c.Seats)) {
			t.Errorf("pinned job %d on %v is granted %+v", c.ID, c.Seats, g)
		}
		if g != nil && (g.Replicas < c.MinReplicas || g.Replicas > c.MaxReplicas) {
			t.Errorf("job %d is granted %d replicas, can use %d to %d", c.ID, g.Replicas, c.MinReplicas, c.MaxReplicas)
		}
	}
	return p
}

// leastOf tries every count of every job, each on one node, or on its seats where it has so many.
func leastOf(p *allocator, jobs []job, devices int) float64 {
	if len(jobs) == 0 {
		return 0
	}
	j, best := &jobs[0], math.Inf(1)
	for k := 0; k <= min(j.most, devices); k++ {
		if k > 0 && k < j.least {
			continue
		}
		cost := j.costs[0][k]
		if k == j.held {
			cost = min(cost, j.stays)
		}
		best = min(best, cost+leastOf(p, jobs[1:], devices-k))
	}
	return best
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)+math.Abs(b)) }

// TestExactFindsTheOptimumOfANode compares with every way to share out one node, where nothing needs to be packed.
func TestExactFindsTheOptimumOfANode(t *testing.T) {
	for _, power := range powers {
		t.Run(fmt.Sprint(power), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawQuestion(t, 1)
				p := search(t, power, v, candidates)
				if want := leastOf(p, p.jobs, p.devices); !near(p.plan.cost, want) {
					t.Errorf("plan costs %v, the best one %v", p.plan.cost, want)
				}
				if p.GapRatio() > 1e-9 {
					t.Errorf("certified gap %v of a plan that is best", p.GapRatio())
				}
			})
		})
	}
}

// TestExactIsWithinItsGap compares with a bound found by trying all counts: what is certified holds on several nodes too.
func TestExactIsWithinItsGap(t *testing.T) {
	for _, power := range powers {
		t.Run(fmt.Sprint(power), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawQuestion(t, rapid.IntRange(2, 3).Draw(t, "nodes"))
				p := search(t, power, v, candidates)
				bound := least(p.search.counts.options, p.devices)
				best, got := p.fitness(bound), p.fitness(p.plan.cost)
				if got > best+1e-9*math.Abs(best) {
					t.Errorf("fitness %v above its bound %v", got, best)
				}
				if got < best*(1-p.GapRatio())-1e-9*math.Abs(best) {
					t.Errorf("fitness %v, certified to be at most %v below %v", got, p.GapRatio(), best)
				}
			})
		})
	}
}

// leastOnTwo tries every row of every job on two nodes with so many devices free, of which some jobs that span both claim
// each.
func leastOnTwo(jobs []job, free [2]int32, claimed [2]bool) float64 {
	if len(jobs) == 0 {
		return 0
	}
	j, best := &jobs[0], math.Inf(1)
	for a := range free[0] + 1 {
		for b := range free[1] + 1 {
			var row []share
			if a > 0 {
				row = append(row, share{0, a})
			}
			if b > 0 {
				row = append(row, share{1, b})
			}
			k, spans := int(a+b), len(row) > 1
			if k > j.most || k > 0 && k < j.least || spans && (claimed[0] || claimed[1]) {
				continue
			}
			rest := leastOnTwo(jobs[1:], [2]int32{free[0] - a, free[1] - b}, [2]bool{claimed[0] || spans, claimed[1] || spans})
			best = min(best, j.costOf(row)+rest)
		}
	}
	return best
}

// TestExactIsWithinItsGapOfTheOptimum compares with every seating on two nodes of two devices: the gap that is certified
// is no less than the true one, and the plan never better than the best there is.
func TestExactIsWithinItsGapOfTheOptimum(t *testing.T) {
	for _, power := range powers {
		t.Run(fmt.Sprint(power), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawJobs(t, rapid.IntRange(2, 3).Draw(t, "jobs"), 2, 2)
				p := search(t, power, v, candidates)
				optimum := leastOnTwo(p.jobs, [2]int32{int32(p.usable[0]), int32(p.usable[1])}, [2]bool(p.claimed))
				if p.plan.cost < optimum && !near(p.plan.cost, optimum) {
					t.Errorf("plan costs %v, the best of all seatings %v", p.plan.cost, optimum)
				}
				best, got, gap := p.fitness(optimum), p.fitness(p.plan.cost), p.GapRatio()
				if !(got >= best*(1-gap)-1e-9*math.Abs(best)) {
					t.Errorf("fitness %v, certified to be at most %v below the best, which is %v", got, gap, best)
				}
			})
		})
	}
}

// TestExactBearsAnyRate puts rates of any size to the search: a gap is a part or unknown, and grants are what jobs can use.
func TestExactBearsAnyRate(t *testing.T) {
	unknown := 0
	for _, power := range powers {
		rapid.Check(t, func(t *rapid.T) {
			v, candidates := drawQuestion(t, rapid.IntRange(1, 2).Draw(t, "nodes"))
			for i := range candidates {
				curve := &candidates[i].Response.Curves[0]
				for _, rates := range [][]float64{curve.OneNode, curve.ManyNodes} {
					for k := range rates {
						rates[k] = rapid.SampledFrom([]float64{0, 5e-324, 1e-308, 1, 1e300, math.MaxFloat64}).Draw(t, "rate")
					}
				}
			}
			gap := search(t, power, v, candidates).GapRatio()
			if gap < 0 || gap > 1 {
				t.Errorf("gap %v", gap)
			}
			if math.IsNaN(gap) {
				unknown++
			}
		})
	}
	if unknown == 0 {
		t.Error("nothing overflows: the rates are too small to test that")
	}
}

// TestMoreDevicesNeverHurt adds a device to the bound of any cluster and to the optimum of a node.
func TestMoreDevicesNeverHurt(t *testing.T) {
	for _, power := range powers {
		t.Run(fmt.Sprint(power), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawQuestion(t, rapid.IntRange(1, 3).Draw(t, "nodes"))
				p := search(t, power, v, candidates)
				fewer := p.plan.cost
				if bound, more := p.search.counts.byTable(p.devices), p.search.counts.byTable(p.devices+1); more > bound && !near(more, bound) {
					t.Errorf("a device more raises the bound from %v to %v", bound, more)
				}
				if len(v.Cluster.Nodes) > 1 {
					return
				}
				v.Cluster.Nodes[0].Devices++
				v.Devices++
				if more := search(t, power, v, candidates).plan.cost; more > fewer && !near(more, fewer) {
					t.Errorf("a device more raises the cost from %v to %v", fewer, more)
				}
			})
		})
	}
}
