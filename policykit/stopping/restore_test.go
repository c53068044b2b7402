package stopping

import (
	"fmt"
	"math"
	"testing"
)

// A rule goes on from what it was told before, not only from what it decided.
func TestRestored(t *testing.T) {
	l := Ladder{First: 1, Eta: 2}
	for name, tc := range map[string]struct {
		create        func() Rule
		before, after string
		stops         Trial
	}{
		"median":  {func() Rule { return NewMedian(Median{Others: 2}) }, "+0..2 0@1=1 1@1=2", "2@1=3", 2},
		"halving": {func() Rule { return NewSuccessiveHalving(l, 2) }, "+0..1 0@1=1", "1@1=3", 1},
		"asha":    {func() Rule { return NewASHA(l, true) }, "+0..1 0@1=1", "1@1=3", 1},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := tc.create(), tc.create()
			play(t, first, tc.before)
			snapshot, err := first.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if err := second.Restore(snapshot); err != nil {
				t.Fatal(err)
			}
			play(t, second, tc.after)
			if got := second.Decide(tc.stops).Action; got != Stop {
				t.Errorf("trial %d is to %v", tc.stops, got)
			}
		})
	}
}

func TestRestoreRefuses(t *testing.T) {
	l := Ladder{First: 1, Eta: 2}
	asha, median := NewASHA(l, true), NewMedian(Median{})
	for name, tc := range map[string]struct {
		rule     Rule
		snapshot string
	}{
		"no JSON":                     {asha, `{`},
		"a cohort that is none":       {asha, `{"Cohorts":[null]}`},
		"more cuts than rungs":        {asha, `{"Cohorts":[{"Results":[],"Cuts":[{"Trial":0,"Step":"1","Value":"1"}]}]}`},
		"results out of order":        {asha, `{"Cohorts":[{"Results":[[{"Trial":0,"Step":"1","Value":"2"},{"Trial":1,"Step":"1","Value":"1"}]]}]}`},
		"a cohort before the first":   {asha, `{"Cohorts":[{}],"Trials":[{"Trial":0,"Cohort":-1,"Last":"0"}]}`},
		"a cohort behind the last":    {asha, `{"Cohorts":[{}],"Trials":[{"Trial":0,"Cohort":1,"Last":"0"}]}`},
		"rungs that nobody came to":   {asha, `{"Cohorts":[{}],"Trials":[{"Trial":0,"Given":1,"Last":"0"}]}`},
		"further than it came":        {asha, `{"Cohorts":[{"Results":[[]]}],"Trials":[{"Trial":0,"Passed":1,"Last":"0"}]}`},
		"rungs below none":            {asha, `{"Cohorts":[{"Results":[[]]}],"Trials":[{"Trial":0,"Passed":-1,"Last":"0"}]}`},
		"a trial twice":               {asha, `{"Cohorts":[{}],"Trials":[{"Trial":0,"Last":"0"},{"Trial":0,"Last":"0"}]}`},
		"trials out of order":         {asha, `{"Cohorts":[{}],"Trials":[{"Trial":1,"Last":"0"},{"Trial":0,"Last":"0"}]}`},
		"a step that is no number":    {asha, `{"Cohorts":[{}],"Trials":[{"Trial":1,"Last":"one"}]}`},
		"median: no JSON":             {median, `[`},
		"median: a trial twice":       {median, `[{"Trial":0,"Best":"1"},{"Trial":0,"Best":"1"}]`},
		"median: fewer reports":       {median, `[{"Trial":0,"Best":"1","Points":[{"Step":"1","Mean":"1"}]}]`},
		"median: points out of order": {median, `[{"Trial":0,"Best":"1","Count":2,"Points":[{"Step":"2","Mean":"1"},{"Step":"1","Mean":"1"}]}]`},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprintf("%+v", tc.rule)
			if err := tc.rule.Restore([]byte(tc.snapshot)); err == nil {
				t.Error("no error")
			}
			if after := fmt.Sprintf("%+v", tc.rule); after != before {
				t.Errorf("it was %s and is %s", before, after)
			}
		})
	}
}

// A step that is told again changes nothing in the median either.
func TestMedianOfStepsToldAgain(t *testing.T) {
	r := NewMedian(Median{Others: 1})
	play(t, r, "+0..1 0@1=1 0@1=9 0@0.5=9 0@2=1 1@2=2")
	if d := r.Decide(1); d.Action != Stop || d.Threshold != 1 {
		t.Errorf("got %+v, want it held against 1", d)
	}
}

// A long course is thinned out: the mean goes on as if it were not, and so do those up to the steps that are kept.
func TestMedianOfLongCourses(t *testing.T) {
	r := NewMedian(Median{Others: 1}).(*median)
	r.Enter(0)
	sum := 0.0
	const reports = 5*mostPoints + 7
	for i := 1; i <= reports; i++ {
		sum += float64(i)
		r.Report(0, float64(i), float64(i))
		if n := len(r.trials[0].Points); n > mostPoints {
			t.Fatalf("%d points are kept", n)
		}
	}
	if mean, came := r.trials[0].at(reports); !came || math.Abs(mean-sum/reports) > 1e-6 {
		t.Errorf("the mean is %v, want %v", mean, sum/reports)
	}
	for _, p := range r.trials[0].Points {
		if want := (float64(p.Step) + 1) / 2; math.Abs(float64(p.Mean)-want) > 1e-6 {
			t.Fatalf("the mean up to %v is %v, want %v", p.Step, p.Mean, want)
		}
	}
	if n := len(r.trials[0].Points); n < mostPoints/2 {
		t.Errorf("%d points are kept", n)
	}
}
