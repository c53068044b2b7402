package elasticity

import (
	"context"
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/goodput"
)

// newGoodput makes an agent whose settings differ from the defaults by what is given.
func newGoodput(t testing.TB, settings map[string]any) *goodputAgent {
	t.Helper()
	config, problems := NewGoodput().Decode(settings)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	made, err := NewGoodput().New(config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return made.(*goodputAgent)
}

// truth is how the jobs of these tests go: synchronisation costs a fifth of a second on one node and half of one across
// nodes.
var truth = goodput.Performance{
	AlphaGrad: 0.13, BetaGrad: 0.012, AlphaNode: 0.5, BetaNode: 0.02, AlphaLocal: 0.2, BetaLocal: 0.003, Gamma: 1.2,
}

// noisy gradients make a large batch nearly as good as many small ones.
var noisy = core.Gradients{SquaredNorm: 1, Variance: 1e6}

var limits = core.BatchSpec{Requested: 512, Initial: 128, Max: 4096, MinPerDevice: 32, MaxPerDevice: 256}

func trainingJob() *core.Job {
	j := coretest.MakeJob("a").Application("app").Elastic(1, 4, 64).Batch(limits).Work(1000).Waiting().Obj()
	j.Gradients = noisy
	return j
}

// ran adds what a job measures with so many replicas on so many nodes.
func ran(j *core.Job, p goodput.Performance, nodes, replicas, perDevice int) {
	b := float64(perDevice)
	j.Measured = append(j.Measured, core.Measurement{
		Nodes: nodes, Replicas: replicas, PerDevice: perDevice, PassSeconds: p.GradTime(b), StepSeconds: p.StepTime(nodes, replicas, b, 0),
	})
}

// viewOf is a view of a job that an event just touched.
func viewOf(j *core.Job) *core.View {
	return &core.View{Jobs: []*core.Job{j}, Changed: []core.JobID{j.ID}, Cluster: coretest.MakeCluster().Nodes(4, "t4", 4).Obj()}
}

func respond(t testing.TB, p core.Elasticity, j *core.Job) core.Response {
	t.Helper()
	responses, err := p.Respond(context.Background(), viewOf(j), []*core.Job{j})
	if err != nil {
		t.Fatal(err)
	}
	return responses[0]
}

func tune(t testing.TB, p core.Elasticity, j *core.Job, seats ...core.Seat) core.Tuning {
	t.Helper()
	tunings, err := p.Tune(context.Background(), viewOf(j), []core.Placement{{Job: j.ID, Seats: seats}})
	if err != nil {
		t.Fatal(err)
	}
	if len(tunings) == 0 {
		return j.Tuning
	}
	return tunings[0]
}

// A job that has measured nothing may use one replica, and is taken to be as good as it has replicas.
func TestGoodputBeforeTheFirstMeasurement(t *testing.T) {
	linear := []float64{1, 2, 3, 4}
	want := core.Response{
		MinReplicas: 1, MaxReplicas: 1, Curves: []core.Curve{{OneNode: linear, ManyNodes: linear}}, RemainingWork: 900,
	}
	got := respond(t, newGoodput(t, map[string]any{"most_replicas": 4, "unmeasured_seconds": 900.0}), trainingJob())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-want +got):\n%s", diff)
	}
	got = respond(t, newGoodput(t, map[string]any{"declared_work": false}), trainingJob())
	if !math.IsNaN(got.RemainingWork) {
		t.Errorf("tells %v s of work that it was not to read", got.RemainingWork)
	}
}

