package core

import (
	"cmp"
	"math"
	"slices"
)

// JobID is the rank of a job in submission order. Ties everywhere are broken by it.
type JobID int32

// JobSpec is what is known of a job when it is submitted. It never changes: when its owner edits the job, another one takes its
// place, with the same ID and Name.
type JobSpec struct {
	ID            JobID   // index of the job in order of submission
	Name          string  // unique in a run
	Tenant        string  // name of the tenant that owns the job; may be empty
	Application   string  // name of the application, whose jobs are alike; may be empty
	Experiment    string  // the search that the job is a trial of; empty for none
	Weight        float64 // share of the job against others, 1 unless stated
	SubmitSeconds float64 // moment of the submission, in seconds of the run

	// DeadlineSeconds is how long after its submission the job is to be done; 0 for whenever.
	DeadlineSeconds float64
	// BestEffort is set for a job that takes what the others leave: its deadline, if it has one, is promised by nobody.
	BestEffort bool
	// Tier is the service that its owner pays for, one of Tiers; empty for none, which is served as Basic.
	Tier string

	Requested   int // replicas the user asked for
	MinReplicas int // least the job can run with
	MaxReplicas int // most the job can use

	// Pinned is set for a job that cannot be preempted: the devices that it gets first stay its own until it ends, or
	// one of their nodes fails or is drained. A policy that takes them away breaks a rule.
	Pinned bool
	// Suspended is set for a job that its owner holds back: it gets no devices, and gives back those that it has.
	Suspended bool

	Accelerators []string    // types the job can run on; empty for all
	MixesTypes   bool        // its replicas may run on devices of different types at once
	Batch        BatchSpec   // bounds of the batch; zero for a job whose batch is fixed
	BatchByType  []TypeBatch // bounds of the batch per device on single types, instead of those of Batch
	CPUs         float64     // CPU cores of each replica
	MemoryGB     float64     // memory of each replica, in GB
	Share        *Share      // nil for whole devices; always where no device is shared
	Utilisation  float64     // of a device by a replica that has it alone, 0..1; 0 when unknown
	// DeviceMemoryGB is the memory of its device that each replica needs; 0 when unknown.
	DeviceMemoryGB float64
	// SlowdownTolerance is the part of its speed alone that its owner lets go, 0..1, for sharing devices; 0 when unknown.
	SlowdownTolerance float64
	// Sensitivity says how fast the job is by the CPUs and the memory of its replicas; nil when it makes no difference, or nobody knows.
	Sensitivity *Sensitivity
	// Iteration is what an iteration takes of each kind of resource, alone; zero when unknown.
	Iteration Iteration
	Command   []string // program and arguments of each replica; nil where jobs are simulated

	// TotalWork is the declared work in the unit that Job.Progress counts: seconds at the requested replicas for a
	// job of known duration, iterations at the initial batch for a profiled one. 0 when unknown.
	TotalWork float64
	// StepTimes is the true time of an optimizer step at the requested batch, for policies that declare
	// CapabilityStepTimes. nil when unknown. Jobs of one application share it.
	StepTimes *StepTimes
	// Pairs is how fast jobs are on the same devices, for policies that declare CapabilityPairRates. nil when unknown. Jobs of one workload
	// share it.
	Pairs *PairTable
	// Truth is what the application would measure on every configuration, for policies that declare
	// CapabilityMeasurements. nil when unknown. Jobs of one application share it.
	Truth *Truth
}

// Iteration is the seconds that an iteration of a job takes of each kind of resource, one after the other.
type Iteration struct {
	Load    float64 // seconds on storage and CPUs
	Compute float64 // seconds on the devices
	Sync    float64 // seconds on the network
	// Measured is what a whole iteration takes, alone, where that is not its stages together; 0 where it is, or nobody knows.
	Measured float64
}

// Seconds are those of all stages together; 0 when they are unknown.
func (i Iteration) Seconds() float64 { return i.Load + i.Compute + i.Sync }

// ExclusiveSeconds is the seconds of an iteration of a job that has its devices alone.
func (i Iteration) ExclusiveSeconds() float64 {
	if i.Measured > 0 {
		return i.Measured
	}
	return i.Seconds()
}

// Truth is all that can be measured of an application.
type Truth struct {
	Measurements []Measurement // every configuration that was measured
	Gradients    Gradients     // at the start of training
	// Steps is how long the whole training takes by total batch, ascending; in between it is on straight lines. nil when unknown.
	Steps []BatchSteps
}

// BatchSteps is how many optimizer steps a training takes at a total batch.
type BatchSteps struct {
	Batch int     // total batch in samples
	Steps float64 // optimizer steps of the whole training at that batch
}

// Multiplier is how many times the samples of one at the batch from a training at a total batch takes; NaN outside what is known.
func (t *Truth) Multiplier(batch, from int) float64 {
	return t.steps(batch) * float64(batch) / (t.steps(from) * float64(from))
}

