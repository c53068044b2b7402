package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// request is what somebody wants of the scheduler, whose goroutine carries it out: between rounds, and not before the rounds
// of schedulers before it are repeated.
type request struct {
	do   func() error
	done chan error
}

// mostRequests is how many may wait to be carried out; further ones wait to be taken.
const mostRequests = 256

var errEnded = errors.New("the scheduler has ended")

func (b *Backend) give(ctx context.Context, r request) error {
	r.done = make(chan error, 1)
	return handIn(ctx, b, b.requests, r, r.done)
}

// obey carries out a request, which may be about jobs that were just recorded.
func (b *Backend) obey(r request) {
	b.takeIn()
	r.done <- r.do()
}

// obeyAll carries out what waits, also when there is always a round to hold, and no more: rounds are held too.
func (b *Backend) obeyAll() {
	for range len(b.requests) {
		b.obey(<-b.requests)
	}
}

// takeIn gets to know the jobs that were recorded meanwhile.
func (b *Backend) takeIn() {
	for _, j := range b.intake.take() {
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
	if err := b.submit(ctx, jobs); err != nil {
		return nil, err
	}
	return names, nil
}

// unknown refuses what names nothing.
func unknown(kind, name string, known []string) error {
	d := core.Diagnostic{Summary: fmt.Sprintf("there is no %s %q", kind, name)}
	if nearest := core.Nearest(name, known); nearest != "" {
		d.Hint = fmt.Sprintf("did you mean %q?", nearest)
	}
	return core.Diagnostics{d}
}

// job finds a job by its name.
func (b *Backend) job(name string) (*job, error) {
	id, known := b.byName[name]
	if !known {
		names := make([]string, len(b.jobs))
		for i, j := range b.jobs {
			names[i] = j.Spec.Name
		}
		return nil, unknown("job", name, names)
	}
	return b.jobs[id], nil
}

// Cancel ends a job, whose replicas are stopped; one that is to be submitted later ends then.
func (b *Backend) Cancel(ctx context.Context, name string) error {
	return b.give(ctx, request{do: func() error {
		j, err := b.job(name)
		if err != nil || j.ended {
			return err
		}
		if err := b.store.cancel(j.Spec.ID); err != nil {
			return fmt.Errorf("record that job %q is cancelled: %w", name, err)
		}
		j.cancelled = true
		b.cancel(j)
		return nil
	}})
}

func (b *Backend) cancel(j *job) {
	if j.ended || !j.submitted {
		return
	}
	now := b.elapsed()
	if j.seats != nil {
		j.leave(now)
	}
	b.finish(j, core.JobCancelled, now)
	b.unlike = true
}

// SetHealth drains a node, whose jobs wait again after the next round, or makes it ready.
func (b *Backend) SetHealth(ctx context.Context, node string, h core.Health) error {
	return b.give(ctx, request{do: func() error {
		id := slices.IndexFunc(b.cluster.Nodes, func(n core.Node) bool { return n.Name == node })
		if id < 0 {
			names := make([]string, len(b.cluster.Nodes))
			for i := range names {
				names[i] = b.cluster.Nodes[i].Name
			}
			return unknown("node", node, names)
		}
		if err := b.store.setHealth(node, h); err != nil {
			return fmt.Errorf("record the health of node %q: %w", node, err)
		}
		b.setHealth(core.NodeID(id), h)
		return nil
	}})
}

func (b *Backend) setHealth(id core.NodeID, h core.Health) {
	if b.health[id] != h {
		b.health[id] = h
		b.events = append(b.events, core.Event{Kind: core.NodeChanged, AtSeconds: b.elapsed(), Node: id, Health: h})
	}
}

const snapshotFolder = ".snapshot-"

// removeSnapshots removes those that a scheduler was killed over.
func (b *Backend) removeSnapshots() {
	left, _ := filepath.Glob(filepath.Join(b.dir, snapshotFolder+"*")) // the pattern is well-formed
	for _, folder := range left {
		_ = os.RemoveAll(folder) // they are in nobody's way
	}
}

// WriteSnapshot writes the store, and what is to be told next.
func (b *Backend) WriteSnapshot(ctx context.Context, to io.Writer) error {
	folder, err := os.MkdirTemp(b.dir, snapshotFolder+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, storeFile)
	var moment *bolt.Tx
	var pending observation
	taken := make(chan struct{})
	var settled atomic.Bool // who comes second sees to it that the moment is let go of: a store that is held on to cannot be closed
	err = b.give(ctx, request{do: func() (err error) {
		b.arrive(b.elapsed())
		pending = observation{NowSeconds: b.elapsed(), Events: recorded(sorted(slices.Clone(b.events)))}
		if moment, err = b.store.moment(); err != nil {
			return err
		}
		if !settled.CompareAndSwap(false, true) {
			return moment.Rollback() // nobody waits for it any more
		}
		close(taken)
		return nil
	}})
	if err != nil {
		if !settled.CompareAndSwap(false, true) { // it was carried out all the same
			<-taken
			err = errors.Join(err, moment.Rollback())
		}
		return err
	}
	if err := writeSnapshot(path, moment, &pending); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(to, f)
	return err
}
