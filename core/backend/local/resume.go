package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/workload"
)

// refuseOrphans refuses a folder with jobs and no store, or an empty one: that is no new run, somebody or something took what
// was recorded. Nothing is touched.
func refuseOrphans(dir string) error {
	path := filepath.Join(dir, storeFile)
	state := "is missing"
	switch info, err := os.Stat(path); {
	case err == nil && info.Size() > 0:
		return nil
	case err == nil:
		state = "is empty"
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return orphans(dir, state)
}

// orphans refuses a folder with jobs that no store tells of.
func orphans(dir, state string) error {
	jobs := filepath.Join(dir, "jobs")
	folders, err := os.ReadDir(jobs)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	running := keeper.Find(jobs)
	if len(folders) == 0 && len(running) == 0 {
		return nil
	}
	var names []string
	for _, f := range folders[:min(len(folders), mostNamed)] {
		names = append(names, f.Name())
	}
	if len(folders) > mostNamed {
		names = append(names, "...")
	}
	return core.Diagnostics{{
		Position: core.Position{File: filepath.Join(dir, storeFile)},
		Summary: fmt.Sprintf("the store %s, and its folder has the logs and checkpoints of %d jobs (%s), of which %d processes run: this is no new run",
			state, len(folders), strings.Join(names, ", "), len(running)),
		Hint: "put the store back from a copy, or give the run another name with --name; --fresh stops the processes and removes logs and checkpoints",
	}}
}

// mostNamed is how many jobs a message names.
const mostNamed = 5

// resume takes over from the scheduler before, or begins anew when there was none, or nothing is left of its run.
func (b *Backend) resume(ctx context.Context, o *Opener, w *workload.Workload) error {
	b.opened = b.clock.Now()
	m, err := b.journal.Meta()
	if err != nil && !o.fresh {
		return b.damaged(err)
	}
	if m != nil && !o.fresh && !m.Complete {
		return b.goOn(ctx, o, m, w)
	}
	if m == nil && !o.fresh {
		if err := orphans(b.dir, "holds no run"); err != nil {
			return err
		}
	}
	if b.devices, err = o.adopt(ctx, b.cluster, nil, nil); err != nil {
		return err
	}
	if err := b.claim(); err != nil {
		return err
	}
	jobs := filepath.Join(b.dir, "jobs")
	keeper.EndStrays(jobs, nil)
	if o.fresh {
		err = os.RemoveAll(jobs)
	} else {
		err = b.setAside(jobs)
	}
	if err != nil {
		return fmt.Errorf("begin anew in the folder of an earlier run: %w", err)
	}
	b.found = true
	b.takeNodes()
	b.meta = &journal.Meta{Program: o.program, Workload: identityOf(w), Began: journal.WrittenBy(w.Jobs), Nodes: nodesOf(b.cluster), Devices: b.devices.flat(), EpochUnix: b.opened.UnixNano()}
	if err := b.journal.Reset(b.meta); err != nil {
		return err
	}
	b.beginPools()
	if len(b.cluster.Pools) == 0 {
		return nil
	}
	return b.store.keepPools(&b.pools.poolRecord)
}

// setAside keeps the logs and checkpoints of a run that has ended out of the way of the next, under a name that is free.
func (b *Backend) setAside(jobs string) error {
	if err := os.Remove(jobs); err == nil || errors.Is(err, fs.ErrNotExist) { // it was empty, or there is none
		return nil
	}
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s-%d", jobs, n)
		_, err := os.Lstat(to)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.Rename(jobs, to); err == nil {
				b.log.Warn("the logs and checkpoints of an earlier run that has ended are set aside", "folder", to)
			}
			return err
		}
		if err != nil {
			return err
		}
	}
}

