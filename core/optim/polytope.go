package optim

import (
	"errors"
	"fmt"
	"math"
)

// Polytope is the set of time shares that a cluster of a few accelerator types can give to jobs. With x[i][j] the
// fraction of time a member of row i spends on type j, s_i its devices and N_i its members, it holds every x >= 0 with
//
//	Σ_i N_i s_i x[i][j] <= Capacity[j]    for every type
//	Σ_j x[i][j]         <= 1              for every row
//	x[i][j]              = 0              where the rate is 0
type Polytope struct {
	// Capacity is the number of devices of each type.
	Capacity []float64
	Jobs     []ShareJob // rows: jobs, or classes of identical ones
}

// ShareJob is one row of a Polytope: a job, or a class of identical ones.
type ShareJob struct {
	// Devices is how many devices a member holds while it runs.
	Devices float64
	// Rates is a member's progress by type while it runs there, 0 where it cannot.
	Rates []float64
	// Count is the number of members; 0 stands for 1.
	Count int
}

// members is the number of jobs that the row stands for.
func (j ShareJob) members() float64 { return float64(max(j.Count, 1)) }

// maxProblems is how many problems of an input an error lists.
const maxProblems = 20

// problems collects what is wrong with an input.
type problems struct {
	list []error
	left int
}

// add notes a problem.
func (p *problems) add(format string, args ...any) {
	if len(p.list) == maxProblems {
		p.left++
		return
	}
	p.list = append(p.list, fmt.Errorf(format, args...))
}

// err is every problem in one error, or nil.
func (p *problems) err() error {
	if p.left > 0 {
		return errors.Join(append(p.list, fmt.Errorf("optim: %d more problems", p.left))...)
	}
	return errors.Join(p.list...)
}

// sane reports whether v is 0 or a number whose products with a few others stay within range.
func sane(v float64) bool { return v == 0 || math.Abs(v) >= 1e-50 && math.Abs(v) <= 1e50 }

// wanted says in errors what sane numbers are.
const wanted = "want 0 or 1e-50 to 1e50"

// widest is how many times the least of the capacities and devices, or of the rates of one job, the largest may be:
// beyond it the shares are lost in rounding. Rates of different jobs may be of different units.
const widest = 1e9

// span keeps the least and the largest of numbers above 0.
type span struct{ least, most float64 }

func (s *span) add(v float64) {
	if v > 0 {
		if s.least == 0 || v < s.least {
			s.least = v
		}
		s.most = math.Max(s.most, v)
	}
}

func (s *span) tooWide() bool { return s.most > widest*s.least }

// check notes what is wrong with the polytope.
func (p Polytope) check(found *problems) {
	var devices span
	for j, w := range p.Capacity {
		devices.add(w)
		if !sane(w) || w < 0 {
			found.add("optim: capacity of type %d is %v, "+wanted, j, w)
		}
	}
	for i, job := range p.Jobs {
		devices.add(job.Devices)
		if !sane(job.Devices) || job.Devices <= 0 {
			found.add("optim: devices of job %d are %v, want 1e-50 to 1e50", i, job.Devices)
		}
		if job.Count < 0 {
			found.add("optim: count of job %d is %d, want >= 0", i, job.Count)
		}
		if len(job.Rates) != len(p.Capacity) {
			found.add("optim: job %d has %d rates, want one for each of %d types", i, len(job.Rates), len(p.Capacity))
			continue
		}
		var rates span
		for j, a := range job.Rates {
			rates.add(a)
			if !sane(a) || a < 0 {
				found.add("optim: rate of job %d on type %d is %v, "+wanted, i, j, a)
			}
		}
		if rates.tooWide() {
			found.add("optim: rates of job %d from %v to %v, want them within a factor of %v", i, rates.least, rates.most, widest)
		}
	}
	if devices.tooWide() {
		found.add("optim: capacities and devices from %v to %v, want them within a factor of %v", devices.least, devices.most, widest)
	}
}

// checkPerJob notes what is wrong with a value given for each job: it may be
// left out, or must hold a number >= 0 for each.
func (p Polytope) checkPerJob(found *problems, name string, values []float64) {
	if values == nil {
		return
	}
	if len(values) != len(p.Jobs) {
		found.add("optim: %d values of %s, want one for each of %d jobs", len(values), name, len(p.Jobs))
		return
	}
	for i, v := range values {
		if !sane(v) || v < 0 {
			found.add("optim: %s of job %d is %v, "+wanted, name, i, v)
		}
	}
}

// Rate is the progress of a member of row i under the shares x of that row.
func (p Polytope) Rate(i int, x []float64) float64 {
	var sum float64
	for j, a := range p.Jobs[i].Rates {
		sum += a * x[j]
	}
	return sum
}

// budget is what the cluster is worth at the prices per device.
func (p Polytope) budget(prices []float64) float64 {
	var sum float64
	for j, w := range p.Capacity {
		sum += w * prices[j]
	}
	return sum
}

// cost is the least that a member pays to progress at the demand: the lower hull, at the demand, of the points (rate,
// price of full time) of the types and of idling.
func (j ShareJob) cost(capacity, prices []float64, demand float64) float64 {
	if demand <= 0 {
		return 0
	}
	best := math.Inf(1)
	for v, fast := range j.Rates {
		if fast < demand || capacity[v] == 0 {
			continue
		}
		best = min(best, j.Devices*prices[v], j.Devices*prices[v]*demand/fast)
		for u, slow := range j.Rates {
			if slow < demand && slow > 0 && capacity[u] > 0 {
				best = min(best, j.Devices*(prices[u]*(fast-demand)+prices[v]*(demand-slow))/(fast-slow))
			}
		}
	}
	return best
}
