package compare_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/lab/compare"
)

func TestParseThreshold(t *testing.T) {
	for text, want := range map[string]compare.Threshold{
		"jct_seconds.mean=2%":       {Metric: "jct_seconds.mean", Limit: 0.02, Part: true},
		"jct_seconds.mean = 2 %":    {Metric: "jct_seconds.mean", Limit: 0.02, Part: true},
		"jct_seconds.mean=0%":       {Metric: "jct_seconds.mean", Part: true},
		"jct_seconds.mean=90":       {Metric: "jct_seconds.mean", Limit: 90},
		"jct_seconds.mean=1m30s":    {Metric: "jct_seconds.mean", Limit: 90},
		"restarts.mean=0.5":         {Metric: "restarts.mean", Limit: 0.5},
		"utilization_ratio=1e-2":    {Metric: "utilization_ratio", Limit: 0.01},
		"jobs.unfinished=0":         {Metric: "jobs.unfinished"},
		"makespan_seconds=250%":     {Metric: "makespan_seconds", Limit: 2.5, Part: true},
		"jct_seconds.common_mean=1": {Metric: "jct_seconds.common_mean", Limit: 1},
	} {
		want.Text = text
		got, err := compare.ParseThreshold(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for text, want := range map[string]string{
		"":                       "is not of the form METRIC=LIMIT",
		"jct_seconds.mean":       "is not of the form METRIC=LIMIT",
		"jct_seconds.men=2%":     `did you mean "jct_seconds.mean"?`,
		"=2%":                    "unknown metric",
		"jct.mean=2%":            `did you mean "jct_seconds.mean"?`,
		"rho_max=2%":             `did you mean "fairness.rho_max"?`,
		"rounds=2%":              "more of it is neither better nor worse",
		"jct_seconds.mean=":      "is no limit",
		"jct_seconds.mean=-1%":   "is no limit",
		"jct_seconds.mean=-30s":  "is no limit",
		"jct_seconds.mean=NaN":   "is no limit",
		"jct_seconds.mean=Inf%":  "is no limit",
		"jct_seconds.mean=two":   "is no limit",
		"restarts.mean=30s":      "is no limit",
		"jct_seconds.mean=2%%":   "is no limit",
		"jct_seconds.mean=1e999": "is no limit",
	} {
		if _, err := compare.ParseThreshold(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseThreshold(f *testing.F) {
	f.Add("jct_seconds.mean=2%")
	f.Add("makespan_seconds=1h")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := compare.ParseThreshold(text)
		if err == nil && !(got.Limit >= 0 && !math.IsInf(got.Limit, 0) && got.Text == text) {
			t.Errorf("%q: %+v", text, got)
		}
	})
}

func TestJudge(t *testing.T) {
	even := folder(t, "fifo", 1, 1, 1, 1, 1)
	slower, noisy := folder(t, "srtf", 1.05, 1.06, 1.05, 1.04, 1.05), folder(t, "srtf", 1.5, 0.9, 1.4, 0.8, 1)
	one, other := folder(t, "fifo", 1), folder(t, "srtf", 1.05)
	for name, tc := range map[string]struct {
		base, other, threshold string
		strict, failed         bool
		why                    string
	}{
		"above":                          {even, slower, "jct_seconds.mean=2%", false, true, "above"},
		"below":                          {even, slower, "jct_seconds.mean=6%", false, false, ""},
		"above an amount":                {even, slower, "jct_seconds.mean=2s", false, true, "above"},
		"below an amount":                {even, slower, "jct_seconds.mean=10s", false, false, ""},
		"by chance":                      {even, noisy, "jct_seconds.mean=2%", false, false, "above, but its interval holds 0"},
		"strictly":                       {even, noisy, "jct_seconds.mean=2%", true, true, "above"},
		"better":                         {slower, even, "jct_seconds.mean=0%", true, false, ""},
		"the same":                       {even, even, "jct_seconds.mean=0%", true, false, ""},
		"more use is better":             {even, slower, "utilization_ratio=0", true, false, ""},
		"more completed is better":       {even, slower, "jobs.completed=0", true, false, ""},
		"from nothing to nothing":        {even, slower, "jobs.unfinished=0%", true, false, ""},
		"one run, within its trace":      {one, other, "jct_seconds.mean=2%", false, true, "above"},
		"one run, without an interval":   {one, other, "jct_seconds.p99=2%", false, true, "above"},
		"one run, without and not above": {one, other, "jct_seconds.p99=5.1%", false, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			threshold, err := compare.ParseThreshold(tc.threshold)
			if err != nil {
				t.Fatal(err)
			}
			r := compared(t, compare.Choice{Judged: []string{threshold.Metric}}, tc.base, tc.other)
			verdicts, err := r.Judge([]compare.Threshold{threshold}, tc.strict)
			if err != nil || len(verdicts) != 1 || verdicts[0].Failed != tc.failed || verdicts[0].Why != tc.why {
				t.Errorf("got %+v, %v", verdicts, err)
			}
			if err == nil && verdicts[0].Worse == 0 && math.Signbit(verdicts[0].Worse) {
				t.Error("it is worse by less than nothing")
			}
		})
	}
}

func TestJudgeFromNothing(t *testing.T) {
	a, b := run{seed: 1, allocation: "fifo", times: many(3, 1)}, run{seed: 1, allocation: "srtf", times: many(3, 1)}
	b.times[0] = -1
	r := compared(t, compare.Choice{Judged: []string{"jobs.rejected", "fairness.rho_mean"}}, a.write(t, t.TempDir()), b.write(t, t.TempDir()))
	verdicts, err := r.Judge([]compare.Threshold{{Metric: "jobs.rejected", Limit: 5, Part: true}, {Metric: "jobs.rejected", Limit: 1}}, false)
	if err != nil || !verdicts[0].Failed || !math.IsInf(verdicts[0].Worse, 1) || verdicts[1].Failed {
		t.Errorf("got %+v, %v", verdicts, err)
	}
	// What is not known passes no gate.
	if _, err := r.Judge([]compare.Threshold{{Metric: "fairness.rho_mean", Limit: 5, Part: true}}, false); err == nil || !strings.Contains(err.Error(), "fairness.rho_mean is not known") {
		t.Errorf("judged: %v", err)
	}
}
