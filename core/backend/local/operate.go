package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// request is what somebody wants of the scheduler, whose goroutine carries it out: between rounds, and not before the rounds
// of schedulers before it are repeated.
type request struct {
	submit []workload.Job // all or none
	do     func() error   // or this
	done   chan error
}

// mostRequests is how many may wait to be carried out; further ones wait to be taken.
const mostRequests = 256

var errEnded = errors.New("the scheduler has ended")

func (b *Backend) give(ctx context.Context, r request) error {
	r.done = make(chan error, 1)
	select {
	case b.requests <- r:
	case <-b.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-b.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err() // it may be carried out all the same
	}
}

// obey carries out a request, and those that wait behind it. Submissions are recorded together: a store writes many as fast
// as one.
func (b *Backend) obey(r request) {
	var submissions []request
	for waiting := true; waiting; {
		if r.do == nil {
			submissions = append(submissions, r)
		} else {
			b.takeIn(submissions)
			submissions = nil
			r.done <- r.do()
		}
		select {
		case r = <-b.requests:
		default:
			waiting = false
		}
	}
	b.takeIn(submissions)
}

// takeIn records jobs that were submitted, and knows them from then on.
func (b *Backend) takeIn(submissions []request) {
	if len(submissions) == 0 {
		return
	}
	now, next := b.elapsed(), core.JobID(len(b.jobs))
	var taken []request
	var jobs []*workload.Job
	names := map[string]bool{}
	for _, r := range submissions {
		if err := b.checkNames(r.submit, names).Err(); err != nil {
			r.done <- err
			continue
		}
		for i := range r.submit {
			s := &r.submit[i].Spec
			s.ID, s.SubmitSeconds = next, s.SubmitSeconds+now
			names[s.Name] = true
			jobs = append(jobs, &r.submit[i])
			next++
		}
		taken = append(taken, r)
	}
	err := b.store.submit(jobs)
	if err == nil {
		for _, j := range jobs {
			b.know(j)
		}
	}
	for _, r := range taken {
		r.done <- err
	}
}

// checkNames refuses names that are taken.
func (b *Backend) checkNames(jobs []workload.Job, taken map[string]bool) (found core.Diagnostics) {
	for i := range jobs {
		name := jobs[i].Spec.Name
		if _, known := b.byName[name]; known || taken[name] {
			found = append(found, core.Diagnostic{
				Position: jobs[i].At, Path: fmt.Sprintf("jobs[%d].name", i),
				Summary: fmt.Sprintf("there is a job %q already", name), Hint: "its logs and checkpoints are named after it: choose another name",
			})
		}
	}
	return found
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
	return names, b.give(ctx, request{submit: jobs})
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

// WriteSnapshot writes the store, and what is to be told next.
func (b *Backend) WriteSnapshot(ctx context.Context, to io.Writer) error {
	folder, err := os.MkdirTemp(b.dir, ".snapshot-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, storeFile)
	if err := b.give(ctx, request{do: func() error {
		b.tellReports()
		b.sortEvents()
		return b.store.snapshot(path, &observation{NowSeconds: b.elapsed(), Events: recorded(b.events)})
	}}); err != nil {
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
