package elasticity

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// One v100 does what three t4 do.
var unlikeTimes = &core.StepTimes{MixedTypes: &core.MixedTypeTimes{
	SingleDeviceTimes: []core.SingleDeviceTime{{Accelerator: "t4", Seconds: 3}, {Accelerator: "v100", Seconds: 1}},
	SyncSeconds:       make([]float64, 8),
}}

func mixing(batch core.BatchSpec) *coretest.JobBuilder {
	return coretest.MakeJob("a").Elastic(1, 2, 8).MixesTypes().Batch(batch).StepTimes(unlikeTimes, 100)
}

func TestFixedSplitsInProportion(t *testing.T) {
	batch := core.BatchSpec{Requested: 100, Initial: 100, Max: 100, MinPerDevice: 1}
	capped := batch
	capped.MaxPerDevice = 40
	t4, v100 := coretest.Seat(0, 0), coretest.Seat(1, 0)
	two := []core.Seat{t4, coretest.Seat(1, 0, 1)}
	even := core.Tuning{BatchPerDevice: 50, LearningRateFactor: 1}
	split := core.Tuning{BatchPerDevice: 50, LearningRateFactor: 1, BatchByReplica: []int{25, 75}}

	plain := coretest.MakeJob("a").Elastic(1, 2, 8).Batch(batch).StepTimes(unlikeTimes, 100)
	cases := map[string]struct {
		job   *coretest.JobBuilder
		seats []core.Seat
		want  []core.Tuning
	}{
		"by speed":                    {mixing(batch).Waiting(), []core.Seat{t4, v100}, []core.Tuning{split}},
		"the largest remainder first": {mixing(batch).Waiting(), two, []core.Tuning{{BatchPerDevice: 34, LearningRateFactor: 1, BatchByReplica: []int{14, 43, 43}}}},
		"within what a device holds, in two passes": {
			mixing(capped).Waiting(),
			[]core.Seat{t4, v100},
			[]core.Tuning{{BatchPerDevice: 25, AccumulationSteps: 1, LearningRateFactor: 1, BatchByReplica: []int{12, 38}}},
		},
		"within what each device holds": {
			mixing(capped).Waiting(), two, []core.Tuning{{BatchPerDevice: 34, LearningRateFactor: 1, BatchByReplica: []int{20, 40, 40}}},
		},
		"evenly on one type":       {mixing(batch).Waiting(), []core.Seat{coretest.Seat(0, 0, 1)}, []core.Tuning{even}},
		"evenly if it mixes none":  {plain.Waiting(), []core.Seat{t4, v100}, []core.Tuning{even}},
		"no more when it is split": {mixing(batch).Tuned(split).Running(0, t4, v100), []core.Seat{t4, v100}, nil},
		"again on other seats":     {mixing(batch).Tuned(split).Running(0, t4, v100), []core.Seat{v100, t4}, []core.Tuning{{BatchPerDevice: 50, LearningRateFactor: 1, BatchByReplica: []int{75, 25}}}},
		"evenly again on one type": {mixing(batch).Tuned(split).Running(0, t4, v100), []core.Seat{coretest.Seat(1, 0, 1)}, []core.Tuning{even}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "v100", 4).Obj()).Jobs(tc.job).Obj()
			policy := newFixed(t, FixedConfig{Replicas: elastic, Split: proportional})
			got, err := policy.Tune(context.Background(), v, []core.Placement{{Seats: tc.seats}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("tunings (-want +got):\n%s", diff)
			}
		})
	}
}

// The parts of a split add up to the batch, and no replica ends more than a sample after another.
func TestSplitsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch := rapid.IntRange(1, 5000).Draw(t, "batch")
		seats := []core.Seat{
			coretest.Seat(0, []int{0, 1, 2, 3}[:rapid.IntRange(1, 4).Draw(t, "t4")]...),
			coretest.Seat(1, []int{0, 1, 2, 3}[:rapid.IntRange(1, 4).Draw(t, "v100")]...),
		}
		v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "v100", 4).Obj()).Jobs(mixing(core.BatchSpec{Requested: batch}).Waiting()).Obj()
		tuning, ok := new(splitter).split(v.Cluster, v.Jobs[0], seats)
		if !ok {
			t.Fatal("not split")
		}
		total, slowest := 0, 0
		for k, part := range tuning.BatchByReplica {
			total += part
			if k < seats[0].Devices.Count() {
				part *= 3
			}
			slowest = max(slowest, part)
		}
		sharing := seats[0].Devices.Count() + 3*seats[1].Devices.Count() // in t4
		if total != batch || float64(slowest) > 3*float64(batch)/float64(sharing)+3 {
			t.Errorf("%v of %d", tuning.BatchByReplica, batch)
		}
	})
}

// A job without times of single devices is split evenly, and a time of 0 on a type is as good as none.
func TestSplitsWithoutSpeeds(t *testing.T) {
	batch := core.BatchSpec{Requested: 100, Initial: 100, Max: 100, MinPerDevice: 1}
	tuned := func(times *core.StepTimes) core.Tuning {
		t.Helper()
		j := coretest.MakeJob("a").Elastic(1, 2, 8).MixesTypes().Batch(batch).Waiting()
		v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "v100", 4).Obj()).Jobs(j).Obj()
		v.Jobs[0].StepTimes = times
		got, err := newFixed(t, FixedConfig{Replicas: elastic, Split: proportional}).Tune(t.Context(), v,
			[]core.Placement{{Seats: []core.Seat{coretest.Seat(0, 0), coretest.Seat(1, 0)}}})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		return got[0]
	}
	for _, times := range []*core.StepTimes{nil, {OneNode: []float64{1, 1}}} {
		if got := tuned(times); got.BatchPerDevice != 50 || len(got.BatchByReplica) > 0 {
			t.Errorf("by %+v split into %+v, want 50 each", times, got)
		}
	}
	alone := func(list ...core.SingleDeviceTime) *core.StepTimes {
		return &core.StepTimes{MixedTypes: &core.MixedTypeTimes{SingleDeviceTimes: list, SyncSeconds: make([]float64, 8)}}
	}
	v100 := core.SingleDeviceTime{Accelerator: "v100", Seconds: 1}
	if diff := cmp.Diff(tuned(alone(v100)), tuned(alone(core.SingleDeviceTime{Accelerator: "t4"}, v100))); diff != "" {
		t.Errorf("with a time of 0 (-without +with):\n%s", diff)
	}
}
