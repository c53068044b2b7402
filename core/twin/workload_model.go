package twin

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
)

// WorkloadModelOptions say what a WorkloadModel assumes. By the zero value jobs are as long as they are declared, and none arrive.
type WorkloadModelOptions struct {
	Work     string // how much work jobs have: one of the constants below; empty for WorkDeclared
	Arrivals string // that are to come; empty for ArrivalsNone
	// Window is how many submissions, the latest ones, stand for those to come; 0 for 20.
	Window int
	// PriorSeconds and PriorSigma are the median, and the standard deviation of the logarithm, of how long jobs are, on the devices that they ask for, before
	// any ended; 0 for an hour, and a factor of e^2.
	PriorSeconds, PriorSigma float64
	// DeclaredSteps lets the step times that jobs with a batch declare stand for what nobody measured yet. Of jobs without a batch they always count.
	DeclaredSteps bool
	// Config is that of the worlds; the zero value stands for the defaults of the simulator, with the pauses that were seen in the run.
	Config *sim.Config
}

// The values of BeliefOptions.Work.
const (
	WorkDeclared = "declared" // as declared, as far as the declarations of jobs that ended were right, or else as the history has it
	WorkHistory  = "history"  // as long as jobs before it
	WorkDrawn    = "drawn"    // by PriorSeconds and PriorSigma alone
)

// The values of BeliefOptions.Arrivals.
const (
	ArrivalsNone   = "none"
	ArrivalsRecent = "recent" // as many as lately, each like one of those
)

// The defaults of BeliefOptions.
const (
	usualWindow       = 20
	usualPriorSeconds = 3600
	usualPriorSigma   = 2
)

// WorkloadModel is what a run taught so far: how long jobs are, how fast they come, how they go on more devices. It observes the run, and knows only what policies
// may know. Several may draw at a time, but not while a round is observed: a forecast beside the run has a clone.
type WorkloadModel struct {
	options WorkloadModelOptions

	begun        bool
	history      history
	applications applications
	anyone       []float64 // speeds of jobs without a batch: see application.speeds
	records      map[core.JobID]*record
	submissions  submissions
	restarts     restarts
	machines     machines
	pauses       []float64 // seconds, the latest
	owns         map[core.JobID]*ownFit

	mutex    sync.Mutex
	prepared *prepared // of the view that was drawn from last; nil for none
}

// record is what is noted of a job that has not ended.
type record struct {
	running workload.Running // after the last round; its lists are not changed
	moved   float64          // seconds of the last start or move
	told    bool             // it progressed since
	had     float64          // progress when it was last stopped or moved, until it goes on; 0 for none
	rated   workload.Running // where it had the rate
	rate    float64          // work per second; 0 before any is known
	at      float64          // progress then
	steps   float64          // that it has left, as it told last
	stepsAt float64          // progress when it told that first
	slowed  float64          // part of its rate that it lost to others
}

// NewWorkloadModel knows nothing yet.
func NewWorkloadModel(o WorkloadModelOptions) *WorkloadModel { return &WorkloadModel{options: o} }

// Clone is a copy of the model as it is now. It does not change with what the run teaches later. O(jobs that have not ended + what is remembered, which is bounded).
func (b *WorkloadModel) Clone() *WorkloadModel {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	c := &WorkloadModel{
		options: b.options, begun: b.begun, history: b.history.clone(), applications: b.applications.clone(), anyone: slices.Clone(b.anyone),
		records: maps.Clone(b.records), submissions: b.submissions.clone(), restarts: b.restarts.clone(), machines: b.machines.clone(), pauses: slices.Clone(b.pauses),
		prepared: b.prepared, owns: maps.Clone(b.owns),
	}
	for id, r := range c.records {
		of := *r
		c.records[id] = &of
	}
	return c
}

