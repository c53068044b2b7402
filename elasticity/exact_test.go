package elasticity

import (
	"context"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/goodput"
)

// known is a job with a batch from 4 to 9, up to 4 on a device, of which the truth tells times on one, two and five devices.
func known() *core.Job {
	j := coretest.MakeJob("a").Application("app").Elastic(1, 1, 8).Work(100).Waiting().
		Batch(core.BatchSpec{Requested: 6, Initial: 4, Max: 9, MinPerDevice: 1, MaxPerDevice: 4}).Obj()
	j.Truth = &core.Truth{
		Measurements: []core.Measurement{
			{Nodes: 1, Replicas: 1, PerDevice: 4, StepSeconds: 1},
			{Nodes: 1, Replicas: 2, PerDevice: 4, StepSeconds: 1.25},
			{Nodes: 1, Replicas: 2, PerDevice: 2, StepSeconds: 0.75},
			{Nodes: 2, Replicas: 2, PerDevice: 2, StepSeconds: 0.1}, // spread, which is not looked at
			{Nodes: 2, Replicas: 5, PerDevice: 1, StepSeconds: 0.5},
			{Nodes: 2, Replicas: 5, PerDevice: 2, StepSeconds: 0.5},
		},
		Steps: []core.BatchSteps{{Batch: 4, Steps: 100}, {Batch: 8, Steps: 75}, {Batch: 12, Steps: 70}},
	}
	return j
}

func TestExactKnowledge(t *testing.T) {
	noSteps := func(j *core.Job) { j.Truth.Steps = nil }
	cases := map[string]struct {
		policy   func(testing.TB, map[string]any) core.Elasticity
		settings map[string]any
		change   func(*core.Job)
		want     []float64 // iterations a second at a batch of 4
		seats    []core.Seat
		tuning   core.Tuning
		alone    float64
	}{
		"throughput on two devices": {
			newThroughput, nil, nil,
			[]float64{1, 8 / 1.25 / 4, 0, 0, 9 / 0.5 / 4},
			[]core.Seat{coretest.Seat(0, 0, 1)},
			core.Tuning{BatchPerDevice: 4, LearningRateFactor: 2},
			0,
		},
		"throughput on five": {
			newThroughput, nil, nil,
			[]float64{1, 8 / 1.25 / 4, 0, 0, 9 / 0.5 / 4},
			[]core.Seat{coretest.Seat(0, 0, 1, 2, 3), coretest.Seat(1, 0)},
			core.Tuning{BatchPerDevice: 2, BatchByReplica: []int{2, 2, 2, 2, 1}, LearningRateFactor: 9.0 / 4},
			0,
		},
		"throughput on three, of which nothing is known": {
			newThroughput, nil, nil,
			[]float64{1, 8 / 1.25 / 4, 0, 0, 9 / 0.5 / 4},
			[]core.Seat{coretest.Seat(0, 0, 1, 2)},
			core.Tuning{BatchPerDevice: 2, LearningRateFactor: 6.0 / 4},
			0,
		},
		"throughput of a batch of 6": {
			newThroughput,
			map[string]any{"fixed_batch": []any{"app"}},
			nil,
			[]float64{0, 6 / 1.0 / 4, 0, 0, 6 / 0.5 / 4},
			[]core.Seat{coretest.Seat(0, 0, 1)},
			core.Tuning{BatchPerDevice: 3, LearningRateFactor: 1.5},
			1,
		},
		// A batch of 8 takes 75 × 8 / 400 = 1.5 times the samples of one of 4, a batch of 9 takes 73.75 × 9 / 400 times.
		"goodput by steps": {
			newGoodputPolicy, nil, nil,
			[]float64{1, 4 / 0.75 / 4, 0, 0, 400 / 73.75 / 0.5 / 4},
			[]core.Seat{coretest.Seat(0, 0, 1)},
			core.Tuning{BatchPerDevice: 2, LearningRateFactor: 1},
			0,
		},
		"goodput by statistics that say nothing": {
			newGoodputPolicy, nil, func(j *core.Job) { noSteps(j); j.Truth.Gradients = core.Gradients{SquaredNorm: 1} },
			[]float64{1, 4 / 0.75 / 4, 0, 0, 4 / 0.5 / 4},
			[]core.Seat{coretest.Seat(0, 0, 1)},
			core.Tuning{BatchPerDevice: 2, LearningRateFactor: 1},
			0,
		},
		"goodput by noise": {
			newGoodputPolicy, nil, func(j *core.Job) { noSteps(j); j.Truth.Gradients = core.Gradients{Variance: 1} },
			[]float64{1, 8 / 1.25 / 4, 0, 0, 9 / 0.5 / 4},
			[]core.Seat{coretest.Seat(0, 0, 1)},
			core.Tuning{BatchPerDevice: 4, LearningRateFactor: 2},
			0,
		},
		"other times on another type": {
			newThroughput, nil, func(j *core.Job) {
				for i := range j.Truth.Measurements {
					j.Truth.Measurements[i].Accelerator = "other"
				}
				j.Truth.Measurements = append(j.Truth.Measurements, core.Measurement{Accelerator: "t4", Nodes: 1, Replicas: 2, PerDevice: 2, StepSeconds: 0.25})
			},
			[]float64{0, 4 / 0.25 / 4},
			[]core.Seat{coretest.Seat(0, 0, 1)},
			core.Tuning{BatchPerDevice: 2, LearningRateFactor: 1},
			0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			settings := map[string]any{"knowledge": exactly, "scaling_rule": "linear"}
			maps.Copy(settings, tc.settings)
			p, j := tc.policy(t, settings), known()
			if tc.change != nil {
				tc.change(j)
			}
			got := respond(t, p, j)
			want := core.Response{MinReplicas: 1, MaxReplicas: len(tc.want), Curves: []core.Curve{{OneNode: tc.want, ManyNodes: tc.want}}, RemainingWork: 100, SingleDeviceRate: tc.alone}
			if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.tuning, tune(t, p, j, tc.seats...), cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Errorf("tuning (-want +got):\n%s", diff)
			}
			j.Tuning = tune(t, p, j, tc.seats...)
			if again, err := p.Tune(context.Background(), viewOf(j), []core.Placement{{Job: j.ID, Seats: tc.seats}}); err != nil || len(again) > 0 {
				t.Errorf("tuned again to %+v, %v", again, err)
			}
		})
	}
}

