package gavel

import (
	"context"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// policy decides how much time each job should spend on each accelerator type.
type policy interface {
	// divide sets the shares x of every job of the problem. On entry they are those that the job has had, if any.
	divide(ctx context.Context, p *problem) error
	// strict reports whether a job without a share of a type must not run there, even while devices are left.
	strict() bool
}

// problem is what there is to divide, and among whom. Blind to types, all devices are of one.
type problem struct {
	now      float64
	capacity []float64 // devices of ready nodes, by type
	devices  float64   // sum of capacity
	jobs     []*member // those that can run on some type, by JobID
	cluster  *core.Cluster
	pairs    *pairs // nil where no jobs share devices
}

// member is a job and its accounts.
type member struct {
	id        core.JobID
	tenant    string
	weight    float64
	submit    float64
	devices   int       // that it holds while it runs
	remaining float64   // work left; NaN when unknown
	attained  float64   // device-seconds received
	unit      float64   // work per second on its best type
	rates     []float64 // by type of the problem, in parts of unit: 1 on the best one, 0 where it cannot run
	x         []float64 // fraction of time by type of the problem, as the policy sets it

	spec *core.JobSpec

	// The accounts of the mechanism, by accelerator type of the cluster.
	granted  core.AcceleratorID
	leased   core.AcceleratorID // type that it holds all of its devices of and has a lease on, AnyAccelerator for none
	executed float64            // seconds with devices, as of the last round
	speed    []float64          // work per second
	shared   bool               // share was computed by the policy
	share    []float64          // fraction of time
	seconds  []float64          // received since the shares were computed, and a credit
	deficit  []float64          // seconds short of the shares before that
	with     *pair              // what was granted was to it, whose account is charged; nil alone
	together core.JobID         // the other of the pair that was granted last, -1 for none
}

// leastRate is the part of a job's best rate below which a type counts for nothing when time is divided: the solvers
// could not tell it from rounding.
const leastRate = 1e-8

// scale sets the rates from speeds in work per second. What a job counts as work is its own affair, so that only the
// ratios of its speeds reach a policy.
func (m *member) scale(speeds []float64) {
	m.unit = 0
	for _, speed := range speeds {
		m.unit = max(m.unit, speed)
	}
	for t, speed := range speeds {
		m.rates[t] = 0
		if part := speed / m.unit; part >= leastRate {
			m.rates[t] = coarse(part)
		}
	}
}

// coarse rounds a number to single precision, so that jobs that differ by nothing but their unit of work are equal, and
// one class to the solvers.
func coarse(x float64) float64 { return float64(float32(x)) }

// The range of seconds that the solvers are given: beyond any real work, and next to none.
const (
	longest  = 1e15
	shortest = 1e-15
)

// seconds brings a length of time into range; one that is unknown counts as over.
func seconds(x float64) float64 {
	if !(x >= shortest) {
		return 0
	}
	return coarse(min(x, longest))
}

// runs reports whether the job can run on some type now.
func (m *member) runs() bool {
	return slices.ContainsFunc(m.rates, func(rate float64) bool { return rate > 0 })
}

// settled is the type that the job has for itself, -1 for none.
func (m *member) settled() int {
	for t, x := range m.x {
		if m.shared && x == 1 && m.rates[t] > 0 {
			return t
		}
	}
	return -1
}

// rate is the progress under shares of time, in parts of unit.
func (m *member) rate(x []float64) float64 {
	sum := 0.0
	for t, fraction := range x {
		sum += m.rates[t] * fraction
	}
	return sum
}

// equal is the rate of a job in an equal share of every device: the mean over all of them.
func (p *problem) equal(m *member) float64 {
	sum := 0.0
	for t, rate := range m.rates {
		sum += rate * p.capacity[t]
	}
	return sum / p.devices
}

// isolated sets x to the share of a job that has its part of each type for itself.
func (p *problem) isolated(m *member, x []float64) {
	sum := 0.0
	for t, w := range p.capacity {
		x[t] = w / float64(len(p.jobs)) / float64(m.devices)
		sum += x[t]
	}
	for t := range x {
		x[t] /= max(1, sum)
	}
}

// polytope is the problem as the solvers know it.
func (p *problem) polytope() optim.Polytope {
	jobs := make([]optim.ShareJob, len(p.jobs))
	for i, m := range p.jobs {
		jobs[i] = optim.ShareJob{Devices: float64(m.devices), Rates: m.rates}
	}
	return optim.Polytope{Capacity: p.capacity, Jobs: jobs}
}

// workLeft is the work that each job has left, in seconds on its best type; a job whose work is unknown counts as having
// done it.
func (p *problem) workLeft() []float64 {
	left := make([]float64, len(p.jobs))
	for i, m := range p.jobs {
		left[i] = seconds(m.remaining / m.unit)
	}
	return left
}

// take copies shares of a solver, one row a job.
func (p *problem) take(shares [][]float64) {
	for i, m := range p.jobs {
		for t := range m.x {
			m.x[t] = min(max(shares[i][t], 0), 1)
		}
	}
}
