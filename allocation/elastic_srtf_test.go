package allocation

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

func TestElasticSRTF(t *testing.T) {
	elastic := func(asked int) *coretest.JobBuilder { return policytest.Waits(1).Elastic(1, asked, 8) }
	linear := []float64{1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5, 1.0 / 6, 1.0 / 7, 1.0 / 8}
	unknown := math.NaN()
	for name, tc := range map[string]struct {
		jobs      []*coretest.JobBuilder
		stepTimes [][]float64
		stepsLeft []float64
		want      string
	}{
		"the shortest has the first turn": {
			[]*coretest.JobBuilder{elastic(1), elastic(1), elastic(1)}, [][]float64{linear, linear, linear}, []float64{3, 1, 2}, "1×3 2×3 0×2",
		},
		"ties go by submission": {
			[]*coretest.JobBuilder{elastic(1), elastic(1), elastic(1)}, [][]float64{linear, linear, linear}, []float64{2, 2, 2}, "0×3 1×3 2×2",
		},
		// Job 0 needs 10 s on four devices, and 40 s on one.
		"what counts is the time on what it requests": {
			[]*coretest.JobBuilder{elastic(4), elastic(1)}, [][]float64{linear, linear}, []float64{40, 20}, "0×4 1×4",
		},
		"a shorter one takes the devices of one that runs": {
			[]*coretest.JobBuilder{policytest.Runs(6).Work(1e6), policytest.Waits(4).Work(5)}, [][]float64{nil, nil}, []float64{unknown, unknown}, "1×4",
		},
		"one that does not fit lets others by, and gets nothing": {
			[]*coretest.JobBuilder{policytest.Waits(1).Elastic(5, 5, 8).Work(1), policytest.Waits(1).Elastic(5, 5, 8).Work(2), policytest.Waits(1).Work(3)},
			[][]float64{nil, nil, nil},
			[]float64{unknown, unknown, unknown},
			"0×7 2×1",
		},
		"declared seconds stand in": {
			[]*coretest.JobBuilder{elastic(1).Work(20), elastic(1).Work(10)}, [][]float64{nil, nil}, []float64{unknown, unknown}, "1×4 0×4",
		},
		"unknown lengths come last": {
			[]*coretest.JobBuilder{elastic(1), elastic(1).Work(1e9)}, [][]float64{nil, nil}, []float64{unknown, unknown}, "1×4 0×4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := policytest.EightDevices(tc.jobs...)
			if got := policytest.Allocate(t, policytest.New(t, NewElasticSRTF(), nil), v, profiled(tc.stepTimes, tc.stepsLeft)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestElasticSRTFStands(t *testing.T) {
	elastic := func() *coretest.JobBuilder { return policytest.Waits(1).Elastic(1, 1, 8).Work(10) }
	for name, tc := range map[string]struct {
		jobs      []*coretest.JobBuilder
		stepsLeft []float64
		want      float64
	}{
		"for ever when elasticity tells the work left": {[]*coretest.JobBuilder{elastic(), elastic()}, []float64{3, 4}, policytest.Forever},
		"not while declared work shrinks":              {[]*coretest.JobBuilder{elastic(), elastic()}, []float64{3, math.NaN()}, 1000},
		"unless everyone has his most":                 {[]*coretest.JobBuilder{elastic()}, []float64{math.NaN()}, policytest.Forever},
		"nor before a pinned job has begun":            {[]*coretest.JobBuilder{elastic().Pinned()}, []float64{3}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			policy, v := policytest.New(t, NewElasticSRTF(), nil), policytest.EightDevices(tc.jobs...)
			times := []float64{1, 1, 1, 1, 1, 1, 1, 1}
			if got := policytest.StandsUntil(t, policy, v, policytest.Ask(t, policy, v, profiled([][]float64{times, times}, tc.stepsLeft))); got != tc.want {
				t.Errorf("stands until %v s, want %v", got, tc.want)
			}
		})
	}
}
