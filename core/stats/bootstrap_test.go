package stats_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/stats"
)

// orderedSamples visits all n^n ordered samples of x.
func orderedSamples(x []float64, visit func(sample []float64)) {
	sample := make([]float64, len(x))
	var fill func(i int)
	fill = func(i int) {
		if i == len(x) {
			visit(sample)
			return
		}
		for _, v := range x {
			sample[i] = v
			fill(i + 1)
		}
	}
	fill(0)
}

// The intervals of up to five values are those of all ordered samples, each as likely.
func TestBCaByBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(-20, 20).Draw(t, "quarters")) / 4 // sums are exact, and tie
		}), 2, 5).Draw(t, "x")
		level := rapid.SampledFrom([]float64{0.5, 0.9, 0.95, 0.99}).Draw(t, "level")
		mean, deviation := stat.MeanStdDev(x, nil)
		if deviation == 0 {
			return
		}
		n := float64(len(x))
		standardError := deviation / math.Sqrt(n)
		var means, pivots []float64
		below := 0.0
		orderedSamples(x, func(sample []float64) {
			m, d := stat.MeanStdDev(sample, nil)
			if math.Abs(m-mean) < 1e-12 {
				m = mean
				below += 0.5
			} else if m < mean {
				below++
			}
			means = append(means, m)
			switch {
			case m == mean:
				pivots = append(pivots, 0)
			case d < 1e-12:
				pivots = append(pivots, math.Copysign(math.Inf(1), m-mean))
			default:
				pivots = append(pivots, (m-mean)/(d/math.Sqrt(n)))
			}
		})
		slices.Sort(means)
		slices.Sort(pivots)
		at := func(list []float64, q float64) float64 {
			// Levels that fall on a jump are left to rounding in both.
			return list[min(len(list)-1, max(0, int(math.Ceil(q*float64(len(list))-1e-9))-1))]
		}
		close := func(name string, got, want float64) {
			if got != want && !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
				t.Errorf("%s = %v, want %v of %v at %v", name, got, want, x, level)
			}
		}
		got := stats.BCa(x, level)
		tail := (1 - level) / 2
		close("percentile low", got.Percentile.Low, at(means, tail))
		close("percentile high", got.Percentile.High, at(means, 1-tail))
		z0 := distuv.UnitNormal.Quantile(below / float64(len(means)))
		close("z0", got.Z0, z0)
		var squares, cubes float64
		for i := range x { // the acceleration by the jackknife
			left := (n*mean - x[i]) / (n - 1)
			squares += (mean - left) * (mean - left)
			cubes += (mean - left) * (mean - left) * (mean - left)
		}
		a := cubes / (6 * math.Pow(squares, 1.5))
		close("acceleration", got.Acceleration, a)
		corrected := func(z float64) float64 {
			return distuv.UnitNormal.CDF(z0 + (z0+z)/(1-a*(z0+z)))
		}
		z := distuv.UnitNormal.Quantile(1 - tail)
		close("bca low", got.BCa.Low, at(means, corrected(-z)))
		close("bca high", got.BCa.High, at(means, corrected(z)))
		if z = math.Sqrt(n/(n-1)) * (distuv.StudentsT{Sigma: 1, Nu: n - 1}).Quantile(1-tail); math.Abs(a)*(z+math.Abs(z0)) < 1 {
			close("expanded low", got.Expanded.Low, at(means, corrected(-z)))
			close("expanded high", got.Expanded.High, at(means, corrected(z)))
		}
		studentized := stats.Studentized(x, level)
		close("bootstrap-t low", studentized.Low, mean-at(pivots, 1-tail)*standardError)
		close("bootstrap-t high", studentized.High, mean-at(pivots, tail)*standardError)
		if !got.Exact {
			t.Error("not exact")
		}
	})
}

// Where the level is beyond the pole of BCa's transformation, the end is that of the resamples.
func TestBCaBeyondThePole(t *testing.T) {
	if got := stats.BCa([]float64{0, 0, 1, 0, 0}, 0.9999).Expanded; got.High != 1 {
		t.Errorf("got %v, want up to 1", got)
	}
	if got := stats.BCa([]float64{1, 1, 0, 1, 1}, 0.9999).Expanded; math.Abs(got.Low) > 1e-12 {
		t.Errorf("got %v, want from 0", got)
	}
}

