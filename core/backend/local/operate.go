package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/workload"
)

// obey carries out a request, which may be about jobs that were just recorded.
func (b *Backend) obey(r journal.Order) {
	b.takeIn()
	r.CarryOut()
}

// obeyAll carries out what waits, also when there is always a round to hold, and no more: rounds are held too.
func (b *Backend) obeyAll() {
	for range b.wanted.Waiting() {
		b.obey(<-b.wanted.Wanted())
	}
}

// takeIn gets to know the jobs that were recorded meanwhile.
func (b *Backend) takeIn() {
	for _, j := range b.intake.Take() {
		b.know(j)
	}
}

// Submit takes in the jobs of a file. They run in the folder of their submitter unless they say otherwise.
func (b *Backend) Submit(ctx context.Context, f backend.JobFile) ([]string, error) {
	jobs, err := workload.DecodeJobs(f.Name, f.Text)
	if err != nil {
		return nil, err
	}
	if err := b.config.checkJobs(jobs).Err(); err != nil {
		return nil, err
	}
	names := make([]string, len(jobs))
	for i := range jobs {
		p := &jobs[i].Process
		if !filepath.IsAbs(p.Dir) {
			p.Dir = filepath.Join(f.Dir, p.Dir)
		}
		names[i] = jobs[i].Spec.Name
	}
	if err := b.intake.Submit(ctx, jobs); err != nil {
		return nil, err
	}
	return names, nil
}

// job finds a job by its name.
func (b *Backend) job(name string) (*job, error) {
	id, known := b.byName[name]
	if !known {
		names := make([]string, len(b.jobs))
		for i, j := range b.jobs {
			names[i] = j.Spec.Name
		}
		return nil, journal.Unknown("job", name, names)
	}
	return b.jobs[id], nil
}

// Cancel ends a job, whose replicas are stopped; one that is to be submitted later ends then.
func (b *Backend) Cancel(ctx context.Context, name string) error {
	return b.wanted.Give(ctx, func() error {
		j, err := b.job(name)
		if err != nil || j.ended {
			return err
		}
		if err := b.journal.Cancel(j.Spec.ID); err != nil {
			return fmt.Errorf("record that job %q is cancelled: %w", name, err)
		}
		j.cancelled = true
		b.cancel(j)
		return nil
	})
}

// SubmitJobs takes in those jobs that there are not yet. They run in the folder of the scheduler unless they say otherwise.
func (b *Backend) SubmitJobs(ctx context.Context, jobs []workload.Job) error {
	if err := b.config.checkJobs(jobs).Err(); err != nil {
		return err
	}
	if err := b.intake.Ensure(ctx, jobs); err != nil {
		return err
	}
	return b.wanted.Give(ctx, func() error {
		for i := range jobs {
			spec := &jobs[i].Spec
			if there, err := b.job(spec.Name); err != nil || there.Spec.Experiment != spec.Experiment {
				return errors.Join(err, fmt.Errorf("the name %q is taken by a job of another submission", spec.Name))
			}
		}
		return nil
	})
}

// EndEarly ends a job, whose replicas are stopped as for a resize.
func (b *Backend) EndEarly(ctx context.Context, name string, why core.Reason) error {
	return b.wanted.Give(ctx, func() error {
		now := b.elapsed()
		b.arrive(now) // it may have been submitted just now
		j, err := b.job(name)
		if err != nil || j.ended || !j.submitted {
			return err
		}
		if j.seats != nil {
			j.leave(now)
		}
		b.finish(j, core.JobFinished, now)
		b.events[len(b.events)-1].Early = why
		b.unsettled = true
		return nil
	})
}

// Begun is the moment 0 of the run.
func (b *Backend) Begun() string { return strconv.FormatInt(b.meta.EpochUnix, 10) }

// NoMore lets the run end with the jobs that it has.
func (b *Backend) NoMore(ctx context.Context) error {
	return b.wanted.Give(ctx, func() error {
		b.open = false
		return nil
	})
}

func (b *Backend) cancel(j *job) {
	if j.ended || !j.submitted {
		return
	}
	now := b.elapsed()
	if j.seats != nil {
		j.leave(now)
	}
	j.cancelledAt = now
	b.finish(j, core.JobCancelled, now)
	b.unsettled = true
}

// SetHealth drains a node, whose jobs wait again after the next round, or makes it ready.
func (b *Backend) SetHealth(ctx context.Context, node string, h core.Health) error {
	return b.wanted.Give(ctx, func() error {
		id := slices.IndexFunc(b.cluster.Nodes, func(n core.Node) bool { return n.Name == node })
		if id < 0 {
			names := make([]string, len(b.cluster.Nodes))
			for i := range names {
				names[i] = b.cluster.Nodes[i].Name
			}
			return journal.Unknown("node", node, names)
		}
		s := b.slot(core.NodeID(id))
		switch {
		case s != nil:
			if err := b.refuses(s, h); err != nil {
				return err
			}
		case b.health[id] == core.Gone:
			return core.Diagnostics{{Summary: fmt.Sprintf("node %q is gone", node)}}
		}
		if err := b.journal.SetHealth(node, h); err != nil {
			return fmt.Errorf("record the health of node %q: %w", node, err)
		}
		b.ordered[node] = h
		if s != nil {
			return b.keepSlots(b.elapsed())
		}
		b.setHealth(core.NodeID(id), h)
		return nil
	})
}

func (b *Backend) setHealth(id core.NodeID, h core.Health) {
	if b.health[id] != h {
		b.health[id] = h
		b.events = append(b.events, core.Event{Kind: core.NodeChanged, AtSeconds: b.elapsed(), Node: id, Health: h})
	}
}

const snapshotFolder = ".snapshot-"

// removeSnapshots removes those that an earlier version of this program was killed over.
func (b *Backend) removeSnapshots() {
	left, _ := filepath.Glob(filepath.Join(b.dir, snapshotFolder+"*")) // the pattern is well-formed
	for _, folder := range left {
		_ = os.RemoveAll(folder) // they are in nobody's way
	}
}

// WriteSnapshot writes the journal, and what is to be observed next.
func (b *Backend) WriteSnapshot(ctx context.Context, to io.Writer) error {
	var held *journal.Held
	taken := make(chan struct{})
	var settled atomic.Bool // who comes second sees to it that the moment is let go of: a store that is held on to cannot be closed
	err := b.wanted.Give(ctx, func() (err error) {
		b.arrive(b.elapsed())
		pending := &journal.Seen{NowSeconds: b.elapsed(), Events: journal.Events(sorted(slices.Clone(b.events)))}
		if held, err = b.journal.Hold(pending); err != nil {
			return err
		}
		if !settled.CompareAndSwap(false, true) {
			return held.Release() // nobody waits for it any more
		}
		close(taken)
		return nil
	})
	if err != nil {
		if !settled.CompareAndSwap(false, true) { // it was carried out all the same
			<-taken
			err = errors.Join(err, held.Release())
		}
		return err
	}
	return held.Write(to)
}
