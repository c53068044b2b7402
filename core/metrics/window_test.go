package metrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

func TestWindow(t *testing.T) {
	jobs := []*core.Job{{JobSpec: &core.JobSpec{ID: 0}}, {JobSpec: &core.JobSpec{ID: 4}}, {JobSpec: &core.JobSpec{ID: 5}}, {JobSpec: &core.JobSpec{ID: 6}}}
	for name, tc := range map[string]struct {
		window Window
		of     int // of ten jobs
		among  []core.JobID
	}{
		"all":           {AllJobs, 10, []core.JobID{0, 4, 5, 6}},
		"an open end":   {Window{First: 5, Last: -1}, 5, []core.JobID{5, 6}},
		"both ends":     {Window{First: 4, Last: 5}, 2, []core.JobID{4, 5}},
		"past the last": {Window{First: 8, Last: 20}, 2, nil},
		"one job":       {Window{}, 1, []core.JobID{0}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.window.Of(10); got != tc.of {
				t.Errorf("holds %d of ten jobs, want %d", got, tc.of)
			}
			var among []core.JobID
			for _, j := range tc.window.Among(jobs) {
				among = append(among, j.ID)
			}
			if diff := cmp.Diff(tc.among, among); diff != "" {
				t.Errorf("jobs in it (-want +got):\n%s", diff)
			}
		})
	}
}

// What a summary tells of jobs is that of the window, what it tells of the cluster that of the whole run.
func TestSummaryOfAWindow(t *testing.T) {
	summarise := func(w Window) *Summary {
		c := NewCollector(testComponents, Outputs{})
		c.Measure(w)
		summary, err := c.Finish(play(t, c), 160)
		if err != nil {
			t.Fatal(err)
		}
		return summary
	}
	all, one := summarise(AllJobs), summarise(Window{First: 1, Last: 1})
	if all.Measured != nil || one.Measured == nil || *one.Measured != (Window{First: 1, Last: 1}) {
		t.Errorf("measured: %v and %v, want nothing and jobs 1 to 1", all.Measured, one.Measured)
	}
	if got, want := one.JCTSeconds.Mean, Number(80); got != want {
		t.Errorf("mean JCT = %v, want %v", got, want)
	}
	if got, want := one.Jobs, (JobCounts{Submitted: 1, Completed: 1}); got != want {
		t.Errorf("jobs = %+v, want %+v", got, want)
	}
	if one.Preemptions != 0 || one.Restarts.Total != 0 {
		t.Errorf("%d preemptions and %d restarts, want none", one.Preemptions, one.Restarts.Total)
	}
	if one.UtilizationRatio != all.UtilizationRatio || one.MakespanSeconds != all.MakespanSeconds || one.GPUHours != all.GPUHours {
		t.Errorf("the cluster: %v, %v, %v, want %v, %v, %v", one.UtilizationRatio, one.MakespanSeconds, one.GPUHours,
			all.UtilizationRatio, all.MakespanSeconds, all.GPUHours)
	}
}
