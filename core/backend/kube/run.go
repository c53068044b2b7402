package kube

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
)

// run is what outlives a scheduler beside the jobs: when the run began, and what policies learned.
type run struct {
	store *lead.State // nil where nothing is kept
	began time.Time

	opened   time.Time // by the clock of this scheduler,
	openedAt float64   // in seconds of the run
}

// mostBehind is by how many seconds a clock may be behind that of the scheduler before. What somebody wrote that is further
// ahead is not believed.
const mostBehind = 3600

// newRun goes on with the time of the run at a moment by the clock of this scheduler, and at none before the last that another
// one decided at: its clock may have been ahead.
func newRun(began, now time.Time, decided float64) *run {
	r := &run{began: began, opened: now}
	r.openedAt = max(now.Sub(r.began).Seconds(), 0)
	if decided < r.openedAt+mostBehind {
		r.openedAt = max(r.openedAt, decided)
	}
	return r
}

// seconds is a moment in seconds of the run, in whole milliseconds. From the opening on it counts by the steady clock.
func (r *run) seconds(at time.Time) float64 {
	return math.Floor((r.openedAt+at.Sub(r.opened).Seconds())*1000) / 1000
}

// moment is a moment of the run by the calendar; the zero time for one that is not within a century.
func (r *run) moment(seconds float64) time.Time {
	if ahead := seconds - r.openedAt; math.Abs(ahead) < farthest {
		return r.opened.Add(time.Duration(ahead * float64(time.Second)))
	}
	return time.Time{}
}

// farthest is how many seconds ahead a moment may be: the API server knows four digits of a year.
const farthest = 100 * 365 * 86_400

// Learned is what the stages of the scheduler before had learned.
func (b *Backend) Learned() (list []core.Learned) {
	if err := json.Unmarshal(b.state.Load().store.Kept().Snapshot, &list); err != nil {
		return nil // there is none, or it is of a later version
	}
	return list
}

// Keep replaces what is kept.
func (b *Backend) Keep(l []core.Learned) error {
	snapshot, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if len(snapshot) > lead.SnapshotLimit {
		b.log.Warn("cannot store what the policies learned", "bytes", len(snapshot), "limit", lead.SnapshotLimit)
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.patience())
	defer cancel()
	if err := b.state.Load().store.Write(ctx, func(k *lead.Kept) { k.Snapshot = snapshot }); err != nil {
		b.log.Warn("cannot store what the policies learned", "error", err) // the next one starts from the facts
	}
	return nil
}

// Begin records nothing: the jobs hold what was decided.
func (b *Backend) Begin(int, *core.Composition, []core.Learned) error { return nil }