// A job may use twice the replicas it ran on, within what it, the curves and its largest batch allow.
func TestGoodputGrowsByDoubling(t *testing.T) {
	cases := map[string]struct {
		settings map[string]any
		change   func(*core.JobSpec)
		want     []int // after 0, 1, 2, 4, 8, … replicas
	}{
		"freely":                        {nil, func(*core.JobSpec) {}, []int{1, 2, 4, 8, 16, 32, 64, 64}},
		"within its own range":          {nil, func(s *core.JobSpec) { s.MaxReplicas = 6 }, []int{1, 2, 4, 6, 6}},
		"never below it":                {nil, func(s *core.JobSpec) { s.MinReplicas = 3 }, []int{3, 3, 4, 8}},
		"within the curves":             {map[string]any{"most_replicas": 16}, func(*core.JobSpec) {}, []int{1, 2, 4, 8, 16, 16}},
		"within the largest batch":      {nil, func(s *core.JobSpec) { s.Batch.Max = 32 * 20 }, []int{1, 2, 4, 8, 16, 20, 20}},
		"also with a bound of 0 on it":  {nil, func(s *core.JobSpec) { s.Batch.MinPerDevice, s.Batch.MaxPerDevice = 0, 0 }, []int{1, 2, 4}},
		"beyond the curves if it needs": {map[string]any{"most_replicas": 2}, func(s *core.JobSpec) { s.MinReplicas = 5 }, []int{5, 5}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, j := newGoodput(t, tc.settings), trainingJob()
			tc.change(j.JobSpec)
			for i, want := range tc.want {
				got := respond(t, p, j)
				if got.MaxReplicas != want || got.MinReplicas != j.MinReplicas {
					t.Errorf("after %d sizes: %d..%d replicas, want %d..%d", i, got.MinReplicas, got.MaxReplicas, j.MinReplicas, want)
				}
				if rate := got.Curves[0].OneNode[0]; !(rate > 0) {
					t.Errorf("after %d sizes: rate %v on one device", i, rate)
				}
				nodes := 1
				if i >= 3 { // four to a node
					nodes = 1 << (i - 2)
				}
				ran(j, truth, nodes, 1<<i, 64)
			}
		})
	}
}

// What was never tried is taken to cost nothing more; what was tried is known.
func TestGoodputIsOptimistic(t *testing.T) {
	p, j := newGoodput(t, nil), trainingJob()
	pause := func(nodes, replicas int) float64 { // of synchronisation, as a part of a step
		respond(t, p, j)
		fitted := &p.agents[j.ID].models[0].Performance
		return fitted.StepTime(nodes, replicas, 256, 0)/fitted.StepTime(1, 1, 256, 0) - 1
	}
	ran(j, truth, 1, 1, 64)
	ran(j, truth, 1, 1, 256)
	for _, nodes := range []int{1, 2} {
		if got := pause(nodes, 2); got > 0.001 {
			t.Errorf("two replicas on %d nodes, never tried, pause for %v", nodes, got)
		}
	}
	ran(j, truth, 1, 2, 256)
	two := pause(1, 2)
	if want := truth.StepTime(1, 2, 256, 0)/truth.StepTime(1, 1, 256, 0) - 1; math.Abs(two/want-1) > 0.1 {
		t.Errorf("two replicas on one node pause for %v as tried, want %v", two, want)
	}
	if got := pause(1, 4); math.Abs(got/two-1) > 0.001 {
		t.Errorf("four replicas, never tried, pause for %v, want the %v of two", got, two)
	}
	if got := pause(2, 2); got <= two || got > 1.3*two {
		t.Errorf("two nodes, never tried, pause for %v, want a little more than the %v of one", got, two)
	}
	ran(j, truth, 2, 4, 256)
	if got, want := pause(2, 4), truth.StepTime(2, 4, 256, 0)/truth.StepTime(1, 1, 256, 0)-1; math.Abs(got/want-1) > 0.1 {
		t.Errorf("four replicas on two nodes pause for %v as tried, want %v", got, want)
	}
}

// A curve that was told stays as it was, though the gradients change, and nothing of the View is kept.
func TestGoodputCurvesStay(t *testing.T) {
	p, j := newGoodput(t, nil), trainingJob()
	ran(j, truth, 1, 1, 64)
	told := respond(t, p, j).Curves[0]
	before := append([]float64(nil), told.OneNode...)
	j.Gradients.Variance = 1
	after := respond(t, p, j).Curves[0]
	if diff := cmp.Diff(before, told.OneNode); diff != "" {
		t.Errorf("a told curve changed (-before +after):\n%s", diff)
	}
	if after.OneNode[0] >= before[0] {
		t.Errorf("without noise a job on one device learns at %v, with noise at %v", after.OneNode[0], before[0])
	}
	j.Measured[0].StepSeconds = math.NaN()
	if math.IsNaN(p.agents[j.ID].seen[0].StepSeconds) {
		t.Error("keeps the measurements of the View")
	}
}

