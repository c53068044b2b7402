package workload

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// simple is an application with round figures: a pass over b samples takes 1 + b/10 s,
// synchronisation 1 s on one node and 4 s across nodes, without overlap. The gradient noise scale is
// 30 samples in the first epoch and 90 in the second.
func simple() *goodput.Profile {
	return &goodput.Profile{
		Version: 1, Name: "simple", MaxReplicas: 8, Epochs: 2, IterationsPerEpoch: 100,
		Batch:       goodput.BatchLimits{Initial: 10, Max: 80, MinPerDevice: 5, MaxPerDevice: 20},
		Performance: goodput.Performance{AlphaGrad: 1, BetaGrad: 0.1, AlphaNode: 4, BetaNode: 1e-8, AlphaLocal: 1, BetaLocal: 1e-8, Gamma: 1},
		Noise:       []goodput.NoisePoint{{Progress: 0.25, Samples: 30}, {Progress: 0.75, Samples: 90}},
	}
}

var about = cmpopts.EquateApprox(1e-6, 0)

// The gain at n times the initial batch is (noise/10 + 1)/(noise/10/n + 1): 4/(3/4+1) at 40 samples in the first epoch.
func TestModelledRate(t *testing.T) {
	m := newModelledModel(simple(), 40)
	tuned := func(perDevice, accumulation int) core.Tuning {
		return core.Tuning{BatchPerDevice: perDevice, AccumulationSteps: accumulation}
	}
	cases := map[string]struct {
		phase   int
		running Running
		want    float64
	}{
		"the requested batch on one device, in two passes": {0, Running{Shape: []int{1}, Replicas: 1}, 4 / 1.75 / 6},
		"on one node":                            {0, Running{Shape: []int{2}, Replicas: 2}, 4 / 1.75 / 4},
		"on two nodes":                           {0, Running{Shape: []int{1, 1}, Replicas: 2}, 4 / 1.75 / 7},
		"later steps gain more":                  {1, Running{Shape: []int{2}, Replicas: 2}, 10 / 3.25 / 4},
		"a tuned batch":                          {0, Running{Shape: []int{2}, Replicas: 2, Tuning: tuned(5, 0)}, 1 / 2.5},
		"with accumulation":                      {0, Running{Shape: []int{2}, Replicas: 2, Tuning: tuned(5, 1)}, 4 / 2.5 / 4},
		"more than a device holds":               {0, Running{Shape: []int{2}, Replicas: 2, Tuning: tuned(21, 0)}, 0},
		"less than a device takes":               {0, Running{Shape: []int{3}, Replicas: 3, Tuning: tuned(4, 0)}, 0},
		"more than still trains":                 {0, Running{Shape: []int{5}, Replicas: 5, Tuning: tuned(20, 0)}, 0},
		"less than the initial batch":            {0, Running{Shape: []int{1}, Replicas: 1, Tuning: tuned(9, 0)}, 0},
		"more replicas than the batch has parts": {0, Running{Shape: []int{11}, Replicas: 11}, 0},
		"no replicas":                            {0, Running{}, 0},
		"a negative number of passes":            {0, Running{Shape: []int{2}, Replicas: 2, Tuning: tuned(5, -1)}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, m.Rate(tc.phase, tc.running), about); diff != "" {
				t.Errorf("rate (-want +got):\n%s", diff)
			}
			if _, _, ok := m.Measure(tc.phase, tc.running); ok != (tc.want > 0) {
				t.Errorf("measures: %v, runs at %v", ok, tc.want)
			}
		})
	}
}

// A workload that is so many times faster does the same, and measures it, in a part of the time. The one that it was made of stays.
func TestFaster(t *testing.T) {
	m := newModelledModel(simple(), 40)
	slow := &Workload{Jobs: []Job{newTrainingJob("a", 0, 2, m), newDurationJob("b", 0, 100, 1), newTrainingJob("c", 9, 1, m)}}
	fast := slow.Faster(8)
	running := Running{Shape: []int{1, 1}, Replicas: 2}
	for i, times := range map[int]float64{0: 8, 1: 1, 2: 8} {
		was, is := &slow.Jobs[i], &fast.Jobs[i]
		for phase := range was.Model.Phases() {
			if diff := cmp.Diff(times*was.Model.Rate(phase, running), is.Model.Rate(phase, running), about); diff != "" {
				t.Errorf("job %d, phase %d: rate (-want +got):\n%s", i, phase, diff)
			}
			if was.Model.PhaseEnd(phase) != is.Model.PhaseEnd(phase) {
				t.Errorf("job %d, phase %d: ends at %v, and before at %v", i, phase, is.Model.PhaseEnd(phase), was.Model.PhaseEnd(phase))
			}
		}
		spec := was.Spec
		spec.StepTimes, spec.Truth = is.Spec.StepTimes, is.Spec.Truth
		if diff := cmp.Diff(spec, is.Spec); diff != "" {
			t.Errorf("job %d: all else (-want +got):\n%s", i, diff)
		}
		if times == 1 {
			continue
		}
		if diff := cmp.Diff(was.Spec.StepTimes.OneNode[1]/times, is.Spec.StepTimes.OneNode[1], about); diff != "" {
			t.Errorf("job %d: a step (-want +got):\n%s", i, diff)
		}
		for k, seen := range is.Spec.Truth.Measurements {
			if diff := cmp.Diff(was.Spec.Truth.Measurements[k].StepSeconds/times, seen.StepSeconds, about); diff != "" {
				t.Errorf("job %d: measurement %d (-want +got):\n%s", i, k, diff)
			}
		}
	}
	if fast.Jobs[0].Model != fast.Jobs[2].Model || slow.Jobs[0].Model != Model(m) {
		t.Error("jobs of one application do not share a model, or the first workload has another")
	}
}

