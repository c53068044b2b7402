package market

import (
	"cmp"
	"slices"
)

// Bind leaves to jobs that run on one type at a time only one, before the market is held again: the type that makes
// most of what a job won, or the fastest where it won nothing, of those with room for its size beside the jobs bound
// before it, larger ones first. A job of size 0 is left alone. One that finds no room is left no type; with crowd it
// takes the type that would do if it were the only job. Bind reports whether it bound any.
func Bind(jobs []Job, won [][]int, workers Workers, sizes []int, crowd bool) bool {
	var bound []int
	for i, size := range sizes {
		if size > 0 {
			bound = append(bound, i)
		}
	}
	slices.SortStableFunc(bound, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	left := slices.Clone(workers.Count)
	for _, i := range bound {
		job := &jobs[i]
		best := mostOf(job, won[i], left, sizes[i])
		if best < 0 && crowd {
			best = mostOf(job, won[i], workers.Count, sizes[i])
		}
		for t := range job.Rates {
			if t != best {
				job.Rates[t] = 0
			}
		}
		if best >= 0 {
			left[best] -= sizes[i]
		}
	}
	return len(bound) > 0
}

// mostOf is the type with room for a size that makes most of what a job won; -1 for none.
func mostOf(job *Job, won, room []int, size int) int {
	const nothing = 1e-3 // workers, for what the types make of nothing
	best, most := -1, 0.0
	for t, rate := range job.Rates {
		if made := rate * (float64(won[t]) + nothing); room[t] >= size && made > most {
			best, most = t, made
		}
	}
	return best
}
