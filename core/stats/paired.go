package stats

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"
)

// MinSample is the smallest number of workloads for which an interval is given.
const MinSample = 5

// How a comparison was made.
const (
	MethodPaired = "paired" // differences of pairs, over workloads
	MethodBlocks = "blocks" // within one trace: its variation, not generality
	MethodValues = "values" // too few for an interval: only the values are given
)

// Paired is a comparison of two schedulers, a against b. Changes are fractions; intervals are of Change.
type Paired struct {
	Method string // how Interval was computed, one of Method…
	N      int    // workloads; jobs under MethodBlocks

	// Change is exp(mean(ln a - ln b)) - 1, the geometric mean of the ratios less one; under MethodBlocks it is RatioOfMeans.
	// It is NaN without values.
	Change       float64
	RatioOfMeans float64 // mean(a)/mean(b) - 1, as papers print it

	T, Percentile, BCa Interval // intervals of Change by Student's t, by percentile bootstrap and by BCa bootstrap
	Expanded           Interval // BCa widened for few workloads, see Bootstrap; Percentile widened for few blocks
	Unpaired           Interval // by UnpairedT of the logarithms, for contrast only

	Wins, Ties int     // pairs in which a is below b, or equal
	Wilcoxon   float64 // two-sided p of the signed rank test of the log ratios
	P          float64 // two-sided p that goes with Interval: below 1 - level where it leaves out 0; NaN without one

	Values     []float64 // ln a - ln b by workload, in the order given; nil under MethodBlocks
	Block      int       // jobs in a block under MethodBlocks
	Equal      bool      // a and b are the same values: most likely the same runs
	Degenerate bool      // all ratios are equal, so that an interval has no width: too little varies
}

// Interval is the one that a table judges by: T, or Expanded within one trace.
func (p Paired) Interval() Interval {
	if p.Method == MethodBlocks {
		return p.Expanded
	}
	return p.T
}

// Compare compares one value per workload of a with that of b on the same workload. It gives intervals from MinSample
// workloads on. It refuses samples of different length, values that are not positive and finite, each by its index, and a
// level outside (0, 1).
func Compare(a, b []float64, level float64) (Paired, error) {
	if err := check(a, b, level, func(v float64) bool { return v > 0 }, "positive and finite"); err != nil {
		return Paired{}, err
	}
	p := Paired{
		Method: MethodValues, N: len(a), P: math.NaN(),
		T: Unknown(), Percentile: Unknown(), BCa: Unknown(), Expanded: Unknown(), Unpaired: Unknown(),
	}
	logA, logB := make([]float64, len(a)), make([]float64, len(a))
	p.Values = make([]float64, len(a))
	for i := range a {
		logA[i], logB[i] = math.Log(a[i]), math.Log(b[i])
		p.Values[i] = logA[i] - logB[i]
	}
	d := sorted(p.Values)
	p.Change = math.Expm1(stat.Mean(d, nil))
	p.RatioOfMeans = stat.Mean(sorted(a), nil)/stat.Mean(sorted(b), nil) - 1
	p.Equal = p.N > 0 && slices.Equal(a, b)
	if p.N > 0 && d[p.N-1]-d[0] <= noise { // the logarithms of equal ratios differ by rounding
		p.Degenerate = true
		for i := range d {
			d[i] = d[0]
		}
	}
	p.Wins, p.Ties = SignCount(d)
	p.Wilcoxon, _ = Wilcoxon(d)
	if p.N < MinSample {
		return p, nil
	}
	p.Method = MethodPaired
	p.T, p.P = T(d, level).change(), StudentP(d)
	p.Unpaired = UnpairedT(logA, logB, level).change()
	bootstrap := BCa(d, level)
	p.Percentile, p.BCa, p.Expanded = bootstrap.Percentile.change(), bootstrap.BCa.change(), bootstrap.Expanded.change()
	return p, nil
}

// check lists everything that keeps two samples from being compared.
func check(a, b []float64, level float64, ok func(float64) bool, want string) error {
	var faults []string
	if !proper(level) {
		faults = append(faults, fmt.Sprintf("level %v is not between 0 and 1, such as 0.95", level))
	}
	if len(a) != len(b) {
		faults = append(faults, fmt.Sprintf("%d values against %d: a paired comparison needs one of each per workload", len(a), len(b)))
	}
	for _, sample := range []struct {
		name   string
		values []float64
	}{{"a", a}, {"b", b}} {
		for i, v := range sample.values {
			if !ok(v) || math.IsInf(v, 0) {
				faults = append(faults, fmt.Sprintf("%s[%d] is %v: want a value that is %s", sample.name, i, v, want))
			}
		}
	}
	if faults == nil {
		return nil
	}
	return fmt.Errorf("compare: %s", strings.Join(faults, "; "))
}
