package core

import (
	"context"
	"math"
	"slices"
)

// review asks the admitters that look at jobs as they go on whom to end and whom to hold back. Those that are held back are shown each time, for what
// becomes of them is up to others.
func (p *Pipeline) review(ctx context.Context) error {
	s := &p.state
	s.reviewed = s.reviewed[:0]
	s.reported = slices.DeleteFunc(s.reported, func(j *Job) bool { return j.State != Waiting && j.State != Running })
	s.reported = append(s.reported, s.held...)
	if len(s.reported) == 0 && len(s.report.Ended) == 0 {
		return nil
	}
	slices.SortFunc(s.reported, compareJobs)
	for i := range p.stages.Admission {
		c := &p.stages.Admission[i]
		reviewer := c.can.Reviewer
		if reviewer == nil {
			continue
		}
		if err := s.reportEnded(ctx, c.ID, c.can.Historian); err != nil {
			return err
		}
		if len(s.reported) == 0 {
			continue
		}
		if err := s.ask(ctx, c.ID, c.can.Recoverer, nil, func() error {
			verdicts, err := reviewer.Review(ctx, &s.view, s.reported)
			if err != nil {
				return s.malfunction(c.ID, "review", err)
			}
			s.expectReview(&c.can)
			return s.takeReview(c.ID, verdicts)
		}); err != nil {
			return err
		}
	}
	return nil
}

// reportEnded tells a stage that learns from how jobs end of those that ended since the round before; nil learns nothing.
func (s *state) reportEnded(ctx context.Context, component string, h Historian) error {
	if h == nil || len(s.report.Ended) == 0 {
		return nil
	}
	s.asking = component
	err := h.Ended(ctx, &s.view, s.report.Ended)
	s.asking = ""
	if err != nil {
		return s.malfunction(component, "ended", err)
	}
	return nil
}

// reviews reports whether an admitter looks at jobs as they go on.
func (p *Pipeline) reviews() bool {
	for i := range p.stages.Admission {
		if p.stages.Admission[i].can.Reviewer != nil {
			return true
		}
	}
	return false
}

// onReports reports whether somebody decides by what jobs report: an admitter that reviews, an elasticity that follows it, or an observer.
func (p *Pipeline) onReports() bool {
	return p.stages.Elasticity.can.FollowsReports() || p.wakeOnReports || p.reviews()
}

// takeReview turns the verdicts of a reviewer into changes. Of two verdicts about a job that of the first reviewer holds.
func (s *state) takeReview(component string, verdicts []Verdict) error {
	if err := s.checkReview(component, verdicts); err != nil {
		return err
	}
	for _, v := range verdicts {
		if v.Code == Admit || v.Code == Defer && s.marks[v.Job].held || slices.ContainsFunc(s.reviewed, func(c Change) bool { return c.Job == v.Job }) {
			continue
		}
		c := Change{Round: s.view.Round, Action: Finish, Job: v.Job, Reason: v.Reason, By: component}
		if v.Code == Defer {
			c.Action = Pause
		}
		s.reviewed = append(s.reviewed, c)
		v.By = component
		s.reportVerdict(v)
	}
	return nil
}

// checkReview holds a reviewer to verdicts that may be given, on jobs that it was asked about.
func (s *state) checkReview(component string, verdicts []Verdict) error {
	last := JobID(-1)
	for i := range verdicts {
		v := &verdicts[i]
		j := s.view.Job(v.Job)
		if v.Job <= last || j == nil || j.State == Pending && !s.marks[v.Job].held {
			return s.broken(component, v.Job, RuleAnswerForAsked, "verdict %d is for job %d, which is neither admitted nor held back, was already answered, or is out of order", i, v.Job)
		}
		last = v.Job
		if err := s.checkAllowed(component, v, Admit, Defer, End); err != nil {
			return err
		}
		if v.Code == Defer && j.Pinned && j.State == Running {
			return s.broken(component, v.Job, RulePinnedStays, "holds it back")
		}
	}
	return nil
}

// carryOut ends and holds back the jobs that changes finish and pause, before the other stages are asked.
func (s *state) carryOut(changes []Change) error {
	some := false
	for i := range changes {
		c := &changes[i]
		if c.Action != Finish && c.Action != Pause {
			continue
		}
		j := s.view.Job(c.Job)
		if j == nil || j.State.Ended() {
			return s.broken(c.By, c.Job, RuleAnswerForAsked, "%v of job %d, which is not there", c.Action, c.Job)
		}
		some = true
		if c.Action == Finish {
			s.finish(j, c.Reason)
		} else {
			s.pause(j, c.Reason)
		}
	}
	if some {
		s.restale()
		s.forgetEnded()
	}
	return nil
}

// finish ends a job as completed with the work that it did.
func (s *state) finish(j *Job, why Reason) {
	s.letGo(j)
	j.WaitingReason = why
	s.end(j, Completed, s.view.NowSeconds)
}

// pause has a job wait for admission again. What it did is kept.
func (s *state) pause(j *Job, why Reason) {
	s.letGo(j)
	j.WaitingReason = why
	s.touch(j.ID)
	s.marks[j.ID].paused, s.paused = s.view.Round, true
	s.keepBack(j)
	if j.State != Pending {
		s.withdraw(j)
	}
}

// keepBack notes that a reviewer holds a job back.
func (s *state) keepBack(j *Job) {
	if m := s.marks[j.ID]; !m.held {
		m.held, s.held = true, insertJob(s.held, j)
	}
}

// letOn notes that a job that a reviewer held back is admitted again.
func (s *state) letOn(j *Job) {
	if m := s.marks[j.ID]; m.held {
		m.held, s.held = false, removeJob(s.held, j)
	}
}

// undecided reports whether a round is to follow because jobs are held back: a reviewer may answer otherwise about them once it has seen what came of
// the last round, and nothing need happen any more that would call for one.
func (s *state) undecided() bool {
	return s.paused || len(s.held) > 0 && (len(s.report.Ended) > 0 || slices.ContainsFunc(s.report.Events, func(e Event) bool {
		return e.Kind != JobProgressed && e.Kind != JobMeasured
	}))
}

// expectReview takes in when a reviewer wants to look again, though nothing happens until then, at those that are held back.
func (s *state) expectReview(can *Abilities) {
	if can.Reviewer == nil || can.Steady == nil {
		return
	}
	if at := can.Steady.Standing().UntilSeconds; at > s.view.NowSeconds {
		s.reviewAt = min(s.reviewAt, at)
	}
}

// nextReview is when reviewers want to look again at those that are held back; +Inf while none is.
func (s *state) nextReview() float64 {
	if len(s.held) == 0 {
		return math.Inf(1)
	}
	return s.reviewAt
}

// letGo takes a job's devices away in this round, before anybody is asked about them.
func (s *state) letGo(j *Job) {
	if j.State != Running {
		return
	}
	work := j.WorkDone(s.view.NowSeconds)
	s.release(j, s.view.NowSeconds)
	delete(s.retries.notBefore, j.ID)
	j.Progress, j.ProgressRate, j.ProgressAsOf = work, 0, s.view.NowSeconds
}
