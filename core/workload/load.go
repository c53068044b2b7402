package workload

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
)

// Load makes a workload denser or sparser. Each way breaks something:
//
//   - thinning keeps the hours of the day and the mix: each job takes part with the probability of the factor. Above 1, jobs come
//     again, as NAME.2, NAME.3, …, up to half an hour earlier or later. The jobs at one factor are among those at a higher one.
//   - compression divides the times of submission by the factor: every job takes part, and the day gets shorter.
//   - nodes leaves the jobs as they are, and divides the nodes of the cluster by the factor; packing changes.
//
// Factors of different workloads are not comparable; OfferedLoad is.
type Load struct {
	// Factor: how dense jobs come, over how dense they are.
	Factor float64 `config:"factor" doc:"how dense jobs come, over how dense they are" min:"0" max:"1000"`
	// By: how the load is changed: thinning, compression or nodes.
	By string `config:"by" doc:"how: by leaving jobs out or repeating them, by dividing the times of submission, or by fewer or more nodes" enum:"thinning|compression|nodes"`
}

// The values of Load.By.
const (
	ByThinning    = "thinning"
	ByCompression = "compression"
	ByNodes       = "nodes"
)

// copyJitter is how far a copy of a job is submitted from it at most, in seconds.
const copyJitter = 30 * 60

func (l Load) check() core.Diagnostics {
	if l.Factor > 0 {
		return nil
	}
	return core.Diagnostics{{Path: "load.factor", Summary: fmt.Sprintf("must be above 0, got %v", l.Factor), Hint: "1 leaves the workload as it is"}}
}

// of scales jobs, which are in submission order. O(n log n) for n jobs that come of it.
func (l Load) of(jobs []Job, seed uint64) ([]Job, error) {
	switch {
	case l.Factor == 1 || l.By == ByNodes:
		return jobs, nil
	case l.By == ByCompression:
		jobs = slices.Clone(jobs)
		for i := range jobs {
			jobs[i].Spec.SubmitSeconds /= l.Factor
		}
		renumber(jobs)
		return jobs, nil
	}
	kept := l.thin(jobs, seed)
	if len(kept) == 0 {
		return nil, sampleProblem("load.factor", fmt.Sprintf("leaves none of %d jobs", len(jobs)), "take a greater one")
	}
	if l.Factor < 1 {
		renumber(kept)
		return kept, nil
	}
	return reassemble(kept, "load", len(kept)-len(jobs))
}

// thin keeps each job, and each of its copies, when a number drawn for it says so. The stream of a job has the same numbers at
// every factor.
func (l Load) thin(jobs []Job, seed uint64) []Job {
	kept := make([]Job, 0, int(math.Ceil(float64(len(jobs))*l.Factor)))
	for i := range jobs {
		random := core.NewRand(seed, "sample/load/"+jobs[i].Spec.Name)
		if random.Float64() < l.Factor {
			kept = append(kept, jobs[i])
		}
		for number := 2; float64(number-1) < l.Factor; number++ {
			drawn, jitter := random.Float64(), (2*random.Float64()-1)*copyJitter
			if drawn >= l.Factor-float64(number-1) {
				continue
			}
			job := jobs[i]
			job.Spec.Name += "." + strconv.Itoa(number)
			job.Spec.SubmitSeconds = reflected(job.Spec.SubmitSeconds+jitter, lastSubmit(jobs))
			kept = append(kept, job)
		}
	}
	return kept
}

// reflected throws a moment back that lies outside of 0 to end.
func reflected(seconds, end float64) float64 {
	if end == 0 {
		return 0
	}
	if seconds = wrap(seconds, 2*end); seconds > end {
		seconds = 2*end - seconds
	}
	return seconds
}

// DeviceSeconds is what the jobs of a workload take of a cluster when each runs alone on the devices it asks for, of each its part where they are divided: as long as it
// declares, or else as Alone returns, averaged over the types it can run on, and nothing when there is none. NaN when a job does not say
// how long it runs.
func DeviceSeconds(w *Workload, c *core.Cluster) float64 {
	alone := NewExclusiveTimes(c, w)
	devices := make([]int, len(c.Accelerators))
	for i := range c.Nodes {
		devices[c.Nodes[i].Accelerator] += c.Nodes[i].Devices
	}
	total := 0.0
	for i := range w.Jobs {
		job := &w.Jobs[i]
		if math.IsInf(job.Model.PhaseEnd(job.Model.Phases()-1), 1) {
			return math.NaN()
		}
		if job.CountsSeconds() {
			total += job.Model.PhaseEnd(0) * float64(job.Spec.Requested) * c.Part(&job.Spec)
			continue
		}
		sum, weight := 0.0, 0
		for t, n := range devices {
			if !job.Spec.Accepts(c, core.AcceleratorID(t)) {
				continue
			}
			if seconds := alone.Seconds(core.JobID(i), core.AcceleratorID(t), job.Spec.Requested); !math.IsInf(seconds, 1) {
				sum, weight = sum+float64(n)*seconds, weight+n
			}
		}
		if weight > 0 {
			total += sum / float64(weight) * float64(job.Spec.Requested) * c.Part(&job.Spec)
		}
	}
	return total
}

// OfferedLoad is the device-time that a workload demands of a cluster over the device-time there is between its first and its
// last submission. NaN when a job does not say how long it runs, +Inf when all are submitted at once.
func OfferedLoad(w *Workload, c *core.Cluster) float64 {
	if len(w.Jobs) == 0 {
		return math.NaN()
	}
	return DeviceSeconds(w, c) / (float64(c.Devices()) * (lastSubmit(w.Jobs) - w.Jobs[0].Spec.SubmitSeconds))
}
