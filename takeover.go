package quartet

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
)

// Takeover puts the policies and rounds of another config in the place of those that decide, while the run goes on. What it
// returns an error for has changed nothing.
type Takeover func(ctx context.Context, next *configs.Config) error

// policies are those that decide, which others may take the place of.
type policies struct {
	mutex  sync.Mutex
	config *configs.Config
	stages core.Stages
	log    *slog.Logger
}

// again creates the policies anew.
func (p *policies) again(context.Context) (core.Stages, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	stages, err := BuildStages(p.config, p.log)
	if err != nil {
		return stages, err
	}
	err = CloseStages(&p.stages)
	p.stages = stages
	return stages, err
}

// close ends the policies. Those of a run that goes on later leave nothing: they are told all of it again.
func (p *policies) close(goesOn bool) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if goesOn {
		return discardStages(&p.stages)
	}
	return CloseStages(&p.stages)
}

// takeover lets the policies of another config decide. The cluster, the backend and the workload stay.
func (e *execution) takeover(p *policies, pipeline *core.Pipeline) Takeover {
	return func(ctx context.Context, next *configs.Config) error {
		p.mutex.Lock()
		now := p.config
		p.mutex.Unlock()
		before, err := identityOf(now, e.jobs)
		if err != nil {
			return err
		}
		identity, err := identityOf(next, e.jobs)
		if err != nil || identity == before {
			return err
		}
		rest := *next
		rest.Admission, rest.Allocation, rest.Placement, rest.Elasticity, rest.Scaler, rest.Round = now.Admission, now.Allocation, now.Placement, now.Elasticity, now.Scaler, now.Round
		if same, err := identityOf(&rest, e.jobs); err != nil || same != before {
			return errors.Join(err, problem("", "changes more than policies and rounds", "the cluster, the backend and the workload take effect when the run is stopped and run again: its jobs go on"))
		}
		cluster := *e.cluster
		if err := (&Composition{Config: next, Log: e.Log, Note: e.Note}).checkFit(ctx, &cluster, e.jobs); err != nil {
			return err
		}
		resolved, err := placeless(next).Resolved()
		if err != nil {
			return err
		}
		stages, err := BuildStages(next, e.log)
		if err != nil {
			return err
		}
		c := &core.Composition{Stages: stages, Options: next.Round.Options(), Identity: identity, Config: string(resolved)}
		if err := pipeline.Replace(ctx, c); err != nil {
			return errors.Join(err, CloseStages(&stages))
		}
		p.mutex.Lock()
		defer p.mutex.Unlock()
		old := p.stages
		p.config, p.stages = next, stages
		return CloseStages(&old)
	}
}
