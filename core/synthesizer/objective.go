package synthesizer

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/core/workload"
)

// Objective is what is to be small.
type Objective string

// The objectives. Both count from the moment of the look on: what was before is the same for all.
const (
	// MeanJCT is the mean time that jobs are there. A job that has not ended within the horizon is there until its end, and has what is left of it
	// before it: see ruler.rest. So is one that was rejected: not to run a job is no gain.
	MeanJCT Objective = "mean_jct"
	// Responsiveness is the mean time until jobs run that never ran. One that does not within the horizon waits until its end.
	Responsiveness Objective = "responsiveness"
)

// ruler measures futures of one world.
type ruler struct {
	from, to float64
	first    core.JobID // of those that arrive
	jobs     []measured // those that are there, by JobID, then those that arrive within the horizon
	present  int        // how many are there
	devices  float64
}

// measured is a job as far as measuring needs it.
type measured struct {
	id       core.JobID
	begin    float64 // seconds, not before that of the ruler
	waits    bool    // it never ran
	ends     []float64
	took     []float64 // seconds of each phase on what it asks for
	replicas float64
}

// newRuler prepares to measure what becomes of jobs in a world within a horizon.
func newRuler(v *core.View, w *twin.World, horizon float64) *ruler {
	r := &ruler{from: v.NowSeconds, to: v.NowSeconds + horizon, first: core.JobID(len(v.Jobs)), devices: float64(max(v.Devices, 1))}
	for i := range w.Jobs {
		if j := v.Job(w.Jobs[i].ID); j != nil {
			m := newMeasured(j.ID, j.JobSpec, w.Jobs[i].Model, v.Cluster)
			m.begin, m.waits = r.from, math.IsNaN(j.FirstStart)
			r.jobs = append(r.jobs, m)
		}
	}
	r.present = len(r.jobs)
	for i := range w.Arrivals {
		a := &w.Arrivals[i]
		if a.Spec.SubmitSeconds >= r.to {
			break
		}
		m := newMeasured(r.first+core.JobID(i), &a.Spec, a.Model, v.Cluster)
		m.begin, m.waits = a.Spec.SubmitSeconds, true
		r.jobs = append(r.jobs, m)
	}
	return r
}

// newMeasured computes how long the phases of a job take on as many devices as it asks for, on as few nodes as there can be, of the type that is fastest.
func newMeasured(id core.JobID, spec *core.JobSpec, model workload.Model, c *core.Cluster) measured {
	m := measured{id: id, replicas: float64(max(spec.Requested, 1))}
	phases := model.Phases()
	m.ends, m.took = make([]float64, phases), make([]float64, phases)
	runs := runningOn(spec, c)
	done := 0.0
	for phase := range phases {
		fastest := 0.0
		for i := range runs {
			fastest = max(fastest, model.Rate(phase, runs[i]))
		}
		m.ends[phase] = model.PhaseEnd(phase)
		if fastest > 0 {
			m.took[phase] = (m.ends[phase] - done) / fastest
		}
		done = m.ends[phase]
	}
	return m
}

// runningOn is how a job would run on what it asks for, for each type of devices.
func runningOn(spec *core.JobSpec, c *core.Cluster) []workload.Running {
	var list []workload.Running
	for accelerator, name := range c.Accelerators {
		if len(spec.Accelerators) > 0 && !slices.Contains(spec.Accelerators, name) {
			continue
		}
		most := 0
		for i := range c.Nodes {
			if n := &c.Nodes[i]; int(n.Accelerator) == accelerator {
				most = max(most, n.Devices)
			}
		}
		if most == 0 {
			continue
		}
		running := workload.Running{Replicas: max(spec.Requested, 1)}
		for left := running.Replicas; left > 0; left -= most {
			running.Shape, running.Accelerators = append(running.Shape, min(left, most)), append(running.Accelerators, name)
		}
		list = append(list, running)
	}
	return list
}

// empty reports whether there is nothing to measure.
func (r *ruler) empty() bool { return len(r.jobs) == 0 }

// measure is the objective in a future, and until when each job that was there at its beginning was there.
func (r *ruler) measure(f *twin.Future, o Objective) (cost float64, present []float64) {
	fates := make([]*twin.JobOutcome, len(r.jobs))
	at := 0
	for i := range f.Jobs { // both by JobID
		for at < len(r.jobs) && r.jobs[at].id < f.Jobs[i].ID {
			at++
		}
		if at < len(r.jobs) && r.jobs[at].id == f.Jobs[i].ID {
			fates[at] = &f.Jobs[i]
		}
	}
	present = make([]float64, r.present)
	var left []rest
	sum, count := 0.0, 0
	for i := range r.jobs {
		m, fate := &r.jobs[i], fates[i]
		end, over := r.to, fate != nil && fate.Outcome == core.Completed
		if over {
			end = min(fate.EndSeconds, r.to)
		}
		if i < r.present {
			present[i] = end - r.from
		}
		if o == Responsiveness {
			if m.waits {
				count++
				start := r.to
				if fate != nil && !math.IsNaN(fate.StartSeconds) {
					start = min(fate.StartSeconds, r.to)
				}
				sum += max(0, start-m.begin)
			}
			continue
		}
		count++
		sum += end - m.begin
		if !over {
			progress := 0.0
			if fate != nil {
				progress = fate.Progress
			}
			seconds := m.left(progress)
			left = append(left, rest{seconds, seconds * m.replicas})
		}
	}
	return (sum + r.rest(left)) / float64(max(count, 1)), present
}

// left is how long a job takes from a progress on.
func (m *measured) left(progress float64) float64 {
	seconds, done := 0.0, 0.0
	for phase, end := range m.ends {
		if from := max(done, progress); from < end {
			seconds += m.took[phase] * (end - from) / (end - done)
		}
		done = end
	}
	return seconds
}

// rest is what is left of a job: seconds on what it asks for, and device-seconds.
type rest struct{ seconds, work float64 }

// rest is how long jobs are there after the horizon, together, if the one with the least work left is served first by all devices: the same yardstick for all candidates,
// and a lower bound of what any of them could reach.
func (r *ruler) rest(left []rest) float64 {
	slices.SortFunc(left, func(a, b rest) int { return cmp.Or(cmp.Compare(a.work, b.work), cmp.Compare(a.seconds, b.seconds)) })
	sum, work := 0.0, 0.0
	for _, l := range left {
		work += l.work
		sum += max(l.seconds, work/r.devices)
	}
	return sum
}
