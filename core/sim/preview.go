package sim

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// Preview opens a simulation that ends with its first round. There are no snapshots of one.
func (o *opener) Preview(ctx context.Context, snapshot string, c *core.Cluster, w *workload.Workload) (backend.Preview, error) {
	if snapshot != "" {
		return nil, errors.New("a simulation leaves no snapshot to plan on")
	}
	available := *o
	available.config.Outages = nil
	world, err := available.Open(ctx, c, w)
	if err != nil {
		return nil, err
	}
	return &preview{Backend: world}, nil
}

// preview holds one round of a simulation, and carries nothing out.
type preview struct {
	core.Backend
	held    bool
	changes []core.Change
}

func (p *preview) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if p.held {
		return core.Observation{}, io.EOF
	}
	p.held = true
	return p.Backend.Next(ctx, w)
}

func (p *preview) Apply(_ context.Context, changes []core.Change) error {
	p.changes = slices.Clone(changes)
	for i := range p.changes {
		p.changes[i].Seats = slices.Clone(p.changes[i].Seats)
	}
	return nil
}

func (p *preview) Changes() []core.Change { return p.changes }

// Reacting is the workload of the simulation that reacts; nil for a list of jobs.
func (p *preview) Reacting() workload.Reacting { return p.Backend.(*Simulator).Reacting() }
