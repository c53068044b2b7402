package goodput

import "math"

// ScalingRule says by which factor the learning rate grows with the batch.
type ScalingRule string

// The scaling rules.
const (
	AdaScale   ScalingRule = "adascale"    // the gain (Johnson et al., ICML'20)
	SquareRoot ScalingRule = "square_root" // √scale (Krizhevsky, 2014)
	Linear     ScalingRule = "linear"      // scale (Goyal et al., 2017)
	LEGW       ScalingRule = "legew"       // √scale after a warm-up that grows with the scale (You et al., SC'19)
)

// Warmup is how far a job is on its way through the warm-up of LEGW at the initial batch: progress in iterations at
// that batch, and how many of them the warm-up takes.
type Warmup struct {
	Progress   float64 // iterations at the initial batch that are done
	Iterations float64 // that the warm-up takes, at the initial batch
}

// Factor is that of the learning rate at scale times the initial batch.
func (r ScalingRule) Factor(scale float64, g Gradients, w Warmup) float64 {
	switch r {
	case SquareRoot:
		return math.Sqrt(scale)
	case Linear:
		return scale
	case LEGW:
		if whole, done := scale*w.Iterations, w.Progress+1; done < whole { // the step ahead counts, or the first had no rate
			return math.Sqrt(scale) * done / whole
		}
		return math.Sqrt(scale)
	default:
		return g.Gain(scale)
	}
}
