package stats_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/stats"
)

// p by all 2^n signs, of differences with ties and zeros.
func TestWilcoxonByEnumeration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(-6, 6).Draw(t, "halves")) / 2
		}), 0, 12).Draw(t, "d")
		var rest []float64
		for _, v := range d {
			if v != 0 {
				rest = append(rest, v)
			}
		}
		ranks := make([]float64, len(rest)) // by counting: those below and half of those equal
		total, positive := 0.0, 0.0
		for i, v := range rest {
			ranks[i] = 0.5
			for _, other := range rest {
				if math.Abs(other) < math.Abs(v) {
					ranks[i]++
				} else if math.Abs(other) == math.Abs(v) {
					ranks[i] += 0.5
				}
			}
			total += ranks[i]
			if v > 0 {
				positive += ranks[i]
			}
		}
		as := 0
		for signs := range 1 << len(rest) {
			sum := 0.0
			for i, r := range ranks {
				if signs>>i&1 == 1 {
					sum += r
				}
			}
			if math.Abs(sum-total/2) >= math.Abs(positive-total/2) {
				as++
			}
		}
		want := float64(as) / float64(int(1)<<len(rest))
		if got, exact := stats.Wilcoxon(d); got != want || !exact {
			t.Errorf("p = %v, exact %t, want %v", got, exact, want)
		}
	})
}

func TestWilcoxonOfMany(t *testing.T) {
	series := func(n, distinct, positive int) []float64 { // of n magnitudes, equal in groups of n/distinct
		d := make([]float64, n)
		for i := range d {
			d[i] = -float64(1 + i*distinct/n)
			if i < positive {
				d[i] = -d[i]
			}
		}
		return d
	}
	normal := func(n, positive, ties, each float64) float64 { // the first positive ranks are positive; so many groups of ties
		sum := positive * (positive + 1) / 2
		variance := n*(n+1)*(2*n+1)/24 - ties*(each*each*each-each)/48
		return math.Min(1, 2*distuv.UnitNormal.CDF((sum+0.5-n*(n+1)/4)/math.Sqrt(variance)))
	}
	for name, tc := range map[string]struct {
		d     []float64
		want  float64
		exact bool
	}{
		"201 without ties":     {series(201, 201, 130), normal(201, 130, 0, 1), false},
		"300 in groups of ten": {series(300, 30, 200), normal(300, 200, 30, 10), false},
		"201 of one sign":      {series(201, 201, 0), normal(201, 0, 0, 1), false},
		"the mean of the sum":  {append(series(400, 400, 0)[:0:0], balanced(204)...), 1, false},
		"NaN":                  {[]float64{1, nan}, nan, false},
		"none":                 {nil, 1, true},
		"zeros":                {[]float64{0, 0}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, exact := stats.Wilcoxon(tc.d)
			same(t, tc.want, p)
			same(t, tc.exact, exact)
		})
	}
	// The normal one takes over where the exact one ends.
	exactly, exact := stats.Wilcoxon(series(200, 200, 128))
	if want := normal(200, 128, 0, 1); !exact || math.Abs(exactly-want) > 0.001 || exactly < 0.001 {
		t.Errorf("200 differences: p %v, exact %t, normal %v", exactly, exact, want)
	}
	if p, exact := stats.Wilcoxon(series(200, 200, 0)); !exact || p != math.Ldexp(1, -199) {
		t.Errorf("200 differences of one sign: p %v, exact %t", p, exact)
	}
}

// balanced is 1 to n with signs such that both rank sums are equal: + - - +, over and over.
func balanced(n int) []float64 {
	d := make([]float64, n)
	for i := range d {
		if d[i] = float64(i + 1); i%4 == 1 || i%4 == 2 {
			d[i] = -d[i]
		}
	}
	return d
}

func TestSignCount(t *testing.T) {
	wins, ties := stats.SignCount([]float64{-1, 2, 0, -3, 0, -0.1, math.Copysign(0, -1)})
	same(t, []int{3, 3}, []int{wins, ties})
}

func TestHolm(t *testing.T) {
	for name, tc := range map[string]struct{ p, want []float64 }{
		"four":         {[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		"one":          {[]float64{0.03}, []float64{0.03}},
		"none":         {nil, nil},
		"up to 1":      {[]float64{0.5, 0.9, 0.7}, []float64{1, 1, 1}},
		"ties":         {[]float64{0.01, 0.01}, []float64{0.02, 0.02}},
		"unknown ones": {[]float64{nan, 0.02, nan, 0.01}, []float64{nan, 0.02, nan, 0.02}},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.p)
			same(t, tc.want, stats.Holm(tc.p))
			same(t, before, tc.p)
		})
	}
}

// An adjusted p is between p and Bonferroni's, and in the order of p.
func TestHolmIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 20).Draw(t, "p")
		got := stats.Holm(p)
		for i := range p {
			if got[i] < p[i] || got[i] > math.Min(1, float64(len(p))*p[i]) {
				t.Errorf("Holm(%v)[%d] = %v", p, i, got[i])
			}
			for j := range p {
				if p[i] < p[j] && got[i] > got[j] || p[i] == p[j] && got[i] != got[j] {
					t.Errorf("Holm(%v) = %v: %d and %d", p, got, i, j)
				}
			}
		}
	})
}

// The constants of O'Brien and Fleming's boundaries, from Jennison and Turnbull, Group sequential methods (1999), table 2.3.
func TestLooks(t *testing.T) {
	for _, tc := range []struct {
		total    int
		level    float64
		constant float64
	}{
		{1, 0.95, 1.960},
		{2, 0.95, 1.977},
		{3, 0.95, 2.004},
		{4, 0.95, 2.024},
		{5, 0.95, 2.040},
		{10, 0.95, 2.087},
		{4, 0.90, 1.733},
		{4, 0.99, 2.609},
	} {
		levels := stats.Looks(tc.total, tc.level)
		if len(levels) != tc.total {
			t.Fatalf("%d levels for %d looks", len(levels), tc.total)
		}
		for k, level := range levels {
			want := 1 - 2*distuv.UnitNormal.CDF(-tc.constant*math.Sqrt(float64(tc.total)/float64(k+1)))
			if math.Abs(level-want) > 0.0006*(1-want)/0.01+1e-9 && math.Abs(level-want) > 1e-4 {
				t.Errorf("%d looks at %v: look %d at %v, want %v", tc.total, tc.level, k+1, level, want)
			}
		}
	}
	for name, got := range map[string][]float64{
		"no look": stats.Looks(0, 0.95), "level 0": stats.Looks(4, 0), "level 1": stats.Looks(4, 1), "level NaN": stats.Looks(4, nan),
	} {
		if got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	same(t, []float64{0.95}, stats.Looks(1, 0.95))
	same(t, []float64{0.5}, stats.Looks(1, 0.5))
}