func TestTraining(t *testing.T) {
	m, err := Training(simple(), 40)
	if _, measures := m.(Measurer); err != nil || !measures {
		t.Errorf("%v, measures: %v", err, measures)
	}
	if m, err := Training(simple(), 81); err == nil || m != nil {
		t.Errorf("it trains with more than it can: %v", err)
	}
}

func TestModelledJob(t *testing.T) {
	m := newModelledModel(simple(), 40)
	got := newTrainingJob("j", 60, 2, m).Spec
	want := core.JobSpec{
		Name: "j", Application: "simple", Weight: 1, SubmitSeconds: 60, Requested: 2, MinReplicas: 1, MaxReplicas: 8, TotalWork: 200,
		Batch: core.BatchSpec{Requested: 40, Initial: 10, Max: 80, MinPerDevice: 5, MaxPerDevice: 20},
		// 40 samples on r devices: 20 twice, 20, 14, 10, 8, 7, 6, 5.
		StepTimes: &core.StepTimes{
			OneNode:   []float64{6, 4, 3.4, 3, 2.8, 2.7, 2.6, 2.5},
			ManyNodes: []float64{0, 7, 6.4, 6, 5.8, 5.7, 5.6, 5.5},
		},
		Truth: &m.truth,
	}
	if diff := cmp.Diff(want, got, about); diff != "" {
		t.Errorf("specification (-want +got):\n%s", diff)
	}
	for phase, want := range []struct{ end, left float64 }{{100, 100*1.75/4 + 100*3.25/10}, {200, 100 * 3.25 / 10}} {
		if m.PhaseEnd(phase) != want.end || relativeError(m.StepsLeft(phase), want.left) > 1e-9 {
			t.Errorf("epoch %d ends at %v with %v steps left before it, want %v and %v", phase, m.PhaseEnd(phase), m.StepsLeft(phase), want.end, want.left)
		}
	}
	for _, batch := range []int{9, 81} {
		if newModelledModel(simple(), batch) != nil {
			t.Errorf("trains with a batch of %d", batch)
		}
	}
}

// A batch that must be both the least and the largest is trained with on any number of replicas, as near as they come.
func TestModelledRunsWithOneBatchOnly(t *testing.T) {
	p := simple()
	p.Batch.Initial, p.Batch.Max = 40, 40
	m := newModelledModel(p, 40)
	for replicas := 2; replicas <= 8; replicas++ {
		if !(m.Rate(0, Running{Shape: []int{replicas}, Replicas: replicas}) > 0) {
			t.Errorf("does not run on %d replicas", replicas)
		}
	}
}

func TestModelledMeasures(t *testing.T) {
	m := newModelledModel(simple(), 40)
	measured, gradients, _ := m.Measure(1, Running{Shape: []int{1, 0, 1}, Replicas: 2})
	want := core.Measurement{Nodes: 2, Replicas: 2, PerDevice: 20, PassSeconds: 3, StepSeconds: 7}
	if diff := cmp.Diff(want, measured, about); diff != "" {
		t.Errorf("measurement (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(core.Gradients{SquaredNorm: 1, Variance: 9}, gradients, about); diff != "" {
		t.Errorf("gradients (-want +got):\n%s", diff)
	}
}

// What a job could measure tells the parameters of its application.
func TestTruthTellsTheParameters(t *testing.T) {
	profiles, err := Applications()
	if err != nil {
		t.Fatal(err)
	}
	for i := range profiles {
		p := &profiles[i]
		truth := truthOf(p)
		fitted := goodput.Fit(truth.Measurements)
		for _, m := range truth.Measurements {
			if got := fitted.StepTime(m.Nodes, m.Replicas, float64(m.PerDevice), 0); math.Abs(math.Log(got/m.StepSeconds)) > 0.1 {
				t.Errorf("%s: fitted step on %d nodes, %d replicas, batch %d takes %.4g s, not %.4g", p.Name, m.Nodes, m.Replicas, m.PerDevice, got, m.StepSeconds)
			}
		}
	}
}

// A whole training in a tuned configuration takes about as long by its model as by the measurements.
func TestModelsAgreeWithMeasurements(t *testing.T) {
	reader := profileReader{folder: refdata.Path(t, "data", "pollux-osdi21")}
	models, err := tunedModels()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range polluxKinds {
		k := kind.value
		p := reader.read(t.Context(), k.application)
		if p == nil {
			t.Fatal(reader.problems)
		}
		running := Running{Shape: consolidated(k.replicas, profileDevicesPerNode), Replicas: k.replicas}
		modelled := trainingSeconds(models[polluxTask{k.application, k.batch}], running)
		measured := trainingSeconds(newMeasuredModel(p, k.batch, false), running)
		t.Logf("%-12s %2d replicas, batch %5d: %6.0f s modelled, %6.0f s measured, %+.1f %%",
			k.application, k.replicas, k.batch, modelled, measured, 100*(modelled/measured-1))
		if relativeError(modelled, measured) > 0.25 {
			t.Errorf("%s on %d replicas takes %.0f s, measured %.0f s", k.application, k.replicas, modelled, measured)
		}
	}
}

// trainingSeconds is how long a job takes without a pause.
func trainingSeconds(m Model, running Running) float64 {
	seconds, done := 0.0, 0.0
	for phase := range m.Phases() {
		seconds += (m.PhaseEnd(phase) - done) / m.Rate(phase, running)
		done = m.PhaseEnd(phase)
	}
	return seconds
}
