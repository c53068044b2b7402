package fake

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/workload"
)

// ErrOver is the answer to orders that come after the end of the run.
var ErrOver = fmt.Errorf("the run is over: %w", journal.ErrEnded)

// Submit takes in the jobs of a job file.
func (b *Backend) Submit(_ context.Context, f backend.JobFile) ([]string, error) {
	jobs, err := workload.DecodeJobs(f.Name, f.Text)
	if err != nil {
		return nil, err
	}
	var names []string
	err = b.order(func() error {
		var found core.Diagnostics
		for i := range jobs {
			if name := jobs[i].Spec.Name; b.byName[name] != nil {
				found = append(found, core.Diagnostic{
					Position: jobs[i].At, Path: fmt.Sprintf("jobs[%d].name", i), Summary: fmt.Sprintf("there is a job %q already", name),
				})
			}
		}
		if len(found) > 0 {
			return found
		}
		for i := range jobs {
			jobs[i].Spec.SubmitSeconds += b.clock
			b.expect(jobs[i].Spec)
			names = append(names, jobs[i].Spec.Name)
		}
		return nil
	})
	return names, err
}

// Cancel ends a job at once.
func (b *Backend) Cancel(_ context.Context, name string) error {
	return b.order(func() error {
		j := b.byName[name]
		switch {
		case j == nil:
			return fmt.Errorf("there is no job %q", name)
		case j.hasEnded():
		case slices.Contains(b.coming, j): // nobody has heard of it
			b.coming = slices.DeleteFunc(b.coming, func(other *job) bool { return other == j })
			close(j.ended)
		default:
			b.leave(j, b.clock)
			b.end(j)
			b.enqueue(j.progressed(core.JobCancelled, b.clock))
		}
		return nil
	})
}

// SubmitJobs takes in those jobs that there are not yet.
func (b *Backend) SubmitJobs(_ context.Context, jobs []workload.Job) error {
	return b.order(func() error {
		for i := range jobs {
			if spec := jobs[i].Spec; b.byName[spec.Name] == nil {
				spec.SubmitSeconds += b.clock
				b.expect(spec)
			}
		}
		return nil
	})
}

// EndEarly ends a job.
func (b *Backend) EndEarly(_ context.Context, name string, why core.Reason) error {
	return b.order(func() error {
		b.happen(b.clock) // it may have been submitted just now
		j := b.byName[name]
		switch {
		case j == nil:
			return fmt.Errorf("there is no job %q", name)
		case j.hasEnded() || slices.Contains(b.coming, j):
		default:
			b.leave(j, b.clock)
			b.end(j)
			e := j.progressed(core.JobFinished, b.clock)
			e.Early = why
			b.enqueue(e)
		}
		return nil
	})
}

// Begun is always the same: there is one run.
func (b *Backend) Begun() string { return "run" }

// NoMore lets the run end with the jobs that it has.
func (b *Backend) NoMore(context.Context) error {
	return b.order(func() error {
		b.open = false
		return nil
	})
}

// SetHealth changes the health of a node. One that is down interrupts its jobs.
func (b *Backend) SetHealth(_ context.Context, name string, h core.Health) error {
	return b.order(func() error {
		i := slices.IndexFunc(b.nodes, func(n *node) bool { return n.Name == name && n.Health < core.Provisioning })
		if i < 0 {
			return fmt.Errorf("there is no node %q", name)
		}
		n := b.nodes[i]
		if n.Health == h {
			return nil
		}
		if n.leaves && h == core.Ready {
			return fmt.Errorf("node %q leaves its pool", name)
		}
		b.become(n, h)
		if h == core.Down {
			b.interruptOn(n, core.CauseUnknown)
			b.removeEmpty()
		}
		return nil
	})
}

// order carries out an order, and wakes Next.
func (b *Backend) order(do func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return ErrOver
	}
	err := do()
	b.wake()
	return err
}

func (b *Backend) wake() {
	select {
	case b.ordered <- struct{}{}:
	default: // it was woken already
	}
}

// ReadLog writes what the script says that each replica puts out.
func (b *Backend) ReadLog(ctx context.Context, l backend.Log, to io.Writer) error {
	b.mu.Lock()
	j := b.byName[l.Job]
	b.mu.Unlock()
	if j == nil {
		return fmt.Errorf("there is no job %q", l.Job)
	}
	if l.Rank < 0 || l.Rank >= j.spec.MaxReplicas {
		return fmt.Errorf("job %q has no replica %d", l.Job, l.Rank)
	}
	if !l.Stderr {
		if _, err := io.WriteString(to, j.script.Log); err != nil {
			return err
		}
	}
	if !l.Follow {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-j.ended:
		return nil
	}
}

// WriteSnapshot writes the journal, and what is to be observed next.
func (b *Backend) WriteSnapshot(_ context.Context, to io.Writer) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	held, err := b.journal.Hold(&journal.Seen{NowSeconds: b.clock, Events: journal.Events(b.events)})
	if err != nil {
		return err
	}
	return held.Write(to)
}

// Close ends the run. Closing it twice has the effect of once.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.wake()
	return nil
}
