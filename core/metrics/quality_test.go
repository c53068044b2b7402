package metrics

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// completedJob was submitted at 100 s and has told a value of a metric every 10 s from 110 s on.
func completedJob(id core.JobID, values ...float64) *core.Job {
	j := core.NewJob(&core.JobSpec{ID: id, SubmitSeconds: 100})
	j.State = core.Completed
	if len(values) > 0 {
		j.Reported = []core.Series{{Metric: "loss"}, {Metric: "other", Points: []core.Point{{Value: 1}, {Value: 0}}}}
	}
	for i, value := range values {
		at := 100 + 10*float64(i+1)
		j.Reported[0].Points = append(j.Reported[0].Points, core.Point{Step: float64(i), Value: value, AtSeconds: at})
	}
	return j
}

// By hand: the loss is 1 for the first 10 s, and then what the best value so far lacks of the best of all.
func TestQuality(t *testing.T) {
	t.Parallel()
	failed := completedJob(0, 8, 0)
	failed.State = core.Failed
	none := &Quality{LossAreaSeconds: unknown, To90Seconds: unknown, To95Seconds: unknown}
	for name, tc := range map[string]struct {
		jobs   []*core.Job
		window Window
		want   *Quality
	}{
		"no job":                  {nil, AllJobs, none},
		"one that reports not":    {[]*core.Job{completedJob(0)}, AllJobs, none},
		"one report":              {[]*core.Job{completedJob(0, 8)}, AllJobs, none},
		"equal reports":           {[]*core.Job{completedJob(0, 8, 8, 8)}, AllJobs, none},
		"one that failed":         {[]*core.Job{failed}, AllJobs, none},
		"at once":                 {[]*core.Job{completedJob(0, 8, 0)}, AllJobs, &Quality{1, 20, 20, 20}},
		"in steps":                {[]*core.Job{completedJob(0, 100, 50, 8, 4, 0)}, AllJobs, &Quality{1, 10 + 10 + 5 + 0.8 + 0.4, 40 - 10, 40}},
		"with a step back":        {[]*core.Job{completedJob(0, 100, 50, 70, 0)}, AllJobs, &Quality{1, 10 + 10 + 5 + 5, 40, 40}},
		"worse in the end":        {[]*core.Job{completedJob(0, 100, 0, 50)}, AllJobs, &Quality{1, 20, 20, 20}},
		"it diverges":             {[]*core.Job{completedJob(0, 100, 0, math.NaN())}, AllJobs, &Quality{1, 20, 20, 20}},
		"from the start":          {[]*core.Job{completedJob(0, math.NaN(), 8, 0)}, AllJobs, &Quality{1, 30, 30, 30}},
		"and nothing else":        {[]*core.Job{completedJob(0, math.NaN(), 8, math.NaN())}, AllJobs, none},
		"an accuracy":             {[]*core.Job{completedJob(0, 0, 0.5, 0.75, 0.5)}, AllJobs, &Quality{1, 10 + 10 + 10./3, 30, 30}},
		"the mean of two":         {[]*core.Job{completedJob(0, 8, 0), completedJob(3, 100, 50, 70, 0), completedJob(5, 1, 1)}, AllJobs, &Quality{2, 25, 30, 30}},
		"those that are measured": {[]*core.Job{completedJob(0, 8, 0), completedJob(3, 100, 50, 70, 0)}, Window{First: 1, Last: 3}, &Quality{1, 30, 40, 40}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b qualityBooks
			for _, j := range tc.jobs {
				b.leave(j)
			}
			near := cmp.Comparer(func(a, b Number) bool { return !a.Known() && !b.Known() || a-b < 1e-9 && b-a < 1e-9 })
			if diff := cmp.Diff(tc.want, b.describe(tc.window), near); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if got := (*qualityBooks)(nil).describe(AllJobs); got != nil {
		t.Errorf("%+v of a run in which nobody reports", got)
	}
}

func TestEndedEarly(t *testing.T) {
	t.Parallel()
	finish := func(id core.JobID, why core.Reason) core.Change {
		return core.Change{Action: core.Finish, Job: id, Reason: why}
	}
	for name, tc := range map[string]struct {
		changes []core.Change
		window  Window
		want    *EndedEarly
	}{
		"none":      {nil, AllJobs, nil},
		"stops":     {[]core.Change{{Action: core.Stop, Job: 1}, {Action: core.Pause, Job: 2}}, AllJobs, nil},
		"some":      {[]core.Change{finish(1, core.Converged), finish(2, core.Pruned), finish(3, core.Converged)}, AllJobs, &EndedEarly{Converged: 2, Pruned: 1}},
		"of others": {[]core.Change{finish(1, core.Converged), finish(2, core.Pruned)}, Window{First: 2, Last: 9}, &EndedEarly{Pruned: 1}},
		"of none":   {[]core.Change{finish(1, core.Converged)}, Window{First: 2, Last: 9}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e earlyEnds
			e.follow(tc.changes)
			if diff := cmp.Diff(tc.want, e.describe(tc.window)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A run in which a job reports has a quality, so far and at its end, and one in which none does has none.
func TestQualityOfARun(t *testing.T) {
	t.Parallel()
	for name, reports := range map[string]bool{"reports": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewCollector(testComponents, Outputs{})
			view := &core.View{NowSeconds: 100, Round: 1, Cluster: &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "n", Devices: 2}}}, Devices: 2}
			j := completedJob(0, 8, 0)
			r := core.Report{View: view, Events: []core.Event{{Kind: core.JobSubmitted, AtSeconds: 100, Spec: j.JobSpec}}}
			if reports {
				r.Events = append(r.Events, core.Event{Kind: core.JobReported, AtSeconds: 110, Metric: "loss", Value: 8})
			}
			if err := c.ObserveRound(&r); err != nil {
				t.Fatal(err)
			}
			j.FinishSeconds = 130
			end := core.Report{View: view, Ended: []*core.Job{j}, Changes: []core.Change{{Action: core.Finish, Reason: core.Converged}}}
			if err := c.ObserveRound(&end); err != nil {
				t.Fatal(err)
			}
			sofar := c.SoFar(nil, 130)
			s, err := c.Finish(nil, 130)
			if err != nil {
				t.Fatal(err)
			}
			var want *Quality
			if reports {
				want = &Quality{1, 20, 20, 20}
			}
			for _, got := range []*Summary{sofar, s} {
				if diff := cmp.Diff(want, got.Quality); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if diff := cmp.Diff(&EndedEarly{Converged: 1}, got.EndedEarly); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}
