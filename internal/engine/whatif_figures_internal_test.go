package engine

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// A job that is rejected, or fails, is there until the longer future ends, as one that does not end, whether the next round rejects it or a later one. Two jobs are there
// from 0 on, now is 100; without the change they end at 200 and 300.
func TestWhatIfOfRejectedJobs(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	of := func(id core.JobID, start, end float64, outcome core.JobState) twin.JobOutcome {
		return twin.JobOutcome{ID: id, StartSeconds: start, EndSeconds: end, Outcome: outcome}
	}
	one, two := of(0, 50, 200, core.Completed), of(1, 200, 300, core.Completed)
	type figures map[string]float64
	asItIs := figures{MeasureJCT: 250, MeasureWait: 50, MeasureMakespan: 200, MeasureUnfinished: 0, MeasureRejected: 0}
	for name, tc := range map[string]struct {
		fates   []twin.JobOutcome // with the change
		next    []core.Change
		to      float64
		without []twin.JobOutcome // where it is not as above
		before  []core.Change     // without the change
		want    figures
		wantIs  figures // without the change, where it is not as above
		later   []float64
		most    []core.JobID
	}{
		"nobody":                 {fates: []twin.JobOutcome{one, two}, to: 300, want: asItIs, later: []float64{0, 0}},
		"in the next round":      {[]twin.JobOutcome{one}, []core.Change{{Job: 1, Action: core.Discard}}, 200, nil, nil, figures{MeasureJCT: 250, MeasureWait: 100, MeasureMakespan: nan, MeasureUnfinished: 1, MeasureRejected: 1}, nil, []float64{0, inf}, []core.JobID{1}},
		"later":                  {[]twin.JobOutcome{one, of(1, nan, 160, core.Rejected)}, nil, 200, nil, nil, figures{MeasureJCT: 250, MeasureWait: 100, MeasureMakespan: nan, MeasureUnfinished: 1, MeasureRejected: 1}, nil, []float64{0, inf}, []core.JobID{1}},
		"it fails":               {[]twin.JobOutcome{one, of(1, 110, 160, core.Failed)}, nil, 200, nil, nil, figures{MeasureJCT: 250, MeasureWait: 5, MeasureMakespan: nan, MeasureUnfinished: 1, MeasureRejected: 0}, nil, []float64{0, inf}, []core.JobID{1}},
		"it does not end":        {[]twin.JobOutcome{one, of(1, nan, nan, core.Pending)}, nil, 300, nil, nil, figures{MeasureJCT: 250, MeasureWait: 100, MeasureMakespan: 200, MeasureUnfinished: 1, MeasureRejected: 0}, nil, []float64{0, inf}, []core.JobID{1}},
		"the next round ends it": {[]twin.JobOutcome{two}, []core.Change{{Job: 0, Action: core.Finish}}, 300, nil, nil, figures{MeasureJCT: 200, MeasureWait: 50, MeasureMakespan: 200, MeasureUnfinished: 0, MeasureRejected: 0}, nil, []float64{-100, 0}, []core.JobID{0}},
		"in both": {
			[]twin.JobOutcome{one},
			[]core.Change{{Job: 1, Action: core.Discard}},
			200,
			[]twin.JobOutcome{one, of(1, nan, 150, core.Rejected)},
			nil,
			figures{MeasureJCT: 250, MeasureWait: 100, MeasureMakespan: nan, MeasureUnfinished: 1, MeasureRejected: 1},
			figures{MeasureJCT: 250, MeasureWait: 100, MeasureMakespan: nan, MeasureUnfinished: 1, MeasureRejected: 1},
			[]float64{0, 0},
			nil,
		},
		"in the next round of both": {
			[]twin.JobOutcome{one},
			[]core.Change{{Job: 1, Action: core.Discard}},
			200,
			[]twin.JobOutcome{one},
			[]core.Change{{Job: 1, Action: core.Discard}},
			figures{MeasureJCT: 200, MeasureWait: 0, MeasureMakespan: 100, MeasureUnfinished: 0, MeasureRejected: 0},
			figures{MeasureJCT: 200, MeasureWait: 0, MeasureMakespan: 100, MeasureUnfinished: 0, MeasureRejected: 0},
			[]float64{0},
			nil,
		},
		"it ends at once in both": {
			[]twin.JobOutcome{of(0, 50, 100, core.Completed), two},
			nil, 300,
			[]twin.JobOutcome{of(0, 50, 100, core.Completed), two},
			nil,
			figures{MeasureJCT: 200, MeasureWait: 50, MeasureMakespan: 200, MeasureUnfinished: 0, MeasureRejected: 0},
			figures{MeasureJCT: 200, MeasureWait: 50, MeasureMakespan: 200, MeasureUnfinished: 0, MeasureRejected: 0},
			[]float64{0, 0},
			nil,
		},
		"without the change alone": {
			[]twin.JobOutcome{one, two},
			nil, 300,
			[]twin.JobOutcome{one},
			[]core.Change{{Job: 1, Action: core.Discard}},
			asItIs,
			figures{MeasureJCT: 250, MeasureWait: 100, MeasureMakespan: nan, MeasureUnfinished: 1, MeasureRejected: 1},
			[]float64{0, -inf},
			[]core.JobID{1},
		},
		"one that would not end in time": {
			[]twin.JobOutcome{one},
			[]core.Change{{Job: 1, Action: core.Discard}},
			300,
			[]twin.JobOutcome{one, of(1, nan, nan, core.Pending)},
			nil,
			figures{MeasureJCT: 250, MeasureWait: 100, MeasureMakespan: nan, MeasureUnfinished: 1, MeasureRejected: 1},
			figures{MeasureJCT: 250, MeasureWait: 100, MeasureMakespan: 200, MeasureUnfinished: 1, MeasureRejected: 0},
			[]float64{0, inf},
			[]core.JobID{1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			view := func(ids ...core.JobID) *core.View {
				v := &core.View{Cluster: &core.Cluster{Nodes: []core.Node{{Devices: 1}}}, Jobs: make([]*core.Job, 2)}
				for _, id := range ids {
					v.Jobs[id] = core.NewJob(&core.JobSpec{ID: id})
					v.Jobs[id].Restarts = 3
				}
				return v
			}
			w := &WhatIf{NowSeconds: 100, before: view(0, 1)}
			w.before.Jobs[0].State, w.before.Jobs[0].LastChange = core.Running, 50
			without := tc.without
			if without == nil {
				without = []twin.JobOutcome{one, two}
			}
			w.Without, w.With = Outlook{Changes: tc.before, view: w.before}, Outlook{Changes: tc.next, view: w.before}
			if len(tc.next) > 0 {
				w.With.view = view(1 - tc.next[0].Job)
			}
			futures := [][2]*twin.Future{
				{{FromSeconds: 100, ToSeconds: 300, Jobs: without}, {FromSeconds: 100, ToSeconds: tc.to, Jobs: tc.fates}},
			}
			w.measure(futures)
			w.shift(futures, nil)
			got, is := figures{}, figures{}
			for _, m := range w.Measures {
				switch m.Name {
				case MeasureRestarts:
					if m.With != 0 {
						t.Errorf("%v restarts", m.With)
					}
				case MeasureUtilization:
				default:
					got[m.Name], is[m.Name] = m.With, m.Without
				}
			}
			wantIs := tc.wantIs
			if wantIs == nil {
				wantIs = asItIs
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("with the change (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantIs, is, cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("without the change (-want +got):\n%s", diff)
			}
			var later []float64
			for _, s := range w.Shifts {
				later = append(later, s.Later.Median)
			}
			if diff := cmp.Diff(tc.later, later); diff != "" {
				t.Errorf("ends later (-want +got):\n%s", diff)
			}
			var most []core.JobID
			for _, s := range w.Most(10) {
				most = append(most, s.Job)
			}
			if diff := cmp.Diff(tc.most, most); diff != "" {
				t.Errorf("those that change most (-want +got):\n%s", diff)
			}
		})
	}
}
