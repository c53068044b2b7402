package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
)

// Apply records the changes of the round last told, and carries them out: it waits for the jobs that it stops. A round
// that a scheduler before this one decided must be decided alike, and is not carried out again, except what the last one
// left half done.
func (b *Backend) Apply(_ context.Context, changes []core.Change) error {
	decided := b.rounds <= len(b.history) && b.history[b.rounds-1].Decided
	if decided {
		if err := b.compare(changes); err != nil {
			return err
		}
	} else if err := b.store.decide(b.rounds, changes); err != nil {
		return fmt.Errorf("record the decisions: %w", err)
	}
	for i := range changes {
		if err := b.decide(&changes[i]); err != nil {
			return err
		}
	}
	if b.rounds < len(b.history) {
		return nil
	}
	return b.settle()
}

// compare refuses decisions that are not those of a scheduler before this one.
func (b *Backend) compare(changes []core.Change) error {
	was, err := json.Marshal(b.history[b.rounds-1].Changes)
	if err != nil {
		return err
	}
	is, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	if string(is) != string(was) && len(changes)+len(b.history[b.rounds-1].Changes) > 0 {
		return fmt.Errorf("round %d was decided otherwise before the scheduler was restarted; a policy does not repeat itself: begin anew with --fresh\nbefore: %s\nnow:    %s", b.rounds, was, is)
	}
	return nil
}

// decide takes in one change. Taken in twice, it has the effect of once.
func (b *Backend) decide(c *core.Change) error {
	if c.Job < 0 || int(c.Job) >= b.arrived {
		return fmt.Errorf("%v job %d, which was never submitted", c.Action, c.Job)
	}
	j := &b.jobs[c.Job]
	if j.ended {
		return nil
	}
	switch c.Action {
	case core.Discard:
		b.end(j, b.now)
	case core.Stop:
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
			j.leave(b.now)
		}
		j.seats, j.tuning, j.decided = slices.Clone(c.Seats), c.Tuning, b.rounds
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
	_, err := b.agent.Send(j.Spec.Name, agent.ToJob{Tuning: &agent.Tuning{
		BatchPerDevice: t.BatchPerDevice, AccumulationSteps: t.AccumulationSteps, LearningRateFactor: t.LearningRateFactor,
		BatchByReplica: t.BatchByReplica,
	}})
	if err != nil {
		b.log.Warn("a tuning could not be told", "job", j.Spec.Name, "error", err)
	}
}

// settle makes what runs what is decided.
func (b *Backend) settle() error {
	b.findRuns()
	var stopping, starting []*job
	for i := range b.jobs[:b.arrived] {
		if j := &b.jobs[i]; j.live() && !j.wanted() {
			stopping = append(stopping, j)
		}
	}
	if err := b.stop(stopping); err != nil {
		return err
	}
	for i := range b.jobs[:b.arrived] {
		if j := &b.jobs[i]; j.seats != nil && !j.ended && !j.wanted() {
			starting = append(starting, j)
		}
	}
	return b.start(starting, b.elapsed())
}

// findRuns finds the keepers that a scheduler before this one left.
func (b *Backend) findRuns() {
	if b.found {
		return
	}
	b.found = true
	for i := range b.jobs {
		j := &b.jobs[i]
		if j.run.Number == 0 || !j.wanted() && !j.run.Keeper.alive() {
			continue
		}
		j.watched, j.gone = true, make(chan struct{})
		b.agent.Expect(j.Spec.Name)
		if j.wanted() {
			b.sendTuning(j)
		}
		go b.await(j.run.Keeper, j.gone)
	}
}

// lookAgain is how often a keeper is looked at that is not a child of this process.
const lookAgain = 20 * time.Millisecond

func (b *Backend) await(keeper identity, gone chan<- struct{}) {
	for keeper.alive() {
		time.Sleep(lookAgain)
	}
	b.ends(gone)
}

func (b *Backend) ends(gone chan<- struct{}) {
	close(gone)
	select {
	case b.happened <- struct{}{}:
	default: // there is a note already
	}
}

// patience is how long beyond its grace a job may take to be gone.
const patience = 10 * time.Second

