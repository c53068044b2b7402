package local

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

// settle brings what runs closer to what is decided: it tells runs to stop that are not wanted any more, and starts those
// for which there is room beside all whose processes are still there.
func (b *Backend) settle(now float64) error {
	if !b.unsettled && len(b.uncounted) == 0 {
		return nil
	}
	if err := b.countFailures(); err != nil {
		return err
	}
	b.unsettled = false
	held := b.newOccupancy()
	for _, j := range b.jobs {
		if !j.live() {
			continue
		}
		if !j.wanted() {
			b.stop(j, now)
		}
		held.add(j, j.run.Names)
	}
	var starting []*job
	for _, j := range b.jobs {
		b.unsettled = b.unsettled || j.decided > b.journal.Rounds() // it continues on fewer devices when that is recorded
		if j.due(b.journal.Rounds()) && held.fits(j, j.seats) {
			held.add(j, b.devicesOf(j.seats))
			starting = append(starting, j)
		}
	}
	return b.start(starting, now)
}

// devicesOf are the names of the devices of seats.
func (b *Backend) devicesOf(seats []core.Seat) (names []string) {
	for _, seat := range seats {
		for _, device := range seat.Devices.List() {
			names = append(names, b.devices.names[seat.Node][device])
		}
	}
	return names
}

// How long beyond its grace a run may take to be gone before somebody is told, and how long a job that is gone may have
// words on the way.
const (
	patience = 10 * time.Second
	linger   = time.Second
)

// mostLost is how many runs in a row may be lost before that is the job's own fault.
const mostLost = 3

// stop tells a run to end: its agent, if one listens, or else by SIGTERM. One that its agent stops in time gets no signal.
func (b *Backend) stop(j *job, now float64) {
	if j.stopBy > 0 {
		return
	}
	j.stopBy = now + b.seconds(2*b.config.Grace+patience)
	if !j.connected && !j.silent || j.hung {
		j.run.Keeper.Terminate()
		return
	}
	j.run.Keeper.AskToStop(b.runFolder(j, j.run.Number))                                                     // first: what ends from then on has not failed
	_, _ = b.agent.Send(j.Spec.Name, agent.ToJob{Stop: &agent.Stop{GraceSeconds: b.config.Grace.Seconds()}}) // or it is told when the grace is over
}

// seconds is a time of this machine in the time of the run.
func (b *Backend) seconds(d time.Duration) float64 { return d.Seconds() * b.config.Speedup }

// lookAfter asks a run for a checkpoint when it is time, and ends one that spoke and has said nothing for too long, and one
// whose keeper does not end it.
func (b *Backend) lookAfter(j *job, now float64) {
	if j.stopBy > 0 && now >= j.stopBy && !j.slow {
		j.slow = true
		b.log.Warn("a keeper does not end its run; it is killed, and its devices stay taken until it is gone", "job", j.Spec.Name, "keeper", j.run.Keeper.PID)
		j.run.Keeper.Kill() // its replicas die with it
	}
	if b.config.CheckpointEvery > 0 && j.connected && j.wanted() && now >= j.checkpointBy {
		if j.checkpointBy > 0 {
			_, _ = b.agent.Send(j.Spec.Name, agent.ToJob{Checkpoint: &agent.Checkpoint{}}) // it connects again, and is asked again
		}
		j.checkpointBy = now + b.seconds(b.config.CheckpointEvery)
	}
	if by := b.hangsAt(j); now >= by {
		j.hung = true
		b.stop(j, now)
	}
}

// hangsAt is when a run is taken to hang unless it says something before.
func (b *Backend) hangsAt(j *job) float64 {
	if b.config.HangAfter == 0 || !j.live() || !j.wanted() || !j.spoke && !j.silent || j.hung {
		return math.Inf(1)
	}
	return j.spokeAt + b.seconds(b.config.HangAfter)
}

// patienceEnds is when somebody must be looked after who says nothing.
func (b *Backend) patienceEnds(now float64) float64 {
	by := math.Inf(1)
	for _, j := range b.jobs {
		if j.live() {
			by = min(by, b.hangsAt(j))
			if j.checkpointBy > now {
				by = min(by, j.checkpointBy)
			}
			if j.stopBy > now {
				by = min(by, j.stopBy)
			}
			if j.lingers > now {
				by = min(by, j.lingers)
			}
		}
	}
	return by
}

// saysMore reports whether words of a run that is gone are still on their way.
func (b *Backend) saysMore(j *job, now float64) bool {
	if !j.connected {
		return false
	}
	if j.lingers == 0 {
		j.lingers = now + b.seconds(linger)
	}
	return now < j.lingers
}

