package twin

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/workload"
)

// subject is what is known of a job from which its models are drawn.
type subject struct {
	job                  *core.Job
	done                 float64 // work
	seconds              float64 // on what it asks for, or as many device-seconds
	pace                 pace    // nil: nobody knows how fast it is
	asked                float64 // work per second on what it asks for, before factor
	factor               float64 // by which it is faster than its pace
	here                 placed  // where that was seen
	sigmaHere, sigmaAway float64 // of the logarithm of its rate there, and of that elsewhere over that
	noise                *curve
	shift, square        float64
	steps                bool
	told, toldAt         float64 // steps left as policies know it, and the work done when they heard
	anew                 bool    // it loses what it did when it is stopped or moved
	batch                float64
}

// doubted is the error, as a logarithm, at which a job that measures something else is not taken to be like others of its application.
const doubted = 0.3

// linearSigma is how far off a job may be that was never seen on other numbers of replicas, and is taken to be as much faster.
const linearSigma = 0.1

// asker finds out about the jobs of a view.
type asker struct {
	beliefs  *WorkloadModel
	view     *core.View
	config   *sim.Config
	node     int // devices of the largest
	spanning []int
}

func (b *WorkloadModel) asker(v *core.View, c *sim.Config) *asker {
	a := &asker{beliefs: b, view: v, config: c, node: max(v.Cluster.LargestNode(), 1)}
	if c.Interference == 0 {
		return a
	}
	a.spanning = make([]int, len(v.Cluster.Nodes))
	for _, j := range v.Jobs {
		if j != nil && len(j.Seats) > 1 {
			for _, s := range j.Seats {
				a.spanning[s.Node]++
			}
		}
	}
	return a
}

// job is what is known of a job.
func (a *asker) job(j *core.Job) subject {
	now := a.view.NowSeconds
	s := subject{
		job: j, done: max(j.WorkDone(now), 0), seconds: max(secondsOf(j, now), 0), factor: 1, square: 1,
		steps: !math.IsNaN(j.StepsLeft) || j.StepTimes != nil, told: j.StepsLeft, anew: a.beliefs.restarts.anew(j.JobSpec),
	}
	s.toldAt = s.done
	if r := a.beliefs.records[j.ID]; r != nil && r.steps == j.StepsLeft {
		s.toldAt = min(r.stepsAt, s.done)
	}
	a.noise(&s)
	r := a.rated(j)
	s.pace = a.pace(&s, r)
	if s.pace == nil {
		return s
	}
	a.agree(&s, r)
	a.asks(&s, r)
	return s
}

// coming is what is known of jobs that come like one that was submitted. Of a live job that has its id and is another, as one may of a run before, they have nothing.
func (a *asker) coming(of submission) subject {
	spec := of.JobSpec
	if live := a.view.Job(spec.ID); live != nil && live.JobSpec != spec && live.Name != spec.Name {
		nobody := *spec
		nobody.ID = -1
		spec = &nobody
	}
	j := core.NewJob(spec)
	j.StepsLeft = of.steps
	return a.job(j)
}

// noise is that of the job's application, shifted to what it measured itself.
func (a *asker) noise(s *subject) {
	j := s.job
	if j.Batch.Initial > 0 {
		s.batch = float64(requestedBatch(j.JobSpec)) / float64(j.Batch.Initial)
	}
	own, tells := logNoise(j.Gradients)
	if of := a.beliefs.applications[j.Application]; of != nil && j.Application != "" {
		s.noise = of.noise.curve()
	}
	if !tells {
		return
	}
	if j.Gradients.SquaredNorm > 0 {
		s.square = j.Gradients.SquaredNorm
	}
	if s.noise == nil {
		s.noise = &curve{ends: []float64{math.Inf(1)}, logs: []float64{own}}
		return
	}
	s.shift = own - s.noise.at(s.done)
}

// rated is where the job had a rate last, and that rate alone; nil when nobody knows of any.
func (a *asker) rated(j *core.Job) *record {
	r := a.beliefs.records[j.ID]
	if a.view.Cluster.Sharing == core.Mig || r == nil || !(r.rate > 0) {
		return nil
	}
	alone := *r
	alone.rate /= a.known(j, r)
	if !(alone.rate > 0) || math.IsInf(alone.rate, 1) {
		return nil
	}
	return &alone
}

// known is the part of the rate of its model that a job has for reasons that the simulator knows, too.
func (a *asker) known(j *core.Job, r *record) float64 {
	part := 1 - min(max(r.slowed, 0), 0.99)
	if len(r.rated.Shape) > 1 {
		part *= 1 - a.config.LocalityPenalty
	}
	if t := j.Sensitivity; t != nil && a.view.Cluster.CountsResources {
		each := core.Resources{CPUs: j.CPUs, MemoryGB: j.MemoryGB}
		if each.CPUs == 0 {
			each.CPUs = t.Base.CPUs
		}
		if each.MemoryGB == 0 {
			each.MemoryGB = t.Base.MemoryGB
		}
		if j.Resources != nil {
			each = *j.Resources
		}
		part *= t.Speed(each)
	}
	if a.spanning != nil && slices.ContainsFunc(j.Seats, func(s core.Seat) bool { return len(j.Seats) > 1 && a.spanning[s.Node] > 1 }) {
		part *= 1 - a.config.Interference
	}
	return part
}