// The curves and the batches are those of the model that fits the measurements.
func TestGoodputTunesToTheBest(t *testing.T) {
	p, j := newGoodput(t, nil), trainingJob()
	j.Gradients = core.Gradients{SquaredNorm: 1, Variance: 5}
	for _, replicas := range []int{1, 2, 4} {
		ran(j, truth, 1, replicas, 64)
		ran(j, truth, 1, replicas, 200)
	}
	told := respond(t, p, j).Curves[0]
	m := goodput.Model{Performance: goodput.Fit(j.Measured), Gradients: goodput.Gradients(j.Gradients), Limits: j.Batch}
	for seats, want := range map[int]goodput.Choice{1: m.Best(1, 1), 2: m.Best(1, 2), 4: m.Best(1, 4)} {
		got := tune(t, p, j, core.Seat{Devices: 1<<seats - 1})
		scale := float64(seats*want.PerDevice*(want.Accumulation+1)) / 128
		wanted := core.Tuning{BatchPerDevice: want.PerDevice, AccumulationSteps: want.Accumulation, LearningRateFactor: m.Gradients.Gain(scale)}
		if diff := cmp.Diff(wanted, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("%d replicas (-want +got):\n%s", seats, diff)
		}
		if got := told.OneNode[seats-1] * 128; math.Abs(got/want.Goodput-1) > 1e-12 {
			t.Errorf("%d replicas: goodput %v, want %v", seats, got, want.Goodput)
		}
	}
	across := m.Best(2, 2)
	if got := tune(t, p, j, coretest.Seat(0, 0), coretest.Seat(1, 0)); got.BatchPerDevice != across.PerDevice {
		t.Errorf("across nodes: batch %d on a device, want %d", got.BatchPerDevice, across.PerDevice)
	}
}

// Each scaling rule reaches the tuning. The job runs at four times its initial batch; the gain there is 4/(3/4+1).
func TestGoodputScalingRules(t *testing.T) {
	cases := map[string]struct {
		settings map[string]any
		progress float64
		want     float64
	}{
		"default":                {nil, 0, 16.0 / 7},
		"adascale":               {map[string]any{"scaling_rule": "adascale"}, 0, 16.0 / 7},
		"square root":            {map[string]any{"scaling_rule": "square_root"}, 0, 2},
		"linear":                 {map[string]any{"scaling_rule": "linear"}, 0, 4},
		"legew, halfway through": {map[string]any{"scaling_rule": "legew", "warmup_iterations": 100.0}, 199, 1},
		"legew, warmed up":       {map[string]any{"scaling_rule": "legew", "warmup_iterations": 100.0}, 400, 2},
		"legew without warm-up":  {map[string]any{"scaling_rule": "legew"}, 0, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			settings := map[string]any{"fixed_batch": []any{"app"}}
			maps.Copy(settings, tc.settings)
			p, j := newGoodput(t, settings), trainingJob()
			j.Gradients, j.Progress = core.Gradients{SquaredNorm: 1, Variance: 3}, tc.progress
			respond(t, p, j)
			want := core.Tuning{BatchPerDevice: 128, LearningRateFactor: tc.want}
			if diff := cmp.Diff(want, tune(t, p, j, coretest.Seat(0, 0, 1, 2, 3)), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("tuning (-want +got):\n%s", diff)
			}
		})
	}
	if _, problems := NewGoodput().Decode(map[string]any{"scaling_rule": "cubic"}); problems.Err() == nil {
		t.Error("takes a rule that there is not")
	}
}

// Before it is known, a job trains with the initial batch, or the least that its replicas need.
func TestGoodputTunesTheUnknown(t *testing.T) {
	p, j := newGoodput(t, nil), trainingJob()
	respond(t, p, j)
	for devices, want := range map[int]int{1: 128, 2: 64, 4: 32, 8: 32} {
		got := tune(t, p, j, core.Seat{Devices: 1<<devices - 1})
		if got.BatchPerDevice != want || got.AccumulationSteps != 0 {
			t.Errorf("%d devices: %d samples each, %d passes more, want %d and none", devices, got.BatchPerDevice, got.AccumulationSteps, want)
		}
	}
}

