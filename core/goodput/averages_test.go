package goodput

import (
	"math"
	"testing"
)

// After n equal steps an average stands for (1-k^n)²/((1-k)² Σk^2i) of them, however it forgets.
func TestAnAverageKnowsHowManyStepsItStandsFor(t *testing.T) {
	var a averages
	const n = 7
	for range n {
		a.add(3, 2)
	}
	for i, memory := range memories {
		keep := memory * memory
		weight, squares := 0.0, 0.0
		for s := range n {
			w := (1 - keep) * math.Pow(keep, float64(s))
			weight, squares = weight+w, squares+w*w
		}
		if got, want := a[i].Weight*a[i].Weight/a[i].Weights, weight*weight/squares; math.Abs(got-want) > 1e-9*want {
			t.Errorf("memory %v: stands for %v steps, want %v", memory, got, want)
		}
	}
}

// Averages contradict each other beyond one and a half standard errors each, and agree within.
func TestAveragesThatContradictEachOther(t *testing.T) {
	// of ten steps each, with a deviation of one: a standard error is 1/√10
	average10 := func(mean float64) average { return average{Sum: mean, Squares: mean*mean + 1, Weight: 1, Weights: 0.1} }
	limit := 3 / math.Sqrt(10)
	for apart, want := range map[float64]float64{0.99 * limit: 0.99 * limit, 1.01 * limit: 0} {
		var a averages
		for i := range a {
			a[i] = average10(0)
		}
		a[len(a)-1] = average10(apart)
		if got := a.value(); math.Abs(got-want) > 1e-12 {
			t.Errorf("averages that lie %v apart make %v, want %v", apart, got, want)
		}
	}
}
