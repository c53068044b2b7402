package twin

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Next holds one more round with policies that get an observation, and is the still after it, with what they change. Nobody carries the
// changes out. Observers see the round. The events are not changed.
func (s *RunSnapshot) Next(ctx context.Context, p Policies, seen core.Observation, observers ...core.Observer) (after *RunSnapshot, changes []core.Change, err error) {
	stages, err := p.NewInstances()
	if err != nil {
		return nil, nil, fmt.Errorf("second instances of the policies: %w", err)
	}
	if p.End != nil {
		defer func() {
			if ending := p.End(&stages); err == nil && ending != nil {
				after, changes, err = nil, nil, ending
			}
		}()
	}
	pipeline := s.pipeline.Fork()
	if err := pipeline.Decide(ctx, stages, p.Same, core.PipelineOptions{Rounds: p.Options, Observers: observers}); err != nil {
		return nil, nil, err
	}
	seen.Events, seen.Decided = slices.Clone(seen.Events), nil
	var listening listener
	if err := pipeline.Round(ctx, seen, &listening); err != nil {
		return nil, nil, err
	}
	return Take(pipeline), listening.changes, nil
}

// listener is a backend that only takes in what is decided.
type listener struct {
	core.Backend
	changes []core.Change
}

// Apply keeps the changes.
func (l *listener) Apply(_ context.Context, changes []core.Change) error {
	l.changes = slices.Clone(changes)
	return nil
}

// BandOf is the band of values, which stay as they are: between the lower and the upper quantile another one lies with BandRatio.
func BandOf(values []float64) Band {
	sorted := slices.Clone(values)
	b := bandOf(sorted)
	for _, q := range [...]*float64{&b.Low, &b.Median, &b.High} {
		if math.IsNaN(*q) { // between two infinite ones
			*q = sorted[(len(sorted)-1)/2]
		}
	}
	return b
}
