package generators

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core/workload/exchange"
)

// Distance is how far two samples of a quantity are apart.
type Distance struct {
	// What: name of the quantity.
	What        string  `json:"what"`
	KS          float64 `json:"ks"`          // greatest difference of the distribution functions, Kolmogorov and Smirnov
	Wasserstein float64 `json:"wasserstein"` // area between them, in Unit
	// Unit: unit of the quantity.
	Unit string `json:"unit"`
}

// Apart is the Kolmogorov-Smirnov statistic of two samples, and their Wasserstein distance of order 1; NaN for an empty one.
func Apart(a, b []float64) (ks, wasserstein float64) {
	if len(a) == 0 || len(b) == 0 {
		return math.NaN(), math.NaN()
	}
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	i, k := 0, 0
	last := min(a[0], b[0])
	for i < len(a) || k < len(b) {
		x := math.Inf(1)
		if i < len(a) {
			x = a[i]
		}
		if k < len(b) {
			x = min(x, b[k])
		}
		gap := math.Abs(float64(i)/float64(len(a)) - float64(k)/float64(len(b)))
		ks, wasserstein, last = max(ks, gap), wasserstein+gap*(x-last), x
		for i < len(a) && a[i] == x {
			i++
		}
		for k < len(b) && b[k] == x {
			k++
		}
	}
	return ks, wasserstein
}

// Compare measures how far two traces are apart.
func Compare(a, b *exchange.Trace) []Distance {
	x, y := featuresOf(a), featuresOf(b)
	distances := make([]Distance, len(x))
	for i := range x {
		ks, wasserstein := Apart(x[i].values, y[i].values)
		distances[i] = Distance{x[i].what, ks, wasserstein, x[i].unit}
	}
	return distances
}

type feature struct {
	what, unit string
	values     []float64
}

// featuresOf lists what traces are compared by: one value for each job.
func featuresOf(t *exchange.Trace) []feature {
	var size, duration, hour, tenant []float64
	jobs := map[string]int{}
	for i := range t.Len() {
		r := t.At(i)
		size = append(size, math.Log2(float64(r.Replicas)))
		duration = append(duration, math.Log10(r.Duration))
		hour = append(hour, float64(hourOf(r.Submit+t.Epoch)))
		jobs[r.Tenant]++
	}
	type load struct {
		name string
		jobs int
	}
	var loads []load
	for name, n := range jobs {
		loads = append(loads, load{name, n})
	}
	slices.SortFunc(loads, func(a, b load) int { return cmp.Or(b.jobs-a.jobs, cmp.Compare(a.name, b.name)) })
	for rank, l := range loads {
		for range l.jobs {
			tenant = append(tenant, float64(rank))
		}
	}
	return []feature{
		{"devices", "doublings", size},
		{"duration", "powers of ten", duration},
		{"hour of the week", "hours", hour},
		{"tenant by rank", "ranks", tenant},
	}
}