func newGoodputPolicy(t testing.TB, settings map[string]any) core.Elasticity {
	return newGoodput(t, settings)
}

// A job of which nothing is known for certain is learned of.
func TestExactKnowledgeOfNothing(t *testing.T) {
	for name, change := range map[string]func(*core.Job){
		"no truth": func(j *core.Job) { j.Truth = nil },
		"no batch": func(j *core.Job) { j.Batch = core.BatchSpec{} },
	} {
		j := known()
		change(j)
		if diff := cmp.Diff(respond(t, newThroughput(t, map[string]any{"knowledge": oracle}), j), respond(t, newThroughput(t, map[string]any{"knowledge": exactly}), j), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s: response (-of an oracle +got):\n%s", name, diff)
		}
	}
	if got := respond(t, newThroughput(t, map[string]any{"knowledge": exactly, "declared_work": false}), known()); !math.IsNaN(got.RemainingWork) {
		t.Errorf("work left %v, want none told", got.RemainingWork)
	}
}

// A free batch is at least as fast as any of its range, on every number of devices, and a tuning keeps the bounds.
func TestExactIsNoSlowerThanAnyBatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := known()
		b := core.BatchSpec{Initial: rapid.IntRange(1, 40).Draw(rt, "initial"), MinPerDevice: rapid.IntRange(1, 4).Draw(rt, "least"), MaxPerDevice: rapid.IntRange(4, 30).Draw(rt, "most")}
		b.Max = rapid.IntRange(b.Initial, 80).Draw(rt, "max")
		j.Batch, j.Truth = b, &core.Truth{}
		for replicas := 1; replicas <= 8; replicas++ {
			for perDevice := b.MinPerDevice; perDevice <= b.MaxPerDevice; perDevice += rapid.IntRange(1, 5).Draw(rt, "gap") {
				j.Truth.Measurements = append(j.Truth.Measurements, core.Measurement{
					Nodes: 1, Replicas: replicas, PerDevice: perDevice, StepSeconds: rapid.Float64Range(0.1, 10).Draw(rt, "seconds"),
				})
			}
		}
		free := newThroughput(t, map[string]any{"knowledge": exactly})
		rates := respond(t, free, j).Curves[0].OneNode
		j.Batch.Requested = rapid.SampledFrom(goodput.GeometricBatches(b)).Draw(rt, "requested")
		for i, rate := range respond(t, newThroughput(t, map[string]any{"knowledge": exactly, "fixed_batch": []any{"app"}}), j).Curves[0].OneNode {
			if rate > 0 && (i >= len(rates) || rate > rates[i]) {
				rt.Fatalf("%d devices: %v with a batch of %d, free %v", i+1, rate, j.Batch.Requested, rates)
			}
		}
		for i, rate := range rates {
			if rate == 0 {
				continue
			}
			got := tune(t, free, j, coretest.Seat(0, devices(i+1)...))
			total := (i + 1) * got.BatchPerDevice
			if len(got.BatchByReplica) > 0 {
				total = 0
				for _, part := range got.BatchByReplica {
					total += part
				}
				if slices.Max(got.BatchByReplica) != got.BatchPerDevice || slices.Min(got.BatchByReplica) < got.BatchPerDevice-1 {
					rt.Fatalf("%d devices: parts %v", i+1, got.BatchByReplica)
				}
			}
			if total < b.Initial || total > b.Max || got.BatchPerDevice < b.MinPerDevice || got.BatchPerDevice > b.MaxPerDevice {
				rt.Fatalf("%d devices: a batch of %d, %d on each, beyond %+v", i+1, total, got.BatchPerDevice, b)
			}
		}
	})
}

func devices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func TestExactAllocatesNothing(t *testing.T) {
	p, j := newThroughput(t, map[string]any{"knowledge": exactly}), known()
	v, seats := viewOf(j), []core.Seat{coretest.Seat(0, 0, 1, 2, 3), coretest.Seat(1, 0)}
	jobs, placements := []*core.Job{j}, []core.Placement{{Job: j.ID, Seats: seats}}
	if got := testing.AllocsPerRun(10, func() {
		if _, err := p.Respond(context.Background(), v, jobs); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Tune(context.Background(), v, placements); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations a round, want 0", got)
	}
}
