package main

import (
	"fmt"
	"math"
)

// Gradients are summed as whole numbers of 2^-36, for such sums are the same in any order: a training takes the same
// steps, to the last bit, however its samples are spread over replicas. What is lost of a gradient is 10^-11 of a sample.
const unit = 1.0 / (1 << 36)

// largest is the sum that still fits, with a bit to spare.
const largest = (1 << 62) * unit

// addExact adds values to sums, and refuses those of which count together might not fit.
func addExact(sums []int64, values []float64, count int) error {
	limit := largest / float64(count)
	for i, x := range values {
		if !(math.Abs(x) <= limit) {
			return fmt.Errorf("the training diverged: a gradient of %v; a lower learning rate may help", x)
		}
		sums[i] += int64(math.RoundToEven(x / unit))
	}
	return nil
}

// mean turns the sums over count samples into means.
func mean(means []float64, sums []int64, count int) {
	for i, n := range sums {
		means[i] = float64(n) * unit / float64(count)
	}
}
