package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// ErrEnded is the answer to orders that come after the end of the run.
var ErrEnded = errors.New("the scheduler has ended")

// mostAtOnce is how many orders of a kind may wait; further ones wait to be taken.
const mostAtOnce = 256

// Intake records submissions beside the rounds: who submits waits for the store, and for no policy or process. Those that come
// while others are recorded are recorded together, for a store writes many as fast as one.
type Intake struct {
	log     *Log
	now     func() float64
	wanted  chan submitting
	arrived chan struct{} // there are jobs to take
	ended   chan struct{} // closed when nothing is recorded any more

	taken map[string]bool // names
	next  core.JobID

	mutex    sync.Mutex
	recorded []*workload.Job // and not yet taken

	gate   sync.Mutex // held while something is recorded
	closed bool
}

// submitting is what somebody submits: all or none.
type submitting struct {
	jobs  []workload.Job
	again bool // those whose names are taken were submitted before
	done  chan error
}

// NewIntake returns the intake of a run that knows some jobs, in whose seconds now returns the moment. It works until ended is
// closed.
func NewIntake(l *Log, now func() float64, known []string, ended chan struct{}) *Intake {
	in := &Intake{
		log: l, now: now, wanted: make(chan submitting, mostAtOnce), arrived: make(chan struct{}, 1), ended: ended,
		taken: make(map[string]bool, len(known)), next: core.JobID(len(known)),
	}
	for _, name := range known {
		in.taken[name] = true
	}
	return in
}

// Work records submissions until the run has ended.
func (in *Intake) Work() {
	for {
		select {
		case <-in.ended:
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

// End refuses what is submitted from now on. It reports false, and refuses nothing, when something is yet to be taken.
func (in *Intake) End() bool {
	in.gate.Lock()
	defer in.gate.Unlock()
	in.mutex.Lock()
	defer in.mutex.Unlock()
	in.closed = in.closed || len(in.recorded) == 0
	return in.closed
}

func (in *Intake) record(list []submitting) {
	in.gate.Lock()
	defer in.gate.Unlock()
	if in.closed {
		for _, s := range list {
			s.done <- ErrEnded
		}
		return
	}
	now, next := in.now(), in.next
	var accepted []submitting
	var jobs []*workload.Job
	for _, s := range list {
		if s.again {
			s.jobs = slices.DeleteFunc(s.jobs, func(j workload.Job) bool { return in.taken[j.Spec.Name] })
			if len(s.jobs) == 0 {
				s.done <- nil
				continue
			}
		}
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
	err := in.log.Submit(jobs)
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
func (in *Intake) checkNames(jobs []workload.Job) (found core.Diagnostics) {
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

// Arrived receives when there are jobs to take.
func (in *Intake) Arrived() <-chan struct{} { return in.arrived }

// Take returns the jobs that were recorded since it was last called.
func (in *Intake) Take() []*workload.Job {
	in.mutex.Lock()
	defer in.mutex.Unlock()
	jobs := in.recorded
	in.recorded = nil
	return jobs
}

// Submit hands jobs in, and returns when they are recorded. Their moments of submission are relative to now.
func (in *Intake) Submit(ctx context.Context, jobs []workload.Job) error {
	s := submitting{jobs: jobs, done: make(chan error, 1)}
	return handIn(ctx, in.ended, in.wanted, s, s.done)
}

// Ensure hands jobs in as Submit does, but for those whose names are taken.
func (in *Intake) Ensure(ctx context.Context, jobs []workload.Job) error {
	s := submitting{jobs: slices.Clone(jobs), again: true, done: make(chan error, 1)}
	return handIn(ctx, in.ended, in.wanted, s, s.done)
}

// Orders are carried out by the goroutine of the scheduler, between rounds and not before recorded rounds are repeated.
type Orders struct {
	wanted chan Order
	ended  <-chan struct{}
}

// Order is what somebody wants.
type Order struct {
	do   func() error
	done chan error
}

// NewOrders returns orders that are taken until ended is closed.
func NewOrders(ended <-chan struct{}) *Orders { return &Orders{make(chan Order, mostAtOnce), ended} }

// Give hands an order in, and returns when it is carried out.
func (o *Orders) Give(ctx context.Context, do func() error) error {
	r := Order{do, make(chan error, 1)}
	return handIn(ctx, o.ended, o.wanted, r, r.done)
}

// Wanted returns the orders, each to be carried out.
func (o *Orders) Wanted() <-chan Order { return o.wanted }

// Waiting is how many wait.
func (o *Orders) Waiting() int { return len(o.wanted) }

// CarryOut carries an order out, and records who gave it.
func (r Order) CarryOut() { r.done <- r.do() }

// handIn hands something in and waits for the answer.
func handIn[T any](ctx context.Context, ended <-chan struct{}, to chan<- T, what T, done <-chan error) error {
	select {
	case to <- what:
	case <-ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-done:
		return err
	case <-ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err() // it may be done all the same
	}
}

// Unknown refuses what names nothing.
func Unknown(kind, name string, known []string) error {
	d := core.Diagnostic{Summary: fmt.Sprintf("there is no %s %q", kind, name)}
	if nearest := core.Nearest(name, known); nearest != "" {
		d.Hint = fmt.Sprintf("did you mean %q?", nearest)
	}
	return core.Diagnostics{d}
}
