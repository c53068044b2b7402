package allocation

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/allocation/tiresias"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/coretest/drawn"
	"github.com/quartet-sched/quartet/internal/refdata"
	"github.com/quartet-sched/quartet/policykit/elastic"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// No more devices are granted than there are, and each job is granted nothing or a number that it can run on.
func TestElasticGrantsWhatJobsCanUse(t *testing.T) {
	for name, tc := range forms {
		if !strings.HasPrefix(name, "elastic_") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawn.View(t)
				grants, err := policytest.New(t, tc.Factory, tc.Config).Allocate(context.Background(), v, candidates)
				if err != nil {
					t.Fatal(err)
				}
				used, of := 0, map[core.JobID]*core.Candidate{}
				for i := range candidates {
					of[candidates[i].ID] = &candidates[i]
				}
				for _, g := range grants {
					c := of[g.Job]
					if c == nil {
						t.Fatalf("job %d is no candidate, or granted twice", g.Job)
					}
					delete(of, g.Job)
					used += g.Replicas
					r, perNode := c.Response, v.Cluster.LargestNode()
					if g.Replicas < r.MinReplicas || g.Replicas > r.MaxReplicas {
						t.Fatalf("job %d can use %d..%d, granted %d", g.Job, r.MinReplicas, r.MaxReplicas, g.Replicas)
					}
					runs := func(n int) bool { return r.Rate(core.AnyAccelerator, n, perNode) > 0 }
					for n := r.MinReplicas; n < g.Replicas && !c.MustStay(v.Cluster, r); n++ {
						if runs(n) && !runs(g.Replicas) {
							t.Fatalf("job %d cannot run on the %d that it is granted, and can on %d", g.Job, g.Replicas, n)
						}
					}
				}
				if used > v.Devices {
					t.Fatalf("granted %d of %d devices", used, v.Devices)
				}
			})
		})
	}
}

// With jobs that run on one number of devices only, each grants what the policy does from which it comes, as time passes.
func TestElasticIsRigidWithRigidJobs(t *testing.T) {
	for name, tc := range map[string]struct {
		elastic, rigid core.Factory[core.Allocator]
		config         map[string]any
	}{
		"elastic_srtf":     {NewElasticSRTF(), NewSRTF(), nil},
		"elastic_tiresias": {NewElasticTiresias(), tiresias.New(), map[string]any{"thresholds": []any{60, 3600}, "promote_factor": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, _ := drawn.View(t)
				scaled, rigid := policytest.New(t, tc.elastic, tc.config), policytest.New(t, tc.rigid, tc.config)
				for range 4 {
					got, want := policytest.Ask(t, scaled, v, coretest.Rigid), policytest.Ask(t, rigid, v, coretest.Rigid)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("at %v s, grants (-rigid +elastic):\n%s", v.NowSeconds, diff)
					}
					v.NowSeconds += rapid.SampledFrom([]float64{60, 1000, 1e5}).Draw(t, "passes")
				}
			})
		})
	}
}

// Two of the measured applications are slower on five devices than on four, for these fill a node: nine make up for it. Steps of one
// device stop there, steps to the next level pass.
func TestStepsAtTheBorderOfANode(t *testing.T) {
	text, err := os.ReadFile(refdata.Path(t, "reference", "elastic-batch-dp", "curves.json"))
	if err != nil {
		t.Fatal(err)
	}
	var curves map[string]struct {
		Speedups []float64 `json:"throughput_S"`
	}
	if err := json.Unmarshal(text, &curves); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ one, nextLevel, short int }{
		"bert": {4, 10, 4}, "yolov3": {4, 10, 4}, "cifar10": {10, 10, 8}, "deepspeech2": {10, 10, 8},
	} {
		for policy, factory := range map[string]core.Factory[core.Allocator]{"afs": NewAFS(), "elastic_tiresias": NewElasticTiresias()} {
			t.Run(name+"/"+policy, func(t *testing.T) {
				granted := func(nodes int, config map[string]any) string {
					v := coretest.MakeView(coretest.MakeCluster().Nodes(nodes, "t4", 4).Obj()).Jobs(policytest.Waits(1).Elastic(1, 1, 10)).Obj()
					return policytest.Allocate(t, policytest.New(t, factory, config), v, policytest.Scales(curves[name].Speedups))
				}
				for config, want := range map[string]int{elastic.OneByOne: tc.one, elastic.NextLevel: tc.nextLevel} {
					if got := granted(4, map[string]any{"steps": config}); got != fmt.Sprintf("0×%d", want) {
						t.Errorf("steps %s: of 16 devices granted %s, want %d", config, got, want)
					}
				}
				if got := granted(2, nil); got != fmt.Sprintf("0×%d", tc.short) {
					t.Errorf("of 8 devices granted %s, want %d: the next level is out of reach", got, tc.short)
				}
			})
		}
	}
}

