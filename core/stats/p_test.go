package stats_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/stats"
)

// The additional sleep of ten patients by two drugs: Student's own data, whose p every textbook gives.
func TestStudentP(t *testing.T) {
	sleep := []float64{-1.2, -2.4, -1.3, -1.3, 0, -1, -1.8, -0.8, -4.6, -1.4}
	if p := stats.StudentP(sleep); math.Abs(p-0.002833) > 1e-6 {
		t.Errorf("p = %v, want 0.002833", p)
	}
	for name, tc := range map[string]struct {
		x    []float64
		want float64
	}{
		"nothing": {nil, nan}, "one": {[]float64{1}, nan}, "not finite": {[]float64{1, math.Inf(1)}, nan},
		"equal": {[]float64{2, 2, 2}, 0}, "zeros": {[]float64{0, 0, 0}, 1}, "even": {[]float64{-1, 1}, 1},
	} {
		if p := stats.StudentP(tc.x); p != tc.want && !(math.IsNaN(p) && math.IsNaN(tc.want)) {
			t.Errorf("%s: p = %v, want %v", name, p, tc.want)
		}
	}
}

// P is below 1 - level just where the interval leaves out 0.
func TestPGoesWithTheInterval(t *testing.T) {
	agrees := func(t *rapid.T, p stats.Paired, level float64) {
		if p.P < 0 || p.P > 1 {
			t.Fatalf("p = %v", p.P)
		}
		if edge := math.Min(math.Abs(p.Interval().Low), math.Abs(p.Interval().High)); edge < 1e-9 {
			t.Skip("the draw has 0 at the end of its interval, where rounding decides")
		}
		if out := !p.Interval().Contains(0); out != (p.P < 1-level) {
			t.Fatalf("p = %v at level %v, interval %v", p.P, level, p.Interval())
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.SampledFrom([]float64{0.9, 0.95, 0.99}).Draw(t, "level")
		n := rapid.IntRange(5, 30).Draw(t, "n")
		shift := rapid.Float64Range(-0.5, 0.5).Draw(t, "shift")
		noise := sample(n, uint64(rapid.IntRange(0, 1000).Draw(t, "seed")))
		a, b := make([]float64, n), make([]float64, n)
		for i := range a {
			b[i] = 100
			a[i] = 100 * math.Exp(shift+0.3*noise[i])
		}
		p, err := stats.Compare(a, b, level)
		if err != nil {
			t.Fatal(err)
		}
		agrees(t, p, level)
	})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(20, 60).Draw(t, "n")
		shift := rapid.Float64Range(-0.3, 0.3).Draw(t, "shift")
		noise := sample(n, uint64(rapid.IntRange(0, 1000).Draw(t, "seed")))
		a, b := make([]float64, n), make([]float64, n)
		for i := range a {
			b[i] = 100
			a[i] = 100 * math.Exp(shift+0.3*noise[i])
		}
		p, err := stats.CompareWithin(a, b, 1, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		agrees(t, p, 0.95)
	})
}

func TestLevelText(t *testing.T) {
	for level, want := range map[float64]string{
		0.95: "95", 0.9: "90", 0.980612: "98.06", 0.99995: "99.995", 0.999999: "99.9999", 1 - 1e-12: "99.9999999999", 0.995: "99.5",
	} {
		if got := stats.LevelText(level); got != want {
			t.Errorf("%v: %s, want %s", level, got, want)
		}
	}
}