func (t *Truth) steps(batch int) float64 {
	i, exact := slices.BinarySearchFunc(t.Steps, batch, func(s BatchSteps, batch int) int { return cmp.Compare(s.Batch, batch) })
	switch {
	case exact:
		return t.Steps[i].Steps
	case i == 0 || i == len(t.Steps):
		return math.NaN()
	}
	low, high := t.Steps[i-1], t.Steps[i]
	return float64((high.Steps-low.Steps)/float64(high.Batch-low.Batch)*float64(batch-low.Batch)) + low.Steps
}

// BatchSpec bounds the batch size of a training job, in samples. The zero value is a job without batch elasticity.
type BatchSpec struct {
	Requested    int // total batch the user asked for
	Initial      int // total batch that the learning rate was tuned for
	Max          int // largest total batch that still trains
	MinPerDevice int // least samples on one device in a pass
	MaxPerDevice int // most samples that fit on one device
}

// TypeBatch bounds the batch per device on an accelerator type, whose memory may be larger or smaller than others'.
type TypeBatch struct {
	Accelerator                string // name of the type
	MinPerDevice, MaxPerDevice int    // samples on one device in a pass
}

// JobState is the single state a submitted job is in.
type JobState uint8

// The states of a job. Pending awaits admission, Waiting awaits devices.
const (
	Pending JobState = iota
	Waiting
	Running
	Completed
	Rejected
	Failed
	Cancelled // by whoever submitted it
)

var jobStateNames = [...]string{"pending", "waiting", "running", "completed", "rejected", "failed", "cancelled"}

// String returns the name of the state, such as "running".
func (s JobState) String() string { return name(jobStateNames[:], int(s)) }

// Ended reports whether the state is final.
func (s JobState) Ended() bool { return s >= Completed }

// Job is a submitted job as the stages see it. What changes with time is kept as a value at a moment and a slope, so
// that a job on which nothing happened needs no update, in this process or in a plugin's.
type Job struct {
	*JobSpec
	State         JobState   // single state that the job is in
	WaitingReason Reason     // why it waits, as last decided
	Starting      bool       // some of its replicas do not run yet, as far as the backend knows: it holds its devices all the same
	Seats         []Seat     // devices held, in the order the placer chose; nil unless Running
	Held          int        // number of devices in Seats
	Sliced        *Sliced    // where its slices begin, on a cluster whose devices are divided so; otherwise nil
	Resources     *Resources // CPUs and memory of each replica, as placement gave them; nil for what it asks for
	Tuning        Tuning     // batch setting in force

	AsOfSeconds   float64 // moment at which Executed and Attained were brought up to date
	Executed      float64 // seconds with devices up to AsOfSeconds, restart pauses included
	Attained      float64 // device-seconds up to AsOfSeconds
	ProgressAsOf  float64 // moment from which ProgressRate holds; lies ahead during a restart pause
	Progress      float64 // work done at ProgressAsOf, in the unit of TotalWork
	ProgressRate  float64 // work per second
	StepsLeft     float64 // true optimizer steps left at the requested batch; NaN when unknown
	FirstStart    float64 // seconds; NaN until the job first gets devices
	LastChange    float64 // seconds of the last start, stop or move; of the submission before the first
	Restarts      int     // starts and moves after the first start
	Preemptions   int     // times its devices were taken away before it ended
	FinishSeconds float64 // NaN until the job ended

	// Measured is what the job reported of itself, one entry for each configuration it ran on, in the order they were
	// first seen. It only grows, and an entry changes when the job reports of its configuration again.
	Measured  []Measurement
	Gradients Gradients // latest statistics reported; zero before the first report

	// Reported is what the job reported of its metrics, such as its loss, in the order in which they first came.
	Reported []Series
}

// Measurement is what a job saw on one configuration: its replicas, on how many nodes, with which batch.
type Measurement struct {
	Accelerator                string  // type of the devices; empty where types make no difference
	Nodes, Replicas, PerDevice int     // nodes, replicas over all of them, and samples on one device in a pass
	PassSeconds                float64 // of a pass over PerDevice samples without synchronisation
	StepSeconds                float64 // of a pass with it

	// Count is how many reports it rests on, and Spread the mean distance of those that disagree with it, over all, as a
	// part of StepSeconds. 0 stands for a single report, of which the spread is not known.
	Count  int
	Spread float64 // ratio of StepSeconds
}

// Gradients are the statistics of a job's gradient at its initial batch: the squared norm of its expectation, and the
// trace of its covariance.
type Gradients struct {
	SquaredNorm float64 // squared norm of the gradient, |g|²
	Variance    float64 // tr(Σ), at the initial batch
}

// NewJob returns a job that was just submitted.
func NewJob(spec *JobSpec) *Job {
	return &Job{
		JobSpec: spec, State: Pending, AsOfSeconds: spec.SubmitSeconds, ProgressAsOf: spec.SubmitSeconds,
		LastChange: spec.SubmitSeconds, StepsLeft: math.NaN(), FirstStart: math.NaN(), FinishSeconds: math.NaN(),
	}
}