// stop ends the runs of jobs and waits until they are gone.
func (b *Backend) stop(jobs []*job) error {
	for _, j := range jobs {
		_, _ = b.agent.Send(j.Spec.Name, agent.ToJob{Stop: &agent.Stop{GraceSeconds: b.config.Grace.Seconds()}}) // SIGTERM tells those who do not listen
		terminate(j.run.Keeper)
	}
	late := time.After(b.config.Grace + patience)
	for _, j := range jobs {
		for waiting := true; waiting; {
			select {
			case <-j.gone:
				waiting = false
			case e := <-b.agent.Events():
				b.hear(&e, b.elapsed())
			case <-late:
				return fmt.Errorf("job %q does not end, though it was killed; its keeper is process %d", j.Spec.Name, j.run.Keeper.PID)
			}
		}
	}
	b.listen(b.elapsed())
	for _, j := range jobs {
		b.stoppedRun(j)
	}
	return nil
}

// stoppedRun notes that a run is gone that is not wanted any more. It may have been faster, and be finished.
func (b *Backend) stoppedRun(j *job) {
	b.unwatch(j)
	if e, at := b.lastWord(j); e.Outcome == finished && !j.ended {
		j.seats = nil
		b.finish(j, core.JobFinished, at)
		return
	}
	if j.reported.checkpointed && j.reported.checkpoint != j.progress {
		j.progress = j.reported.checkpoint
		b.events = append(b.events, j.progressed(b.now))
	}
}

func (b *Backend) unwatch(j *job) {
	j.watched = false
	j.reported.fresh, j.reported.told = false, core.Measurement{}
	b.agent.Forget(j.Spec.Name)
}

func (b *Backend) finish(j *job, kind core.EventKind, at float64) {
	b.end(j, at)
	b.events = append(b.events, core.Event{Kind: kind, AtSeconds: at, Job: j.Spec.ID, Progress: j.progress})
}

// lastWord is what a keeper left, and when in the run.
func (b *Backend) lastWord(j *job) (e exit, atSeconds float64) {
	now := b.elapsed()
	path := filepath.Join(b.runFolder(j, j.run.Number), exitFile)
	info, err := os.Stat(path)
	if err == nil {
		err = readFile(path, &e)
	}
	if err != nil {
		return exit{Outcome: lost}, now
	}
	at := math.Floor(float64(info.ModTime().UnixNano()-b.meta.EpochUnix)/1e6) / 1000
	return e, min(max(at, b.now), now)
}

// ran takes in that a wanted run is gone. It reports whether the job is to be started again in its place.
func (b *Backend) ran(j *job) (again bool) {
	b.unwatch(j)
	e, at := b.lastWord(j)
	switch e.Outcome {
	case finished:
		j.leave(at)
		b.finish(j, core.JobFinished, at)
	case failed:
		j.run.Failures++
		b.log.Warn("a run failed", "job", j.Spec.Name, "run", j.run.Number, "reason", e.Reason, "retries_left", max(j.Process.Retries-j.run.Failures+1, 0))
		if j.run.Failures <= j.Process.Retries {
			j.progress = j.kept(at)
			j.begin(at)
			b.events = append(b.events, j.progressed(at))
			return true
		}
		j.leave(at)
		b.finish(j, core.JobFailed, at)
	default:
		if e.Outcome == lost {
			endStrays(b.runFolder(j, j.run.Number), nil)
			b.log.Warn("a run was lost: its keeper did not say how it ended", "job", j.Spec.Name, "run", j.run.Number)
		}
		j.leave(at)
		b.events = append(b.events, core.Event{Kind: core.JobInterrupted, AtSeconds: at, Job: j.Spec.ID, Progress: j.progress})
	}
	return false
}

// Close stops what still runs and leaves the store for a run to come to go on with. Closing it twice has the effect of once.
func (b *Backend) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	b.findRuns()
	var live []*job
	for i := range b.jobs {
		if b.jobs[i].live() {
			live = append(live, &b.jobs[i])
		}
	}
	return errors.Join(b.stop(live), b.store.setMeta(b.meta), b.agent.Close(), b.store.close())
}