// ObserveRound learns from a round. It fails never. O(events and changes of the round).
func (b *WorkloadModel) ObserveRound(r *core.Report) error {
	v := r.View
	b.prepared = nil
	b.init()
	if !b.begun && v.Round > 1 { // the run is older
		b.begun = true
		b.adopt(v)
		b.machines.observe(v, nil)
		return nil
	}
	b.begun = true
	var finished map[core.JobID]*core.Event // by job, made when one does
	for i := range r.Events {
		e := &r.Events[i]
		switch e.Kind {
		case core.JobSubmitted:
			b.submissions.add(e.Spec, e.StepsLeft, b.options.window())
			b.restarts.note(e.Job, e.Checkpointing)
			if e.Held != nil && v.Job(e.Job) != nil {
				b.adoptJob(v, v.Job(e.Job))
			}
		case core.JobProgressed, core.JobShrunk:
			b.restarts.note(e.Job, e.Checkpointing)
			b.progressed(v, e)
		case core.JobInterrupted: // what that costs says nothing of a stop
			if r := b.records[e.Job]; r != nil {
				r.had = 0
			}
		case core.JobMeasured:
			if j := v.Job(e.Job); j != nil {
				b.measured(v, j, e.Measurement, e.Gradients, j.WorkDone(e.AtSeconds))
			}
		case core.JobFinished:
			if finished == nil {
				finished = map[core.JobID]*core.Event{}
			}
			finished[e.Job] = e
		}
	}
	for i := range r.Changes {
		b.changed(v, &r.Changes[i])
	}
	for _, j := range r.Ended {
		b.ended(j, finished[j.ID])
	}
	b.restarts.forget(v, &b.submissions)
	b.machines.observe(v, r.Events)
	return nil
}

// Recall takes in jobs that ended before anybody looked, in the order of their ends. It is called before the first round.
func (b *WorkloadModel) Recall(ended []*core.Job) {
	b.init()
	for _, j := range ended {
		b.submissions.add(j.JobSpec, math.NaN(), b.options.window())
		b.ended(j, nil)
	}
}

func (b *WorkloadModel) init() {
	if b.records == nil {
		b.records, b.applications = map[core.JobID]*record{}, applications{}
	}
}

func (o *WorkloadModelOptions) window() int {
	if o.Window > 0 {
		return o.Window
	}
	return usualWindow
}

func (o *WorkloadModelOptions) prior() logNormal {
	p := logNormal{usualPriorSeconds, usualPriorSigma}
	if o.PriorSeconds > 0 {
		p.median = o.PriorSeconds
	}
	if o.PriorSigma > 0 {
		p.sigma = o.PriorSigma
	}
	return p
}

// record is the one of a job.
func (b *WorkloadModel) record(id core.JobID) *record {
	r := b.records[id]
	if r == nil {
		r = &record{}
		b.records[id] = r
	}
	return r
}

// adopt takes in what the jobs of a view tell, of a run that is older than what is known of it.
func (b *WorkloadModel) adopt(v *core.View) {
	for _, j := range v.Jobs {
		if j != nil {
			steps := math.NaN() // at its beginning
			if j.WorkDone(v.NowSeconds) == 0 {
				steps = j.StepsLeft
			}
			b.submissions.add(j.JobSpec, steps, b.options.window())
			b.adoptJob(v, j)
		}
	}
}

func (b *WorkloadModel) adoptJob(v *core.View, j *core.Job) {
	for _, m := range j.Measured {
		b.measured(v, j, m, j.Gradients, j.WorkDone(v.NowSeconds))
	}
	if j.State != core.Running {
		return
	}
	r := b.record(j.ID)
	r.noteSteps(j.StepsLeft, j.Progress)
	r.running, r.moved, r.told = runningOn(v.Cluster, j.Seats, j.Tuning), j.LastChange, j.ProgressRate > 0
	if j.ProgressRate > 0 {
		b.rated(v, j, r, j.ProgressRate, j.Progress)
	}
}

// measured takes in what a job measured.
func (b *WorkloadModel) measured(v *core.View, j *core.Job, m core.Measurement, g core.Gradients, progress float64) {
	a := b.applications.of(j.Application, v.Round)
	a.measure(m)
	if log, tells := logNoise(g); tells {
		a.noise.add(progress, log)
	}
}

