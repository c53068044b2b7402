package market

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Share describes a worker that takes part of a batch: x samples take it overhead + x/rate seconds.
type Share struct {
	Rate            float64 // samples/s; 0 takes none
	OverheadSeconds float64 // an iteration, whatever its samples
	Most            int     // samples that fit in its memory; 0 is any number
}

// ErrBatchTooLarge says that a batch does not fit in the workers' memory.
var ErrBatchTooLarge = errors.New("market: the batch does not fit in the workers' memory")

// Split shares a batch out so that the slowest worker ends as early as it can. Up to a common level every
// worker takes what it finishes (in proportion to the rates, without overheads and limits); the few
// samples that rounding leaves go, one by one, to who ends first with it. So no two workers below their
// limits end more than one sample apart. O(n log n).
func Split(batch int, workers []Share) ([]int, error) {
	if err := checkSplit(batch, workers); err != nil {
		return nil, err
	}
	out := make([]int, len(workers))
	level := levelOf(batch, workers)
	left := batch
	for k, w := range workers {
		out[k] = min(w.samples(level), left)
		left -= out[k]
	}
	for ; left > 0; left-- {
		first, end := -1, math.Inf(1)
		for k, w := range workers {
			if w.Rate > 0 && out[k] < w.limit() {
				if e := w.OverheadSeconds + float64(out[k]+1)/w.Rate; e < end {
					first, end = k, e
				}
			}
		}
		out[first]++
	}
	return out, nil
}

func checkSplit(batch int, workers []Share) error {
	var faults []error
	if batch < 0 {
		faults = append(faults, fmt.Errorf("market: a batch of %d samples is negative", batch))
	}
	room := 0
	for k, w := range workers {
		faults = append(faults, w.check(k))
		if w.Rate > 0 {
			room = min(room+min(w.limit(), batch), batch)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if room < batch {
		return fmt.Errorf("%w: %d samples, %d fit", ErrBatchTooLarge, batch, room)
	}
	return nil
}

func (s Share) check(k int) error {
	number := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
	if number(s.Rate) && number(s.OverheadSeconds) && s.Most >= 0 {
		return nil
	}
	return fmt.Errorf("market: worker %d: rate %v, overhead of %v s, at most %d samples: want numbers from 0 up", k, s.Rate, s.OverheadSeconds, s.Most)
}

func (s Share) limit() int {
	if s.Most == 0 {
		return math.MaxInt
	}
	return s.Most
}

// samples are what a worker finishes by a level, rounded down; a shade less, so that rounding never makes it too many.
func (s Share) samples(level float64) int {
	x := s.Rate * (level - s.OverheadSeconds) * (1 - 1e-12)
	if !(x > 0) {
		return 0
	}
	return int(min(math.Floor(x), float64(min(s.limit(), math.MaxInt32))))
}

// levelOf is the time by which the workers finish a batch together, were samples divisible: water filling.
func levelOf(batch int, workers []Share) float64 {
	type bend struct{ at, slope float64 } // where a worker starts, or is full
	var bends []bend
	for _, w := range workers {
		if w.Rate == 0 {
			continue
		}
		bends = append(bends, bend{w.OverheadSeconds, w.Rate})
		if w.Most > 0 {
			bends = append(bends, bend{w.OverheadSeconds + float64(w.Most)/w.Rate, -w.Rate})
		}
	}
	slices.SortFunc(bends, func(a, b bend) int { return cmp.Compare(a.at, b.at) })
	level, slope, left := 0.0, 0.0, float64(batch)
	for _, b := range bends {
		if slope > 0 && left <= slope*(b.at-level) {
			break
		}
		left -= slope * (b.at - level)
		level = b.at
		slope += b.slope
	}
	if slope > 0 {
		level += max(left, 0) / slope
	}
	return level
}
