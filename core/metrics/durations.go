package metrics

import (
	"math"
	"math/bits"
	"time"
)

// perOctave is the number of buckets between a duration and its double: quantiles are exact to 1/perOctave.
const perOctave = 64

// durations is a histogram of durations of any length in constant memory, with an exact mean and maximum.
type durations struct {
	buckets [64 * perOctave]uint32
	count   int
	total   time.Duration
	max     time.Duration
}

func (d *durations) add(x time.Duration) {
	d.buckets[bucketOf(x)]++
	d.count++
	d.total += x
	d.max = max(d.max, x)
}

func (d *durations) mean() Number { return Number(d.total.Seconds() / float64(d.count)) }

// quantile is the upper end of the bucket that holds the empirical quantile, at most the maximum.
func (d *durations) quantile(p float64) Number {
	if d.count == 0 {
		return unknown
	}
	rank := int(math.Ceil(p * float64(d.count)))
	for i, seen := 0, 0; i < len(d.buckets); i++ {
		if seen += int(d.buckets[i]); seen >= rank {
			return Number(min(bucketEnd(i), d.max).Seconds())
		}
	}
	return Number(d.max.Seconds())
}

// bucketOf gives durations below 2×perOctave ns a bucket each, and cuts every octave above into perOctave.
func bucketOf(x time.Duration) int {
	ns := uint64(max(x, 0))
	if ns < 2*perOctave {
		return int(ns)
	}
	shift := bits.Len64(ns) - bits.Len64(perOctave)
	return shift*perOctave + int(ns>>shift)
}

// bucketEnd is the longest duration in a bucket.
func bucketEnd(i int) time.Duration {
	if i < 2*perOctave {
		return time.Duration(i)
	}
	shift := i/perOctave - 1
	return time.Duration((uint64(i-shift*perOctave)+1)<<shift - 1)
}
