package elasticity

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

func newFixed(t *testing.T, config FixedConfig) core.Elasticity {
	t.Helper()
	policy, err := NewFixed().New(&config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func TestFixedResponds(t *testing.T) {
	times := &core.StepTimes{OneNode: []float64{4, 2}, ManyNodes: []float64{0, 0, 1.6, 1.25}}
	measured := []core.Curve{{OneNode: []float64{0.25, 0.5}, ManyNodes: []float64{0, 0, 0.625, 0.8}}}
	linear := []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2}
	batch := core.BatchSpec{Requested: 100, Initial: 32, Max: 400, MinPerDevice: 33, MaxPerDevice: 64}
	profiled := func() *coretest.JobBuilder { return coretest.MakeJob("a").Elastic(1, 2, 8).StepTimes(times, 700) }

	cases := map[string]struct {
		config FixedConfig
		job    *coretest.JobBuilder
		want   core.Response
	}{
		"requested is rigid": {
			FixedConfig{Replicas: requested},
			profiled(),
			core.Response{MinReplicas: 2, MaxReplicas: 2, RemainingWork: math.NaN()},
		},
		"requested stays within the job's range": {
			FixedConfig{Replicas: requested},
			coretest.MakeJob("a").Elastic(3, 1, 8),
			core.Response{MinReplicas: 3, MaxReplicas: 3, RemainingWork: math.NaN()},
		},
		"an oracle tells the rates of a rigid job": {
			FixedConfig{Replicas: requested, Oracle: true},
			profiled(),
			core.Response{MinReplicas: 2, MaxReplicas: 2, Curves: measured, RemainingWork: 700},
		},
		"elastic ends where step times do": {
			FixedConfig{Replicas: elastic},
			profiled(),
			core.Response{MinReplicas: 1, MaxReplicas: 4, Curves: measured, RemainingWork: 700},
		},
		"elastic ends where shares fall below the least batch of a device": {
			FixedConfig{Replicas: elastic},
			profiled().Batch(batch),
			core.Response{MinReplicas: 1, MaxReplicas: 3, Curves: measured, RemainingWork: 700},
		},
		"but never below the least the job can run with": {
			FixedConfig{Replicas: elastic},
			coretest.MakeJob("a").Elastic(6, 6, 8).Batch(batch),
			core.Response{MinReplicas: 6, MaxReplicas: 6, RemainingWork: math.NaN()},
		},
		"a job of known duration scales linearly": {
			FixedConfig{Replicas: elastic},
			coretest.MakeJob("a").Elastic(2, 4, 8),
			core.Response{MinReplicas: 2, MaxReplicas: 8, Curves: []core.Curve{{OneNode: linear, ManyNodes: linear}}, RemainingWork: math.NaN()},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newFixed(t, tc.config).Respond(context.Background(), &core.View{Cluster: &core.Cluster{}}, []*core.Job{tc.job.Obj()})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]core.Response{tc.want}, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFixedNeedsStepTimesOnlyWhenItReadsThem(t *testing.T) {
	stepTimes := []core.Capability{core.CapabilityStepTimes}
	cases := map[string]struct {
		config FixedConfig
		want   []core.Capability
	}{
		"requested": {FixedConfig{Replicas: requested}, nil},
		"oracle":    {FixedConfig{Replicas: requested, Oracle: true}, stepTimes},
		"elastic":   {FixedConfig{Replicas: elastic}, stepTimes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, NewFixed().Needs(&tc.config)); diff != "" {
				t.Errorf("capabilities (-want +got):\n%s", diff)
			}
		})
	}
}

// The bounds are those of cifar10 in the Pollux artifact: 128 initially, 32..1024 on a device.
// The rates on a type that joined are those of that type, not of the last one before.
func TestFixedTellsOfANewType(t *testing.T) {
	times := &core.StepTimes{
		OneNode: []float64{1}, ManyNodes: []float64{1},
		Types: []core.TypeTimes{{Accelerator: "t4", OneNode: []float64{4}, ManyNodes: []float64{4}}, {Accelerator: "h100", OneNode: []float64{0.5}, ManyNodes: []float64{0.5}}},
	}
	policy, job := newFixed(t, FixedConfig{Replicas: elastic}), coretest.MakeJob("a").Replicas(1).StepTimes(times, 700).Obj()
	for _, tc := range []struct {
		cluster *core.Cluster
		want    []float64 // on one device, by type
	}{
		{coretest.MakeCluster().Nodes(1, "t4", 1).Obj(), []float64{0.25}},
		{coretest.MakeCluster().Nodes(1, "t4", 1).Nodes(1, "h100", 1).Obj(), []float64{0.25, 2}},
	} {
		responses, err := policy.Respond(t.Context(), coretest.MakeView(tc.cluster).Obj(), []*core.Job{job})
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for k := range tc.want {
			got = append(got, responses[0].Rate(core.AcceleratorID(k), 1, 1))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("rates (-want +got):\n%s", diff)
		}
	}
}

func TestFixedTunes(t *testing.T) {
	batch := core.BatchSpec{Requested: 2048, Initial: 128, Max: 4096, MinPerDevice: 32, MaxPerDevice: 1024}
	one, four := []core.Seat{coretest.Seat(0, 0)}, []core.Seat{coretest.Seat(0, 0, 1, 2, 3)}
	tuned := core.Tuning{BatchPerDevice: 512, LearningRateFactor: 1}

	cases := map[string]struct {
		job   *coretest.JobBuilder
		seats []core.Seat
		want  []core.Tuning
	}{
		"a start":                       {coretest.MakeJob("a").Batch(batch).Waiting(), four, []core.Tuning{tuned}},
		"one replica accumulates":       {coretest.MakeJob("a").Batch(batch).Waiting(), one, []core.Tuning{{BatchPerDevice: 1024, AccumulationSteps: 1, LearningRateFactor: 1}}},
		"a resize":                      {coretest.MakeJob("a").Batch(batch).Running(0, one...), four, []core.Tuning{tuned}},
		"as many replicas as it holds":  {coretest.MakeJob("a").Batch(batch).Tuned(tuned).Running(0, four...), four, nil},
		"what is left of more replicas": {coretest.MakeJob("a").Batch(batch).Tuned(tuned).Running(0, one...), one, []core.Tuning{{BatchPerDevice: 1024, AccumulationSteps: 1, LearningRateFactor: 1}}},
		"it runs already, untuned":      {coretest.MakeJob("a").Batch(batch).Running(0, four...), four, []core.Tuning{tuned}},
		"a restart with the old number": {coretest.MakeJob("a").Batch(batch).Tuned(tuned).Waiting(), four, nil},
		"a job without a batch":         {coretest.MakeJob("a").Waiting(), four, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(tc.job).Obj()
			got, err := newFixed(t, FixedConfig{Replicas: requested}).Tune(context.Background(), v, []core.Placement{{Seats: tc.seats}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("tunings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFixedAllocatesNothing(t *testing.T) {
	times := &core.StepTimes{OneNode: []float64{4, 2}}
	builders := []*coretest.JobBuilder{}
	for i := range 55 {
		builders = append(builders,
			coretest.MakeJob("measured").Elastic(1, 2, 2).StepTimes(times, 10).Batch(core.BatchSpec{Requested: 64}).Waiting(),
			coretest.MakeJob("linear").Elastic(1, 1+i%4, 8).Waiting(),
		)
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(builders...).Obj()
	var placements []core.Placement
	for _, j := range v.Jobs {
		placements = append(placements, core.Placement{Job: j.ID, Seats: []core.Seat{coretest.Seat(0, 1)}})
	}
	policy := newFixed(t, FixedConfig{Replicas: elastic})
	if got := testing.AllocsPerRun(10, func() {
		if _, err := policy.Respond(context.Background(), v, v.Jobs); err != nil {
			t.Fatal(err)
		}
		if _, err := policy.Tune(context.Background(), v, placements); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations a round, want 0", got)
	}
}
