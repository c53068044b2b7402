package study

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// ranJobs are jobs submitted 10 s after one another, with their completion times; "" completed.
func ranJobs(outcomes []string, times ...metrics.Number) []metrics.Job {
	var list []metrics.Job
	for i, jct := range times {
		j := metrics.Job{ID: core.JobID(i), Name: string(rune('a' + i)), SubmitSeconds: float64(10 * i), Outcome: outcomes[i], JCTSeconds: jct, FinishSeconds: metrics.Number(10*i) + jct}
		if j.Outcome == "" {
			j.Outcome = completed
		} else {
			j.JCTSeconds, j.FinishSeconds = metrics.Number(nan), metrics.Number(nan)
		}
		list = append(list, j)
	}
	return list
}

func ended(jobs []metrics.Job, mean, makespan metrics.Number) Ended {
	s := &metrics.Summary{JCTSeconds: metrics.Distribution{Mean: mean}, MakespanSeconds: makespan}
	for i := range jobs {
		if s.Jobs.Submitted++; jobs[i].Outcome == completed {
			s.Jobs.Completed++
		}
	}
	return Ended{Summary: s, Jobs: jobs}
}

// Jobs that do not complete are counted for as long as they were watched, and those that never will up to the horizon.
func TestEnds(t *testing.T) {
	all := ended(ranJobs([]string{"", "", ""}, 100, 200, 300), 200, 320)
	for name, tc := range map[string]struct {
		baseline, other    Ended
		same               bool
		only               [2][]string
		left               [2]int
		restricted, common [2]float64
	}{
		"all complete": {all, ended(ranJobs([]string{"", "", ""}, 10, 20, 30), 20, 50), true, [2][]string{}, [2]int{}, [2]float64{200, 20}, [2]float64{200, 20}},
		// The other run was watched until second 520: the last job for 500 s. The horizon is that of the baseline, 300 s.
		"one is left":          {all, ended(ranJobs([]string{"", "", "unfinished"}, 10, 20, 0), 15, 520), false, [2][]string{{"c"}}, [2]int{0, 1}, [2]float64{200, 110}, [2]float64{150, 15}},
		"watched more shortly": {all, ended(ranJobs([]string{"", "", "unfinished"}, 10, 20, 0), 15, 90), false, [2][]string{{"c"}}, [2]int{0, 1}, [2]float64{70, 100. / 3}, [2]float64{150, 15}},
		"one failed":           {all, ended(ranJobs([]string{"failed", "", ""}, 0, 20, 30), 25, 50), false, [2][]string{{"a"}}, [2]int{0, 1}, [2]float64{30, 80. / 3}, [2]float64{250, 25}},
		"others failed": {
			ended(ranJobs([]string{"", "failed", ""}, 100, 0, 300), 200, 320), ended(ranJobs([]string{"failed", "", ""}, 0, 20, 300), 160, 320),
			false,
			[2][]string{{"a"}, {"b"}},
			[2]int{1, 1},
			[2]float64{700. / 3, 620. / 3},
			[2]float64{300, 300},
		},
		"the same failed": {
			ended(ranJobs([]string{"", "failed", ""}, 100, 0, 300), 200, 320), ended(ranJobs([]string{"", "failed", ""}, 50, 0, 300), 175, 320),
			true,
			[2][]string{},
			[2]int{1, 1},
			[2]float64{700. / 3, 650. / 3},
			[2]float64{200, 175},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := NewEnds(tc.baseline, tc.other)
			if !e.Known || e.Same() != tc.same || e.Left != tc.left {
				t.Errorf("known %v, same %v, left %v; want %v, %v", e.Known, e.Same(), e.Left, tc.same, tc.left)
			}
			if diff := cmp.Diff(tc.only, e.Only); diff != "" {
				t.Errorf("completed in one only (-want +got):\n%s", diff)
			}
			for metric, want := range map[string][2]float64{RestrictedMean: tc.restricted, CommonMean: tc.common} {
				if a, b := e.Value(metric); math.Abs(a-want[0]) > 1e-9 || math.Abs(b-want[1]) > 1e-9 {
					t.Errorf("%s is %v and %v, want %v", metric, a, b, want)
				}
			}
		})
	}
	// What is measured alone counts.
	measured := all
	summary := *all.Summary
	summary.Measured = &metrics.Window{First: 1, Last: 2}
	measured.Summary = &summary
	if e := NewEnds(measured, ended(ranJobs([]string{"", "", "unfinished"}, 10, 20, 0), 20, 520)); len(e.Both) != 1 || e.Both[0][1].Name != "b" {
		t.Errorf("measured %+v", e.Both)
	}
	// Runs of other jobs are told by their counts alone.
	for name, jobs := range map[string][]metrics.Job{"other jobs": ranJobs([]string{""}, 5), "no jobs": nil} {
		e := NewEnds(Ended{Summary: all.Summary, Jobs: jobs}, all)
		if a, b := e.Value(RestrictedMean); e.Known || !e.Same() || !math.IsNaN(a) || !math.IsNaN(b) {
			t.Errorf("%s: %+v, %v, %v", name, e, a, b)
		}
		if a, b := e.Value(CommonMean); !math.IsNaN(a) || !math.IsNaN(b) {
			t.Errorf("%s: common mean %v, %v", name, a, b)
		}
	}
	if e := NewEnds(Ended{Summary: all.Summary}, Ended{Summary: ended(ranJobs([]string{"failed"}, 0), 0, 0).Summary}); e.Same() {
		t.Error("a run that lost a job is the same")
	}
}
