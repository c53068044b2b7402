package local

import (
	"context"
	"fmt"
	"sync"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// intake records submissions beside the rounds: who submits waits for the disk, and for no policy or process. Those that come
// while others are recorded are recorded together, for a store writes many as fast as one.
type intake struct {
	store   *store
	now     func() float64
	wanted  chan submitting
	arrived chan struct{} // there are jobs to take

	taken map[string]bool // names
	next  core.JobID

	mutex    sync.Mutex
	recorded []*workload.Job // and not yet taken

	gate  sync.Mutex // held while something is recorded
	ended bool
}

// end refuses what is submitted from now on. It reports false, and refuses nothing, when something is yet to be taken.
func (in *intake) end() bool {
	in.gate.Lock()
	defer in.gate.Unlock()
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.ended = in.ended || len(in.recorded) == 0
	return in.ended
}

// submitting is what somebody submits: all or none.
type submitting struct {
	jobs []workload.Job
	done chan error
}

// mostAtOnce is how many submissions may wait to be recorded together; further ones wait to be taken.
const mostAtOnce = 256

func newIntake(s *store, now func() float64, known []*job) *intake {
	in := &intake{
		store: s, now: now, wanted: make(chan submitting, mostAtOnce), arrived: make(chan struct{}, 1),
		taken: make(map[string]bool, len(known)), next: core.JobID(len(known)),
	}
	for _, j := range known {
		in.taken[j.Spec.Name] = true
	}
	return in
}

// work records submissions until it is told to end.
func (in *intake) work(end <-chan struct{}) {
	for {
		select {
		case <-end:
			return
		case s := <-in.wanted:
			list := []submitting{s}
			for waiting := true; waiting && len(list) < mostAtOnce; {
				select {
				case s = <-in.wanted:
					list = append(list, s)
				default:
					waiting = false
				}
			}
			in.record(list)
		}
	}
}

func (in *intake) record(list []submitting) {
	in.gate.Lock()
	defer in.gate.Unlock()
	if in.ended {
		for _, s := range list {
			s.done <- errEnded
		}
		return
	}
	now, next := in.now(), in.next
	var accepted []submitting
	var jobs []*workload.Job
	for _, s := range list {
		if err := in.checkNames(s.jobs).Err(); err != nil {
			s.done <- err
			continue
		}
		for i := range s.jobs {
			spec := &s.jobs[i].Spec
			spec.ID, spec.SubmitSeconds = next, spec.SubmitSeconds+now
			in.taken[spec.Name] = true
			jobs = append(jobs, &s.jobs[i])
			next++
		}
		accepted = append(accepted, s)
	}
	if len(jobs) == 0 {
		return
	}
	err := in.store.submit(jobs)
	if err != nil {
		err = fmt.Errorf("record what is submitted: %w", err)
		for _, j := range jobs {
			delete(in.taken, j.Spec.Name)
		}
	} else {
		in.next = next
		in.mutex.Lock()
		in.recorded = append(in.recorded, jobs...)
		in.mutex.Unlock()
		select {
		case in.arrived <- struct{}{}:
		default: // there is a note already
		}
	}
	for _, s := range accepted {
		s.done <- err
	}
}

// checkNames refuses names that are taken.
func (in *intake) checkNames(jobs []workload.Job) (found core.Diagnostics) {
	for i := range jobs {
		if name := jobs[i].Spec.Name; in.taken[name] {
			found = append(found, core.Diagnostic{
				Position: jobs[i].At, Path: fmt.Sprintf("jobs[%d].name", i),
				Summary: fmt.Sprintf("there is a job %q already", name), Hint: "its logs and checkpoints are named after it: choose another name",
			})
		}
	}
	return found
}

// take returns the jobs that were recorded since it was last called.
func (in *intake) take() []*workload.Job {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	jobs := in.recorded
	in.recorded = nil
	return jobs
}

// submit hands jobs in, and returns when they are recorded.
func (b *Backend) submit(ctx context.Context, jobs []workload.Job) error {
	s := submitting{jobs, make(chan error, 1)}
	return handIn(ctx, b, b.intake.wanted, s, s.done)
}

// handIn hands something in and waits for the answer.
func handIn[T any](ctx context.Context, b *Backend, to chan<- T, what T, done <-chan error) error {
	select {
	case to <- what:
	case <-b.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-b.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err() // it may be done all the same
	}
}
