package coretest

import (
	"context"
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
			_, looks := tr.policy.(core.CurveAdmitter)
			_, reviews := tr.policy.(core.Reviewer)
			judged := judgedAdmitter{tr}
			switch {
			case looks && reviews:
				return judgedCurveReviewer{judgedCurveAdmitter{judged}}
			case looks:
				return judgedCurveAdmitter{judged}
			case reviews:
				return judgedReviewer{judged}
			}
			return judged
		},
		ask: func(ctx context.Context, a core.Admitter, q question) error {
			_, err := askAdmitter(ctx, a, q)
			if r, reviews := a.(core.Reviewer); reviews && err == nil {
				var jobs []*core.Job
				for _, c := range q.Candidates {
					jobs = append(jobs, c.Job)
				}
				_, err = r.Review(ctx, q.View, jobs)
			}
			return err
		},
	}
}

// askAdmitter asks an admitter as the pipeline does.
func askAdmitter(ctx context.Context, a core.Admitter, q question) ([]core.Verdict, error) {
	if curves, looks := a.(core.CurveAdmitter); looks {
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

func (j judgedAdmitter) judge(ctx context.Context, q question) ([]core.Verdict, error) {
	verdicts := ask(j.trial, q, func(a core.Admitter, q question) ([]core.Verdict, error) { return askAdmitter(ctx, a, q) })
	j.judgeVerdicts(verdicts, core.Reject)
	return verdicts, nil
}

func (j judgedAdmitter) judgeVerdicts(verdicts []core.Verdict, last core.Code) {
	for _, verdict := range verdicts {
		if fault := verdictFault(verdict, last); fault != "" {
			j.t.Fatalf("verdict for job %d: %s", verdict.Job, fault)
		}
	}
}

// review judges the answers of a policy that reviews.
func (j judgedAdmitter) review(ctx context.Context, v *core.View, reported []*core.Job) ([]core.Verdict, error) {
	verdicts := ask(j.trial, question{View: v, inputs: inputs{Jobs: reported}}, func(a core.Admitter, q question) ([]core.Verdict, error) {
		return a.(core.Reviewer).Review(ctx, q.View, q.Jobs)
	})
	j.judgeVerdicts(verdicts, core.End)
	return verdicts, nil
}

// judgedReviewer is for policies that review jobs.
type judgedReviewer struct{ judgedAdmitter }

func (j judgedReviewer) Review(ctx context.Context, v *core.View, reported []*core.Job) ([]core.Verdict, error) {
	return j.review(ctx, v, reported)
}

// judgedCurveReviewer is for policies that look at curves, too.
type judgedCurveReviewer struct{ judgedCurveAdmitter }

func (j judgedCurveReviewer) Review(ctx context.Context, v *core.View, reported []*core.Job) ([]core.Verdict, error) {
	return j.review(ctx, v, reported)
}

// verdictFault says what is wrong with a verdict, whose code may be up to last; empty for nothing.
func verdictFault(v core.Verdict, last core.Code) string {
	switch {
	case v.Code > last:
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
