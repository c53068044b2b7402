package local

import (
	"context"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
)

// Apply records the changes of the latest round, and begins to carry them out: it waits for nobody. What is to be stopped
// may take its grace; what is to run on its devices begins when it is gone. A round that an earlier scheduler held is not
// carried out again, except what the last one left half done.
func (b *Backend) Apply(_ context.Context, changes []core.Change) error {
	if !b.journal.Repeated() && b.seen != nil {
		if err := b.journal.Record(b.seen, changes); err != nil {
			return err
		}
		b.seen = nil
	}
	if err := b.decideAll(changes); err != nil {
		return err
	}
	if b.journal.Replaying() {
		return nil
	}
	b.wakeUp()
	now := b.elapsed()
	if err := b.keepSlots(now); err != nil { // first: nothing begins on a node that was taken away meanwhile
		return err
	}
	return b.settle(now)
}

func (b *Backend) decideAll(changes []core.Change) error {
	for i := range changes {
		if err := b.decide(&changes[i]); err != nil {
			return err
		}
	}
	return nil
}

// decide takes in one change. Taken in twice, it has the effect of once.
func (b *Backend) decide(c *core.Change) error {
	if c.Job < 0 || int(c.Job) >= len(b.jobs) || !b.jobs[c.Job].submitted {
		return fmt.Errorf("%v job %d, which was never submitted", c.Action, c.Job)
	}
	j := b.jobs[c.Job]
	if j.ended || c.Round > 0 && c.Round <= j.changed {
		return nil
	}
	j.changed = c.Round
	b.unsettled = true
	switch c.Action {
	case core.Discard:
		b.end(j, b.now)
	case core.Finish:
		if j.seats != nil {
			j.leave(b.now)
		}
		b.end(j, b.now)
	case core.Stop, core.Pause:
		j.leave(b.now)
		b.events = append(b.events, j.progressed(b.now))
	case core.Tune:
		j.tuning = c.Tuning
		if j.live() {
			b.sendTuning(j)
		}
	case core.Start, core.Move:
		if core.SameSeats(j.seats, c.Seats) && j.tuning.Equal(c.Tuning) {
			return nil
		}
		if j.seats != nil {
			j.rigid = j.rigid || j.shrunk == b.journal.Rounds() && core.Replicas(c.Seats) > core.Replicas(j.seats)
			j.leave(b.now)
		}
		j.seats, j.tuning, j.decided = slices.Clone(c.Seats), c.Tuning, b.journal.Rounds()
		j.begin(b.now)
		b.events = append(b.events, j.progressed(b.now))
	}
	return nil
}

func (b *Backend) sendTuning(j *job) {
	t := &j.tuning
	if t.BatchPerDevice == 0 && t.LearningRateFactor == 0 {
		return // the batch is the job's own affair
	}
	if b.pacesItself(j) { // it reads how it goes now when it receives the tuning
		if err := b.writePace(j, b.runFolder(j, j.run.Number)); err != nil {
			b.log.Warn("a tuning could not be sent", "job", j.Spec.Name, "error", err)
			return
		}
	}
	_, err := b.agent.Send(j.Spec.Name, agent.ToJob{Tuning: &agent.Tuning{
		BatchPerDevice: t.BatchPerDevice, AccumulationSteps: t.AccumulationSteps, LearningRateFactor: t.LearningRateFactor,
		BatchByReplica: t.BatchByReplica,
	}})
	if err != nil {
		b.log.Warn("a tuning could not be sent", "job", j.Spec.Name, "error", err)
	}
}

func (b *Backend) end(j *job, now float64) {
	if !j.ended {
		j.ended = true
		b.active--
		b.lastWork = now
	}
}

// fail says that a job failed, and why.
func (b *Backend) fail(j *job, why string, at float64) {
	b.finish(j, core.JobFailed, at)
	b.events[len(b.events)-1].Message = why
}

// interrupt says that a job lost its devices, and why.
func (b *Backend) interrupt(j *job, f failure) {
	b.events = append(b.events, core.Event{
		Kind: core.JobInterrupted, AtSeconds: f.at, Job: j.Spec.ID, Progress: j.progress, FromSeconds: f.at, Message: f.why, Cause: f.cause, Seats: f.where,
	})
}

func (b *Backend) finish(j *job, kind core.EventKind, at float64) {
	b.end(j, at)
	b.events = append(b.events, core.Event{Kind: kind, AtSeconds: at, Job: j.Spec.ID, Progress: j.progress})
}
