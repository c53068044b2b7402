package elasticity

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/goodput"
)

func TestThroughputConformance(t *testing.T) {
	for name, config := range map[string]map[string]any{
		"learned":           nil,
		"without work left": {"declared_work": false},
		"oracle":            {"knowledge": "oracle"},
		"exact":             {"knowledge": "exact"},
		"profiled":          {"profiled": true},
		"blind to types":    {"types": "blind"},
	} {
		t.Run(name, func(t *testing.T) {
			coretest.RunElasticity(t, NewThroughput(), coretest.Pinning(), coretest.WithConfig(config))
		})
	}
}

func newThroughput(t testing.TB, settings map[string]any) core.Elasticity {
	t.Helper()
	config, problems := NewThroughput().Decode(settings)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	made, err := NewThroughput().New(config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// measured is a job that has run so that its model is known.
func measured(gradients core.Gradients) *core.Job {
	j := trainingJob()
	j.Gradients = gradients
	for _, perDevice := range []int{32, 64, 128, 256} {
		for _, replicas := range []int{1, 2, 3, 4} {
			ran(j, truth, 1, replicas, perDevice)
		}
		for _, replicas := range []int{5, 8, 16} {
			ran(j, truth, (replicas+3)/4, replicas, perDevice)
		}
	}
	return j
}

// The rate on so many replicas is that of the fastest batch of the range that they take at once.
func TestThroughputIsThatOfTheFastestBatch(t *testing.T) {
	j := measured(noisy)
	model := goodput.Fit(j.Measured)
	got := respond(t, newThroughput(t, nil), j)
	for shape, rates := range [][]float64{got.Curves[0].OneNode, got.Curves[0].ManyNodes} {
		for i := range rates {
			replicas, want := i+1, 0.0
			for perDevice := limits.MinPerDevice; perDevice <= limits.MaxPerDevice; perDevice++ {
				if total := replicas * perDevice; total >= limits.Initial && total < limits.Max+replicas {
					want = max(want, model.Throughput(1+shape, replicas, float64(perDevice), 0)/float64(limits.Initial))
				}
			}
			if math.Abs(rates[i]-want) > 1e-9*want {
				t.Errorf("%d replicas, shape %d: %v iterations a second, want %v", replicas, shape, rates[i], want)
			}
		}
	}
}

// What gradients say of a larger batch changes nothing, and neither does their absence.
func TestThroughputLooksAtNoGradients(t *testing.T) {
	want := respond(t, newThroughput(t, nil), measured(noisy))
	rapid.Check(t, func(rt *rapid.T) {
		g := core.Gradients{SquaredNorm: rapid.Float64Range(0, 1e3).Draw(rt, "square"), Variance: rapid.Float64Range(0, 1e6).Draw(rt, "variance")}
		p, j := newThroughput(t, nil), measured(g)
		if diff := cmp.Diff(want, respond(t, p, j)); diff != "" {
			rt.Fatalf("response (-want +got):\n%s", diff)
		}
		j.Gradients.SquaredNorm++ // an epoch later
		if diff := cmp.Diff(want, respond(t, p, j)); diff != "" {
			rt.Fatalf("response after new statistics (-want +got):\n%s", diff)
		}
	})
}

// A job that keeps its batch runs where its devices take that at once, and nowhere else.
func TestThroughputOfAFixedBatch(t *testing.T) {
	settings := map[string]any{"fixed_batch": []any{"app"}}
	j := measured(noisy)
	p := newThroughput(t, settings)
	rates := respond(t, p, j).Curves[0].OneNode
	for i, rate := range rates {
		perDevice := (limits.Requested + i) / (i + 1)
		if runs := perDevice <= limits.MaxPerDevice && perDevice >= limits.MinPerDevice; runs != (rate > 0) {
			t.Errorf("%d replicas with %d each: rate %v", i+1, perDevice, rate)
		}
	}
	if got := tune(t, p, j, coretest.Seat(0, 0, 1, 2, 3)); got.BatchPerDevice != limits.Requested/4 || got.AccumulationSteps != 0 {
		t.Errorf("tuned to %+v", got)
	}
	free := newThroughput(t, nil)
	respond(t, free, j)
	if got := tune(t, free, j, coretest.Seat(0, 0, 1, 2, 3)); got.BatchPerDevice != limits.MaxPerDevice || got.AccumulationSteps != 0 {
		t.Errorf("a job that may choose is tuned to %+v", got)
	}
}
