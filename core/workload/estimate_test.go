package workload

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// stepped is a model of a hundred steps in four phases.
type stepped struct{ Model }

func (stepped) Phases() int                 { return 4 }
func (stepped) PhaseEnd(phase int) float64  { return 250 * float64(phase+1) }
func (stepped) StepsLeft(phase int) float64 { return 100 - 25*float64(phase) }

func TestEstimate(t *testing.T) {
	type want struct{ work, steps, later float64 }
	unknown := math.NaN()
	cases := map[string]struct {
		estimate Estimate
		want     want
	}{
		"declared":      {Estimate{Source: EstimateDeclared}, want{1000, 100, 50}},
		"noisy without": {Estimate{Source: EstimateNoisy}, want{1000, 100, 50}},
		"a limit":       {Estimate{Source: EstimateLimit}, want{1500, 150, 100}},
		"an estimate":   {Estimate{Source: EstimateColumn}, want{250, 25, 0}},
		"nothing":       {Estimate{Source: EstimateNone}, want{0, unknown, unknown}},
	}
	same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			job := newDurationJob("a", 5, 1000, 2)
			job.Model, job.LimitSeconds, job.EstimateSeconds = stepped{}, 1500, 250
			source := &Workload{Jobs: []Job{job}}
			w, err := tc.estimate.Apply(source, 1)
			if err != nil {
				t.Fatal(err)
			}
			told := w.Jobs[0].KnownSpec()
			got := want{told.TotalWork, w.Jobs[0].StepsLeft(0), w.Jobs[0].StepsLeft(2)}
			if !same(got.work, tc.want.work) || !same(got.steps, tc.want.steps) || !same(got.later, tc.want.later) {
				t.Errorf("policies are told %+v, want %+v", got, tc.want)
			}
			if work := w.Jobs[0].Spec.TotalWork; work != 1000 {
				t.Errorf("the truth became %v", work)
			}
			if source.Jobs[0].KnownSpec() != &source.Jobs[0].Spec {
				t.Error("the workload that was given changed")
			}
			if truth := w.True(told); truth.TotalWork != 1000 {
				t.Errorf("the truth of what was told is %v", truth.TotalWork)
			}
			if other := (&core.JobSpec{ID: 0, Name: "submitted later", TotalWork: 7}); w.True(other) != other {
				t.Error("another job is taken for it")
			}
		})
	}
}

func TestEstimateNeedsTheColumn(t *testing.T) {
	w, err := readString(readCSV, "name,submit_s,duration_s,replicas,limit_s\na,0,1,1,9\nb,0,1,1,\n")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ source, want string }{
		"one has none":     {EstimateLimit, `t.csv:3:1: job "b" has no limit_s; estimate.source asks for it`},
		"no such column":   {EstimateColumn, `t.csv:2:1: 2 of 2 jobs have no estimate_s: "a", "b"; estimate.source asks for it`},
		"not asked for it": {EstimateNone, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Estimate{Source: tc.source}.Apply(w, 1)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
	for jobs, want := range map[int]string{
		3: `3 of 3 jobs have no limit_s: "job-0", "job-1", "job-2"; estimate.source asks for it; give each job one, or take another source`,
		4: `4 of 4 jobs have no limit_s: "job-0", "job-1", "job-2" and 1 more; estimate.source asks for it; give each job one, or take another source`,
	} {
		if _, err := (Estimate{Source: EstimateLimit}).Apply(evenly(0, jobs), 1); err == nil || err.Error() != want {
			t.Errorf("of %d jobs: error %v, want %s", jobs, err, want)
		}
	}
	if _, err := (Estimate{Source: EstimateNone}).Apply(&Workload{Open: true}, 1); err == nil || !strings.Contains(err.Error(), "no jobs of its own") {
		t.Errorf("of jobs that are yet to come: %v", err)
	}
}

// The error of a job depends on its name and the seed, not on what else there is; it scales with sigma, and its median is 1.
func TestNoise(t *testing.T) {
	part := func(job *Job) float64 { return job.KnownSpec().TotalWork / job.Spec.TotalWork }
	rapid.Check(t, func(t *rapid.T) {
		w, seed := drawnWorkload(t), rapid.Uint64().Draw(t, "seed")
		one, err := Estimate{EstimateNoisy, 1}.Apply(w, seed)
		if err != nil {
			t.Fatal(err)
		}
		two, _ := Estimate{EstimateNoisy, 2}.Apply(w, seed)
		alone, _ := Estimate{EstimateNoisy, 1}.Apply(&Workload{Jobs: w.Jobs[len(w.Jobs)-1:]}, seed)
		last := len(w.Jobs) - 1
		if got, want := alone.Jobs[0].KnownSpec().TotalWork, one.Jobs[last].KnownSpec().TotalWork; got != want {
			t.Fatalf("alone %v, among others %v", got, want)
		}
		if got, want := part(&two.Jobs[last]), part(&one.Jobs[last])*part(&one.Jobs[last]); relativeError(got, want) > 1e-9 {
			t.Fatalf("sigma 2 leads to %v, sigma 1 to the root of %v", got, want)
		}
	})
	w, err := Estimate{EstimateNoisy, 1}.Apply(evenly(0, 20_001), 5)
	if err != nil {
		t.Fatal(err)
	}
	var logs []float64
	square := 0.0
	for i := range w.Jobs {
		x := math.Log(part(&w.Jobs[i]))
		logs, square = append(logs, x), square+x*x
	}
	slices.Sort(logs)
	if median, deviation := logs[len(logs)/2], math.Sqrt(square/float64(len(logs))); math.Abs(median) > 0.03 || math.Abs(deviation-1) > 0.03 {
		t.Errorf("median %v and deviation %v of the logarithm, want 0 and 1", median, deviation)
	}
}
