package synthesizer

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
)

// A job that completes is credited to those who were in force while it was there, by parts of that time; what is known fades by 1/e in a horizon.
func TestCredit(t *testing.T) {
	type known struct{ Weight, Sum, Squares []float64 }
	job := func(state core.JobState, submit, finish, attained float64, requested int) *core.Job {
		return &core.Job{JobSpec: &core.JobSpec{SubmitSeconds: submit, Requested: requested}, State: state, Attained: attained, FinishSeconds: finish}
	}
	none := known{[]float64{0, 0}, []float64{0, 0}, []float64{0, 0}}
	all := func(cost float64) known { return known{[]float64{1, 0}, []float64{cost, 0}, []float64{cost * cost, 0}} }
	e := math.E
	for name, tc := range map[string]struct {
		ended *core.Job // the first candidate is in force until 100 s, and the second from then on
		at    float64   // of the last round, of a horizon of 1000 s
		want  known
	}{
		"under the first":               {job(core.Completed, 0, 10*e, 10, 1), 0, all(1)},
		"on two devices":                {job(core.Completed, 0, 10*e*e, 20, 2), 0, all(2)},
		"faster than it asks for":       {job(core.Completed, 0, 10, 20, 1), 0, all(0)},
		"it asks for none":              {job(core.Completed, 0, 10*e, 10, 0), 0, all(1)},
		"before anybody was in force":   {job(core.Completed, -100, -100+10*e, 10, 1), 0, all(1)},
		"until the second took over":    {job(core.Completed, 50, 100, 50/e, 1), 0, all(1)},
		"under both":                    {job(core.Completed, 50, 250, 200/e, 1), 0, known{[]float64{0.25, 0.75}, []float64{0.25, 0.75}, []float64{0.25, 0.75}}},
		"under both, for twice the log": {job(core.Completed, 50, 250, 200/e/e, 1), 0, known{[]float64{0.25, 0.75}, []float64{0.5, 1.5}, []float64{1, 3}}},
		"under the second":              {job(core.Completed, 100, 200, 100/e, 1), 0, known{[]float64{0, 1}, []float64{0, 1}, []float64{0, 1}}},
		"a horizon ago":                 {job(core.Completed, 0, 10*e, 10, 1), 1000, known{[]float64{1 / e, 0}, []float64{1 / e, 0}, []float64{1 / e, 0}}},
		"it failed":                     {job(core.Failed, 0, 10*e, 10, 1), 0, none},
		"it had no devices":             {job(core.Completed, 0, 10*e, 0, 1), 0, none},
		"it was there for no time":      {job(core.Completed, 10, 10, 10, 1), 0, none},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBandit(2)
			b.InForce = []stay{{0, 0}, {100, 1}}
			b.observe(&core.Report{View: &core.View{}, Ended: []*core.Job{tc.ended}}, 1, 1000)
			b.observe(&core.Report{View: &core.View{NowSeconds: tc.at}}, 1, 1000)
			if diff := cmp.Diff(tc.want, known{b.Weight, b.Sum, b.Squares}, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A candidate that completes nothing counts as one job that took e times as long as under the worst one.
func TestGiveUp(t *testing.T) {
	for name, tc := range map[string]struct {
		weight, sum []float64
		want        float64
	}{
		"nothing is known": {[]float64{0, 0, 0}, []float64{0, 0, 0}, 1},
		"of the others":    {[]float64{0, 4, 2}, []float64{0, 4, 6}, 3 + 1},
		"of itself":        {[]float64{0.5, 4, 2}, []float64{2.5, 4, 6}, 5 + 1},
	} {
		b := bandit{Weight: tc.weight, Sum: tc.sum, Squares: make([]float64, 3)}
		if b.giveUp(0); b.Weight[0] != 1 || b.Sum[0] != tc.want || b.Squares[0] != tc.want*tc.want {
			t.Errorf("%s: weight %v, sum %v, squares %v; want 1, %v and its square", name, b.Weight[0], b.Sum[0], b.Squares[0], tc.want)
		}
	}
}
