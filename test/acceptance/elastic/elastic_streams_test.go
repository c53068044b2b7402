package elastic_test

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/internal/doortest"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// elasticDay is the horizon of the experiment on elastic scaling, in seconds; its last round is an interval before.
const elasticDay = 86_400.0

// elasticRun is what came of a stream under a policy by the end of the day.
type elasticRun struct {
	Truth, Pattern, Mode, Policy string
	Seed                         int
	Arrived, Done, Dropped       int
	JCT                          float64 `json:"jct_min"` // mean of those done, in minutes
}

// simulate runs a stream, one that is drawn unless settings name another, through the pipeline and the simulator.
func (r *elasticRun) simulate(t *testing.T, sets ...string) {
	t.Helper()
	refdata.Path(t, "data", "pollux-osdi21")
	sets = append([]string{
		"seed=" + strconv.Itoa(r.Seed), "workload.config.arrivals=" + r.Pattern, "workload.config.truth=" + r.Truth, "pipeline.admission[0].config.misfits=" + r.Mode,
	}, sets...)
	if batch := map[string]string{"max": "largest", "rand": "random", "min": "smallest"}[r.Policy]; batch != "" {
		sets = append(sets, "workload.config.batch="+batch, "pipeline.admission[0].config.batch=requested",
			"pipeline.elasticity.job.config.fixed_batch=[bert, cifar10, deepspeech2, yolov3]")
	} else if r.Policy == "goodput" {
		sets = append(sets, "pipeline.elasticity.job.type=goodput", "pipeline.elasticity.job.config.knowledge=exact")
	}
	c, err := quartet.Load(quartet.Builtins(), configs.Options{Files: []string{"papers/saxena-mascots20/elastic.yaml"}, Env: os.LookupEnv, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	result := doortest.Simulate(t, c)
	seconds := 0.0
	r.Arrived, r.Done, r.Dropped = len(result.Jobs), 0, 0
	for _, j := range result.Jobs {
		switch {
		case j.Outcome == core.Completed.String() && float64(j.FinishSeconds) <= elasticDay:
			r.Done++
			seconds += float64(j.JCTSeconds)
		case j.Outcome == core.Rejected.String() && j.SubmitSeconds <= elasticDay-c.Round.Interval.Seconds(): // in a round of that day
			r.Dropped++
		}
	}
	r.JCT = seconds / float64(r.Done) / 60
}

// compare demands equal counts, and prints both.
func (r *elasticRun) compare(t *testing.T, want *elasticRun) {
	t.Helper()
	t.Logf("%-8s %-6s %-5s %-7s: arrived %4d (%4d), done %4d (%4d), dropped %4d (%4d), JCT %6.1f (%6.1f) min", want.Truth, want.Pattern, want.Mode, want.Policy,
		r.Arrived, want.Arrived, r.Done, want.Done, r.Dropped, want.Dropped, r.JCT, want.JCT)
	if r.Arrived != want.Arrived || r.Done != want.Done || r.Dropped != want.Dropped {
		t.Error("the counts differ")
	}
	if math.Abs(r.JCT-want.JCT) > 0.005*want.JCT {
		t.Errorf("a mean JCT of %v minutes, want %v", r.JCT, want.JCT)
	}
}

func readElasticResults(t *testing.T) (results []elasticRun) {
	t.Helper()
	text, err := os.ReadFile(refdata.Path(t, "reference", "elastic-batch-dp", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &results); err != nil {
		t.Fatal(err)
	}
	return results
}

// The streams of the reference, read from their files, through the real pipeline and the simulator: every policy, pattern, mode and
// truth.
func TestElasticStreams(t *testing.T) {
	done := map[[4]string]elasticRun{}
	for _, want := range readElasticResults(t) {
		path := refdata.Path(t, "reference", "elastic-batch-dp", "stream_"+want.Pattern+"_seed"+strconv.Itoa(want.Seed)+".csv")
		got := want
		got.simulate(t, "workload.config.path="+path, "workload.config.arrivals=none")
		got.compare(t, &want)
		done[[4]string{got.Truth, got.Pattern, got.Mode, got.Policy}] = got
	}
	for _, pattern := range []string{"bursty", "high"} {
		is := func(mode, policy string) elasticRun { return done[[4]string{"samples", pattern, mode, policy}] }
		if got := float64(is("drop", "elastic").Done) / float64(is("drop", "max").Done); got < 1.8 {
			t.Errorf("%s: %v times the jobs of the largest batch, want 1.8", pattern, got)
		}
		if got := is("queue", "max").JCT / is("queue", "elastic").JCT; got < 7 {
			t.Errorf("%s: a JCT %v times shorter than that of the largest batch, want 7", pattern, got)
		}
		for _, policy := range []string{"max", "rand", "min"} {
			t.Logf("%s: elastic does %.2f times the jobs of %s with drop, and takes 1/%.2f of its time with queue", pattern,
				float64(is("drop", "elastic").Done)/float64(is("drop", policy).Done), policy, is("queue", policy).JCT/is("queue", "elastic").JCT)
		}
	}
}

// The sums over three seeds, drawn here, are those that the reference experiment came to.
func TestElasticSeeds(t *testing.T) {
	for _, want := range []elasticRun{
		{Pattern: "low", Mode: "queue", Policy: "elastic", Arrived: 529, Done: 525, JCT: 13.7},
		{Pattern: "low", Mode: "queue", Policy: "max", Arrived: 529, Done: 525, JCT: 13.9},
		{Pattern: "low", Mode: "queue", Policy: "rand", Arrived: 529, Done: 525, JCT: 21.8},
		{Pattern: "low", Mode: "queue", Policy: "min", Arrived: 529, Done: 518, JCT: 35.6},
		{Pattern: "bursty", Mode: "drop", Policy: "elastic", Arrived: 2114, Done: 1949, Dropped: 65, JCT: 29.1},
		{Pattern: "bursty", Mode: "drop", Policy: "max", Arrived: 2114, Done: 937, Dropped: 1142, JCT: 15.7},
		{Pattern: "bursty", Mode: "drop", Policy: "rand", Arrived: 2114, Done: 1265, Dropped: 788, JCT: 29.5},
		{Pattern: "bursty", Mode: "drop", Policy: "min", Arrived: 2114, Done: 1850, Dropped: 150, JCT: 42.0},
		{Pattern: "bursty", Mode: "queue", Policy: "elastic", Arrived: 2114, Done: 2012, JCT: 30.3},
		{Pattern: "bursty", Mode: "queue", Policy: "max", Arrived: 2114, Done: 1370, JCT: 249.5},
		{Pattern: "bursty", Mode: "queue", Policy: "rand", Arrived: 2114, Done: 1786, JCT: 111.0},
		{Pattern: "bursty", Mode: "queue", Policy: "min", Arrived: 2114, Done: 1991, JCT: 44.1},
		{Pattern: "high", Mode: "drop", Policy: "elastic", Arrived: 2965, Done: 2871, Dropped: 10, JCT: 29.9},
		{Pattern: "high", Mode: "drop", Policy: "max", Arrived: 2965, Done: 1491, Dropped: 1444, JCT: 16.1},
		{Pattern: "high", Mode: "drop", Policy: "rand", Arrived: 2965, Done: 2010, Dropped: 893, JCT: 30.7},
		{Pattern: "high", Mode: "drop", Policy: "min", Arrived: 2965, Done: 2803, Dropped: 46, JCT: 42.4},
		{Pattern: "high", Mode: "queue", Policy: "elastic", Arrived: 2965, Done: 2881, JCT: 30.2},
		{Pattern: "high", Mode: "queue", Policy: "max", Arrived: 2965, Done: 1435, JCT: 368.0},
		{Pattern: "high", Mode: "queue", Policy: "rand", Arrived: 2965, Done: 1919, JCT: 247.6},
		{Pattern: "high", Mode: "queue", Policy: "min", Arrived: 2965, Done: 2847, JCT: 43.9},
	} {
		want.Truth = "samples"
		sum := want
		sum.Arrived, sum.Done, sum.Dropped, sum.JCT = 0, 0, 0, 0
		for seed := 1; seed <= 3; seed++ {
			one := want
			one.Seed = seed
			one.simulate(t)
			sum.Arrived, sum.Done, sum.Dropped, sum.JCT = sum.Arrived+one.Arrived, sum.Done+one.Done, sum.Dropped+one.Dropped, sum.JCT+one.JCT/3
		}
		sum.compare(t, &want)
	}
}

// The curves that exact knowledge tells are those of the reference, and the batches those that it tunes to.
func TestElasticityCurves(t *testing.T) {
	text, err := os.ReadFile(refdata.Path(t, "reference", "elastic-batch-dp", "curves.json"))
	if err != nil {
		t.Fatal(err)
	}
	var curves map[string]struct {
		Base            float64   `json:"base_samples_per_s"`
		ThroughputSpeed []float64 `json:"throughput_S"`
		Throughput      []int     `json:"throughput_batch"`
		GoodputSpeed    []float64 `json:"goodput_S"`
		Goodput         []int     `json:"goodput_batch"`
	}
	if err := json.Unmarshal(text, &curves); err != nil {
		t.Fatal(err)
	}
	config, problems := workload.NewElastic().Decode(map[string]any{
		"path": refdata.Path(t, "reference", "elastic-batch-dp", "stream_low_seed1.csv"), "profiles": refdata.Path(t, "data", "pollux-osdi21"), "truth": "progress",
	})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	source, err := workload.NewElastic().New(config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := source.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range w.Jobs {
		spec := &w.Jobs[i].Spec
		if seen[spec.Application] {
			continue
		}
		seen[spec.Application] = true
		want := curves[spec.Application]
		for name, tc := range map[string]struct {
			factory core.Factory[core.Elasticity]
			speed   []float64
			batch   []int
		}{
			"throughput": {elasticity.NewThroughput(), want.ThroughputSpeed, want.Throughput},
			"goodput":    {elasticity.NewGoodput(), want.GoodputSpeed, want.Goodput},
		} {
			config, problems := tc.factory.Decode(map[string]any{"knowledge": "exact"})
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			policy, err := tc.factory.New(config, core.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			v := coretest.MakeView(coretest.MakeCluster().Nodes(10, "t4", 4).Obj()).Jobs(coretest.MakeJob("a")).Obj()
			*v.Jobs[0].JobSpec = *spec
			v.Jobs[0].JobSpec.ID = 0
			responses, err := policy.Respond(t.Context(), v, v.Jobs)
			if err != nil {
				t.Fatal(err)
			}
			for k := 1; k <= 10; k++ {
				got := responses[0].Rate(core.AnyAccelerator, k, 4) * float64(spec.Batch.Initial) / want.Base
				var seats []core.Seat
				for left, node := k, core.NodeID(0); left > 0; left, node = left-4, node+1 {
					seats = append(seats, coretest.Seat(node, []int{0, 1, 2, 3}[:min(left, 4)]...))
				}
				tunings, err := policy.Tune(t.Context(), v, []core.Placement{{Job: 0, Seats: seats}})
				if err != nil {
					t.Fatal(err)
				}
				batch := k * tunings[0].BatchPerDevice
				if parts := tunings[0].BatchByReplica; parts != nil {
					batch = 0
					for _, part := range parts {
						batch += part
					}
				}
				if math.Abs(got-tc.speed[k-1]) > 1e-6 || batch != tc.batch[k-1] {
					t.Errorf("%s, %s on %d devices: %v at %d, want %v at %d", spec.Application, name, k, got, batch, tc.speed[k-1], tc.batch[k-1])
				}
			}
		}
	}
	if len(seen) != len(curves) {
		t.Errorf("curves of %v, want %d", seen, len(curves))
	}
}
