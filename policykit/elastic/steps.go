package elastic

import "github.com/quartet-sched/quartet/core"

// The steps by which a greedy policy may raise the number of devices of a job.
const (
	OneByOne  = "one"        // a single device
	NextLevel = "next_level" // the next number of devices that speeds the job up
)

// StepsConfig configures by how many devices a greedy policy raises a job at once.
type StepsConfig struct {
	// Steps says what a job is offered next: OneByOne or NextLevel.
	Steps string `config:"steps" doc:"what a job is offered next: one is a single device, and a job that it does not speed up gets no more; next_level is the next number of devices that speeds it up, say beyond the border of a node" enum:"one|next_level"`
}

// Next returns the number of replicas that a job with n replicas is offered, at most most, and its rate with them; 0 when no step
// speeds it up, and when its rate with n is unknown.
func (c StepsConfig) Next(r *core.Response, n, most, perNode int) (replicas int, rate float64) {
	now := r.Rate(core.AnyAccelerator, n, perNode)
	if c.Steps == OneByOne {
		most = min(most, n+1)
	}
	for k := n + 1; k <= most && now > 0; k++ {
		if rate := r.Rate(core.AnyAccelerator, k, perNode); rate > now {
			return k, rate
		}
	}
	return 0, 0
}

// UnitRate returns the rate on one device, by which speed-ups are measured. Where a job cannot run on one device, it is the rate on
// the least number of devices divided by that number; 0 when nothing is known.
func UnitRate(r *core.Response, least, perNode int) float64 {
	if rate := r.Rate(core.AnyAccelerator, 1, perNode); rate > 0 {
		return rate
	}
	return r.Rate(core.AnyAccelerator, least, perNode) / float64(least)
}