// elasticForms are the greedy policies over elastic jobs, in the forms whose work differs.
var elasticForms = map[string]struct {
	factory core.Factory[core.Allocator]
	config  map[string]any
}{
	"afs":              {NewAFS(), nil},
	"elastic_fifo":     {NewElasticFIFO(), nil},
	"elastic_srtf":     {NewElasticSRTF(), nil},
	"elastic_tiresias": {NewElasticTiresias(), map[string]any{"thresholds": []any{100, 1000}, "promote_factor": 1, "compact_above": 0}},
}

// growing is jobs of up to 64 replicas whose curves drop behind the border of each node, twice as many devices as jobs.
func growing(jobs int) (*core.View, []core.Candidate) {
	var builders []*coretest.JobBuilder
	rates := make([]float64, 64)
	for i := range rates {
		if rates[i] = float64(i + 1); i >= 4 {
			rates[i] /= float64(2 + i%4)
		}
	}
	for i := range jobs {
		ran := float64(i * 13 % 500)
		builders = append(builders, policytest.Waits(1).Elastic(1+i%3, 2+i%5, 64).Work(float64(100+i*37%1000)).Executed(ran, ran))
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(jobs/2, "t4", 4).Obj()).Jobs(builders...).Obj()
	return v, coretest.Candidates(v, func(j *core.Job) core.Response {
		curves := []core.Curve{{OneNode: rates, ManyNodes: rates}}
		return core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: 64, Curves: curves, RemainingWork: j.TotalWork}
	})
}

func TestElasticRoundAllocatesNothing(t *testing.T) {
	for name, tc := range elasticForms {
		t.Run(name, func(t *testing.T) {
			policy := policytest.New(t, tc.factory, tc.config)
			v, candidates := growing(100)
			got := testing.AllocsPerRun(50, func() {
				v.NowSeconds += 300
				if _, err := policy.Allocate(context.Background(), v, candidates); err != nil {
					t.Fatal(err)
				}
			})
			if got != 0 {
				t.Errorf("%v allocations a round, want 0", got)
			}
		})
	}
}

// A round of 2,000 jobs on 4,000 devices.
func BenchmarkElastic(b *testing.B) {
	for name, tc := range elasticForms {
		b.Run(name, func(b *testing.B) {
			policy := policytest.New(b, tc.factory, tc.config)
			v, candidates := growing(2000)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := policy.Allocate(b.Context(), v, candidates); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A whole decision of elastic_dp for 1,000 jobs on 1,024 nodes of four devices: the levels, who is chosen, the program and the grants. The jobs run on 1
// to 64 devices, each with a curve of its own: linear, or slower behind the border of a node.
func BenchmarkElasticDP(b *testing.B) {
	const jobs = 1000
	for name, overhead := range map[string]float64{"linear": 0, "node_borders": 0.22} {
		b.Run(name, func(b *testing.B) {
			rand := core.NewRand(1, "elastic_dp")
			var builders []*coretest.JobBuilder
			curves := make([][]float64, jobs)
			for i := range jobs {
				job := coretest.MakeJob("a").Elastic(1, 2, 64)
				if i%4 == 0 {
					job = job.Running(0, core.Seat{Node: core.NodeID(i), Devices: 1})
				} else {
					job = job.Waiting()
				}
				builders = append(builders, job)
				slower := overhead * rand.Float64()
				for k := 1; k <= 64; k++ {
					rate := float64(k) / (1 + slower*float64(k-1))
					if overhead > 0 && k > 4 {
						rate *= 0.6 + 0.01*float64(min(k, 40))
					}
					curves[i] = append(curves[i], rate)
				}
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1024, "t4", 4).Obj()).Jobs(builders...).Obj()
			candidates := coretest.Candidates(v, func(j *core.Job) core.Response {
				curve := core.Curve{OneNode: curves[j.ID], ManyNodes: curves[j.ID]}
				return core.Response{Job: j.ID, MinReplicas: 1, MaxReplicas: 64, Curves: []core.Curve{curve}, RemainingWork: math.NaN()}
			})
			policy := policytest.New(b, NewElasticDP(), nil)
			b.ReportAllocs()
			for b.Loop() {
				grants, err := policy.Allocate(b.Context(), v, candidates)
				if err != nil || len(grants) != jobs {
					b.Fatal(len(grants), err)
				}
			}
		})
	}
}
