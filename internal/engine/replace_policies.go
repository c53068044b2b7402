package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
)

// Takeover puts the policies and rounds of another config in the place of those that decide, while the run goes on. What it
// returns an error for has changed nothing.
type Takeover func(ctx context.Context, next *configs.Config) error

// EarlierConfig is a config whose policies decided until those of another one took over.
type EarlierConfig struct {
	Config     string `json:"config"`      // resolved config, in YAML
	UntilRound int    `json:"until_round"` // the last that it decided; 0 for none
}

// policies are those that decide, which others may take the place of. Only the goroutine of the pipeline changes them.
type policies struct {
	log *slog.Logger

	mutex    sync.Mutex
	config   *configs.Config
	deciding *configs.Config // config, or the alternative of it that was chosen
	stages   core.Stages
	earlier  []EarlierConfig
	inputs   []Digest // files that policies read which took over
}

// again creates the policies anew. What those before had learned of this run is shown to the new ones, or lost.
func (p *policies) again(context.Context) (core.Stages, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	stages, err := BuildStages(p.deciding, p.log)
	if err != nil {
		return stages, errors.Join(err, discardStages(&stages))
	}
	err = discardStages(&p.stages)
	p.stages = stages
	return stages, err
}

// inForce is the config whose policies decide.
func (p *policies) inForce() *configs.Config {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.config
}

// decides is the config whose policies decide, which may be an alternative of that in force.
func (p *policies) decides() *configs.Config {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.deciding
}

// take ends the policies that decided so far, for others have taken over. A policy whose successor took up what it had learned
// is discarded: its successor leaves that to later runs. Any other leaves it now, before a new one reads what was left.
func (p *policies) take(next *configs.Config, stages core.Stages, rounds int, taken *core.Resumed) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if resolved, err := placeless(p.config).Resolved(); err == nil { // it was resolved before
		p.earlier = append(p.earlier, EarlierConfig{Config: string(resolved), UntilRound: rounds})
	}
	p.end(taken)
	p.config, p.deciding, p.stages = next, next, stages
	p.inputs = append(p.inputs, filesRead(&stages)...)
}

// choose ends the policies that decided so far, for an alternative of the same config has taken over.
func (p *policies) choose(next *configs.Config, stages core.Stages, taken *core.Resumed) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.end(taken)
	p.deciding, p.stages = next, stages
	for _, read := range filesRead(&stages) {
		if !slices.Contains(p.inputs, read) {
			p.inputs = append(p.inputs, read)
		}
	}
}

// end ends the policies that decided so far.
func (p *policies) end(taken *core.Resumed) {
	for id, policy := range componentsIn(&p.stages) {
		end := closePolicy
		if slices.Contains(taken.Restored, id) {
			end = discardPolicy
		}
		if err := end(policy); err != nil {
			p.log.Error("a policy that was replaced could not be ended as it should", "component", id, "error", err)
		}
	}
}

// close ends the policies. Those of a run that goes on later leave nothing: they see all of it again.
func (p *policies) close(goesOn bool) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if goesOn {
		return discardStages(&p.stages)
	}
	return CloseStages(&p.stages)
}

// takeover lets the policies of another config decide. The cluster, the backend and the workload stay, and so do the files that
// are written.
func (e *execution) takeover(p *policies, pipeline *core.Pipeline) Takeover {
	cluster := *e.cluster // as it is when the run begins: the pipeline changes the health of nodes
	cluster.Nodes = slices.Clone(cluster.Nodes)
	return func(ctx context.Context, wanted *configs.Config) error {
		now := p.inForce()
		if len(now.Alternatives) > 0 {
			return problem("synthesizer", "chooses between compositions while the run is in progress", "other policies take effect when the run is stopped and run again: its jobs continue")
		}
		before, err := identityOf(now, e.jobs)
		if err != nil {
			return err
		}
		identity, err := identityOf(wanted, e.jobs)
		if err != nil || identity == before {
			return err
		}
		if same, err := identityOf(withPolicies(wanted, now), e.jobs); err != nil || same != before {
			return errors.Join(err, problem("", "changes more than policies and rounds", "the cluster, the backend and the workload take effect when the run is stopped and run again: its jobs continue"))
		}
		next := withPolicies(now, wanted)
		if err := (&Composition{Config: next, Log: e.Log, Note: e.Note}).checkFit(ctx, &cluster, e.jobs.Foreseen()); err != nil {
			return err
		}
		resolved, err := placeless(next).Resolved()
		if err != nil {
			return err
		}
		stages, err := BuildStages(next, e.log)
		if err != nil {
			return errors.Join(err, discardStages(&stages))
		}
		c := &core.Composition{
			Stages: stages, Options: next.Round.Options(), Identity: identity, Config: string(resolved), Files: filesOf(&stages),
			Begun: func(rounds int, taken *core.Resumed) { p.take(next, stages, rounds, taken) },
		}
		if err := pipeline.Replace(ctx, c); err != nil {
			return errors.Join(err, discardStages(&stages))
		}
		return nil
	}
}

// withPolicies is a config with the policies and rounds of another.
func withPolicies(c, other *configs.Config) *configs.Config {
	both := *c
	both.Admission, both.Allocation, both.Placement, both.Elasticity, both.Scaler = other.Admission, other.Allocation, other.Placement, other.Elasticity, other.Scaler
	both.Round = other.Round
	return &both
}

func closePolicy(policy any) error {
	if closer := core.AbilitiesOf(policy).Closer; closer != nil {
		return closer.Close()
	}
	return nil
}

func discardPolicy(policy any) error {
	if d := core.AbilitiesOf(policy).Discarder; d != nil {
		return d.Discard()
	}
	return closePolicy(policy)
}
