package host

import (
	"context"
	"errors"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Admitter reaches an admission policy. The stage is an io.Closer: closing it ends the process. It is a core.CurveAdmitter if the policy
// or its fallback looks at curves, and likewise a core.Reviewer.
func Admitter(ctx context.Context, s Spec[core.Admitter]) (core.Admitter, error) {
	a := &admitter{worker: newWorker(s.ID, s.Plugin, s.Dial, s.Options), fallback: s.Fallback, asked: wire.NewJobSender()}
	a.reset = func() { a.asked.Reset(); a.verdicts.Reset() }
	err := a.start(ctx)
	fallback, session := wire.AbilitiesOf(s.Fallback), wire.Abilities{}
	if err == nil {
		session = a.session.Abilities
	}
	looks := fallback.Has(wire.UsesCurves) || session.Has(wire.UsesCurves)
	reviews := fallback.Has(wire.ReviewsJobs) || session.Has(wire.ReviewsJobs)
	switch {
	case looks && reviews:
		return curveReviewer{curveAdmitter{a}}, err
	case looks:
		return curveAdmitter{a}, err
	case reviews:
		return reviewer{a}, err
	}
	return a, err
}

type admitter struct {
	worker
	fallback core.Admitter
	asked    *wire.Sender[core.JobID]
	ids      []core.JobID
	jobs     []*core.Job
	verdicts wire.Receiver[core.Verdict]
}

// Admit puts the question to the process.
func (a *admitter) Admit(ctx context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	a.ids = a.ids[:0]
	for _, j := range waiting {
		a.ids = append(a.ids, j.ID)
	}
	verdicts, err := a.put(ctx, v, candidates{})
	if errors.Is(err, errUseFallback) {
		return a.fallback.Admit(ctx, v, waiting)
	}
	return verdicts, err
}

// put asks the process about the jobs of a.ids.
func (a *admitter) put(ctx context.Context, v *core.View, sent candidates) (verdicts []core.Verdict, err error) {
	err = a.ask(ctx, v, sent, func(ctx context.Context, u *stagev1.ViewUpdate) (bool, *stagev1.Standing, error) {
		steps, inserted := a.asked.Encode(a.ids)
		answer, err := stagev1.NewAdmissionServiceClient(a.session.Conn).Admit(ctx, &stagev1.AdmitRequest{
			View: u, Edit: &stagev1.Edit{Steps: steps}, Waiting: wire.Jobs(inserted),
		})
		if err != nil || answer.GetResync() {
			return answer.GetResync(), nil, err
		}
		fresh, err := wire.VerdictsFrom(answer.GetVerdicts())
		if err == nil {
			verdicts, err = a.verdicts.Apply(answer.GetEdit().GetSteps(), fresh)
		}
		return false, answer.GetStanding(), err
	})
	return verdicts, err
}

// Standing speaks of the last answer.
func (a *admitter) Standing() core.Standing { return a.standingOf(a.fallback) }

// Promises reports whether the policy that answers now keeps deadlines.
func (a *admitter) Promises() bool { return a.able(wire.KeepsDeadlines, a.fallback) }

// curveAdmitter is an admitter whose process, or fallback, looks at curves.
type curveAdmitter struct{ *admitter }

// AdmitCandidates puts the question to the process.
func (a curveAdmitter) AdmitCandidates(ctx context.Context, v *core.View, admitted, waiting []core.Candidate) ([]core.Verdict, error) {
	a.ids, a.jobs = a.ids[:0], a.jobs[:0]
	for i := range waiting {
		a.ids = append(a.ids, waiting[i].ID)
		a.jobs = append(a.jobs, waiting[i].Job)
	}
	sent := candidates{admitted, waiting}
	if !a.usingFallback && a.session != nil && !a.session.Has(wire.UsesCurves) {
		sent = candidates{}
	}
	verdicts, err := a.put(ctx, v, sent)
	if !errors.Is(err, errUseFallback) {
		return verdicts, err
	}
	if curves := core.AbilitiesOf(a.fallback).CurveAdmitter; curves != nil {
		return curves.AdmitCandidates(ctx, v, admitted, waiting)
	}
	return a.fallback.Admit(ctx, v, a.jobs)
}

// reviewer is an admitter whose process, or fallback, reviews jobs.
type reviewer struct{ *admitter }

// Review puts the question to the process.
func (r reviewer) Review(ctx context.Context, v *core.View, reported []*core.Job) ([]core.Verdict, error) {
	return r.review(ctx, v, reported)
}

// curveReviewer is a reviewer whose process, or fallback, looks at curves.
type curveReviewer struct{ curveAdmitter }

// Review puts the question to the process. It sends no responses: the elasticity was not asked in this round yet.
func (r curveReviewer) Review(ctx context.Context, v *core.View, reported []*core.Job) ([]core.Verdict, error) {
	verdicts, err := r.review(ctx, v, reported)
	r.encoder.SendAgain()
	return verdicts, err
}

func (a *admitter) review(ctx context.Context, v *core.View, reported []*core.Job) (verdicts []core.Verdict, err error) {
	if !a.usingFallback && a.session != nil && !a.session.Has(wire.ReviewsJobs) {
		return nil, nil
	}
	a.ids = a.ids[:0]
	for _, j := range reported {
		a.ids = append(a.ids, j.ID)
	}
	standing := a.standing
	err = a.ask(ctx, v, candidates{}, func(ctx context.Context, u *stagev1.ViewUpdate) (bool, *stagev1.Standing, error) {
		answer, err := stagev1.NewAdmissionServiceClient(a.session.Conn).Review(ctx, &stagev1.ReviewRequest{View: u, Reported: wire.Jobs(a.ids)})
		if err == nil {
			verdicts, err = wire.VerdictsFrom(answer.GetVerdicts())
		}
		return answer.GetResync(), nil, err
	})
	a.standing = standing // of what Admit answered last
	if !errors.Is(err, errUseFallback) {
		return verdicts, err
	}
	if r := core.AbilitiesOf(a.fallback).Reviewer; r != nil {
		return r.Review(ctx, v, reported)
	}
	return nil, nil
}
