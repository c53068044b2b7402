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
			if _, looks := tr.policy.(core.CurveAdmitter); looks {
				return judgedCurveAdmitter{judgedAdmitter{tr}}
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