// ExecutedSeconds is the time for which the job held devices up to now, restart pauses included.
func (j *Job) ExecutedSeconds(now float64) float64 {
	if j.Held == 0 {
		return j.Executed
	}
	return j.Executed + (now - j.AsOfSeconds)
}

// AttainedService is the device-seconds the job received up to now, restart pauses included, of shared devices its part.
func (j *Job) AttainedService(now float64) float64 {
	if j.Share != nil {
		return j.attainedShare(now)
	}
	return j.Attained + (now-j.AsOfSeconds)*float64(j.Held)
}

// attainedShare is AttainedService of a job that has parts of devices. It is on its own so that whole devices cost no call.
//
//go:noinline
func (j *Job) attainedShare(now float64) float64 {
	return j.Attained + (now-j.AsOfSeconds)*float64(j.Held)*j.Part()
}

// EndedAt is the job as it is once it ended in a state at a moment; NaN for one that is yet to be submitted.
func (j *Job) EndedAt(state JobState, seconds float64) *Job {
	ended := *j
	ended.settle(seconds)
	if j.Held > 0 {
		ended.LastChange = seconds
	}
	ended.Progress, ended.ProgressRate, ended.ProgressAsOf = j.WorkDone(seconds), 0, seconds
	ended.State, ended.FinishSeconds, ended.Seats, ended.Held, ended.Starting = state, seconds, nil, 0, false
	ended.Sliced = nil
	if state == Completed && j.TotalWork > 0 {
		ended.Progress = j.TotalWork
	}
	return &ended
}

// WorkDone is the progress at now, in the unit of TotalWork.
func (j *Job) WorkDone(now float64) float64 {
	if j.ProgressRate == 0 || now <= j.ProgressAsOf {
		return j.Progress
	}
	return j.Progress + (now-j.ProgressAsOf)*j.ProgressRate
}

// RemainingWork is the declared work not yet done, never negative, in the unit of TotalWork.
func (j *Job) RemainingWork(now float64) float64 {
	return max(j.TotalWork-j.WorkDone(now), 0)
}

// MustStay reports whether the job is pinned to the seats it holds. It is not when a node of them is no longer ready,
// or when the job can no longer run on so many.
func (j *Job) MustStay(c *Cluster, r *Response) bool {
	return j.Pinned && j.State == Running && j.Held >= r.MinReplicas && j.Held <= r.MaxReplicas &&
		!slices.ContainsFunc(j.Seats, func(s Seat) bool { return s.Devices&^c.Nodes[s.Node].Usable() != 0 })
}

// settle brings the accounts up to date, before the devices held change.
func (j *Job) settle(now float64) {
	j.Executed, j.Attained = j.ExecutedSeconds(now), j.AttainedService(now)
	j.AsOfSeconds = now
}

// Deadline is the moment by which the job is to be done; +Inf for whenever.
func (s *JobSpec) Deadline() float64 {
	if s.DeadlineSeconds == 0 {
		return math.Inf(1)
	}
	return s.SubmitSeconds + s.DeadlineSeconds
}

// BatchOn are the bounds of the job's batch on an accelerator type.
func (s *JobSpec) BatchOn(accelerator string) BatchSpec {
	b := s.Batch
	for i := range s.BatchByType {
		if on := &s.BatchByType[i]; on.Accelerator == accelerator {
			b.MinPerDevice, b.MaxPerDevice = on.MinPerDevice, on.MaxPerDevice
		}
	}
	return b
}

// Accepts reports whether the job allows an accelerator type of the cluster. Who seats jobs by what is left of nodes needs to know no more.
func (s *JobSpec) Accepts(c *Cluster, t AcceleratorID) bool {
	return len(s.Accelerators) == 0 || slices.Contains(s.Accelerators, c.Accelerators[t])
}

// CanRunOn reports whether the job can run on an accelerator type of the cluster: it allows the type, and where more than whole devices is counted,
// idle nodes of the type, those that pools may still get included, hold its least number of replicas; one replica where it mixes types. O(1) where
// whole devices are counted, otherwise O(nodes) at most.
func (s *JobSpec) CanRunOn(c *Cluster, t AcceleratorID) bool {
	return len(s.Accelerators) == 0 && !c.CountsShares() || s.canRunOn(c, t) // small enough to cost no call
}

func (s *JobSpec) canRunOn(c *Cluster, t AcceleratorID) bool {
	least := s.MinReplicas
	if s.MixesTypes {
		least = 1
	}
	return s.Accepts(c, t) && (!c.CountsShares() || c.holds(s, t, least))
}

// SameConfiguration reports whether two measurements are of the same replicas, nodes, type and batch.
func (m Measurement) SameConfiguration(o Measurement) bool {
	return m.Accelerator == o.Accelerator && m.Nodes == o.Nodes && m.Replicas == o.Replicas && m.PerDevice == o.PerDevice
}