func (b *Backend) goOn(ctx context.Context, o *Opener, m *journal.Meta, w *workload.Workload) (err error) {
	if err := o.sameJobs(m, w, b.store.path); err != nil {
		return err
	}
	before := m.Devices
	kept, err := b.store.pools()
	if err != nil {
		return b.damaged(err)
	}
	if b.devices, err = o.adopt(ctx, b.cluster, m, kept); err != nil {
		return err
	}
	if err := b.claim(); err != nil {
		return err
	}
	b.takeNodes()
	if err := b.recall(len(w.Jobs)); err != nil {
		return err
	}
	if o.differs != nil && m.Config != "" {
		if differing, err := o.differs(m.Config); err == nil && len(differing) == 0 {
			b.journal.Same()
		}
	}
	runs, err := b.store.runs()
	if err != nil {
		return b.damaged(err)
	}
	if m.Workload == "" {
		if err := b.plausible(runs, len(w.Jobs)); err != nil {
			return err
		}
	}
	if err := b.takeRuns(runs, before); err != nil {
		return err
	}
	b.meta = m
	m.Program, m.Workload, m.Began = o.program, identityOf(w), journal.WrittenBy(w.Jobs)
	m.Nodes, m.Devices = nodesOf(b.cluster), b.devices.flat()
	if err := b.journal.SetMeta(m); err != nil {
		return err
	}
	b.openedAt = max(b.opened.Sub(time.Unix(0, m.EpochUnix)).Seconds()*b.config.Speedup, 0)
	b.openedAt = max(b.openedAt, b.journal.LastSeconds()) // the clock may have been set back
	b.goOnWithPools(kept)
	keeper.EndStrays(filepath.Join(b.dir, "jobs"), func(id keeper.Identity) bool {
		return slices.ContainsFunc(b.jobs, func(j *job) bool { return j.run.Keeper == id })
	})
	return nil
}

// takeRuns takes in the runs that were recorded, those that name their devices by number with the names that these had.
func (b *Backend) takeRuns(runs map[string]run, devices []string) error {
	var unnamed []*job
	for name, r := range runs {
		id, known := b.byName[name]
		if !known {
			continue
		}
		j := b.jobs[id]
		j.run = r
		if r.Names == nil && len(r.Devices) > 0 {
			for _, device := range r.Devices {
				if device < 0 || device >= len(devices) {
					return b.damaged(fmt.Errorf("job %q ran on unknown device %d", name, device))
				}
				j.run.Names = append(j.run.Names, devices[device])
			}
			j.run.Devices, unnamed = nil, append(unnamed, j)
		}
	}
	return b.store.begin(unnamed)
}

// takeNodes takes in the nodes of the run, those that are gone among them.
func (b *Backend) takeNodes() {
	b.health = make([]core.Health, len(b.cluster.Nodes))
	for i := range b.cluster.Nodes {
		b.health[i] = b.cluster.Nodes[i].Health
	}
	b.pools.seen.Begin(b.cluster)
	b.pools.seen.Grow(b.cluster)
	b.config.describePools(b.cluster)
}

// recall reads the jobs, rounds and orders of schedulers before this one.
func (b *Backend) recall(jobs int) error {
	found, err := b.journal.Recall(jobs)
	if err != nil {
		return b.damaged(err)
	}
	for i := range found.Jobs {
		b.know(&found.Jobs[i])
	}
	for _, id := range found.Cancelled {
		b.jobs[id].cancelled = true
	}
	b.ordered = found.Health
	b.behind.Store(b.journal.Replaying())
	return nil
}

// damaged refuses a store that cannot be read.
func (b *Backend) damaged(err error) error { return unreadable(b.store.path, err) }

// unreadable refuses a store that cannot be read, or not by this program.
func unreadable(path string, err error) error {
	if other, is := errors.AsType[*journal.OtherVersionError](err); is {
		return refuseAt(path, "the store "+other.Error(), "resume the run with the program that wrote it: nothing was changed; or begin another run with --name")
	}
	return refuseAt(path, fmt.Sprintf("the store is damaged: %v", err), mendStore)
}

// mendStore is what to do about a store that is damaged.
const mendStore = "put it back from a copy, or begin another run with --name; --fresh stops its jobs, sets the store aside and removes their logs and checkpoints"

