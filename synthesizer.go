package quartet

import (
	"context"
	"errors"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/synthesizer"
	"github.com/quartet-sched/quartet/core/twin"
)

// newSynthesizer chooses between the compositions of the config, and tells who is to observe the run; nil where there is one only. On real machines it looks ahead beside the rounds.
func (e *execution) newSynthesizer(decided *policies, real bool) (s *synthesizer.Synthesizer, observers []core.Observer) {
	if len(e.Alternatives) == 0 {
		return nil, nil
	}
	beliefs := e.beliefs()
	c := &e.Config.Synthesizer
	candidates := make([]synthesizer.Candidate, len(e.Alternatives))
	for i := range e.Alternatives {
		alternative := e.Alternatives[i].Config
		candidates[i] = synthesizer.Candidate{
			Name: e.Alternatives[i].Name, Policies: PoliciesOf(alternative, false),
			Compose: func() (*core.Composition, error) { return e.compose(decided, i) },
		}
	}
	s = synthesizer.New(synthesizer.Settings{
		Method: synthesizer.Method(c.Method), EveryRounds: c.Every, PauseSeconds: c.Pause.Seconds(), HorizonSeconds: c.Horizon.Seconds(),
		Draws: c.Draws, Objective: synthesizer.Objective(c.Objective), MarginRatio: c.SwitchMargin, Seed: e.Seed, Background: real,
	}, candidates, beliefs, e.log)
	if o, observes := beliefs.(core.Observer); observes {
		observers = append(observers, o)
	}
	return s, append(observers, s)
}

// beliefs are what the run teaches, in which candidates are simulated.
func (e *execution) beliefs() synthesizer.Believer {
	if e.believe != nil {
		return e.believe(e.jobs)
	}
	o := twin.BeliefOptions{Work: twin.WorkDeclared, Arrivals: twin.ArrivalsRecent}
	if config, simulated := e.Backend.Config.(*sim.Config); simulated { // what a start costs is no secret, what is to come is one
		known := *config
		known.Failures, known.NodeEvents, known.JoiningNodes, known.Outages = sim.Failures{}, nil, nil, nil
		o.Config = &known
	}
	return twin.NewBeliefs(o)
}

// compose makes the stages of an alternative, which are to take over.
func (e *execution) compose(decided *policies, i int) (*core.Composition, error) {
	alternative, next := e.Alternatives[i].Config, e.Config.ForAlternative(i)
	identity, err := identityOf(next, e.jobs)
	if err != nil {
		return nil, err
	}
	resolved, err := placeless(next).Resolved()
	if err != nil {
		return nil, err
	}
	stages, err := BuildStages(alternative, e.log)
	if err != nil {
		return nil, errors.Join(err, discardStages(&stages))
	}
	return &core.Composition{
		Stages: stages, Options: alternative.Round.Options(), Identity: identity, Config: string(resolved), Files: filesOf(&stages),
		Begun: func(_ int, taken *core.Resumed) {
			decided.choose(alternative, stages, taken)
			if e.chosen != nil {
				e.chosen(i)
			}
		},
	}, nil
}

// checkAlternatives refuses compositions for which no job fits.
func (c *Composition) checkAlternatives(ctx context.Context, cluster *core.Cluster, e *execution) error {
	var errs []error
	for i := range c.Alternatives {
		if i > 0 { // the first is that of the config
			quiet := &Composition{Config: c.Alternatives[i].Config, Log: c.Log}
			errs = append(errs, quiet.checkFit(ctx, cluster, e.jobs.Foreseen()))
		}
	}
	return errors.Join(errs...)
}
