package coretest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// RunElasticity holds a job elasticity policy to its contract.
func RunElasticity(t *testing.T, f core.Factory[core.Elasticity], opts ...Option) {
	runChecks(t, checks(elasticitySlot(f.Type), f, opts))
}

func elasticitySlot(policyType string) slot[core.Elasticity] {
	return slot[core.Elasticity]{
		id:      "elasticity/" + policyType,
		install: func(s *core.Stages, c core.Component[core.Elasticity]) { s.Elasticity = c },
		wrap: func(tr *trial[core.Elasticity]) core.Elasticity {
			return &judgedElasticity{trial: tr, told: make(map[core.JobID][2]core.Response)}
		},
		ask: func(ctx context.Context, e core.Elasticity, q question) error {
			if _, err := e.Respond(ctx, q.View, q.Jobs); err != nil {
				return err
			}
			_, err := e.Tune(ctx, q.View, q.Placements)
			return err
		},
	}
}

type judgedElasticity struct {
	*trial[core.Elasticity]
	// told holds, for each job, the response that stands and a copy from the moment it was given: a pipeline keeps
	// the response, curves included, until the next one.
	told map[core.JobID][2]core.Response
}

func (j *judgedElasticity) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	j.judgeEnds(v)
	responses := ask(j.trial, question{View: v, inputs: inputs{Jobs: jobs}}, func(e core.Elasticity, q question) ([]core.Response, error) {
		return e.Respond(ctx, q.View, q.Jobs)
	})
	for i, r := range responses {
		if i == len(jobs) || r.Job != jobs[i].ID {
			break // the pipeline says so
		}
		if fault := responseFault(jobs[i], &r); fault != "" {
			j.t.Fatalf("response for job %d: %s", r.Job, fault)
		}
		j.told[r.Job] = [2]core.Response{r, cloneResponse(r)}
	}
	return responses, nil
}

func (j *judgedElasticity) Tune(ctx context.Context, v *core.View, placements []core.Placement) ([]core.Tuning, error) {
	tunings := ask(j.trial, question{View: v, inputs: inputs{Placements: placements}}, func(e core.Elasticity, q question) ([]core.Tuning, error) {
		return e.Tune(ctx, q.View, q.Placements)
	})
	j.judgeEnds(v)
	return tunings, nil
}

func (j *judgedElasticity) judgeEnds(v *core.View) {
	for id := range v.Jobs {
		told, ok := j.told[core.JobID(id)]
		if ok && v.Jobs[id] != nil && !same(told[0], told[1]) {
			j.t.Fatalf("changed the curves of job %d after it had answered (-then +now):\n%s", id, diff(told[1], told[0]))
		}
	}
}

// responseFault says what is wrong with a response; empty for nothing.
func responseFault(j *core.Job, r *core.Response) string {
	if r.MinReplicas < j.MinReplicas || r.MaxReplicas > j.MaxReplicas {
		return fmt.Sprintf("range %d..%d exceeds the job's %d..%d", r.MinReplicas, r.MaxReplicas, j.MinReplicas, j.MaxReplicas)
	}
	if r.RemainingWork < 0 {
		return "negative remaining work"
	}
	if r.MixedTypes != nil {
		for _, x := range slices.Concat(r.MixedTypes.SingleDeviceRates, r.MixedTypes.SyncSeconds) {
			if !(x >= 0) || x-x != 0 {
				return fmt.Sprintf("%v among the rates on unlike devices", x)
			}
		}
	}
	for _, curve := range r.Curves {
		for _, rates := range [...][]float64{curve.OneNode, curve.ManyNodes} {
			for i, rate := range rates {
				if !(rate >= 0) || rate-rate != 0 {
					return fmt.Sprintf("rate %v with %d replicas", rate, i+1)
				}
			}
		}
	}
	return ""
}