// pace is how fast the job is, by what is known of it and its application.
func (a *asker) pace(s *subject, r *record) pace {
	j := s.job
	of := a.beliefs.applications[j.Application]
	if j.Batch.Initial > 0 {
		if speeds := a.speeds(j, of); speeds != nil {
			t := &training{j.JobSpec, speeds}
			if r == nil || t.rate(s.logNoise(r.at), &r.rated) > 0 {
				return t
			}
		}
		if j.StepTimes != nil && a.beliefs.options.DeclaredSteps {
			return timed{j.JobSpec}
		}
		if r == nil {
			return nil
		}
	} else if j.StepTimes != nil {
		if t := (timed{j.JobSpec}); r == nil || t.rate(0, &r.rated) > 0 {
			return t
		}
	}
	if r != nil {
		return linear{r.rate / float64(r.rated.Replicas)}
	}
	perAsked := math.NaN()
	if of != nil && j.Application != "" {
		perAsked = median(of.speeds)
	}
	if !(perAsked > 0) {
		perAsked = median(a.beliefs.anyone)
	}
	if !(perAsked > 0) {
		perAsked = 1 // a second of its work takes one
	}
	return linear{perAsked / float64(max(j.Requested, 1))}
}

// speeds are those of its application, or its own where it has none or is not like it.
func (a *asker) speeds(j *core.Job, of *application) []speed {
	var speeds []speed
	if j.Application != "" {
		speeds = of.fresh()
	}
	if len(j.Measured) == 0 {
		return speeds
	}
	sum, n := 0.0, 0.0
	for _, m := range j.Measured {
		if len(speeds) > 0 && m.StepSeconds > 0 && m.PerDevice > 0 {
			sum += math.Abs(math.Log(on(speeds, m.Accelerator).StepTime(m.Nodes, m.Replicas, float64(m.PerDevice), 0) / m.StepSeconds))
			n++
		}
	}
	if n > 0 && sum/n <= doubted {
		return speeds
	}
	return a.beliefs.ownFit(j)
}

// ownFit are the speeds of a job by what it measured alone; nil when that is nothing.
func (b *WorkloadModel) ownFit(j *core.Job) []speed {
	own := b.owns[j.ID]
	if own == nil || !slices.Equal(own.measured, j.Measured) {
		valid := &application{fitted: -1}
		for _, m := range j.Measured {
			valid.measure(m)
		}
		own = &ownFit{slices.Clone(j.Measured), valid.fresh()}
		if b.owns == nil {
			b.owns = map[core.JobID]*ownFit{}
		}
		b.owns[j.ID] = own
	}
	return own.speeds
}

// ownFit is what a job measured, and the fit to that.
type ownFit struct {
	measured []core.Measurement
	speeds   []speed
}

// logNoise is the logarithm of the job's noise scale at a progress.
func (s *subject) logNoise(progress float64) float64 {
	if s.noise == nil {
		return -mostLog
	}
	return s.noise.at(progress) + s.shift
}

// agree lets the pace agree with the rate that the job had last, or else with what it measured.
func (a *asker) agree(s *subject, r *record) {
	var sigma float64
	t, trains := s.pace.(*training)
	switch s.pace.(type) {
	case *training:
		sigma = math.Hypot(t.speeds[0].sigma, s.gainSigma())
	case linear:
		if s.job.MaxReplicas > s.job.MinReplicas {
			sigma = linearSigma
		}
	}
	if r != nil {
		if rate := s.pace.rate(s.logNoise(r.at), &r.rated); rate > 0 {
			s.factor = r.rate / rate
			s.here, s.sigmaAway = placed{len(r.rated.Shape), r.rated.Replicas}, sigma
			return
		}
	}
	s.sigmaHere = sigma
	if !trains {
		return
	}
	sum, n := 0.0, 0.0
	for _, m := range s.job.Measured {
		if m.StepSeconds > 0 && m.PerDevice > 0 {
			sum += math.Log(on(t.speeds, m.Accelerator).StepTime(m.Nodes, m.Replicas, float64(m.PerDevice), 0) / m.StepSeconds)
			n++
		}
	}
	if n > 0 {
		s.factor = math.Exp(sum / n)
	}
}

// gainSigma is how far off the gain of its batch may be, because its noise scale is another at another batch.
func (s *subject) gainSigma() float64 {
	if s.noise == nil || !(s.batch > 0) {
		return 0
	}
	at := s.logNoise(s.done)
	return math.Abs(math.Log(gain(max(s.batch, 2), at+s.noise.sigma)/gain(max(s.batch, 2), at-s.noise.sigma))) / 2
}

// asks finds how fast the job is on what it asks for, or where it was seen; 0 when nobody knows.
func (a *asker) asks(s *subject, r *record) {
	if l, is := s.pace.(linear); is {
		s.asked = l.perReplica * float64(max(s.job.Requested, 1))
		return
	}
	c := a.asked(s.job.JobSpec)
	if s.asked = s.pace.rate(s.logNoise(s.done), &c); s.asked > 0 {
		return
	}
	if r != nil {
		s.asked = s.pace.rate(s.logNoise(r.at), &r.rated) * float64(max(s.job.Requested, 1)) / float64(r.rated.Replicas)
	}
	if !(s.asked > 0) && s.seconds > 0 {
		s.asked = s.done / s.seconds
	}
	if !(s.asked > 0) {
		s.asked = 1
	}
}

// asked is how a job runs that has what it asks for, on as few of the largest nodes as hold it.
func (a *asker) asked(j *core.JobSpec) workload.Running {
	c := workload.Running{Replicas: max(j.Requested, 1)}
	accelerator := ""
	for t := range a.view.Cluster.Accelerators {
		if j.Accepts(a.view.Cluster, core.AcceleratorID(t)) {
			accelerator = a.view.Cluster.Accelerators[t]
			break
		}
	}
	for left := c.Replicas; left > 0; left -= a.node {
		c.Shape, c.Accelerators = append(c.Shape, min(left, a.node)), append(c.Accelerators, accelerator)
	}
	return c
}