func TestBCaOfFewAndOdd(t *testing.T) {
	for name, tc := range map[string]struct {
		x     []float64
		level float64
		want  stats.Bootstrap
	}{
		"none":     {nil, 0.95, stats.Bootstrap{Z0: nan, Acceleration: nan}},
		"one":      {[]float64{1}, 0.95, stats.Bootstrap{Z0: nan, Acceleration: nan}},
		"NaN":      {[]float64{1, nan}, 0.95, stats.Bootstrap{Z0: nan, Acceleration: nan}},
		"infinite": {[]float64{1, inf}, 0.95, stats.Bootstrap{Z0: nan, Acceleration: nan}},
		"level 0":  {[]float64{1, 2}, 0, stats.Bootstrap{Z0: nan, Acceleration: nan}},
		"equal":    {[]float64{0.1, 0.1, 0.1}, 0.95, stats.Bootstrap{Exact: true}},
		"many equal": {
			[]float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, 0.95, stats.Bootstrap{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			interval := stats.Unknown()
			if len(tc.x) > 2 {
				interval = stats.Interval{Low: 0.1, High: 0.1}
			}
			tc.want.Percentile, tc.want.BCa, tc.want.Expanded = interval, interval, interval
			same(t, tc.want, stats.BCa(tc.x, tc.level))
			same(t, interval, stats.Studentized(tc.x, tc.level))
		})
	}
}

// Eight values are still enumerated, nine are drawn, and both agree with what the values are.
func TestBCaOfMore(t *testing.T) {
	for n, exact := range map[int]bool{8: true, 9: false, 40: false} {
		x := sample(n, 4)
		before := slices.Clone(x)
		got := stats.BCa(x, 0.95)
		if got.Exact != exact {
			t.Errorf("%d values: exact %t", n, got.Exact)
		}
		want := stats.T(x, 0.95)
		// The expanded interval has Student's width where the values are normal; of the bootstrap-t that is so for many.
		for name, i := range map[string]stats.Interval{"expanded": got.Expanded, "bootstrap-t": stats.Studentized(x, 0.95)} {
			off := math.Max(math.Abs(i.Low-want.Low), math.Abs(i.High-want.High)) / want.Width()
			if off > 0.1 && (n == 40 || off > 0.25) {
				t.Errorf("%d values: %s %v, t %v", n, name, i, want)
			}
		}
		if got.Percentile.Width() >= got.Expanded.Width() || got.BCa.Width() >= got.Expanded.Width() {
			t.Errorf("%d values: %+v", n, got)
		}
		if math.Abs(got.Z0) > 0.2 {
			t.Errorf("%d values: z0 %v", n, got.Z0)
		}
		if !slices.Equal(x, before) {
			t.Error("the values were changed")
		}
	}
}

// Adding to the values moves the intervals, and a factor stretches them.
func TestBCaMovesWithTheValues(t *testing.T) {
	for _, n := range []int{6, 12} {
		x := sample(n, 5)
		want := stats.BCa(x, 0.95)
		for _, by := range []float64{1e-200, 1e200} {
			got := stats.BCa(scaled(x, by), 0.95)
			same(t, want.Acceleration, got.Acceleration)
			same(t, want.BCa.Low, got.BCa.Low/by)
			same(t, want.Expanded.High, got.Expanded.High/by)
			same(t, stats.Studentized(x, 0.95).Low, stats.Studentized(scaled(x, by), 0.95).Low/by)
		}
		y := scaled(x, 1e6)
		for i := range y {
			y[i] += 3e6
		}
		got := stats.BCa(y, 0.95)
		for _, i := range [][2]stats.Interval{{got.Percentile, want.Percentile}, {got.BCa, want.BCa}, {got.Expanded, want.Expanded}} {
			same(t, i[1].Low+3, i[0].Low/1e6)
			same(t, i[1].High+3, i[0].High/1e6)
		}
		same(t, want.Z0, got.Z0)
	}
}
