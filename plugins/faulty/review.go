package faulty

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/sdk"
)

// ReviewAnswers lists the wrong answers of a review.
var ReviewAnswers = []string{"unknown_reason", "unknown_code", "other_job", "no_evidence", "reject"}

// Reviewing is an admission of type faulty_review, whose reviews go wrong.
func Reviewing() sdk.Factory {
	info := core.Info{Type: "faulty_review", Summary: "ends jobs that report 1 or more, until something goes wrong"}
	return core.NewFactory(info, Config{}, func(c Config, _ core.Settings) (core.Admitter, error) {
		return &Reviewer{Policy{Config: c}}, nil
	})
}

// Reviewer is an admission that admits everybody. The zero value never goes wrong.
type Reviewer struct{ policy Policy }

// Admit admits everybody.
func (r *Reviewer) Admit(context.Context, *core.View, []*core.Job) ([]core.Verdict, error) {
	return nil, nil
}

// Standing is for ever.
func (*Reviewer) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }

// Review ends jobs whose latest score is 1 or more, and holds those back that are below 0.
func (r *Reviewer) Review(_ context.Context, v *core.View, reported []*core.Job) (verdicts []core.Verdict, err error) {
	for _, j := range reported {
		switch p, _ := j.Series("score").Latest(); {
		case p.Value >= 1:
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.End, Reason: core.Converged})
		case p.Value < 0:
			verdicts = append(verdicts, core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.AwaitingResults})
		}
	}
	if len(verdicts) == 0 || r.policy.due(v, ReviewAnswers) == "" {
		return verdicts, nil
	}
	switch first := &verdicts[0]; r.policy.fault {
	case "unknown_reason":
		first.Reason = 99
	case "unknown_code":
		first.Code = 99
	case "other_job":
		first.Job = 7777
	case "no_evidence":
		first.Wanted = math.NaN()
	case "reject":
		first.Code = core.Reject
	}
	return verdicts, r.policy.misbehave()
}
