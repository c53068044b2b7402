package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

// resume takes over from the scheduler before, or begins anew when there was none, or nothing is left of its run.
func (b *Backend) resume(ctx context.Context, o *Opener) error {
	b.opened = b.clock.Now()
	m, err := b.store.meta()
	if err != nil {
		return b.refuse(fmt.Sprintf("the store is damaged: %v", err), "--fresh stops its jobs, sets it aside and begins anew")
	}
	if m != nil && !o.fresh && !m.Complete {
		if m.Devices, err = o.deviceNames(ctx, b.cluster, m.Devices); err != nil {
			return err
		}
		return b.goOn(m, o.identity)
	}
	devices, err := o.deviceNames(ctx, b.cluster, nil)
	if err != nil {
		return err
	}
	jobs := filepath.Join(b.dir, "jobs")
	keeper.EndStrays(jobs, nil)
	if err := os.RemoveAll(jobs); err != nil {
		return fmt.Errorf("remove the jobs of an earlier run: %w", err)
	}
	b.found = true
	b.meta = &meta{Schema: storeSchema, Identity: o.identity, Config: o.resolved, Devices: devices, EpochUnix: b.opened.UnixNano()}
	return b.store.reset(b.meta)
}

func (b *Backend) goOn(m *meta, run string) error {
	if m.Identity != run {
		return b.refuse("holds a run of another config or with other jobs, which can be gone on with",
			"run that one again, give this one another name with --name, or begin anew with --fresh, which removes its jobs and their logs")
	}
	if err := b.recall(m); err != nil {
		return err
	}
	runs, err := b.store.runs()
	if err != nil {
		return b.refuse(fmt.Sprintf("the store is damaged: %v", err), "begin anew with --fresh")
	}
	for name, r := range runs {
		if id, known := b.byName[name]; known {
			b.jobs[id].run = r
		}
	}
	b.openedAt = max(b.opened.Sub(time.Unix(0, m.EpochUnix)).Seconds()*b.config.Speedup, 0)
	if len(b.history) > 0 {
		b.openedAt = max(b.openedAt, b.history[len(b.history)-1].NowSeconds) // the clock may have been set back
	}
	keeper.EndStrays(filepath.Join(b.dir, "jobs"), func(id keeper.Identity) bool {
		return slices.ContainsFunc(b.jobs, func(j *job) bool { return j.run.Keeper == id })
	})
	return nil
}

// recall reads the jobs, rounds and orders of schedulers before this one.
func (b *Backend) recall(m *meta) error {
	if m.Schema != storeSchema {
		return b.refuse(fmt.Sprintf("holds schema %q, this program reads %q", m.Schema, storeSchema), "end the run with the program that began it, or begin anew with --fresh")
	}
	b.meta = m
	if err := b.store.recall(b); err != nil {
		return b.refuse(fmt.Sprintf("the store is damaged: %v", err), "begin anew with --fresh")
	}
	unknown := func(id core.JobID) bool { return id < 0 || int(id) >= len(b.jobs) }
	for i := range b.history {
		for _, e := range b.history[i].Events {
			if e.Kind != core.NodeChanged && unknown(e.Job) || e.Node < 0 || int(e.Node) >= len(b.health) {
				return b.refuse(fmt.Sprintf("round %d tells of unknown job %d or node %d", i+1, e.Job, e.Node), "begin anew with --fresh")
			}
		}
		for _, h := range b.history[i].Heard {
			if unknown(h.Job) {
				return b.refuse(fmt.Sprintf("round %d tells of unknown job %d", i+1, h.Job), "begin anew with --fresh")
			}
		}
	}
	return nil
}

// refuse is what is wrong with the store.
func (b *Backend) refuse(summary, hint string) error {
	return core.Diagnostics{{Position: core.Position{File: b.store.path}, Summary: summary, Hint: hint}}
}

// repeat tells what was seen in a recorded round.
func (b *Backend) repeat() core.Observation {
	seen := &b.history[b.rounds]
	b.rounds++
	b.now = seen.NowSeconds
	told := b.retell(seen.Events)
	b.rehear(seen.Heard)
	b.events = nil
	return core.Observation{NowSeconds: b.now, Events: told}
}

// retell takes recorded events in, and makes them what the pipeline is told.
func (b *Backend) retell(events []event) []core.Event {
	told := make([]core.Event, len(events))
	for i := range events {
		told[i] = events[i].told(b.jobs)
		b.take(&told[i])
	}
	return told
}

// take brings what the backend knows up to an event of a recorded round.
func (b *Backend) take(e *core.Event) {
	if e.Kind == core.NodeChanged {
		b.health[e.Node] = e.Health
		return
	}
	j := b.jobs[e.Job]
	switch e.Kind {
	case core.JobSubmitted:
		b.coming = slices.DeleteFunc(b.coming, func(other *job) bool { return other == j })
		b.submitted(j, e.AtSeconds)
	case core.JobFinished, core.JobFailed, core.JobCancelled:
		j.leave(e.AtSeconds)
		b.end(j, e.AtSeconds)
	case core.JobInterrupted:
		j.leave(e.AtSeconds)
		j.progress = e.Progress
	case core.JobProgressed:
		j.progress, j.rate, j.asOf = e.Progress, e.Rate, e.FromSeconds
	}
}

// reconnect is how long a job may take to connect to a new scheduler.
const reconnect = 10 * time.Second

// expectSilence gives a run that spoke to a scheduler before this one time to speak again.
func (b *Backend) expectSilence(j *job) {
	if j.heardIn == j.run.Number {
		j.silent, j.heardAt = true, b.elapsed()+b.seconds(reconnect)
	}
}

// wakeUp finds, when all recorded rounds are repeated, the keepers that a scheduler before this one left, and the orders that
// it could not tell any more.
func (b *Backend) wakeUp() {
	if b.found {
		return
	}
	b.found, b.unlike = true, true
	for _, j := range b.jobs {
		if j.run.Number > 0 && !j.ended || j.run.Keeper.Alive() {
			b.watch(j)
			b.expectSilence(j)
			j.before = !j.run.Keeper.Alive()
			b.resumeRepeated(j)
			go b.await(j.run.Keeper, j.gone)
		}
		if j.cancelled && j.submitted {
			b.cancel(j)
		}
	}
	for id := range b.cluster.Nodes {
		if health, ordered := b.store.health[b.cluster.Nodes[id].Name]; ordered {
			b.setHealth(core.NodeID(id), health)
		}
	}
}

// resumeRepeated tells of a run in the place of one that failed, which was started after the last recorded round.
func (b *Backend) resumeRepeated(j *job) {
	r := &j.run
	if r.Why == "" || !j.wanted() || r.BeganSeconds <= j.asOf {
		return
	}
	j.progress = r.From
	j.begin(r.BeganSeconds)
	again := j.progressed(max(r.BeganSeconds, b.now))
	again.Message = r.Why
	b.events = append(b.events, again)
}

func (b *Backend) await(id keeper.Identity, gone chan<- float64) {
	id.Wait()
	b.ends(gone)
}

// ends notes when a keeper was seen to end: the clock of files may be set meanwhile.
func (b *Backend) ends(gone chan<- float64) {
	gone <- b.Present()
	select {
	case b.happened <- struct{}{}:
	default: // there is a note already
	}
}
