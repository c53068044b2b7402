package interference

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func iterates(id core.JobID, of core.Iteration) *core.JobSpec {
	return &core.JobSpec{ID: id, Weight: 1, Iteration: of}
}

func TestInterleave(t *testing.T) {
	loads, computes := core.Iteration{Load: 4}, core.Iteration{Compute: 2, Sync: 2}
	measured := core.Iteration{Compute: 2, Sync: 2, Measured: 3}
	cases := map[string]struct {
		model  PeriodModel
		self   *core.JobSpec
		others []*core.JobSpec
		want   float64
	}{
		"two that do not meet":                 {self: iterates(1, loads), others: []*core.JobSpec{iterates(2, computes)}, want: 1},
		"two that want the same":               {self: iterates(1, core.Iteration{Compute: 3}), others: []*core.JobSpec{iterates(2, core.Iteration{Compute: 5})}, want: 3.0 / 8},
		"as measured":                          {model: MeasuredPeriods(), self: iterates(1, loads), others: []*core.JobSpec{iterates(0, computes)}, want: 1.015 / 1.33},
		"a whole iteration was measured":       {self: iterates(1, measured), others: []*core.JobSpec{iterates(2, loads)}, want: 3.0 / 4},
		"of another it makes no difference":    {self: iterates(2, loads), others: []*core.JobSpec{iterates(1, measured)}, want: 1},
		"its own stages are unknown":           {self: iterates(1, core.Iteration{}), others: []*core.JobSpec{iterates(2, loads)}, want: 1.0 / 2},
		"those of another are unknown":         {self: iterates(1, loads), others: []*core.JobSpec{iterates(2, computes), iterates(3, core.Iteration{})}, want: 1.0 / 3},
		"more than there are kinds of stages":  {self: iterates(1, loads), others: slices.Repeat([]*core.JobSpec{iterates(2, computes)}, 4), want: 1.0 / 5},
		"measured alone, and stages not known": {self: iterates(1, core.Iteration{Measured: 3}), others: []*core.JobSpec{iterates(2, loads)}, want: 1.0 / 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Interleave{Model: tc.model}).Rate(tc.self, tc.others, ""); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("rate %v, want %v", got, tc.want)
			}
		})
	}
}

// All jobs on a device make an iteration in the same time, in whatever order they are numbered.
func TestInterleaveKeepsStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stage := rapid.Float64Range(0.1, 10)
		group := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *core.JobSpec {
			return iterates(0, core.Iteration{Load: stage.Draw(t, "load"), Compute: stage.Draw(t, "compute"), Sync: stage.Draw(t, "sync")})
		}), 2, MaxInterleaved).Draw(t, "group")
		for i := range group {
			group[i].ID = core.JobID(i)
		}
		m := Interleave{Model: MeasuredPeriods()}
		keepStep(t, m, group)
	})
}

func keepStep(t rapid.TB, m Interleave, group []*core.JobSpec) {
	t.Helper()
	first := group[0].Iteration.ExclusiveSeconds() / m.Rate(group[0], group[1:], "")
	for i, j := range group {
		others := slices.Delete(slices.Clone(group), i, i+1)
		if period := j.Iteration.ExclusiveSeconds() / m.Rate(j, others, ""); math.Abs(period-first) > 1e-9*first {
			t.Errorf("job %d makes an iteration in %v s, the first one in %v", i, period, first)
		}
	}
}

// The published simulator begins at rest, so that it finds 8 or 9 s for this group, by the order of the jobs. That does not depend on who asks.
func TestInterleaveKeepsStepWhereTheOrderMatters(t *testing.T) {
	keepStep(t, Interleave{Model: PeriodModel{Stepped: true}}, []*core.JobSpec{
		iterates(1, core.Iteration{Load: 5, Sync: 2}), iterates(2, core.Iteration{Load: 5}),
		iterates(4, core.Iteration{Load: 5, Compute: 1, Sync: 2}), iterates(7, core.Iteration{Load: 4, Sync: 2}),
	})
}