// noteSteps notes how many steps the job says that it has left.
func (r *record) noteSteps(steps, progress float64) {
	if steps != r.steps {
		r.steps, r.stepsAt = steps, progress
	}
}

// progressed takes in how fast a job is.
func (b *WorkloadModel) progressed(v *core.View, e *core.Event) {
	j := v.Job(e.Job)
	if j == nil {
		return
	}
	r := b.record(j.ID)
	r.noteSteps(e.StepsLeft, e.Progress)
	if e.Kind == core.JobShrunk {
		r.running, r.moved, r.told = runningOn(v.Cluster, e.Seats, r.running.Tuning), e.AtSeconds, true
	}
	r.slowed = e.Slowed
	if !(e.Rate > 0) || r.running.Replicas == 0 {
		return
	}
	if !r.told {
		b.pauses = latest(append(b.pauses, max(e.FromSeconds-r.moved, 0)), mostPauses)
		r.told = true
	}
	if r.had > 0 {
		b.restarts.see(j.JobSpec, e.Progress, r.had)
		r.had = 0
	}
	b.rated(v, j, r, e.Rate, e.Progress)
}

// mostPauses is how many pauses are kept.
const mostPauses = 50

func latest(list []float64, most int) []float64 {
	if excess := len(list) - most; excess > 0 {
		return slices.Delete(list, 0, excess)
	}
	return list
}

// rated notes the rate of a job where it runs.
func (b *WorkloadModel) rated(v *core.View, j *core.Job, r *record, rate, progress float64) {
	r.rate, r.at, r.rated = rate, progress, r.running
	if j.Batch.Initial > 0 {
		return
	}
	perReplica := rate / (1 - min(r.slowed, 0.99)) * float64(max(j.Requested, 1)) / float64(r.running.Replicas)
	b.applications.of(j.Application, v.Round).went(perReplica)
	b.anyone = latest(append(b.anyone, perReplica), mostSpeeds)
}

// changed notes where jobs run.
func (b *WorkloadModel) changed(v *core.View, c *core.Change) {
	switch c.Action {
	case core.Start, core.Move:
		r := b.record(c.Job)
		b.leaves(v, r, c.Job)
		r.running, r.moved, r.told = runningOn(v.Cluster, c.Seats, c.Tuning), v.NowSeconds, false
	case core.Tune:
		b.record(c.Job).running.Tuning = c.Tuning
	case core.Stop:
		r := b.record(c.Job)
		b.leaves(v, r, c.Job)
		r.running = workload.Running{}
	}
}

// leaves notes what a job has done that is stopped or moved. A start notes nothing: what its stop noted holds.
func (b *WorkloadModel) leaves(v *core.View, r *record, id core.JobID) {
	if j := v.Job(id); j != nil && r.running.Replicas > 0 {
		r.had = j.WorkDone(v.NowSeconds)
	}
}

// ended keeps how a job went.
func (b *WorkloadModel) ended(j *core.Job, finish *core.Event) {
	delete(b.records, j.ID)
	delete(b.owns, j.ID)
	if j.Attained <= 0 {
		return // it never ran
	}
	e := endingOf(j, j.Progress, j.FinishSeconds, j.State == core.Completed)
	if finish != nil { // it knows the work that there was, which need not be what was declared
		e.work, e.all = finish.Progress, finish.Early == core.NoReason
	}
	b.history.add(e)
}

// runningOn is how a job runs on seats.
func runningOn(c *core.Cluster, seats []core.Seat, t core.Tuning) workload.Running {
	r := workload.Running{Shape: make([]int, len(seats)), Accelerators: make([]string, len(seats)), Tuning: t}
	for i, s := range seats {
		r.Shape[i] = s.Devices.Count()
		r.Accelerators[i] = c.Accelerators[c.Nodes[s.Node].Accelerator]
		r.Replicas += r.Shape[i]
	}
	return r
}
