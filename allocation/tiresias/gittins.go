package tiresias

import "slices"

// gittins computes the Gittins index of a job from a sample of the service that jobs need: the chance that it ends
// within a quantum, over the service it is expected to consume in that quantum.
//
// Source: Tiresias (NSDI'19), section 3.3.
type gittins struct {
	samples []float64 // ascending
	sums    []float64 // sums[i] is the sum of the i smallest samples
	quantum float64
}

func newGittins(samples []float64, quantum float64) gittins {
	g := gittins{samples: slices.Sorted(slices.Values(samples)), sums: make([]float64, 1, len(samples)+1), quantum: quantum}
	for i, s := range g.samples {
		g.sums = append(g.sums, g.sums[i]+s)
	}
	return g
}

// at is the index of a job that attained this much service; 0 when every sampled job ended earlier. O(log samples).
func (g *gittins) at(attained float64) float64 {
	from := above(g.samples, attained)
	to := above(g.samples, attained+g.quantum)
	ending, longer := to-from, len(g.samples)-to
	if ending+longer == 0 {
		return 0
	}
	consumed := g.sums[to] - g.sums[from] - float64(ending)*attained + float64(longer)*g.quantum
	return float64(ending) / max(consumed, 0) // rounding must not make it negative
}

// above is the index of the first value greater than x in an ascending list.
func above(values []float64, x float64) int {
	at, _ := slices.BinarySearchFunc(values, x, func(value, x float64) int {
		if value > x {
			return 1
		}
		return -1
	})
	return at
}
