package workload

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Blocks resample a workload by the circular moving-block bootstrap: its time goes around, and blocks of it that begin anywhere
// are laid one after another until as much time is filled. Bursts and the hours of a day stay together where a block is longer
// than they are. A job that comes again is called NAME.b2, NAME.b3, ….
//
// Source: Politis and Romano, 1992. O(n log n) for n jobs.
type Blocks struct {
	// Length: length of the blocks that submissions are resampled in.
	Length time.Duration `config:"length" doc:"length of the blocks that submissions are resampled in; 0s leaves them as they are" min:"0s"`
}

// mostBlocks bounds the blocks of a workload: shorter ones hold no two jobs of any that there are.
const mostBlocks = 1_000_000

func (b Blocks) check() core.Diagnostics { return nil }

// of resamples jobs, in submission order, that come over a span in seconds; 0 when that is not given.
func (b Blocks) of(jobs []Job, span float64, seed uint64) ([]Job, error) {
	length := b.Length.Seconds()
	if length == 0 || len(jobs) == 0 {
		return jobs, nil
	}
	if span == 0 {
		span = impliedSpan(jobs)
	}
	if length > span {
		return nil, sampleProblem("blocks.length", fmt.Sprintf("%v is longer than the workload, which takes %v", b.Length, asDuration(span)), "")
	}
	if blocks := span / length; blocks > mostBlocks {
		return nil, sampleProblem("blocks.length", fmt.Sprintf("%v makes %.0f blocks of a workload that takes %v; %d is the most", b.Length, blocks, asDuration(span), mostBlocks), "take longer ones")
	}
	random := core.NewRand(seed, "sample/blocks")
	var drawn []Job
	times := make([]int, len(jobs))
	for start := 0.0; start < span; start += length {
		begin := random.Float64() * span
		upTo := min(length, span-start)
		for k, first := 0, submittedBefore(jobs, begin); k < len(jobs); k++ {
			i := (first + k) % len(jobs)
			after := wrap(jobs[i].Spec.SubmitSeconds-begin, span)
			if after >= upTo {
				break
			}
			job := jobs[i]
			job.Spec.SubmitSeconds = start + after
			if times[i]++; times[i] > 1 {
				job.Spec.Name = fmt.Sprintf("%s.b%d", job.Spec.Name, times[i])
			}
			drawn = append(drawn, job)
		}
	}
	if len(drawn) == 0 {
		return nil, sampleProblem("blocks", "no job falls into the blocks that were drawn", "take longer ones")
	}
	return reassemble(drawn, "blocks", len(drawn)-distinct(times))
}

// BlockLength is the length of blocks to begin with for a workload that takes so many seconds: a day, which keeps the hours of
// the day together, but such that there are at least 20 blocks. It is 0 for one that takes less than 20 seconds.
func BlockLength(spanSeconds float64) time.Duration {
	const blocks, day = 20, 24 * time.Hour
	if spanSeconds >= blocks*day.Seconds() {
		return day
	}
	length := time.Duration(spanSeconds / blocks * float64(time.Second))
	for _, unit := range []time.Duration{time.Hour, time.Minute} {
		if length >= unit {
			return length.Truncate(unit)
		}
	}
	return length.Truncate(time.Second)
}

// distinct counts what was drawn at least once.
func distinct(times []int) int {
	return len(slices.DeleteFunc(slices.Clone(times), func(n int) bool { return n == 0 }))
}

// impliedSpan is the time that a workload takes when nobody says: a mean gap after its last submission.
func impliedSpan(jobs []Job) float64 {
	last := lastSubmit(jobs)
	if len(jobs) == 1 {
		return math.Nextafter(last, math.Inf(1))
	}
	return last + (last-jobs[0].Spec.SubmitSeconds)/float64(len(jobs)-1)
}
