package pollux

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// busy is a cluster of nodes with four devices and jobs whose gains have changed since they were seated. Every fifth has
// no seats: those that had them have ended.
func busy(t testing.TB, devices, jobs int) (*core.View, []core.Candidate) {
	t.Helper()
	return busyNodes(t, devices, jobs, 4, 1)
}

// busyNodes is busy with so many devices on a node, by a seed.
func busyNodes(t testing.TB, devices, jobs, perNode int, seed uint64) (*core.View, []core.Candidate) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, uint64(devices)))
	v := &core.View{NowSeconds: 7200, Round: 120, IntervalSeconds: 60, Devices: devices, Cluster: &core.Cluster{Accelerators: []string{"t4"}}}
	for i := range devices / perNode {
		v.Cluster.Nodes = append(v.Cluster.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("n%d", i), Devices: perNode})
	}
	candidates := make([]core.Candidate, jobs)
	for i := range candidates {
		spec := &core.JobSpec{
			ID: core.JobID(i), Name: fmt.Sprintf("j%d", i), Weight: 1, SubmitSeconds: 7000 * r.Float64(), Requested: 1, MinReplicas: 1, MaxReplicas: 64,
		}
		j := core.NewJob(spec)
		j.State, j.Restarts, j.Attained = core.Waiting, r.IntN(5), 1e5*r.Float64()
		most := 1 << r.IntN(7)
		candidates[i] = core.Candidate{Job: j, Response: &core.Response{
			Job: spec.ID, MinReplicas: 1, MaxReplicas: most, RemainingWork: math.NaN(), Curves: []core.Curve{saturating(r, most)},
		}}
		v.Jobs, v.Active = append(v.Jobs, j), append(v.Active, spec.ID)
	}
	grants, err := component(t, New(), nil).Allocate(t.Context(), v, candidates)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if g.Job%5 == 0 {
			continue
		}
		j := v.Jobs[g.Job]
		j.State, j.Seats, j.Held = core.Running, append([]core.Seat(nil), g.Proposed...), g.Replicas
	}
	for i := range candidates {
		response := candidates[i].Response
		response.MaxReplicas = min(2*response.MaxReplicas, 64)
		response.Curves[0] = saturating(r, response.MaxReplicas)
	}
	return v, candidates
}

// saturating is a curve that gains less from each further replica, and less across nodes.
func saturating(r *rand.Rand, most int) core.Curve {
	var c core.Curve
	knee, penalty := 1+40*r.Float64(), 0.6+0.4*r.Float64()
	for k := 1; k <= max(most, 64); k++ {
		rate := float64(k) / (1 + float64(k)/knee)
		c.OneNode, c.ManyNodes = append(c.OneNode, rate), append(c.ManyNodes, rate*penalty)
	}
	return c
}

func BenchmarkAllocate(b *testing.B) {
	for _, size := range []struct {
		search, weights string
		devices, jobs   int
	}{
		{"exact", "none", 64, 60},
		{"genetic", "none", 64, 60},
		{"exact", "none", 64, 20},
		{"genetic", "none", 64, 20},
		{"exact", "none", 1000, 500},
		{"exact", "none", 5000, 2500},
		{"exact", "none", 10000, 5000},
		{"exact", "attained", 10000, 5000},
	} {
		b.Run(fmt.Sprintf("%s/weights=%s/devices=%d/jobs=%d", size.search, size.weights, size.devices, size.jobs), func(b *testing.B) {
			v, candidates := busy(b, size.devices, size.jobs)
			p := component(b, New(), map[string]any{"search": size.search, "weights": size.weights}).(*allocator)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Allocate(b.Context(), v, candidates); err != nil {
					b.Fatal(err)
				}
			}
			if size.search == "exact" {
				b.ReportMetric(100*p.GapRatio(), "gap_%")
			}
		})
	}
}

// BenchmarkNodes decides five rounds on clusters with many devices on a node, and reports how much longer a round takes than
// one of the first size: a round of 1,000 devices is shorter than one of 3,000. Where nodes are few, the search tries every
// node for every job.
func BenchmarkNodes(b *testing.B) {
	first := 0.0 // seconds of a round of the first size
	for _, size := range []struct{ devices, jobs, node int }{{1000, 500, 8}, {3000, 500, 8}, {2000, 500, 16}, {100000, 5000, 8}} {
		b.Run(fmt.Sprintf("devices=%d/jobs=%d/node=%d", size.devices, size.jobs, size.node), func(b *testing.B) {
			var questions []question
			for seed := range uint64(5) {
				v, candidates := busyNodes(b, size.devices, size.jobs, size.node, seed)
				questions = append(questions, question{v, candidates})
			}
			p := component(b, New(), nil).(*allocator)
			gap := 0.0
			b.ReportAllocs()
			for b.Loop() {
				for _, q := range questions {
					if _, err := p.Allocate(b.Context(), q.view, q.candidates); err != nil {
						b.Fatal(err)
					}
					gap = max(gap, p.GapRatio())
				}
			}
			round := b.Elapsed().Seconds() / float64(b.N*len(questions))
			if first == 0 {
				first = round
			}
			b.ReportMetric(1e9*round, "ns/round")
			b.ReportMetric(round/first, "times-the-first")
			b.ReportMetric(100*gap, "gap_%")
		})
	}
}

// question is what a policy is asked in a round.
type question struct {
	view       *core.View
	candidates []core.Candidate
}

// BenchmarkDuel lets both searches answer the questions of one run, each decision timed, and tells how many times faster
// the exact one is: at its first answer, when the caches hold what the other search left, and when it is asked again.
func BenchmarkDuel(b *testing.B) {
	for b.Loop() {
		d := &duel{
			exact:   component(b, New(), nil).(*allocator),
			genetic: component(b, New(), map[string]any{"search": "genetic"}).(*allocator),
			byExact: true, repeats: 3,
		}
		published(b, "workloads/workload-6.csv", d)
		rounds := time.Duration(d.rounds)
		b.ReportMetric(float64((d.exactTime / rounds).Nanoseconds()), "exact-ns/decision")
		b.ReportMetric(float64((d.warmTime / rounds).Nanoseconds()), "exact-again-ns/decision")
		b.ReportMetric(float64((d.geneticTime / rounds).Nanoseconds()), "genetic-ns/decision")
		b.ReportMetric(d.geneticTime.Seconds()/d.exactTime.Seconds(), "times")
		b.ReportMetric(d.geneticTime.Seconds()/d.warmTime.Seconds(), "times-again")
		b.ReportMetric(100*float64(d.won)/float64(d.rounds), "as-fit-%")
		b.ReportMetric(100*d.gap/float64(d.rounds), "gap-%")
	}
}
