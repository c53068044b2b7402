package sim

import (
	"cmp"
	"container/heap"
	"context"
	"io"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

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
	j := &simJob{Job: job, nextAt: math.Inf(1), heapIndex: -1, overhead: s.overheadOf(job), onCPUs: s.cluster.Part(&job.Spec) == 0, onSlice: 1, speed: 1}
	if s.slicing != nil {
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
	s.jobs[j.Spec.ID] = nil
	s.active--
}

// progressed tells the job's progress as of a moment.
func (j *simJob) progressed(at float64) core.Event {
	return core.Event{
		Kind: core.JobProgressed, AtSeconds: at, Job: j.Spec.ID,
		Progress: j.progress, Rate: j.rate, FromSeconds: max(j.asOf, j.pausedUntil), StepsLeft: j.StepsLeft(j.phase), Slowed: j.slowed,
	}
}

// reach sets a job's progress, and notes the moment if it never came so far: what a failure undid is not done twice.
func (s *Simulator) reach(j *simJob, progress, at float64) {
	j.progress = progress
	if progress > j.furthest {
		j.furthest = progress
		s.came(at)
	}
}

// advance brings a job's progress up to a moment not after its next phase end.
func (s *Simulator) advance(j *simJob, now float64) {
	if from := max(j.asOf, j.pausedUntil); now > from && j.rate > 0 {
		s.reach(j, min(j.progress+(now-from)*j.rate, j.Model.PhaseEnd(j.phase)), now)
	}
	j.asOf = now
}

// lose takes back what a job did that keeps no checkpoint: its replicas end.
func (j *simJob) lose() {
	if j.anew {
		j.progress, j.phase = 0, 0
	}
}

// schedule computes the rate of a job from now on, and queues the end of its phase.
func (s *Simulator) schedule(j *simJob) {
	j.rate, j.nextAt = 0, math.Inf(1)
	if j.seats != nil {
		if j.rate = s.rateIn(j, j.phase); j.rate > 0 {
			j.nextAt = s.worksFrom(j) + (j.Model.PhaseEnd(j.phase)-j.progress)/j.rate
		}
	}
	switch {
	case s.config.Publication.byRounds():
	case j.heapIndex >= 0:
		heap.Fix(&s.queue, j.heapIndex)
	case j.seats != nil:
		heap.Push(&s.queue, j)
	}
}

// worksFrom is when a job goes on, as far as the end of its phase is concerned.
func (s *Simulator) worksFrom(j *simJob) float64 {
	if s.config.Publication.Overhead == everyRound {
		return max(j.asOf, j.runsFrom)
	}
	return max(j.asOf, j.pausedUntil)
}

// rateIn is the rate of a job in a phase, where and how it runs now.
func (s *Simulator) rateIn(j *simJob, phase int) float64 {
	rate := j.Model.Rate(phase, j.running) * j.speed
	if len(j.seats) > 1 {
		rate *= 1 - s.config.LocalityPenalty
	}
	if j.disturbed {
		rate *= 1 - s.config.Interference
	}
	if s.sharing != nil {
		rate *= (1 - j.slowed) * j.onSlice
	}
	return rate
}

// endPhase ends the phase of a job at its time, and reports whether that ended the job.
func (s *Simulator) endPhase(j *simJob, w core.Wake) bool {
	at := j.nextAt
	j.asOf = at
	s.reach(j, j.Model.PhaseEnd(j.phase), at)
	reports := s.tellReports(j, at)
	j.phase++
	j.unmeasured = true
	if j.phase < j.Model.Phases() {
		s.schedule(j)
		s.events = append(s.events, j.progressed(at))
		return reports && w.OnReports && w.IntervalSeconds == 0
	}
	if s.config.Publication.Completion == nextRound {
		at = s.onGrid(at, w)
	}
	s.finish(j, at)
	s.disturb(at, &s.events)
	return true
}

func (s *Simulator) finish(j *simJob, at float64) {
	s.unseat(j)
	s.end(j)
	s.events = append(s.events, core.Event{Kind: core.JobFinished, AtSeconds: at, Job: j.Spec.ID, Progress: j.progress})
	s.reaction.note(j, workload.Result{Kind: workload.JobFinished, AtSeconds: at})
}

// span counts a job in or out of the nodes it spans.
func (s *Simulator) span(j *simJob, by int) {
	if s.config.Interference == 0 || len(j.seats) < 2 {
		return
	}
	if missing := len(s.cluster.Nodes) - len(s.spanning); missing > 0 {
		s.spanning = append(s.spanning, make([]int, missing)...)
	}
	for _, seat := range j.seats {
		s.spanning[seat.Node] += by
	}
}

// disturb applies interference, and tells those whose rate it changed: every job that spans nodes is slowed down while
// another one shares one of its nodes.
func (s *Simulator) disturb(now float64, tell *[]core.Event) {
	if s.sharing != nil {
		s.interfere(now, tell)
	}
	if s.config.Interference == 0 {
		return
	}
	for _, j := range s.running {
		disturbed := false
		if len(j.seats) > 1 {
			for _, seat := range j.seats {
				disturbed = disturbed || s.spanning[seat.Node] > 1
			}
		}
		if disturbed != j.disturbed {
			s.advance(j, now)
			j.disturbed = disturbed
			s.schedule(j)
			*tell = append(*tell, j.progressed(now))
		}
	}
}

// advanceByRounds advances every running job round by round, as published simulators do, until something happens.
func (s *Simulator) advanceByRounds(ctx context.Context, w core.Wake) (float64, error) {
	now, whole := s.now, s.config.Publication.Progress == wholeSteps
	_, reacted, owed, err := s.catchUp(ctx)
	if err != nil || owed {
		return now, err
	}
	for {
		if err := ctx.Err(); err != nil {
			s.now = now
			return 0, err
		}
		next := core.NextOnGrid(now, w.IntervalSeconds)
		if !s.begun && now == 0 && s.config.Publication.FirstRound == atStart {
			next = 0
		}
		if !reacted && !s.works(math.Inf(1)) { // jobs that were submitted just now are told of in this round
			next = max(next, s.onGrid(min(s.nextEvent(), w.BySeconds), w))
		}
		if s.over(next) {
			return 0, io.EOF
		}
		told := len(s.events)
		for i := 0; i < len(s.running); i++ {
			j := s.running[i]
			if whole {
				s.advanceSteps(j, now, next-now)
			} else {
				s.advanceRound(j, now, next-now)
			}
			if j.ended {
				i--
			}
		}
		now = next
		s.happenToNodes(now)
		s.arrive(now)
		again, err := s.react(ctx, now)
		if err != nil {
			s.now = now
			return 0, err
		}
		s.disturb(now, &s.events)
		if len(s.events) > told || reacted || again || now >= w.BySeconds {
			break
		}
	}
	if whole {
		for _, j := range s.running { // the line that was told last assumed that it is never between two steps
			s.events = append(s.events, j.progressed(now))
		}
	}
	return now, nil
}

// advanceSteps lets a job do the whole units of its work that fit the seconds of a round; a unit that is longer than a round goes on in the next. When it is
// done with the last of them it ends with the round.
func (s *Simulator) advanceSteps(j *simJob, now, seconds float64) {
	left := seconds - min(max(j.pausedUntil-now, 0), seconds)
	j.asOf = now + seconds
	for left > 0 && j.rate > 0 {
		s.report(j, now)
		most, missing := j.rate*left*(1+1e-12), j.Model.PhaseEnd(j.phase)-j.progress
		if most < missing {
			if most >= 1 || left < seconds {
				most = math.Floor(most)
			}
			s.reach(j, j.progress+most, j.asOf)
			return
		}
		left -= missing / j.rate
		s.reach(j, j.Model.PhaseEnd(j.phase), j.asOf)
		s.tellReports(j, j.asOf)
		j.phase++
		j.unmeasured = true
		if j.phase == j.Model.Phases() {
			s.finish(j, j.asOf)
			return
		}
		s.schedule(j)
	}
}

// give notes the CPUs and the memory that each replica of a job has from now on, and how fast it is with them. Where nobody counts them, and of what it
// does not ask for, it has the base.
func (s *Simulator) give(j *simJob, each *core.Resources) {
	j.resources = each
	t := j.Spec.Sensitivity
	if t == nil || !s.cluster.CountsResources {
		return
	}
	has := t.Base
	if each != nil {
		has = *each
	} else {
		has = core.Resources{CPUs: cmp.Or(j.Spec.CPUs, has.CPUs), MemoryGB: cmp.Or(j.Spec.MemoryGB, has.MemoryGB)}
	}
	j.speed = t.Speed(has)
}

// advanceRound advances a job by the seconds of a round.
func (s *Simulator) advanceRound(j *simJob, now, seconds float64) {
	pause := min(max(j.pausedUntil-now, 0), seconds)
	now += pause
	seconds -= pause
	phase := j.phase
	if seconds > 0 && s.noise != nil {
		j.unmeasured = true // each round anew
	}
	for seconds > 0 && j.rate > 0 {
		s.report(j, now)
		end := j.Model.PhaseEnd(j.phase)
		if j.progress+j.rate*seconds < end {
			now += seconds
			s.reach(j, j.progress+j.rate*seconds, now)
			break
		}
		delta := (end - j.progress) / j.rate
		if s.config.Publication.EpochEnds == wholeSeconds {
			delta = math.RoundToEven(delta)
		}
		delta = min(delta, seconds)
		now += delta
		seconds -= delta
		s.reach(j, end, now)
		s.tellReports(j, now)
		j.phase++
		j.unmeasured = true
		if j.phase == j.Model.Phases() {
			s.finish(j, now)
			return
		}
		s.schedule(j)
	}
	j.asOf = now
	if j.phase != phase {
		s.events = append(s.events, j.progressed(now))
	}
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
