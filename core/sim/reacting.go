package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// reaction is how a workload that reacts takes part. It is told of each moment at which something became of its jobs, once all of that moment has happened,
// and answers until nothing more comes of it; with publication.progress by rounds, of the end of each round. What a round decides it is told before time goes
// on: jobs that it submits then are told of in another round of the same moment. All methods do nothing on nil.
type reaction struct {
	to      workload.Reacting
	begun   bool
	results []result // not told yet
	owed    bool     // it could not be told of a moment, which is lastAt
	lastAt  float64
	ids     map[string]core.JobID
	paused  map[core.JobID]bool // by a policy
}

// result is what became of a job.
type result struct {
	workload.Result
	id core.JobID
}

// Reacting is the workload of the run that reacts; nil for a list of jobs.
func (s *Simulator) Reacting() workload.Reacting {
	if s.reaction == nil {
		return nil
	}
	return s.reaction.to
}

// JobOf is a job that was, or is to be, submitted; nil where there is none.
func (s *Simulator) JobOf(id core.JobID) *workload.Job {
	if id < 0 || int(id) >= len(s.jobs.workload) {
		return nil
	}
	return &s.jobs.workload[id]
}

// checkReacting refuses a workload that reacts and has jobs besides, or is told of ends before their time.
func (c *Config) checkReacting(w *workload.Workload) error {
	switch {
	case w.React == nil:
		return nil
	case len(w.Jobs) > 0:
		return errors.New("a workload that reacts has no list of jobs besides")
	case c.Publication.Completion == nextRound:
		return core.Diagnostics{{
			Path: "backend.config.publication.completion", Summary: "next_round does not go with a workload that reacts to the ends of its jobs", Hint: "write exact",
		}}
	}
	return nil
}

// note notes what became of a job.
func (r *reaction) note(j *simJob, what workload.Result) {
	if r == nil {
		return
	}
	what.Job = j.Spec.Name
	r.results = append(r.results, result{what, j.Spec.ID})
}

// reported notes a report of the metric.
func (r *reaction) reported(j *simJob, told workload.Reported, at float64) {
	if r != nil && told.Metric == r.to.Metric() {
		r.note(j, workload.Result{Kind: workload.JobReported, AtSeconds: at, Step: told.Step, Value: told.Value})
	}
}

// ended notes a job that a round ended.
func (r *reaction) ended(j *simJob, c *core.Change, at float64) {
	kind := workload.JobFailed
	if c.Action == core.Finish {
		kind = workload.JobEndedEarly
	}
	r.note(j, workload.Result{Kind: kind, AtSeconds: at, Reason: c.Reason})
}

// changed notes that a policy holds a job back, or that it runs again after that.
func (r *reaction) changed(j *simJob, c *core.Change, at float64) {
	switch {
	case r == nil:
	case c.Action == core.Pause && !r.paused[j.Spec.ID]:
		if r.paused == nil {
			r.paused = map[core.JobID]bool{}
		}
		r.paused[j.Spec.ID] = true
		r.note(j, workload.Result{Kind: workload.JobPaused, AtSeconds: at, Reason: c.Reason})
	case c.Action == core.Start && r.paused[j.Spec.ID]:
		delete(r.paused, j.Spec.ID)
		r.note(j, workload.Result{Kind: workload.JobResumed, AtSeconds: at})
	}
}

// catchUp tells the workload what became of its jobs since it was told last, by the round that was held then or because it could not be told. It returns the moment,
// whether there was anything to carry out, and whether a round of that moment is owed.
func (s *Simulator) catchUp(ctx context.Context) (at float64, reacted, owed bool, err error) {
	at = s.clock.now
	if s.reaction != nil && s.reaction.owed {
		at, owed = max(at, s.reaction.lastAt), s.reaction.lastAt > 0
	}
	reacted, err = s.react(ctx, at)
	return at, reacted, owed, err
}

// react tells the workload what became of its jobs up to a moment and carries out what it answers, and reports whether there was anything to carry out.
func (s *Simulator) react(ctx context.Context, at float64) (some bool, err error) {
	r := s.reaction
	if r == nil {
		return false, nil
	}
	for !r.begun || len(r.results) > 0 {
		slices.SortStableFunc(r.results, func(a, b result) int {
			return cmp.Or(cmp.Compare(a.AtSeconds, b.AtSeconds), cmp.Compare(a.id, b.id))
		})
		told := make([]workload.Result, len(r.results))
		for i := range told {
			told[i] = r.results[i].Result
		}
		answers, err := r.to.Tell(ctx, at, told)
		if r.owed, r.lastAt = err != nil, at; err != nil {
			return some, err // nothing is lost: it is told again
		}
		r.begun, r.results = true, r.results[:0]
		for i := range answers {
			if err := s.carryOutAnswer(&answers[i], at); err != nil {
				return some, err
			}
			some = true
		}
	}
	return some, nil
}

// carryOutAnswer does what the workload answers.
func (s *Simulator) carryOutAnswer(a *workload.Answer, at float64) error {
	r := s.reaction
	if a.Action == workload.SubmitJob {
		name := a.Submit.Spec.Name
		if _, taken := r.ids[name]; taken || name == "" {
			return fmt.Errorf("the workload submitted job %q, and there was one of that name already", name)
		}
		job := *a.Submit
		job.Spec.ID, job.Spec.SubmitSeconds = core.JobID(len(s.jobs.workload)), at
		if err := checkEnds(&workload.Workload{Jobs: []workload.Job{job}}).Err(); err != nil {
			return err
		}
		r.ids[name] = job.Spec.ID
		s.jobs.workload, s.jobs.byID = append(s.jobs.workload, job), append(s.jobs.byID, nil)
		s.arrive(at)
		return nil
	}
	id, known := r.ids[a.Job]
	if !known {
		return fmt.Errorf("the workload answered about job %q, which it never submitted", a.Job)
	}
	j := s.jobs.byID[id]
	switch {
	case j == nil:
	case a.Action == workload.EndJob:
		s.endEarly(j, at, a.Reason)
	default:
		s.suspend(j, at, a.Action == workload.SuspendJob)
	}
	return nil
}

// endEarly ends a job as completed with what it did.
func (s *Simulator) endEarly(j *simJob, at float64, why core.Reason) {
	s.advance(j, max(at, j.asOf)) // of one that goes by rounds, as of the end of the round
	s.unseat(j)
	s.end(j)
	s.clock.events = append(s.clock.events, core.Event{Kind: core.JobFinished, AtSeconds: at, Job: j.Spec.ID, Progress: j.progress, Early: why})
	s.reaction.note(j, workload.Result{Kind: workload.JobEndedEarly, AtSeconds: at, Reason: why})
	s.disturb(at, &s.clock.events)
}

// suspend has a job held back by its owner, or no longer. The devices that it holds are taken by the next round.
func (s *Simulator) suspend(j *simJob, at float64, suspended bool) {
	if j.Spec.Suspended == suspended {
		return
	}
	job := *j.Job
	job.Spec.Suspended = suspended
	j.Job, s.jobs.workload[job.Spec.ID] = &job, job
	s.clock.events = append(s.clock.events, core.Event{Kind: core.JobChanged, AtSeconds: at, Job: job.Spec.ID, Spec: &job.Spec, StepsLeft: job.StepsLeft(j.phase)})
}
