package elasticity

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// What a goodput elasticity asks of a backend is what it knows the jobs by.
func TestWhatGoodputNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		config GoodputConfig
		want   []core.Capability
	}{
		"nothing":           {GoodputConfig{}, nil},
		"the declared work": {GoodputConfig{DeclaredWork: true}, []core.Capability{core.CapabilityRemainingWork}},
		"profiles":          {GoodputConfig{Profiled: true}, []core.Capability{core.CapabilityMeasurements}},
		"the truth":         {GoodputConfig{Knowledge: oracle}, []core.Capability{core.CapabilityMeasurements, core.CapabilityStepTimes}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.config.Capabilities()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A job that moves to as many devices of a type with other bounds is tuned anew; one whose bounds are alike is not.
func TestFixedTunesAMoveToAnotherType(t *testing.T) {
	p := &fixed{}
	j := trainingJob()
	j.Held, j.State = 2, core.Running
	j.Tuning = core.Tuning{Job: j.ID, BatchPerDevice: 256, LearningRateFactor: 1}
	seat := []core.Placement{{Job: j.ID, Seats: []core.Seat{{Devices: 0b11}}}}
	got, err := p.Tune(t.Context(), viewOf(j), seat)
	if err != nil || len(got) > 0 {
		t.Errorf("tunes %+v, %v a job that has its batch", got, err)
	}
	j.BatchByType = []core.TypeBatch{{Accelerator: "t4", MinPerDevice: 1, MaxPerDevice: 128}}
	got, err = p.Tune(t.Context(), viewOf(j), seat)
	if err != nil || len(got) != 1 || got[0].BatchPerDevice != 128 || got[0].AccumulationSteps != 1 {
		t.Errorf("tunes %+v, %v; want 128 a device in two passes", got, err)
	}
}

// What is within a factor e of an application's limits is near it, and what is beyond is not.
func TestTheNearestIsWithinAFactor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.yaml")
	first := remembering(t, path, nil)
	trained(t, first, "app", truth, limits, 1, 2)
	closed(t, first)
	for factor, want := range map[float64]int{0.99 * math.E: 4, 1.01 * math.E: 1} {
		l := limits
		l.Max = int(float64(l.Max) * factor)
		if got := begins(t, remembering(t, path, nil), "unseen", l); got.MaxReplicas != want {
			t.Errorf("with a batch %.2f times as large it begins with %d replicas, want %d", factor, got.MaxReplicas, want)
		}
	}
}
