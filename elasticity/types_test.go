package elasticity

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/goodput"
)

// threeTypes is a view of a job on nodes 0 to 3 of a t4, 4 of an a100 and 5 of a v100.
func threeTypes(j *core.Job) *core.View {
	v := viewOf(j)
	v.Cluster = coretest.MakeCluster().Nodes(4, "t4", 4).Nodes(1, "a100", 8).Nodes(1, "v100", 8).Obj()
	return v
}

// ranOn adds what a job measures on a type, so many times as fast as the truth.
func ranOn(j *core.Job, accelerator string, faster float64, nodes, replicas, perDevice int) {
	ran(j, truth, nodes, replicas, perDevice)
	m := &j.Measured[len(j.Measured)-1]
	m.Accelerator, m.PassSeconds, m.StepSeconds = accelerator, m.PassSeconds/faster, m.StepSeconds/faster
}

func respondTo(t testing.TB, p core.Elasticity, v *core.View) core.Response {
	t.Helper()
	responses, err := p.Respond(context.Background(), v, v.Jobs)
	if err != nil {
		t.Fatal(err)
	}
	return responses[0]
}

// profiles are the speeds of single devices: an a100 is four times a t4, a v100 twice.
func profiles(j *core.Job) {
	j.Truth = &core.Truth{}
	for accelerator, faster := range map[string]float64{"t4": 1, "a100": 4, "v100": 2} {
		for _, batch := range []int{32, 256} {
			m := core.Measurement{Accelerator: accelerator, Nodes: 1, Replicas: 1, PerDevice: batch, StepSeconds: 1 / faster}
			if batch == 32 { // the largest counts
				m.StepSeconds = 1
			}
			j.Truth.Measurements = append(j.Truth.Measurements, m)
		}
	}
}

func TestGoodputByType(t *testing.T) {
	cases := map[string]struct {
		settings map[string]any
		measure  func(*core.Job)
		want     []float64 // rates of one device by type, against that of a t4
	}{
		"nothing measured": {nil, func(*core.Job) {}, []float64{1}},
		"without names":    {nil, func(j *core.Job) { ran(j, truth, 1, 1, 64) }, []float64{1}},
		"one measured, jobs not profiled": {
			nil, func(j *core.Job) { ranOn(j, "t4", 1, 1, 1, 64) }, []float64{1, 1, 1},
		},
		"one measured": {
			map[string]any{"profiled": true}, func(j *core.Job) { ranOn(j, "t4", 1, 1, 1, 64) }, []float64{1, 4, 2},
		},
		"another measured": {
			map[string]any{"profiled": true}, func(j *core.Job) { ranOn(j, "a100", 1, 1, 1, 64) }, []float64{1, 4, 2},
		},
		"two measured, otherwise than profiled": {
			map[string]any{"profiled": true},
			func(j *core.Job) { ranOn(j, "t4", 1, 1, 1, 64); ranOn(j, "a100", 3, 1, 1, 64) },
			[]float64{1, 3, 2},
		},
		"not on all types": {
			map[string]any{"profiled": true},
			func(j *core.Job) { j.Accelerators = []string{"t4", "v100"}; ranOn(j, "t4", 1, 1, 1, 64) },
			[]float64{1, 0, 2},
		},
		"blind": {
			map[string]any{"types": "blind"},
			func(j *core.Job) { ranOn(j, "t4", 1, 1, 1, 64); ranOn(j, "a100", 4, 1, 1, 64) },
			[]float64{1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, j := newGoodput(t, tc.settings), trainingJob()
			profiles(j)
			tc.measure(j)
			r := respondTo(t, p, threeTypes(j))
			var got []float64
			for i := range r.Curves {
				rate := r.Rate(core.AcceleratorID(i), 1, 8)
				got = append(got, rate/r.Rate(0, 1, 8))
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateApprox(1e-3, 0)); diff != "" {
				t.Errorf("rates of one device (-want +got):\n%s", diff)
			}
		})
	}
}

