package market

// A scoring weighs the mean against fairness. Without seconds of equal sizes it is the sum of the seconds.
type scoring struct {
	fairness float64
	equal    []float64 // weighted seconds of equal sizes
	total    float64   // their sum
}

func (s *scoring) of(seconds []float64) float64 {
	sum := 0.0
	for _, x := range seconds {
		sum += x
	}
	if s.equal == nil {
		return sum
	}
	return (1-s.fairness)*share(sum, s.total) + s.fairness*(1-jain(s.ratios(seconds)))
}

// slopes are the derivatives of the score by the seconds.
func (s *scoring) slopes(seconds, into []float64) {
	if s.equal == nil {
		for i := range into {
			into[i] = 1
		}
		return
	}
	sum, squares, _ := s.ratios(seconds)
	for i := range into {
		into[i] = 0
		if s.total > 0 {
			into[i] = (1 - s.fairness) / s.total
		}
		if s.fairness > 0 && s.equal[i] > 0 {
			n := float64(len(seconds))
			ratio := seconds[i] / s.equal[i]
			into[i] -= s.fairness * 2 * sum / (n * squares) * (1 - sum*ratio/squares) / s.equal[i]
		}
	}
}

// ratios sums the ratios to equal sizes, and their squares.
func (s *scoring) ratios(seconds []float64) (sum, squares float64, count int) {
	for i, x := range seconds {
		ratio := share(x, s.equal[i])
		sum += ratio
		squares += ratio * ratio
	}
	return sum, squares, len(seconds)
}

// jain is Jain's index of numbers given by their sum, the sum of their squares and their number.
func jain(sum, squares float64, count int) float64 {
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(count) * squares)
}

// share is x/of, where nothing of nothing is all of it.
func share(x, of float64) float64 {
	if of == 0 {
		return 1
	}
	return x / of
}
