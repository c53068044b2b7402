package market

import (
	"math"
	"math/rand/v2"
)

type instance struct {
	jobs    []Job
	workers Workers
}

// A generator draws instances of 4 to 8 jobs on 12 to 24 workers of 3 to 7 types.
type generator func(*rand.Rand) instance

var generators = map[string]generator{"graded": graded, "skewed": skewed}

func size(rng *rand.Rand) (jobs, workers, types int) {
	return 4 + rng.IntN(5), 12 + rng.IntN(13), 3 + rng.IntN(5)
}

// graded has types from slow to five times as fast, for all jobs alike but for some spread, and communication from
// none up to about the time of the computation.
func graded(rng *rand.Rand) instance {
	jobs, workers, types := size(rng)
	in := instance{workers: Workers{Count: make([]int, types), SlowestLink: 1e9}}
	for k := range workers {
		if k >= types {
			k = rng.IntN(types)
		}
		in.workers.Count[k]++
	}
	heavy := rng.Float64() / 2
	for range jobs {
		job := Job{Iterations: math.Floor(100 * math.Exp(3*rng.Float64())), Batch: float64(int(32) << rng.IntN(5))}
		base := 50 + 450*rng.Float64()
		for t := range types {
			job.Rates = append(job.Rates, base*math.Pow(5, float64(t)/float64(types-1))*(0.6+0.8*rng.Float64()))
		}
		job.ModelBytes = heavy * rng.Float64() * job.Batch / base * in.workers.SlowestLink
		in.jobs = append(in.jobs, job)
	}
	return in
}

// skewed has rates of a heavy tail that know no common order of the types, few workers of most types, lengths over
// three magnitudes, weights, and communication that is none, some or most of the time.
func skewed(rng *rand.Rand) instance {
	jobs, workers, types := size(rng)
	in := instance{workers: Workers{Count: make([]int, types), SlowestLink: 1e8}}
	for k := range workers {
		if k >= types {
			k = min(int(rng.ExpFloat64()*float64(types)/3), types-1)
		}
		in.workers.Count[k]++
	}
	for range jobs {
		job := Job{Iterations: math.Floor(100 / math.Pow(rng.Float64()+1e-3, 1.2)), Batch: 64, Weight: float64(1 + rng.IntN(2))}
		for range types {
			job.Rates = append(job.Rates, 30/math.Pow(rng.Float64()+0.01, 0.8))
		}
		switch rng.IntN(3) {
		case 0:
			job.ModelBytes = 1e8 * rng.ExpFloat64()
		case 1:
			job.ModelBytes = 2e7 * rng.ExpFloat64()
		}
		in.jobs = append(in.jobs, job)
	}
	return in
}
