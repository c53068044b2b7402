package twin

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

var inf = math.Inf(1)

// Bands of draws, by hand: rank (n+1)p of those in order.
func TestBandOf(t *testing.T) {
	for name, tc := range map[string]struct {
		draws []float64
		want  Band
	}{
		"one":               {[]float64{7}, Band{7, 7, 7}},
		"two":               {[]float64{9, 7}, Band{7, 8, 9}},
		"four":              {[]float64{4, 2, 1, 3}, Band{1, 2.5, 4}},
		"nine":              {[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, Band{1, 5, 9}},
		"nineteen":          {[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, Band{2, 10, 18}},
		"one in four never": {[]float64{1, 2, 3, inf}, Band{1, 2.5, inf}},
		"most never":        {[]float64{1, inf, inf, inf}, Band{1, inf, inf}},
		"never":             {[]float64{inf, inf, inf}, Band{inf, inf, inf}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := bandOf(slices.Clone(tc.draws)); !closeTo(got.Low, tc.want.Low) || !closeTo(got.Median, tc.want.Median) || !closeTo(got.High, tc.want.High) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func closeTo(a, b float64) bool { return a == b || math.Abs(a-b) < 1e-9 }

// Who waits is in order of expected starts, the lower id first among equals; who runs has no position.
func TestQueue(t *testing.T) {
	at := func(id core.JobID, running bool, median float64) JobForecast {
		return JobForecast{ID: id, Running: running, Start: Band{median, median, median}}
	}
	f := &Forecast{Jobs: []JobForecast{at(2, false, 50), at(3, true, 0), at(5, false, inf), at(6, false, 20), at(9, false, 50)}}
	f.queue()
	type place struct {
		Position int
		Ahead    []core.JobID
	}
	got := map[core.JobID]place{}
	for _, j := range f.Jobs {
		got[j.ID] = place{j.Position, j.Ahead}
	}
	want := map[core.JobID]place{
		6: {1, nil}, 2: {2, []core.JobID{6}}, 9: {3, []core.JobID{6, 2}}, 5: {4, []core.JobID{6, 2, 9}}, 3: {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	many := &Forecast{}
	for i := range 30 {
		many.Jobs = append(many.Jobs, at(core.JobID(i), false, float64(i)))
	}
	many.queue()
	if last := many.Jobs[29]; last.Position != 30 || len(last.Ahead) != mostAhead || last.Ahead[mostAhead-1] != 9 {
		t.Errorf("the last of 30: %+v", last)
	}
}

// The product-limit estimate, by hand.
func TestSurvived(t *testing.T) {
	final := func(values ...float64) (list []weighted) {
		for _, v := range values {
			list = append(list, weighted{v, 1, true})
		}
		return list
	}
	for name, tc := range map[string]struct {
		values []weighted
		rank   float64
		want   float64
	}{
		"all final":            {final(5, 3, 1, 2, 4), 0.5, 3},
		"low":                  {final(5, 3, 1, 2, 4), 0.1, 1},
		"high":                 {final(5, 3, 1, 2, 4), 0.9, 5},
		"heavy":                {[]weighted{{1, 1, true}, {2, 1, true}, {3, 8, true}}, 0.5, 3},
		"censored at first":    {append(final(2, 3, 4), weighted{1, 100, false}), 0.5, 3},
		"censored at the same": {append(final(1, 2), weighted{1, 2, false}), 0.5, 2}, // a quarter ends at 1, all that are left at 2
		"not reached":          {append(final(1), weighted{7, 9, false}), 0.5, 7},
	} {
		t.Run(name, func(t *testing.T) {
			if got := survived(tc.values, tc.rank)[0]; got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// Of a list that is full, each two become one that stands for both.
func TestNoted(t *testing.T) {
	c := newCalibrator(1)
	var list []shown
	for i := range 1000 {
		list = c.noted(list, shown{at: float64(i), weight: 1})
		sum := 0
		for k := range list {
			sum += list[k].weight
		}
		if sum != i+1 || len(list) > mostShown || !slices.IsSortedFunc(list, func(a, b shown) int { return int(a.at - b.at) }) {
			t.Fatalf("after %d: %d that stand for %d", i+1, len(list), sum)
		}
	}
}

// What is wrong with bands is told.
func TestNotes(t *testing.T) {
	job := func(id core.JobID, work float64) *core.Job {
		return core.NewJob(&core.JobSpec{ID: id, TotalWork: work})
	}
	for name, tc := range map[string]struct {
		ended int
		work  float64
		end   float64
		want  []string
	}{
		"all is well":   {100, 1, 5, nil},
		"no job ended":  {0, 1, 5, []string{"no job that was forecast has ended yet: the intervals rest on simulated futures alone"}},
		"three ended":   {3, 1, 5, []string{"the intervals of ends rest on simulated futures more than on what happened: of earlier forecasts, only those of 3 jobs can be judged"}},
		"not declared":  {100, 0, 5, []string{"1 of 2 jobs declare no work: how long they take is estimated from jobs before them"}},
		"never, by now": {100, 1, inf, []string{"1 of 2 jobs end in fewer than half of the futures that were drawn"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Forecast{Jobs: []JobForecast{{ID: 0, End: Band{1, 2, 3}}, {ID: 1, End: Band{1, tc.end, tc.end}}}}
			f.addNotes(&core.View{Jobs: []*core.Job{job(0, 1), job(1, tc.work)}}, tc.ended)
			if diff := cmp.Diff(tc.want, f.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}
