package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// Preview is a backend that repeats what a scheduler saw, tells what it would be told next, and only listens to what is
// decided then: a pipeline that runs on it finds out what the next round would do. Nothing that runs is touched.
type Preview struct {
	backend *Backend
	pending *observation
	seen    bool
	changes []core.Change
}

var _ core.Backend = (*Preview)(nil)

// SnapshotConfig is the resolved config of the run that a snapshot is of.
func SnapshotConfig(path string) (string, error) {
	s := &store{path: path, health: map[string]core.Health{}}
	if err := s.open(); err != nil {
		return "", fmt.Errorf("open the snapshot: %w", err)
	}
	m, err := s.meta()
	if err == nil && m == nil {
		err = errors.New("the snapshot holds no run")
	}
	if closing := s.close(); err == nil {
		err = closing
	}
	if err != nil {
		return "", err
	}
	return m.Config, nil
}

// Preview opens a snapshot, as backend.Operated writes it; without one, the run is taken to begin now.
func (o *Opener) Preview(snapshot string, c *core.Cluster, w *workload.Workload) (backend.Preview, error) {
	b := newBackend(o, c, w)
	if snapshot == "" {
		if err := o.config.checkJobs(w.Jobs).Err(); err != nil {
			return nil, err
		}
		b.arrive(0)
		return &Preview{backend: b, pending: &observation{Events: recorded(b.events)}}, nil
	}
	b.store = &store{path: snapshot, health: map[string]core.Health{}}
	if err := b.store.open(); err != nil {
		return nil, fmt.Errorf("open the snapshot: %w", err)
	}
	defer func() { _ = b.store.close() }() // it was only read
	m, err := b.store.meta()
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, b.refuse("holds no run", "")
	}
	if m.Identity != o.identity {
		return nil, b.refuse("is of a run with other inputs", "the files that its config names were changed, or this is not the folder that it runs in")
	}
	if err := b.recall(m); err != nil {
		return nil, err
	}
	pending, err := b.store.pending()
	if err != nil {
		return nil, err
	}
	if pending == nil {
		return nil, b.refuse("is no snapshot of a running scheduler", "")
	}
	return &Preview{backend: b, pending: pending}, nil
}

// Capabilities are those of the backend.
func (p *Preview) Capabilities() []core.Capability { return p.backend.capabilities }

// Next repeats the recorded rounds, and tells of one more.
func (p *Preview) Next(context.Context, core.Wake) (core.Observation, error) {
	b := p.backend
	switch {
	case b.rounds < len(b.history):
		return b.repeat(), nil
	case p.seen:
		return core.Observation{}, io.EOF
	}
	p.seen = true
	b.now = max(p.pending.NowSeconds, b.now)
	return core.Observation{NowSeconds: b.now, Events: b.retell(p.pending.Events)}, nil
}

// Apply keeps the changes of the round that is not recorded.
func (p *Preview) Apply(_ context.Context, changes []core.Change) error {
	if p.seen {
		p.changes = slices.Clone(changes)
		return nil
	}
	if err := p.backend.compare(changes); err != nil {
		return err
	}
	return p.backend.decideAll(changes)
}

// Changes are what the next round would do.
func (p *Preview) Changes() []core.Change { return p.changes }
