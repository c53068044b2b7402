package metrics

import (
	"bufio"
	"math"
	"strconv"

	"github.com/quartet-sched/quartet/core"
)

// Finish-time fairness compares a job's JCT with the JCT it would have on a fair share of the cluster. The measures
// differ in what they take for that share; docs/outputs.md defines them:
//
//	rho     its requested replicas, divided by the devices requested over those there are
//	themis  its requested replicas, divided by the jobs in the system over the devices there are
//	sia     as many devices as there are for each job in the system, of the mix of types that the cluster has
//
// A replica that has a part of its device asks for that part: of a share of a third of a device it needs three quarters if it has a quarter of one.
//
// The requests, the jobs and the devices are averaged over the job's life. Above 1 the job got less than its share.

// unfairAbove is 1 with room for rounding, so that a job that was never held up is not called unfair.
const unfairAbove = 1 + 1e-9

// ExclusiveTime returns how many seconds a job takes with so many devices of an accelerator type to itself, at its best and
// without costs; +Inf where it cannot run.
type ExclusiveTime func(job core.JobID, accelerator core.AcceleratorID, devices int) float64

// finely is replicas that each have a part of a device, in the finest parts: what comes and goes in them adds up to nothing in the end.
func finely(replicas int, part float64) int { return replicas * int(math.Round(part*core.FinestPart)) }

// demand integrates what the jobs in the system ask for over time.
type demand struct {
	parts     int // of devices requested, of which one has core.FinestPart
	jobs      int
	atSeconds float64
	upTo      demanded
}

// demanded is demand over a time.
type demanded struct {
	deviceSeconds float64
	jobSeconds    float64
}

func (d demanded) since(start demanded) demanded {
	return demanded{d.deviceSeconds - start.deviceSeconds, d.jobSeconds - start.jobSeconds}
}

// add changes the demand at a moment and returns the integrals up to it. Devices are in parts, as finely has them.
func (d *demand) add(parts, jobs int, atSeconds float64) demanded {
	if atSeconds > d.atSeconds {
		d.upTo.deviceSeconds += float64(d.parts) / core.FinestPart * (atSeconds - d.atSeconds)
		d.upTo.jobSeconds += float64(d.jobs) * (atSeconds - d.atSeconds)
		d.atSeconds = atSeconds
	}
	d.parts += parts
	d.jobs += jobs
	return d.upTo
}

// ExclusiveSeconds is the time that the job takes on its requested replicas, alone. It is not known of a profiled
// job, whose TotalWork counts iterations: those come with step times.
func ExclusiveSeconds(s *core.JobSpec) (seconds float64, known bool) {
	return s.TotalWork, s.TotalWork > 0 && s.StepTimes == nil
}

// shares tell what a completed job would have got of the cluster, had it been shared fairly.
type shares struct {
	cluster  *core.Cluster
	capacity *capacity
	devices  []int         // by AcceleratorID, at the end
	alone    ExclusiveTime // nil when only declared run times are known
	pause    func(core.JobID) float64
}

func newShares(c *core.Cluster, k *capacity, alone ExclusiveTime, pause func(core.JobID) float64) *shares {
	if pause == nil {
		pause = func(core.JobID) float64 { return 0 }
	}
	s := &shares{cluster: c, capacity: k, alone: alone, pause: pause}
	if c != nil {
		s.devices = devicesByType(c)
	}
	return s
}

// fairness is how a completed job fared. What is not known is NaN.
type fairness struct {
	jobsMean  float64 // in the system over the job's life, itself included
	exclusive float64 // seconds on its requested replicas, alone
	fair      float64 // seconds on its fair share as Sia has it
	rho       float64
	themis    float64
	sia       float64
}

func (s *shares) of(r *record) fairness {
	unknown := math.NaN()
	f := fairness{jobsMean: unknown, exclusive: unknown, fair: unknown, rho: unknown, themis: unknown, sia: unknown}
	jct := r.jct()
	if !(jct > 0) {
		return f
	}
	there, total := s.capacity.mean(s.devices, r.spec.SubmitSeconds, r.finish)
	if total == 0 {
		return f
	}
	f.jobsMean = r.demanded.jobSeconds / jct
	if declared, known := ExclusiveSeconds(r.spec); known {
		f.exclusive = declared
	} else {
		f.exclusive = s.aloneOn(r.spec, there, float64(r.spec.Requested), 0)
	}
	f.rho = jct / (f.exclusive * max(1, r.demanded.deviceSeconds/jct/total))
	f.themis = jct / (f.exclusive * max(1, f.jobsMean/total*r.part))
	f.fair = s.aloneOn(r.spec, there, replicasOn(total/f.jobsMean, total, r.part), s.pause(r.spec.ID))
	f.sia = jct / f.fair
	return f
}

// replicasOn is how many replicas with a part of a device there is room for on so many devices, no two of them on one of all that there are.
func replicasOn(devices, all, part float64) float64 {
	if part == 1 {
		return devices
	}
	return min(devices/part, all)
}

// aloneOn is the time that a job takes alone on so many devices, after a pause, averaged over the types that it can run
// on by the devices that are there of each. NaN when that is not known.
func (s *shares) aloneOn(spec *core.JobSpec, there []float64, devices, pause float64) float64 {
	if s.alone == nil {
		return math.NaN()
	}
	sum, weight := 0.0, 0.0
	for t, n := range there {
		accelerator := core.AcceleratorID(t)
		if !spec.Accepts(s.cluster, accelerator) {
			continue
		}
		if seconds := s.between(spec.ID, accelerator, devices, pause); !math.IsInf(seconds, 1) {
			sum += n * seconds
			weight += n
		}
	}
	return sum / weight
}

// between interpolates the time on a fraction of devices linearly. Less than one device is one for part of the time.
func (s *shares) between(job core.JobID, accelerator core.AcceleratorID, devices, pause float64) float64 {
	if devices < 1 {
		return (pause + s.alone(job, accelerator, 1)) / devices
	}
	low := math.Floor(devices)
	seconds := s.alone(job, accelerator, int(low))
	if low == devices || math.IsInf(seconds, 1) {
		return pause + seconds
	}
	return pause + seconds + (devices-low)*(s.alone(job, accelerator, int(low)+1)-seconds)
}

// rhos gathers one measure of the jobs of which it is known.
type rhos []float64

func (r *rhos) add(rho float64) {
	if !math.IsNaN(rho) {
		*r = append(*r, rho)
	}
}

func (r rhos) describe() Rho {
	all, unfair := Describe(r), 0
	for _, rho := range r {
		if rho > unfairAbove {
			unfair++
		}
	}
	return Rho{Mean: all.Mean, Max: all.Max, UnfairRatio: Number(float64(unfair) / float64(len(r)))}
}

const fairnessHeader = "job,jobs_mean,exclusive_s,fair_s,rho,rho_themis,rho_sia\n"

// writeFairness writes the row of a completed job.
func writeFairness(w *bufio.Writer, id core.JobID, f *fairness) error {
	b := strconv.AppendInt(w.AvailableBuffer(), int64(id), 10)
	for _, x := range [...]float64{f.jobsMean, f.exclusive, f.fair, f.rho, f.themis, f.sia} {
		b = append(b, ',')
		b = AppendNumber(b, x)
	}
	_, err := w.Write(append(b, '\n'))
	return err
}