func refuseAt(path, summary, hint string) error {
	return core.Diagnostics{{Position: core.Position{File: path}, Summary: summary, Hint: hint}}
}

// repeat says what was seen in a recorded round, and takes it in.
func (b *Backend) repeat() core.Observation {
	seen, said := b.journal.Repeat(func(id core.JobID) *core.JobSpec { return b.jobs[id].KnownSpec() })
	b.now = seen.NowSeconds
	b.noteSubmitted(seen.Events)
	b.noteSlots(seen.Events)
	for i := range seen.Events {
		b.take(&seen.Events[i])
	}
	b.recollect(said)
	b.events = nil
	return seen
}

// take brings what the backend knows up to an event of a recorded round.
func (b *Backend) take(e *core.Event) {
	if e.Kind.OfNode() {
		b.repeatNode(e)
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
	case core.JobShrunk:
		j.seats, j.decided = slices.Clone(e.Seats), b.journal.Rounds()
		if e.Cause == core.CauseKilled {
			j.shrunk = j.decided
		}
		j.progress, j.rate, j.asOf, j.tuning.BatchByReplica = e.Progress, e.Rate, e.FromSeconds, nil
	case core.JobReported:
		j.reported.hear(agent.Metric{Name: e.Metric, Step: e.Step, Value: e.Value})
	case core.JobProgressed:
		j.progress, j.rate, j.asOf = e.Progress, e.Rate, e.FromSeconds
	}
}

// reconnect is how long a job may take to connect to a new scheduler.
const reconnect = 10 * time.Second

// expectSilence gives a run that spoke to a scheduler before this one time to speak again.
func (b *Backend) expectSilence(j *job) {
	if j.spokeIn == j.run.Number {
		j.silent, j.spokeAt = true, b.elapsed()+b.seconds(reconnect)
	}
}

// wakeUp finds, when all recorded rounds are repeated, the keepers that a scheduler before this one left, and the orders that
// it could not tell any more.
func (b *Backend) wakeUp() {
	if b.found {
		return
	}
	b.found, b.unsettled = true, true
	b.behind.Store(false)
	for _, j := range b.jobs {
		if j.spokeIn != j.run.Number {
			j.reported.metrics = nil // those of a run before
		}
		if j.run.Number > 0 && !j.ended || j.run.Keeper.Alive() {
			b.watch(j)
			b.expectSilence(j)
			j.before = !j.run.Keeper.Alive()
			b.repeatedInPlace(j)
			if j.before {
				b.await(j.run.Keeper, j.gone) // the next round is told of its end: it was before
			} else {
				go b.await(j.run.Keeper, j.gone)
			}
		}
		if gone := b.gone(j); gone != nil {
			b.log.Warn("a job loses its devices, which are gone", "job", j.Spec.Name)
			b.lost(j, core.SeatsWithout(j.seats, gone), failure{cause: core.CauseDeviceLost, why: "a device that it ran on is gone", at: b.elapsed()})
		}
		if j.cancelled && j.submitted {
			b.cancel(j)
		}
	}
	for id := range b.cluster.Nodes {
		if health, ordered := b.ordered[b.cluster.Nodes[id].Name]; ordered && b.cluster.Nodes[id].Devices > 0 && b.cluster.Nodes[id].Pool == "" {
			b.setHealth(core.NodeID(id), health)
		}
	}
}

// gone are devices that a job was given and that are gone, or are there in the place of others.
func (b *Backend) gone(j *job) (gone []core.Seat) {
	rank := 0
	for _, seat := range j.seats {
		lost := core.Seat{Node: seat.Node}
		for _, device := range seat.Devices.List() {
			there := int(seat.Node) < len(b.devices.names) && device < len(b.devices.names[seat.Node])
			if !there || j.wanted() && (rank >= len(j.run.Names) || j.run.Names[rank] != b.devices.names[seat.Node][device]) {
				lost.Devices |= 1 << device
			}
			rank++
		}
		if lost.Devices != 0 {
			gone = append(gone, lost)
		}
	}
	return gone
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
