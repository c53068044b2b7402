package optim

import "context"

// FillResult is a lexicographically fairest division.
type FillResult struct {
	// Feasible is false when the floors cannot be met.
	Feasible bool
	// Shares is the fraction of time that a member of each row spends on each type; nil if the floors cannot be met.
	Shares [][]float64
	// Rates is what each member of a row is assured of: its level when its row was frozen.
	Rates []float64
	// Rounds is the number of max-min problems solved.
	Rounds int
}

// WaterFill raises all jobs together until some cannot rise any more, freezes those
// at their level, and goes on with the others.
//
// Each round asks slopes for what every job gains per unit of the level; frozen says which jobs no longer
// take part, whose slopes are ignored. Slopes may thus move between jobs: to the next of a queue, or to what
// is left of a tenant. It must fill in a number >= 0 for each row. A nil slopes stands for 1 each. Floors,
// which may be nil, are where the jobs begin.
func (s *SharesSolver) WaterFill(
	ctx context.Context, p Polytope, floors []float64, slopes func(frozen []bool, slope []float64),
) (FillResult, error) {
	n := len(p.Jobs)
	result := FillResult{Rates: make([]float64, n)}
	copy(result.Rates, floors)
	if floors != nil && len(floors) != n {
		var found problems
		p.checkPerJob(&found, "floor", floors)
		return result, found.err()
	}
	frozen, slope := make([]bool, n), make([]float64, n)
	for {
		for i := range slope {
			slope[i] = 1
		}
		if slopes != nil {
			slopes(frozen, slope)
		}
		moving := false
		for i := range slope {
			if frozen[i] {
				slope[i] = 0
			}
			moving = moving || slope[i] > 0
		}
		if !moving && result.Rounds > 0 {
			return result, nil
		}
		r, err := s.MaxMin(ctx, p, Level{Floor: result.Rates, Slope: slope})
		if err != nil || !r.Feasible {
			return result, err
		}
		result.Feasible, result.Shares = true, r.Shares
		result.Rounds++
		stopped := false
		for i, by := range slope {
			if by == 0 {
				continue
			}
			result.Rates[i] += by * max(r.Level, 0)
			if r.Bottleneck[i] {
				frozen[i], stopped = true, true
			}
		}
		if !stopped {
			return result, nil
		}
	}
}
