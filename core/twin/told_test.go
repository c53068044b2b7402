package twin

import (
	"math"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// The steps that a job tells in a future go on from those that policies were told, whatever work it is believed to have.
func TestStepsLeftGoOnFromWhatWasTold(t *testing.T) {
	noise := &curve{ends: []float64{100, 200, math.Inf(1)}, logs: []float64{-mostLog, 0, 0}}
	half := gain(2, 0) // the steps at twice the batch are worth that much from 100 on
	first := gain(2, -mostLog)
	nan := math.NaN()
	for name, tc := range map[string]struct {
		of   model
		want []float64
	}{
		"nobody is told":             {model{told: 5}, []float64{nan, nan, nan}},
		"as many as told":            {model{steps: true, told: 250}, []float64{250, 250 - 100/first, 250 - 100/first - 100/half}},
		"fewer than there are":       {model{steps: true, told: 100 / first}, []float64{100 / first, 0, 0}},
		"told later":                 {model{steps: true, told: 90, toldAt: 150, done: 160}, []float64{90 + 100/first + 50/half, 90, 90 - 50/half}}, // in the first phase where it begins anew
		"told long ago":              {model{steps: true, told: 90, done: 130}, []float64{90, 90, max(90-100/first-100/half, 0)}},
		"none are left, and it runs": {model{steps: true, toldAt: 120, done: 130}, []float64{100/first + 20/half, 0, 0}},
		"by what is declared":        {model{steps: true, told: nan, declared: 150}, []float64{100/first + 50/half, 50 / half, 0}},
		"by what is believed":        {model{steps: true, told: nan}, []float64{100/first + 200/half, 200 / half, 100 / half}},
	} {
		t.Run(name, func(t *testing.T) {
			m := tc.of
			m.noise, m.batch, m.total = noise, 2, 300
			m.begin()
			for phase, want := range tc.want {
				if got := m.StepsLeft(phase); math.Abs(got-want) > 1e-9 && !(math.IsNaN(got) && math.IsNaN(want)) {
					t.Errorf("%v steps left in phase %d, want %v", got, phase, want)
				}
			}
		})
	}
}

// bursts are ten jobs within ten seconds, every thousand seconds.
func bursts(n int) (s submissions) {
	for i := range 10 * n {
		s.add(&core.JobSpec{ID: core.JobID(i), SubmitSeconds: float64(i/10*1000 + i%10)}, math.NaN(), againWindow)
	}
	return s
}

// Jobs come in bursts where they did, and as many as came.
func TestArrivalsComeAgainInBursts(t *testing.T) {
	s := bursts(20)
	const draws = 200
	total, near := 0, 0
	for i := range draws {
		_, at := s.coming(20000, 40000, mostArrivals, true, core.NewRand(uint64(i), "again"))
		if !slices.IsSorted(at) || len(at) > 0 && at[0] <= 20000 {
			t.Fatalf("arrivals at %v", at)
		}
		total += len(at)
		for k := 1; k < len(at); k++ {
			if at[k]-at[k-1] < 2 {
				near++
			}
		}
	}
	if mean, part := float64(total)/draws, float64(near)/float64(total); mean < 170 || mean > 230 || part < 0.8 {
		t.Errorf("%.0f jobs come, %.2f of them in bursts; want some 200, and 0.9", mean, part)
	}
}

// Of a few submissions nobody knows how many of those to come are of a kind: that differs from world to world by more than by chance.
func TestWhatComesDiffersFromWorldToWorld(t *testing.T) {
	s := bursts(2)
	const draws = 400
	var sum, squares, n float64
	for i := range draws {
		like, _ := s.coming(2000, 1e6, 1000, true, core.NewRand(uint64(i), "again"))
		if len(like) < 1000 {
			continue // it is believed that they ceased
		}
		n++
		part := 0.0
		for _, of := range like {
			if of == 4 {
				part += 1 / float64(len(like))
			}
		}
		sum += part
		squares += part * part
	}
	mean := sum / n
	if deviation, chance := math.Sqrt(squares/n-mean*mean), math.Sqrt(mean/1000); n < draws/2 || deviation < 1.5*chance {
		t.Errorf("a kind makes %.3f of the jobs, with a standard deviation of %.4f over %v worlds, by chance %.4f", mean, deviation, n, chance)
	}
}

// After a silence that is longer than any gap before, jobs come within as long again in half of the worlds; after a shorter one, within the rest of a gap that is longer.
func TestArrivalsComeAgainAfterSilence(t *testing.T) {
	s := bursts(20) // gaps up to 991 s; the last came at 19009
	for name, tc := range map[string]struct {
		now, within float64
		least, most float64 // part of the worlds
	}{
		"as long as any":   {19909, 19909 + 92, 1, 1},
		"longer than any":  {21009, 21009 + 2000, 0.42, 0.58},
		"far longer":       {119009, 119009 + 1e5, 0.42, 0.58},
		"in the same time": {119009, 119009 + 2000, 0, 0.06},
	} {
		t.Run(name, func(t *testing.T) {
			const draws = 400
			come := 0.0
			for i := range draws {
				if like, _ := s.coming(tc.now, tc.within, 1, true, core.NewRand(uint64(i), "again")); len(like) > 0 {
					come++
				}
			}
			if part := come / draws; part < tc.least || part > tc.most {
				t.Errorf("jobs come in %.2f of the worlds, want %v to %v", part, tc.least, tc.most)
			}
		})
	}
}