// The replicas seen on any type count for all.
func TestGoodputGrowsOverTypes(t *testing.T) {
	p, j := newGoodput(t, nil), trainingJob()
	ranOn(j, "t4", 1, 1, 1, 64)
	ranOn(j, "a100", 4, 1, 4, 64)
	if r := respondTo(t, p, threeTypes(j)); r.MaxReplicas != 8 || !(r.Rate(0, 8, 4) > 0) {
		t.Errorf("up to %d replicas, 8 of them at %v", r.MaxReplicas, r.Rate(0, 8, 4))
	}
}

// A model of a type is that of its own measurements and bounds, and is what a batch there is tuned to.
func TestGoodputTunesByType(t *testing.T) {
	p, j := newGoodput(t, nil), trainingJob()
	j.BatchByType = []core.TypeBatch{{Accelerator: "a100", MinPerDevice: 32, MaxPerDevice: 1024}, {Accelerator: "v100", MinPerDevice: 32, MaxPerDevice: 64}}
	for _, batch := range []int{64, 200} {
		ranOn(j, "t4", 1, 1, 2, batch)
		ranOn(j, "a100", 4, 1, 2, batch)
	}
	v := threeTypes(j)
	respondTo(t, p, v)
	tuned := func(node int) core.Tuning {
		tunings, err := p.Tune(context.Background(), v, []core.Placement{{Job: j.ID, Seats: []core.Seat{coretest.Seat(core.NodeID(node), 0, 1)}}})
		if err != nil || len(tunings) != 1 {
			t.Fatal(tunings, err)
		}
		return tunings[0]
	}
	for node, bounds := range map[int]core.BatchSpec{0: j.Batch, 4: j.BatchOn("a100")} {
		faster := map[int]float64{0: 1, 4: 4}[node]
		other := trainingJob()
		for _, batch := range []int{64, 200} {
			ranOn(other, "", faster, 1, 2, batch)
		}
		m := goodput.Model{Performance: goodput.Fit(other.Measured), Gradients: goodput.Gradients(j.Gradients), Limits: bounds}
		want := m.Best(1, 2)
		if got := tuned(node); got.BatchPerDevice != want.PerDevice || got.AccumulationSteps != want.Accumulation {
			t.Errorf("node %d: %d samples, %d passes more; want %+v", node, got.BatchPerDevice, got.AccumulationSteps, want)
		}
	}
	if got := tuned(5); got.BatchPerDevice != 64 { // never measured there: the initial batch, on two
		t.Errorf("where nothing was measured: %d samples", got.BatchPerDevice)
	}
}

// The blind keep to the bounds of every type.
func TestBlindGoodputFitsEverywhere(t *testing.T) {
	p, j := newGoodput(t, map[string]any{"types": "blind"}), trainingJob()
	j.BatchByType = []core.TypeBatch{{Accelerator: "t4", MinPerDevice: 16, MaxPerDevice: 64}, {Accelerator: "a100", MinPerDevice: 48, MaxPerDevice: 1024}}
	ranOn(j, "a100", 4, 1, 1, 64)
	v := threeTypes(j)
	respondTo(t, p, v)
	tunings, err := p.Tune(context.Background(), v, []core.Placement{{Job: j.ID, Seats: []core.Seat{coretest.Seat(4, 0)}}})
	if err != nil || len(tunings) != 1 || tunings[0].BatchPerDevice < 48 || tunings[0].BatchPerDevice > 64 {
		t.Errorf("tuned to %+v (%v), want 48 to 64 samples on a device", tunings, err)
	}
}

// What a run measured by type is known by type in the next.
func TestHistoryByType(t *testing.T) {
	p, j := taughtTypes(t)
	r := respondTo(t, p, threeTypes(j))
	if got := r.Rate(1, 1, 8) / r.Rate(0, 1, 8); len(r.Curves) != 3 || math.Abs(got-4) > 0.01 {
		t.Errorf("an a100 is %v times a t4 as remembered, want 4 (%d curves)", got, len(r.Curves))
	}
	ranOn(j, "v100", 2, 1, 1, 64)
	r = respondTo(t, p, threeTypes(j))
	if got := r.Rate(2, 1, 8) / r.Rate(0, 1, 8); math.Abs(got-2) > 0.01 {
		t.Errorf("a v100 is %v times a t4 as measured beside what is remembered, want 2", got)
	}
}