// A job without a batch to tune, or that was never asked about, is answered as by fixed.
func TestGoodputLeavesRigidJobs(t *testing.T) {
	p := newGoodput(t, nil)
	j := coretest.MakeJob("rigid").Elastic(1, 2, 4).Waiting().Obj()
	want, err := newFixed(t, FixedConfig{Replicas: elastic}).Respond(context.Background(), viewOf(j), []*core.Job{j})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[0], respond(t, p, j), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("response (-fixed +goodput):\n%s", diff)
	}
	if got := tune(t, p, j, coretest.Seat(0, 0, 1)); !got.Equal(core.Tuning{}) {
		t.Errorf("tuned to %+v", got)
	}
	if got := tune(t, p, trainingJob(), coretest.Seat(0, 0, 1)); got.BatchPerDevice != 256 {
		t.Errorf("a job never asked about is tuned to %+v, want the batch it asked for", got)
	}
}

// An oracle knows a job before it runs.
func TestGoodputOracle(t *testing.T) {
	j := trainingJob()
	known := trainingJob()
	for _, replicas := range []int{1, 2, 4} {
		ran(known, truth, 1, replicas, 64)
		ran(known, truth, 1, replicas, 200)
	}
	j.Truth = &core.Truth{Measurements: known.Measured, Gradients: noisy}
	j.Gradients = core.Gradients{}
	want, got := respond(t, newGoodput(t, nil), known), respond(t, newGoodput(t, map[string]any{"knowledge": oracle}), j)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("response (-as learned +as known):\n%s", diff)
	}
	if got := respond(t, newGoodput(t, nil), j); got.MaxReplicas != 1 {
		t.Errorf("without an oracle it may use %d replicas", got.MaxReplicas)
	}
}

// Whatever a job measured, its batch keeps the limits, and its curves are those of replicas it can use.
func TestGoodputKeepsTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := coretest.MakeJob("a").Elastic(1, 1, 64).Waiting().Obj()
		b := core.BatchSpec{Initial: rapid.IntRange(1, 300).Draw(t, "initial"), MinPerDevice: rapid.IntRange(1, 40).Draw(t, "least")}
		b.Max = max(b.Initial, b.MinPerDevice) * rapid.IntRange(1, 64).Draw(t, "times")
		b.MaxPerDevice = max(b.MinPerDevice, b.Initial) + rapid.IntRange(0, 300).Draw(t, "room")
		b.Requested, j.Batch = b.Initial, b
		j.Gradients = core.Gradients{SquaredNorm: rapid.Float64Range(0, 10).Draw(t, "square"), Variance: rapid.Float64Range(0, 1e4).Draw(t, "variance")}
		config, _ := NewGoodput().Decode(nil)
		p, err := NewGoodput().New(config, core.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 4).Draw(t, "measured") {
			replicas := rapid.SampledFrom([]int{1, 2, 3, 4, 8, 32}).Draw(t, "replicas")
			j.Measured = append(j.Measured, core.Measurement{
				Nodes: min(rapid.IntRange(1, 3).Draw(t, "nodes"), replicas), Replicas: replicas,
				PerDevice: rapid.IntRange(b.MinPerDevice, b.MaxPerDevice).Draw(t, "per device"), PassSeconds: 1,
				StepSeconds: rapid.Float64Range(1, 3).Draw(t, "step"),
			})
			responses, err := p.Respond(context.Background(), viewOf(j), []*core.Job{j})
			if err != nil {
				t.Fatal(err)
			}
			r := responses[0]
			if r.MaxReplicas < 1 || r.MaxReplicas*b.MinPerDevice > b.Max {
				t.Errorf("%d replicas of %+v", r.MaxReplicas, b)
			}
			seats := []core.Seat{{Devices: 1<<r.MaxReplicas - 1}}
			tunings, err := p.Tune(context.Background(), viewOf(j), []core.Placement{{Job: j.ID, Seats: seats}})
			if err != nil {
				t.Fatal(err)
			}
			got := tunings[0]
			total := r.MaxReplicas * got.BatchPerDevice * (got.AccumulationSteps + 1)
			if got.BatchPerDevice < 1 || got.BatchPerDevice > b.MaxPerDevice || total > b.Max {
				t.Errorf("%d replicas are tuned to %+v, %+v", r.MaxReplicas, got, b)
			}
			// Below the initial batch only where whole samples leave nothing between it and the largest.
			if next := total + r.MaxReplicas*(got.AccumulationSteps+1); total < b.Initial && next <= b.Max {
				t.Errorf("%d replicas are tuned to %d samples, want at least %d", r.MaxReplicas, total, b.Initial)
			}
		}
	})
}
