package coretest

import (
	"context"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// RunAdmitter holds an admission policy to its contract.
func RunAdmitter(t *testing.T, f core.Factory[core.Admitter], opts ...Option) {
	runChecks(t, checks(admitterSlot(f.Type), f, opts))
}

func admitterSlot(policyType string) slot[core.Admitter] {
	return slot[core.Admitter]{
		id: "admission/" + policyType,
		install: func(s *core.Stages, c core.Component[core.Admitter]) {
			s.Admission = []core.Component[core.Admitter]{c}
		},
		wrap: func(tr *trial[core.Admitter]) core.Admitter {
			can := core.AbilitiesOf(tr.policy)
			looks, reviews := can.CurveAdmitter != nil, can.Reviewer != nil
			switch {
			case looks && reviews:
				return judgedCurveReviewer{judgedCurveAdmitter{judgedAdmitter{tr}}, judgedReviewer{judgedAdmitter{tr}}}
			case looks:
				return judgedCurveAdmitter{judgedAdmitter{tr}}
			case reviews:
				return judgedReviewer{judgedAdmitter{tr}}
			}
			return judgedAdmitter{tr}
		},
		ask: func(ctx context.Context, a core.Admitter, q question) error {
			_, err := askAdmitter(ctx, a, q)
			return err
		},
	}
}

// askAdmitter asks an admitter as the pipeline does.
func askAdmitter(ctx context.Context, a core.Admitter, q question) ([]core.Verdict, error) {
	if curves := core.AbilitiesOf(a).CurveAdmitter; curves != nil {
		return curves.AdmitCandidates(ctx, q.View, q.Admitted, q.Candidates)
	}
	return a.Admit(ctx, q.View, q.Jobs)
}

type judgedAdmitter struct{ *trial[core.Admitter] }

func (j judgedAdmitter) Admit(ctx context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	return j.judge(ctx, question{View: v, inputs: inputs{Jobs: waiting}})
}

// judgedCurveAdmitter is for policies that look at curves.
type judgedCurveAdmitter struct{ judgedAdmitter }

func (j judgedCurveAdmitter) AdmitCandidates(ctx context.Context, v *core.View, admitted, waiting []core.Candidate) ([]core.Verdict, error) {
	return j.judge(ctx, question{View: v, inputs: inputs{Admitted: admitted, Candidates: waiting}})
}

// judgedReviewer is for policies that look at jobs as they go on.
type judgedReviewer struct{ judgedAdmitter }

// judgedCurveReviewer is for those that look at curves as well.
type judgedCurveReviewer struct {
	judgedCurveAdmitter
	judgedReviewer
}

// Admit settles which one is meant: none, for it is asked by AdmitCandidates.
func (j judgedCurveReviewer) Admit(ctx context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	return j.judgedCurveAdmitter.Admit(ctx, v, waiting)
}

// Standing is the policy's.
func (j judgedCurveReviewer) Standing() core.Standing { return j.judgedReviewer.Standing() }

func (j judgedReviewer) Review(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Verdict, error) {
	verdicts := ask(j.trial, question{View: v, inputs: inputs{Jobs: jobs}}, func(a core.Admitter, q question) ([]core.Verdict, error) {
		return core.AbilitiesOf(a).Reviewer.Review(ctx, q.View, q.Jobs)
	})
	last := core.JobID(-1)
	for _, verdict := range verdicts {
		at := slices.IndexFunc(jobs, func(job *core.Job) bool { return job.ID == verdict.Job })
		fault := reviewFault(verdict)
		switch {
		case at < 0:
			fault = "was not asked about"
		case verdict.Job <= last:
			fault = "out of order, or a second one"
		case verdict.Code == core.Defer && jobs[at].Pinned && jobs[at].State == core.Running:
			fault = "holds back a pinned job"
		}
		if fault != "" {
			j.t.Fatalf("verdict of the review for job %d: %s", verdict.Job, fault)
		}
		last = verdict.Job
	}
	return verdicts, nil
}

// Ended passes to a policy that is a historian how jobs ended, and its twins.
func (j judgedReviewer) Ended(ctx context.Context, v *core.View, jobs []*core.Job) error {
	for _, policy := range []core.Admitter{j.policy, j.twin, j.blind} {
		if h := core.AbilitiesOf(policy).Historian; h != nil {
			if err := h.Ended(ctx, v, jobs); err != nil {
				return err
			}
		}
	}
	return nil
}

// reviewFault says what is wrong with a verdict of a review; empty for nothing.
func reviewFault(v core.Verdict) string {
	if v.Code == core.Reject {
		return "code " + v.Code.String()
	}
	if v.Code == core.End {
		v.Code = core.Defer // of which the same holds
	}
	return verdictFault(v)
}

func (j judgedAdmitter) judge(ctx context.Context, q question) ([]core.Verdict, error) {
	verdicts := ask(j.trial, q, func(a core.Admitter, q question) ([]core.Verdict, error) { return askAdmitter(ctx, a, q) })
	for _, verdict := range verdicts {
		if fault := verdictFault(verdict); fault != "" {
			j.t.Fatalf("verdict for job %d: %s", verdict.Job, fault)
		}
	}
	return verdicts, nil
}

// verdictFault says what is wrong with a verdict; empty for nothing.
func verdictFault(v core.Verdict) string {
	switch {
	case v.Code > core.Reject:
		return "code " + v.Code.String()
	case int(v.Reason) >= len(core.Reasons()):
		return "reason " + v.Reason.String()
	case v.Code != core.Admit && v.Reason == core.NoReason:
		return v.Code.String() + " without a reason"
	case !(v.Wanted >= 0) || !(v.Available >= 0):
		return "evidence that is negative or NaN"
	case v.Unit == "" && (v.Wanted != 0 || v.Available != 0):
		return "evidence without a unit"
	default:
		return ""
	}
}
