package fake

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Apply carries out the changes of a round. Devices that are given away twice are an error.
func (b *Backend) Apply(_ context.Context, changes []core.Change) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range changes {
		if c := &changes[i]; c.Job < 0 || int(c.Job) >= len(b.jobs) {
			return fmt.Errorf("%v job %d, which was never submitted", c.Action, c.Job)
		}
	}
	if b.seen != nil {
		if err := b.journal.Record(b.seen, changes); err != nil {
			return err
		}
		b.seen = nil
	}
	todo := slices.DeleteFunc(slices.Clone(changes), func(c core.Change) bool { return b.done(&c) })
	b.stop(todo)
	for i := range todo {
		if err := b.carryOut(&todo[i]); err != nil {
			return err
		}
	}
	b.removeEmpty()
	return nil
}

// done reports whether a change has no effect: it was carried out before, or comes too late.
func (b *Backend) done(c *core.Change) bool {
	j := b.jobs[c.Job]
	return j.hasEnded() || j.lost || c.Round > 0 && c.Round <= j.changed
}

// stop takes the devices of all jobs that are to lose them, and waits until they have let go.
func (b *Backend) stop(changes []core.Change) {
	gone := b.clock
	for i := range changes {
		if j := b.jobs[changes[i].Job]; changes[i].Action != core.Tune && j.seats != nil {
			gone = b.clock + b.options.StopSeconds
		}
	}
	for i := range changes {
		j := b.jobs[changes[i].Job]
		switch {
		case changes[i].Action == core.Tune || j.seats == nil:
		case j.turnsAt() <= gone:
			b.turn(j)
		default:
			b.leave(j, gone)
			b.enqueue(j.progressed(core.JobProgressed, gone))
		}
	}
	b.clock = gone
}

// carryOut does what is left of a change when devices were taken away.
func (b *Backend) carryOut(c *core.Change) error {
	j := b.jobs[c.Job]
	j.changed = c.Round
	if j.hasEnded() || j.lost { // meanwhile
		return nil
	}
	switch c.Action {
	case core.Discard, core.Finish:
		b.end(j)
	case core.Tune:
		if j.seats != nil {
			j.tuning = c.Tuning
		}
	case core.Start, core.Move:
		for _, s := range c.Seats {
			if s.Node < 0 || int(s.Node) >= len(b.nodes) || !b.nodes[s.Node].free(s.Devices) {
				return fmt.Errorf("%v job %q on devices %v of node %d, which are not all there and free", c.Action, j.spec.Name, s.Devices, s.Node)
			}
			b.nodes[s.Node].used |= s.Devices
		}
		j.seats, j.tuning, j.asOf = slices.Clone(c.Seats), c.Tuning, b.clock
		j.rate = float64(core.Replicas(j.seats)) / float64(max(j.spec.Requested, 1))
		b.lastWork = b.clock
		if slices.ContainsFunc(j.seats, func(s core.Seat) bool { return b.nodes[s.Node].Health >= core.Down }) {
			b.interrupt(j, b.clock, core.CauseUnknown)
			break
		}
		b.enqueue(j.progressed(core.JobProgressed, b.clock))
	}
	return nil
}

// turn lets a job do what its script says at the work that it reaches: end, or lose its devices.
func (b *Backend) turn(j *job) {
	at, target := j.turnsAt(), j.target()
	b.leave(j, at)
	j.progress = target
	if target != j.spec.TotalWork {
		j.script.InterruptAt = j.script.InterruptAt[1:]
		b.interrupt(j, at, core.CauseUnknown)
		return
	}
	kind := core.JobFinished
	if j.script.Fails {
		kind = core.JobFailed
	}
	b.end(j)
	b.enqueue(j.progressed(kind, at))
}

// interrupt takes away the devices of a job that did not ask for it.
func (b *Backend) interrupt(j *job, at float64, cause core.Cause) {
	b.leave(j, at)
	j.lost = true
	e := j.progressed(core.JobInterrupted, at)
	e.Cause = cause
	b.enqueue(e)
}

// leave frees the devices of a job at a moment.
func (b *Backend) leave(j *job, at float64) {
	for _, s := range j.seats {
		b.nodes[s.Node].used &^= s.Devices
	}
	if j.seats != nil {
		j.progress += max(at-j.asOf, 0) * j.rate
		b.lastWork = max(b.lastWork, at)
	}
	j.seats, j.rate, j.asOf = nil, 0, at
}

func (b *Backend) end(j *job) {
	b.active--
	close(j.ended)
}

func (j *job) hasEnded() bool {
	select {
	case <-j.ended:
		return true
	default:
		return false
	}
}

// target is the work at which the job ends or is interrupted.
func (j *job) target() float64 {
	work := j.spec.TotalWork
	if work == 0 {
		work = math.Inf(1)
	}
	if len(j.script.InterruptAt) > 0 {
		work = min(work, j.script.InterruptAt[0])
	}
	return work
}

// turnsAt is when the job reaches its target; +Inf while it has no devices.
func (j *job) turnsAt() float64 {
	if j.seats == nil {
		return math.Inf(1)
	}
	return j.asOf + max(j.target()-j.progress, 0)/j.rate
}

func (j *job) progressed(kind core.EventKind, at float64) core.Event {
	return core.Event{
		Kind: kind, AtSeconds: at, Job: j.spec.ID, Progress: j.progress, Rate: j.rate, FromSeconds: j.asOf, StepsLeft: math.NaN(),
	}
}