// ran takes in that a run is gone.
func (b *Backend) ran(j *job) {
	b.unsettled = true
	wanted := j.wanted()
	e, at := b.finalReport(j)
	b.takeFinalReport(j, at)
	b.unwatch(j)
	for _, warning := range e.Warnings {
		if b.unlimited && strings.HasPrefix(warning, keeper.NoLimits) {
			continue // it was told when the scheduler began
		}
		b.log.Warn("a run had trouble", "job", j.Spec.Name, "run", j.run.Number, "warning", warning)
	}
	if e.Outcome == keeper.Lost { // its devices are free when nothing is left of it, wanted or not
		keeper.EndStrays(b.runFolder(j, j.run.Number), nil)
		if !j.evicted {
			b.log.Warn("a run was lost: its keeper did not say how it ended", "job", j.Spec.Name, "run", j.run.Number)
		}
	}
	switch {
	case e.Outcome == keeper.NeverBegan:
		j.rate = 0 // nothing was done, and what was lost before is no matter of this run
		b.log.Warn("a run never began", "job", j.Spec.Name, "run", j.run.Number)
	case e.Outcome != keeper.Lost:
		j.run.Lost = 0
	case j.evicted: // that is no matter of its keeper
	case j.kept:
		j.run.Lost = 1 // it got further than those before
	default:
		j.run.Lost++
	}
	switch {
	case e.Outcome == keeper.Stopped && j.done && !slices.ContainsFunc(e.Codes, func(code int) bool { return code != 0 }):
		e.Outcome = keeper.Finished // it was done when it was asked to stop
	case e.Outcome == keeper.Finished && j.spoke && !j.done:
		e.Outcome, e.Reason = keeper.Failed, "exited with 0 before it said that it was done"
	case e.Outcome == keeper.Stopped && j.hung:
		e.Outcome, e.Reason = keeper.Failed, fmt.Sprintf("said nothing for %v", b.config.HangAfter)
	}
	switch {
	case j.kept:
		j.vain = 0
	case wanted && e.Outcome != keeper.Finished:
		j.vain = max(j.vain, at-j.beganAt, b.seconds(startNoise))
	}
	switch {
	case j.ended:
	case e.Outcome == keeper.Finished: // if it is not wanted any more, it was faster
		j.leave(at)
		b.finish(j, core.JobFinished, at)
	case !wanted:
		if j.reported.checkpointed && j.reported.checkpoint != j.progress {
			j.progress = j.reported.checkpoint
			b.events = append(b.events, j.progressed(at))
		}
	case e.Outcome == keeper.Lost && j.run.Lost >= mostLost:
		b.failed(j, j.tallyOf(core.CauseExited), failure{cause: core.CauseExited, why: fmt.Sprintf("its keeper was killed %d times in a row", j.run.Lost), at: at})
	case e.Outcome == keeper.Failed:
		b.loses(j, &e, at)
	default:
		why := interruptions[e.Outcome]
		b.lost(j, nil, failure{cause: why.cause, why: why.text, at: at})
	}
}

// interruptions say why a run ended that nobody had told to.
var interruptions = map[keeper.Outcome]struct {
	cause core.Cause
	text  string
}{
	keeper.Stopped:    {core.CauseKilled, "it was stopped"},
	keeper.Lost:       {core.CauseKilled, "its keeper was killed"},
	keeper.NeverBegan: {core.CauseNeverBegan, "none of its processes was started"},
}

// finalReport is what a keeper left, and when the run ended. Only of one that ended while no scheduler ran does its file tell
// when: a clock may be set, and a running scheduler does not notice.
func (b *Backend) finalReport(j *job) (e keeper.Exit, atSeconds float64) {
	now := b.elapsed()
	e, at, err := keeper.FinalReport(b.runFolder(j, j.run.Number))
	if err != nil {
		e.Outcome = keeper.Lost
		if !keeper.Began(b.runFolder(j, j.run.Number)) {
			e.Outcome = keeper.NeverBegan
		}
		return e, now
	}
	if !j.before {
		return e, min(max(j.exitedAt, b.now), now)
	}
	since := float64(at.UnixNano()-b.meta.EpochUnix) / 1e9 * b.config.Speedup
	return e, min(max(math.Floor(since*1000)/1000, b.now), now)
}

// Close stops what still runs and leaves the store for a run to come to go on with. Closing it twice has the effect of once.
func (b *Backend) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	close(b.ended)
	b.work.Wait()
	b.wakeUp()
	return errors.Join(b.stopAll(), b.journal.SetMeta(b.meta), b.agent.Close(), b.letGo())
}

// Leave ends the scheduler and lets its jobs run on, as if it had been killed: one after it takes them over. It returns how many
// there are.
func (b *Backend) Leave() (running int, err error) {
	if b.closed {
		return 0, nil
	}
	b.closed = true
	close(b.ended)
	b.work.Wait()
	for _, j := range b.jobs {
		if j.run.Number > 0 && j.run.Keeper.Alive() {
			running++
		}
	}
	return running, errors.Join(b.agent.Close(), b.letGo())
}

// letGo gives the devices up, and then the store: who has that finds the devices free.
func (b *Backend) letGo() error { return errors.Join(b.unclaim(), b.store.close()) }

// stopAll stops what runs, and waits until it is gone.
func (b *Backend) stopAll() error {
	now := b.elapsed()
	for _, j := range b.jobs {
		if j.live() {
			b.stop(j, now)
		}
	}
	late, killed := time.After(2*b.config.Grace+patience), false
	for _, j := range b.jobs {
		for j.live() {
			select {
			case <-j.gone:
				b.unwatch(j)
			case e := <-b.agent.Events():
				b.collect(&e, b.elapsed())
			case <-late:
				if killed {
					return fmt.Errorf("job %q does not end, though it was killed; its keeper is process %d", j.Spec.Name, j.run.Keeper.PID)
				}
				killed, late = true, time.After(patience)
				for _, other := range b.jobs {
					if other.live() {
						other.run.Keeper.Kill() // its replicas die with it
					}
				}
			}
		}
	}
	return nil
}
