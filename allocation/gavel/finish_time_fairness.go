package gavel

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// NewFinishTimeFairness brings the job nearest to its fair finish that is furthest behind it: the one whose time from
// submission to end is longest against what it would be in an isolated part of the cluster.
//
// Time in isolation is booked as the job progresses, at the rates that its part had while it did, since that part
// changes with the number of jobs.
//
// Source: Themis (NSDI'20), as Gavel (OSDI'20), section 4.2, has it; weights play no role. Exact, by Newton's method
// on prices.
func NewFinishTimeFairness() core.Factory[core.Allocator] {
	return newFactory(core.Info{
		Type:    "finish_time_fairness",
		Summary: "minimises the worst ratio of a job's finish time to that in isolation",
		Description: "Minimises the worst ratio of the time that a job takes from its submission to that in an isolated part of the cluster. " +
			"Jobs must know their remaining work. O(jobs × types) for each of a few prices.",
		Source:       "Themis, NSDI 2020; " + source + ", section 4.2",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, func(Rounds, core.Settings) policy { return &finishTimes{booked: map[core.JobID]booking{}} })
}

type finishTimes struct {
	solver optim.SharesSolver
	booked map[core.JobID]booking
}

// booking is how long a job would have taken in isolation for what it did so far.
type booking struct {
	seconds   float64
	remaining float64 // work left when it was last booked, NaN when unknown
	unit      float64 // work per second that a rate of 1 stood for then
	rate      float64 // of its isolated part then
}

func (p *finishTimes) strict() bool { return false }

func (p *finishTimes) divide(ctx context.Context, d *problem) error {
	r, err := p.solver.FinishTimes(ctx, d.polytope(), p.finish(d))
	if err != nil {
		return err
	}
	d.take(r.Shares)
	return nil
}

// finish is what the jobs ask for, and brings the bookings up to date.
func (p *finishTimes) finish(d *problem) optim.Finish {
	n := len(d.jobs)
	finish := optim.Finish{Elapsed: make([]float64, n), Remaining: d.workLeft(), Exclusive: make([]float64, n)}
	for i, b := range p.book(d) {
		finish.Elapsed[i] = max(d.now-d.jobs[i].submit, 0)
		// a job without work left, or of unknown length, asks for nothing
		finish.Exclusive[i] = max(seconds(b.seconds)+finish.Remaining[i]/b.rate, 1e-9)
	}
	return finish
}

// book brings the bookings up to date and returns those of the jobs there are, forgetting the others.
func (p *finishTimes) book(d *problem) []booking {
	bookings, part := make([]booking, len(d.jobs)), make([]float64, len(d.capacity))
	next := make(map[core.JobID]booking, len(d.jobs))
	for i, m := range d.jobs {
		d.isolated(m, part)
		b := p.booked[m.id]
		if done := (b.remaining - m.remaining) / b.unit / b.rate; math.Abs(done) <= longest { // not of the first booking
			b.seconds += done
		}
		b.remaining, b.unit, b.rate = m.remaining, m.unit, m.rate(part)
		bookings[i], next[m.id] = b, b
	}
	p.booked = next
	return bookings
}
