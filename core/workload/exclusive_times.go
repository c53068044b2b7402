package workload

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// ExclusiveTimes returns how long jobs would take with devices to themselves: seated on as few nodes as there can be,
// with the fastest number of replicas and in each phase the fastest batch that they allow, without
// waiting, restarts or interference. A job keeps its batch when it has no freedom in it. It is what a fair
// share is measured by, and depends on no policy.
type ExclusiveTimes struct {
	cluster *core.Cluster
	jobs    JobsOf
	fastest map[loner][]float64
}

// loner is what jobs must have in common to take the same time alone.
type loner struct {
	model       Model
	accelerator core.AcceleratorID
	minReplicas int
}

// NewExclusiveTimes returns the times of the jobs of a workload on the types of a cluster.
func NewExclusiveTimes(c *core.Cluster, jobs JobsOf) *ExclusiveTimes {
	return &ExclusiveTimes{cluster: c, jobs: jobs, fastest: map[loner][]float64{}}
}

// Seconds is the time that a job takes alone with so many devices of a type, 1 or more. On fewer than it needs it runs
// for part of the time. +Inf where it cannot run, and for one that is not part of the workload.
func (a *ExclusiveTimes) Seconds(id core.JobID, accelerator core.AcceleratorID, devices int) float64 {
	job := a.jobs.JobOf(id)
	if job == nil {
		return math.Inf(1)
	}
	least := job.Spec.MinReplicas
	if devices < least {
		return a.Seconds(id, accelerator, least) * float64(least) / float64(devices)
	}
	// times[i] is that of at most least+i replicas.
	key := loner{job.Model, accelerator, least}
	times := a.fastest[key]
	count := min(devices, job.Spec.MaxReplicas) - least + 1
	for len(times) < count {
		seconds := a.with(job, accelerator, least+len(times))
		if len(times) > 0 {
			seconds = min(seconds, times[len(times)-1])
		}
		times = append(times, seconds)
	}
	a.fastest[key] = times
	return times[count-1]
}

// with is the time with exactly so many replicas.
func (a *ExclusiveTimes) with(job *Job, accelerator core.AcceleratorID, replicas int) float64 {
	shape := consolidated(replicas, a.devicesPerNode(accelerator))
	running := Running{
		Shape: shape, Replicas: replicas, Accelerators: slices.Repeat([]string{a.cluster.Accelerators[accelerator]}, len(shape)),
	}
	tunings := tunings(job.Spec.BatchOn(a.cluster.Accelerators[accelerator]), replicas)
	seconds, done := 0.0, 0.0
	for phase := range job.Model.Phases() {
		fastest := 0.0
		for _, running.Tuning = range tunings {
			fastest = max(fastest, job.Model.Rate(phase, running))
		}
		end := job.Model.PhaseEnd(phase)
		seconds += (end - done) / fastest
		done = end
	}
	return seconds
}

// devicesPerNode is that of the largest node of a type.
func (a *ExclusiveTimes) devicesPerNode(accelerator core.AcceleratorID) int {
	most := 1
	for i := range a.cluster.Nodes {
		if n := &a.cluster.Nodes[i]; n.Accelerator == accelerator {
			most = max(most, n.Devices)
		}
	}
	return most
}

// batchSteps is how many total batches are tried, in geometric steps, as by Pollux and Sia.
const batchSteps = 50

// tunings are the batch settings that a job may run with on so many replicas. The first leaves the batch to the job.
func tunings(b core.BatchSpec, replicas int) []core.Tuning {
	list := []core.Tuning{{}}
	if b.Initial == 0 || b.Max <= b.Initial {
		return list
	}
	from := math.Max(float64(b.Initial), float64(b.MinPerDevice*replicas))
	for i := range batchSteps {
		total := int(math.Round(from * math.Pow(float64(b.Max)/from, float64(i)/(batchSteps-1))))
		perDevice, accumulation := goodput.SplitBatch(total, replicas, b)
		tuning := core.Tuning{BatchPerDevice: perDevice, AccumulationSteps: accumulation}
		if perDevice >= max(b.MinPerDevice, 1) && !tuning.Equal(list[len(list)-1]) {
			list = append(list, tuning)
		}
	}
	return list
}
