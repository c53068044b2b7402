package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// Apply writes what is decided into the status of each job. Workers make it so.
//
// That a job has its devices no longer is written before who has them now: who takes over in between would else find a device in
// two decisions, and could not know which of them is true.
func (b *Backend) Apply(ctx context.Context, changes []core.Change) error {
	if b.startsReleased(changes) {
		if err := b.writeReleased(ctx); err != nil {
			return err
		}
	}
	var moved, started []*job
	for i := range changes {
		j := b.job(changes[i].Job)
		if j == nil && changes[i].Job >= 0 && changes[i].Job < b.nextID {
			continue // it has ended
		}
		if j == nil {
			return fmt.Errorf("%v job %d, which was never submitted", changes[i].Action, changes[i].Job)
		}
		had := b.holds[j.uid]
		decided := b.decide(j, &changes[i])
		b.unsplit(j)
		b.keepOut(j, had)
		switch {
		case !decided:
		case changes[i].Action == core.Start:
			started = append(started, j)
		case changes[i].Action == core.Move:
			moved = append(moved, j)
		default:
			b.released[j.uid] = j
		}
	}
	if err := b.writeReleased(ctx); err != nil {
		return err
	}
	if err := b.writeInOrder(ctx, append(inTurn(moved), started)...); err != nil {
		return err
	}
	for i := range changes {
		if (changes[i].Action == core.Discard || changes[i].Action == core.Finish) && b.job(changes[i].Job) != nil {
			b.byID[changes[i].Job] = nil // and nothing is told of it
		}
	}
	return nil
}

// startsReleased reports whether a job gets devices of which it is not written yet that it lost others, or that it had none that are
// there when another began to lead.
func (b *Backend) startsReleased(changes []core.Change) bool {
	return slices.ContainsFunc(changes, func(c core.Change) bool {
		j := b.job(c.Job)
		return j != nil && (c.Action == core.Start || c.Action == core.Move) && b.released[j.uid] != nil
	})
}

// writeReleased writes of all jobs that have their devices no longer that it is so.
func (b *Backend) writeReleased(ctx context.Context) error {
	if err := b.writeInOrder(ctx, slices.Collect(maps.Values(b.released))); err != nil {
		return err
	}
	clear(b.released)
	return nil
}

// inTurn parts jobs that move: those of one list have no device any more, once they are written, that one of a later list is to have.
// Those that move in a circle are one list: who takes over in between stops all of them but one.
func inTurn(moved []*job) (lists [][]*job) {
	for len(moved) > 0 {
		var now, later []*job
		for _, j := range moved {
			if slices.ContainsFunc(moved, func(other *job) bool { return other != j && j.follow(other) }) {
				later = append(later, j)
			} else {
				now = append(now, j)
			}
		}
		if len(now) == 0 {
			now, later = later, nil
		}
		lists, moved = append(lists, now), later
	}
	return lists
}

// follow reports whether a job is to have devices that another one has by what is written.
func (j *job) follow(other *job) bool {
	j.mutex.Lock()
	seats := slices.Clone(j.seats)
	j.mutex.Unlock()
	other.mutex.Lock()
	defer other.mutex.Unlock()
	return !other.deleted && overlap(seats, other.writtenSeats())
}

