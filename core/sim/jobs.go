package sim

import (
	"cmp"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// jobs are those of the workload, and those that a simulation began with.
type jobs struct {
	workload []workload.Job // in order of submission
	base     int            // id of the first of them: those before it were there when the simulation began
	byID     []*simJob      // by JobID; nil before the submission and after the end
	arrived  int            // byID[:arrived] were submitted
	active   int            // number of jobs that were submitted and have not ended
	running  []*simJob      // jobs with devices, by JobID
	queue    jobQueue       // running jobs by the moment at which their phase ends
}

// simJob is a job and the truth about its progress.
type simJob struct {
	*workload.Job
	overhead float64 // seconds of pause at a start or move

	seats           []core.Seat
	resources       *core.Resources // of each replica, nil for what it asks for
	speed           float64         // with them, over that of its model
	running         workload.Running
	phase           int
	progress        float64 // work done at asOf
	asOf            float64
	progressAtStart float64 // work done at the last start or move
	furthest        float64 // most work ever done; failures throw it back
	pausedUntil     float64
	rate            float64 // work per second once the pause is over
	disturbed       bool    // by another job that spans one of its nodes
	slowed          float64 // part of its rate that it loses to those on its devices
	onCPUs          bool    // it takes nothing of its devices
	onSlice         float64 // part of its rate on whole devices that it has on slices
	started         bool
	anew            bool // it loses what it did when its replicas end
	ended           bool
	changed         int // round of the last change

	kept      []core.Seat // of its devices those that it held before holdsFrom
	holdsFrom float64     // it holds seats from then on
	runsFrom  float64     // its replicas run from then on

	measuring  workload.Measurer  // nil when the model measures nothing
	unmeasured bool               // it runs on another configuration or in another phase than it reported of
	fresh      bool               // it has not reported since it was started or moved
	reported   []core.Measurement // with noise, the configurations that it reported of

	nextAt    float64 // end of the phase; +Inf when it does not progress
	heapIndex int     // in the queue, -1 outside
}

// newJob is a job that is submitted now.
func (s *Simulator) newJob(job *workload.Job) *simJob {
	j := &simJob{Job: job, nextAt: math.Inf(1), heapIndex: -1, overhead: s.overheadOf(job), onCPUs: s.devices.cluster.Part(&job.Spec) == 0, onSlice: 1, speed: 1}
	if s.devices.slicing != nil {
		j.onSlice = s.config.Mig.onSlice(&job.Spec)
	}
	j.measuring, _ = job.Model.(workload.Measurer)
	if r, is := job.Model.(workload.Restarter); is {
		j.anew = r.BeginsAnew()
	}
	return j
}

// end forgets a job that ended.
func (s *Simulator) end(j *simJob) {
	j.ended = true
	s.jobs.byID[j.Spec.ID] = nil
	s.jobs.active--
}

// arrive submits the jobs whose time has come.
func (s *Simulator) arrive(at float64) bool {
	any := false
	for s.jobs.arrived < len(s.jobs.byID) && s.jobs.workload[s.jobs.arrived-s.jobs.base].Spec.SubmitSeconds <= at {
		j := s.newJob(&s.jobs.workload[s.jobs.arrived-s.jobs.base])
		s.jobs.byID[s.jobs.arrived] = j
		s.clock.events = append(s.clock.events, core.Event{
			Kind: core.JobSubmitted, AtSeconds: j.Spec.SubmitSeconds, Job: j.Spec.ID, Spec: j.KnownSpec(),
			StepsLeft: j.StepsLeft(0),
		})
		s.jobs.arrived++
		s.jobs.active++
		s.came(j.Spec.SubmitSeconds)
		any = true
	}
	return any
}

// jobOf is the job of the workload with an id, which is not one of a standing; nil where there is none.
func (s *Simulator) jobOf(id core.JobID) *workload.Job {
	if at := int(id) - s.jobs.base; at >= 0 && at < len(s.jobs.workload) {
		return &s.jobs.workload[at]
	}
	if j := s.jobs.byID[id]; j != nil {
		return j.Job
	}
	return nil
}

// jobQueue is a heap of running jobs by the end of their phase, then by JobID.
type jobQueue []*simJob

func (q jobQueue) Len() int { return len(q) }

func (q jobQueue) Less(a, b int) bool {
	if q[a].nextAt != q[b].nextAt {
		return q[a].nextAt < q[b].nextAt
	}
	return q[a].Spec.ID < q[b].Spec.ID
}

func (q jobQueue) Swap(a, b int) {
	q[a], q[b] = q[b], q[a]
	q[a].heapIndex, q[b].heapIndex = a, b
}

func (q *jobQueue) Push(x any) {
	j := x.(*simJob)
	j.heapIndex = len(*q)
	*q = append(*q, j)
}

func (q *jobQueue) Pop() any {
	last := len(*q) - 1
	j := (*q)[last]
	j.heapIndex = -1
	*q = (*q)[:last]
	return j
}

func compareJobs(a, b *simJob) int { return cmp.Compare(a.Spec.ID, b.Spec.ID) }
