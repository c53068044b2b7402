// Package market places several training jobs at once on unlike workers: the matching market with sampled categories of
// Liu et al. (IEEE TPDS 35(6), 2024).
//
// A job that holds n_t workers of type t trains at s = Σ rate_t·n_t samples a second when its
// batch is split in proportion (Split), and needs
//
//	seconds = iterations · (batch / s + 2·(K-1)/K · model bytes / slowest link),   K = Σ n_t
//
// and the time of a move more, unless these are the workers it has.
//
// A category fixes how many workers each job gets. Inside one the communication is fixed and what remains is
// a market: workers go to the jobs that value them most, and prices clear it (Match). Place draws
// categories, matches those that look best, and improves each assignment by small cycles of exchanges.
// Optimum is exact, and there to measure the rest.
//
// Deviations. Of the publication only the abstract was at hand. A job values a worker by how much it shortens the job,
// not by its raw rate, which may cost four fifths; workers may idle, without which heavy communication may cost a
// quarter; a transport problem clears the market, the price auction only where asked.
package market

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
)

// A Job asks for workers.
type Job struct {
	Iterations float64   // iterations that are left
	Batch      float64   // samples an iteration
	ModelBytes float64   // that a ring all-reduce moves
	Weight     float64   // in the mean; 0 is 1
	Rates      []float64 // samples/s of one worker, by type; 0 where the job cannot run
	// SyncSeconds are the communication of an iteration by the number of workers, index K-1 for K, where it is no ring
	// of ModelBytes. Their number bounds the workers.
	SyncSeconds []float64
	Least       int // workers below which its batch does not fit in memory; 0 is 1
	Most        int // workers it can use; 0 is any number

	// MoveSeconds is what it costs to run on other workers than those Held, which
	// is nil for a job that does not run yet.
	Held        []int   // by type
	MoveSeconds float64 // cost of a move, in seconds
}

// Workers is what a cluster holds.
type Workers struct {
	Count       []int   // by type
	SlowestLink float64 // bytes/s; 0 makes communication free
}

// An Assignment is what every job holds, and what that is worth.
type Assignment struct {
	Counts  [][]int   // workers by job and type; all 0 for a job that waits
	Seconds []float64 // to the end of each job; +Inf for a job that waits
	Mean    float64   // Σ weight·seconds over the jobs placed, by their number
	Bound   float64   // no assignment of the same sizes has a smaller mean; from Optimum, no assignment at all
	Score   float64   // what Options weighs; without fairness, the mean over that of equal sizes
	Jain    float64   // index of the ratios of the seconds to those of equal sizes; 1 when all fare alike
	Spread  float64   // the largest of these ratios over the smallest
	Worst   float64   // the largest of these ratios
}

// Options of Place. The zero value minimises the mean.
type Options struct {
	// Fairness weighs Jain's index against the mean, from 0 to 1: the score is
	// (1-fairness) · mean / mean of equal sizes + fairness · (1 - Jain).
	Fairness float64
	Matcher  Matcher // how jobs are matched with workers
	Values   Values  // what a worker is worth to a job
	Samples  int     // categories drawn, half uniformly and half near the base; 0 is 16, negative none
	// EachCategory is the publication's scheme: a market for each of the Samples, all drawn uniformly, and for the equal
	// sizes; the best outcome is it, with no exchanges and no kicks. It is there to compare.
	EachCategory bool
	Kicks        int // times the best is disturbed and improved again; 0 is one a job, 32 at most, negative none
}

// ErrNoRoom says that not even one job can be placed.
var ErrNoRoom = errors.New("market: no job can be placed")

// Place shares the workers out. Of jobs that cannot all hold their least number at once, those with the
// most work wait. All chance comes from rng.
func Place(ctx context.Context, jobs []Job, workers Workers, options Options, rng *rand.Rand) (Assignment, error) {
	p, err := newProblem(jobs, workers)
	if !(options.Fairness >= 0 && options.Fairness <= 1) {
		err = errors.Join(err, fmt.Errorf("market: fairness %v, want a number from 0 to 1", options.Fairness))
	}
	if rng == nil {
		err = errors.Join(err, errors.New("market: place draws, and was given no source"))
	}
	if err = errors.Join(err, options.Matcher.check(), options.Values.check()); err != nil {
		return Assignment{}, err
	}
	p.admit()
	if len(p.agents) == 0 {
		return Assignment{}, ErrNoRoom
	}
	return newSearch(p, options, rng).run(ctx)
}

// Match shares the workers out among jobs whose sizes are decided, a category: size 0 makes a job wait. Of the options
// it takes those of the market. It fails with optim.ErrTransportInfeasible when the types do not hold these sizes.
func Match(ctx context.Context, jobs []Job, workers Workers, sizes []int, options Options) (Assignment, error) {
	p, err := newProblem(jobs, workers)
	if len(sizes) != len(jobs) {
		err = errors.Join(err, fmt.Errorf("market: %d sizes, want one for each of %d jobs", len(sizes), len(jobs)))
	}
	for i, size := range sizes {
		if size < 0 {
			err = errors.Join(err, fmt.Errorf("market: size %d of job %d is negative", size, i))
		}
	}
	if err = errors.Join(err, options.Matcher.check(), options.Values.check()); err != nil {
		return Assignment{}, err
	}
	category, err := p.keepSized(sizes)
	if err != nil {
		return Assignment{}, err
	}
	m, e := newMatching(p, options), newExchanger(p)
	score, err := equalSizes(ctx, m, e, 0)
	if err != nil {
		return Assignment{}, err
	}
	bound, err := m.solve(ctx, category, rounds)
	if err != nil {
		return Assignment{}, err
	}
	e.load(m.held)
	if options.Values == RawRates {
		return p.assignment(e.held, bound, score), nil
	}
	if _, err := e.improve(ctx, true); err != nil {
		return Assignment{}, err
	}
	return p.assignment(e.held, bound, score), nil
}
