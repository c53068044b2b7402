package core

import (
	"context"
	"fmt"
	"math"
)

// Round is one walk through eight steps: observe, respond, admit, allocate, place, tune, apply, record. Each stage is shown the View and what
// the stages before it decided, and returns data; the pipeline alone applies the difference between the plan and what runs.
func (p *Pipeline) Round(ctx context.Context, seen Observation, b Backend) error {
	s := &p.state
	if err := s.observe(seen); err != nil { // 1: what happened
		return err
	}
	s.reviewReserved(p.rounds.Settle)
	p.standing = Standing{UntilSeconds: math.Inf(1)}
	changes, err := p.decide(ctx, seen.Decided) // 2 to 6: askStages, unless an earlier scheduler held the round
	if err != nil {
		return err
	}
	s.slice(changes)
	if err := p.apply(ctx, b, changes); err != nil { // 7: make it so
		return fmt.Errorf("round %d: apply: %w", s.view.Round, err)
	}
	s.commit()
	if err := p.rescale(ctx); err != nil {
		return fmt.Errorf("round %d: scale: %w", s.view.Round, err)
	}
	if err := p.record(); err != nil { // 8: what came of it
		return fmt.Errorf("round %d: record: %w", s.view.Round, err)
	}
	return p.remember(seen.Decided)
}

// askStages asks the stages one after the other, each by what those before it answered.
func (p *Pipeline) askStages(ctx context.Context) error {
	watch := p.stopwatch()
	for i, step := range [...]func(*Pipeline, context.Context) error{
		(*Pipeline).respond,  // 2: what each job can do with accelerators
		(*Pipeline).admit,    // 3: which jobs may compete
		(*Pipeline).allocate, // 4: how many devices for which job
		(*Pipeline).place,    // 5: which devices
		(*Pipeline).tune,     // 6: with which batch, on how many nodes
	} {
		if err := step(p, ctx); err != nil {
			return err
		}
		now := p.stopwatch()
		p.state.report.StageTime[i], watch = now-watch, now
	}
	return nil
}

// record shows the round to the observers.
func (p *Pipeline) record() error {
	for _, o := range p.observers {
		if err := o.ObserveRound(&p.state.report); err != nil {
			return err
		}
	}
	return nil
}