// writeInOrder writes the statuses of jobs, those of one list after those of the list before.
func (b *Backend) writeInOrder(ctx context.Context, lists ...[]*job) error {
	for _, jobs := range lists {
		for _, j := range jobs {
			first := b.inTheWay(j)
			j.mutex.Lock()
			j.withheld, j.after = false, first
			j.mutex.Unlock()
		}
		if err := b.writeAll(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

// decide enters a change into the status that its job is to have, and reports whether there is something to write. A change that
// was entered before, or that comes too late, changes nothing.
func (b *Backend) decide(j *job, c *core.Change) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	d := j.decision()
	if b.repeats(d, c) {
		return j.dirty // nobody knows whether it was written
	}
	ends := c.Action == core.Discard || c.Action == core.Finish
	if j.ended || j.deleted || j.losing && !ends {
		return false
	}
	next := &trainingjob.Decision{
		Epoch: b.term.Epoch, Round: int64(c.Round), Run: d.Run, AtSeconds: b.now, Seats: d.Seats, Tuning: d.Tuning, By: c.By, Stop: d.Stop,
		NextMember: d.NextMember, World: d.World, Stopped: d.Stopped,
	}
	switch c.Action {
	case core.Start, core.Move:
		b.decideSeats(j, next, c)
	case core.Stop, core.Pause:
		b.decideStop(j, next, c)
	case core.Tune:
		if d.Stop || len(d.Seats) == 0 {
			return false
		}
		next.Tuning, next.AtSeconds = tuningTo(c.Tuning), d.AtSeconds // the account goes on from there
	case core.Finish:
		j.leaves(next)
		b.leave(j)
		b.stop(j, next, b.now, trainingjob.Completed, c.Reason.String(), "")
		j.ended = true
	case core.Discard:
		b.stop(j, next, b.now, trainingjob.Rejected, c.Reason.String(), "")
		j.ended = true
	}
	if j.status.Decision = next; c.Action != core.Tune {
		j.status.Progress = j.account.entry()
	}
	j.dirty = true
	return true
}

// repeats reports whether a change was entered into a decision before.
func (b *Backend) repeats(d *trainingjob.Decision, c *core.Change) bool {
	return d.Epoch == b.term.Epoch && c.Round > 0 && d.Round >= int64(c.Round)
}

// decideSeats enters a start or a move into the decision and the status of a job.
func (b *Backend) decideSeats(j *job, next *trainingjob.Decision, c *core.Change) {
	j.withheld = true
	next.Stop = false
	before := j.seats
	reason, message, trouble := b.whyLeft(j, c)
	stays := c.Action == core.Move && b.resize(j, next, c)
	if !stays {
		j.leaves(next)
		next.Run, next.World, next.NextMember = next.Run+1, 0, 0
		j.seats, _ = gang.Number(nil, b.seatsFor(j, c.Seats), 0)
	}
	next.Seats = seatsTo(j.seats)
	next.Tuning = tuningTo(c.Tuning)
	j.account.hold(core.Replicas(c.Seats), b.now)
	b.hold(j, c.Seats)
	j.status.Replicas = core.Replicas(c.Seats)
	left := slices.ContainsFunc(before, func(s gang.Seat) bool { return !slices.Contains(j.seats, s) })
	if left && (!stays || trouble || j.adopts != nil) {
		j.status.Interrupt(reason, message, j.generation, b.clock.Now())
	}
	if stays {
		return
	}
	b.leave(j)
	j.started, j.starting, j.resizing = false, false, false
	j.status.State = trainingjob.Starting
	j.status.SetCondition(trainingjob.ConditionAdmitted, metav1.ConditionTrue, "Admitted", "", j.generation, b.clock.Now())
	j.status.SetCondition(trainingjob.ConditionRunning, metav1.ConditionFalse, startingReason, "", j.generation, b.clock.Now())
}

// decideStop enters a stop into the decision and the status of a job, which waits then.
func (b *Backend) decideStop(j *job, next *trainingjob.Decision, c *core.Change) {
	j.leaves(next)
	b.leave(j)
	j.account.preemptions++
	b.reportStopped(j, c)
	reason, message, _ := b.whyLeft(j, c)
	b.stop(j, next, b.now, trainingjob.Waiting, reason, message)
	if c.Reason == core.Suspended {
		j.account.preemptions--
		j.status.State = trainingjob.Suspended
	}
}

// startingReason is that of a job whose pods are on their way.
const startingReason = "Starting"

// own makes a decision one of this term. Rounds are counted anew in each: one of another term is before all of this.
func (b *Backend) own(d *trainingjob.Decision) {
	if d.Epoch != b.term.Epoch {
		d.Epoch, d.Round = b.term.Epoch, 0
	}
}

// stop makes a decision one to have no devices.
func (b *Backend) stop(j *job, d *trainingjob.Decision, at float64, state trainingjob.State, reason, message string) {
	if len(j.seats) > 0 && !state.Ended() {
		j.status.Interrupt(camel(reason), message, j.generation, b.clock.Now())
	}
	d.Stop, d.Seats, d.Tuning, d.AtSeconds = true, nil, nil, at
	j.seats = nil
	b.fits.lookAt(j.uid)
	j.account.hold(0, at)
	b.hold(j, nil)
	b.released[j.uid] = j
	if j.adopts != nil {
		b.world.drove(j.uid) // its pods may not be there when it is to start again
	}
	j.status.State, j.status.Replicas = state, 0
	j.status.SetCondition(trainingjob.ConditionRunning, metav1.ConditionFalse, camel(reason), message, j.generation, b.clock.Now())
	if state.Ended() {
		j.status.SetCondition(trainingjob.ConditionFinished, metav1.ConditionTrue, camel(reason), message, j.generation, b.clock.Now())
	}
}

// whyLeft is why a job leaves devices that it has, and whether that is trouble with them.
func (b *Backend) whyLeft(j *job, c *core.Change) (reason, message string, trouble bool) {
	for _, s := range b.holds[j.uid] {
		if reason, message = b.nodes.unfit(b.nodes.told[s.Node], s.Devices, b.world.node); reason != "" {
			return reason, message, true
		}
	}
	message = "decided by " + c.By
	switch {
	case c.Action == core.Move:
		return "Moved", message, false
	case c.Reason == core.Suspended:
		return camel(c.Reason.String()), "its owner holds it back", false
	default:
		return camel(c.Reason.String()), message, false
	}
}

// seatsOf names the nodes of seats.
func (b *Backend) seatsOf(seats []core.Seat) []gang.Seat {
	list := make([]gang.Seat, len(seats))
	for i, s := range seats {
		list[i] = gang.Seat{Node: b.nodes.told[s.Node].name, Devices: s.Devices}
	}
	return list
}

// seatsTo are seats as a decision has them.
func seatsTo(seats []gang.Seat) (list []trainingjob.Seat) {
	for _, s := range seats {
		list = append(list, trainingjob.Seat{Member: s.Member, Node: s.Node, Devices: trainingjob.FormatDevices(s.Devices)})
	}
	return list
}

func tuningTo(t core.Tuning) *trainingjob.Tuning {
	if t.BatchPerDevice == 0 && t.AccumulationSteps == 0 && t.LearningRateFactor == 0 {
		return nil
	}
	return &trainingjob.Tuning{
		BatchPerDevice: t.BatchPerDevice, AccumulationSteps: t.AccumulationSteps, LearningRateFactor: t.LearningRateFactor,
		BatchByReplica: slices.Clone(t.BatchByReplica),
	}
}

func tuningFrom(t *trainingjob.Tuning) core.Tuning {
	if t == nil {
		return core.Tuning{}
	}
	return core.Tuning{
		BatchPerDevice: t.BatchPerDevice, AccumulationSteps: t.AccumulationSteps, LearningRateFactor: t.LearningRateFactor,
		BatchByReplica: slices.Clone(t.BatchByReplica),
	}
}

// writeAll writes the statuses of jobs, many at the same time. A job whose own trouble it is that this fails stays behind: it is tried
// again beside the rounds, its pods are left alone until then, and all others go on.
func (b *Backend) writeAll(ctx context.Context, jobs []*job) error {
	var wait sync.WaitGroup
	errs := make([]error, len(jobs))
	gate := make(chan struct{}, b.config.Workers)
	for i, j := range jobs {
		gate <- struct{}{}
		wait.Go(func() {
			defer func() { <-gate }()
			errs[i] = b.write(ctx, j)
		})
	}
	wait.Wait()
	b.leaveBehind(ctx, jobs, errs)
	for _, err := range errs { // that which ends the run before that which passes
		if err != nil && !passes(err) {
			return err
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func passes(err error) bool {
	var trouble *core.Unavailable
	return errors.As(err, &trouble)
}