// What a job measures on one type leaves the models of the others as they would be anew: with its statistics, and for as many
// replicas as it may use now.
func TestModelsKeepUp(t *testing.T) {
	p, j := newGoodput(t, nil), trainingJob()
	ranOn(j, "t4", 1, 1, 1, 64)
	respondTo(t, p, threeTypes(j))
	j.Gradients = core.Gradients{SquaredNorm: 1, Variance: 5}
	ranOn(j, "a100", 4, 1, 1, 64)
	want := respondTo(t, newGoodput(t, nil), threeTypes(j))
	if diff := cmp.Diff(want, respondTo(t, p, threeTypes(j)), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("with other statistics (-anew +before):\n%s", diff)
	}
	ranOn(j, "a100", 4, 1, 4, 64)
	want = respondTo(t, newGoodput(t, nil), threeTypes(j))
	if diff := cmp.Diff(want, respondTo(t, p, threeTypes(j)), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("with more replicas (-anew +before):\n%s", diff)
	}
}

// taughtTypes is an agent whose history holds a job that ran on a t4 and, four times as fast, on an a100; and a job like it.
func taughtTypes(t *testing.T) (*goodputAgent, *core.Job) {
	t.Helper()
	settings := map[string]any{"knowledge": "history", "history_path": filepath.Join(t.TempDir(), "history.yaml")}
	p, j := newGoodput(t, settings), trainingJob()
	ranOn(j, "t4", 1, 1, 1, 64)
	ranOn(j, "a100", 4, 1, 1, 64)
	respondTo(t, p, threeTypes(j))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return newGoodput(t, settings), trainingJob()
}

// What a job proved wrong on one type is not believed on the others.
func TestWhatIsRefutedIsRefutedOnAllTypes(t *testing.T) {
	p, j := taughtTypes(t)
	respondTo(t, p, threeTypes(j))
	ranOn(j, "a100", 2, 1, 1, 64)
	r := respondTo(t, p, threeTypes(j))
	if got := r.Rate(0, 1, 8) / r.Rate(1, 1, 8); math.Abs(got-1) > 1e-9 {
		t.Errorf("a t4 is %v times an a100, want 1: what was known of it was proved wrong", got)
	}
}

// A job has no rate on a type that it cannot run on, though its application was measured there; where types make no difference it
// does not matter which they are.
func TestGoodputWhereAJobCannotRun(t *testing.T) {
	p, j := taughtTypes(t)
	j.Accelerators = []string{"t4"}
	r := respondTo(t, p, threeTypes(j))
	if len(r.Curves) != 3 || !(r.Rate(0, 1, 8) > 0) || len(r.Curves[1].OneNode) > 0 || len(r.Curves[2].ManyNodes) > 0 {
		t.Errorf("curves %+v, want one on a t4 alone", r.Curves)
	}

	p, j = newGoodput(t, nil), trainingJob()
	j.Accelerators = []string{"v100"}
	ran(j, truth, 1, 1, 64)
	if r := respondTo(t, p, threeTypes(j)); len(r.Curves) != 1 || !(r.Curves[0].OneNode[0] > 0) || r.RemainingWork != j.RemainingWork(0) {
		t.Errorf("measured without names of types: %+v", r)
	}
}

// On as many replicas as curves end at, a job has the batch that is best there.
func TestGoodputTunesTheMostReplicas(t *testing.T) {
	p, j := newGoodput(t, map[string]any{"most_replicas": 2}), trainingJob()
	j.Gradients = core.Gradients{SquaredNorm: 1, Variance: 5}
	for _, batch := range []int{64, 200} {
		ran(j, truth, 1, 1, batch)
		ran(j, truth, 1, 2, batch)
	}
	respond(t, p, j)
	m := goodput.Model{Performance: goodput.Fit(j.Measured), Gradients: goodput.Gradients(j.Gradients), Limits: j.Batch}
	want := m.Best(1, 2)
	if 2*want.PerDevice*(want.Accumulation+1) == j.Batch.Initial {
		t.Fatalf("%+v is best, which is the initial batch", want)
	}
	if got := tune(t, p, j, coretest.Seat(0, 0, 1)); got.BatchPerDevice != want.PerDevice || got.AccumulationSteps != want.Accumulation {
		t.Errorf("tuned to %+v, want %+v", got, want)
	}
}
