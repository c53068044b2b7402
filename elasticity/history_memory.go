package elasticity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// What no fact of a job tells: what jobs that have ended measured, how far they came, and which of it later ones proved wrong.

var _ core.Snapshotter = (*goodputAgent)(nil)

// learnedHistory is what a goodput hands to the next.
type learnedHistory struct {
	Path         string // of the pool that it is to be written to
	Differ       bool   // reports of one configuration were seen to
	Silent       []core.JobID
	Applications []learnedApplication
	Work         []learnedWork
	Beliefs      []learnedBelief
	Jobs         []learnedJob
}

// learnedApplication is what jobs of this run add to an application.
type learnedApplication struct {
	Name      string
	Limits    core.BatchSpec
	Seen      []core.Measurement
	Gradients core.Gradients
	Jobs      int
	Endings   []learnedEnding
}

type learnedEnding struct {
	Work, Seconds float64
	Finished      bool
}

// learnedWork is how far the jobs of an application came in this run, and what that proved.
type learnedWork struct {
	Name               string
	Now                []learnedEnding
	Confirmed, Refuted int
}

// The origins of what is believed.
const (
	fromPool     = "pool"
	fromThisRun  = "run"
	fromBorrowed = "borrowed"
)

// learnedBelief is how often something was confirmed and refuted.
type learnedBelief struct {
	From, Name         string
	Limits             core.BatchSpec
	Confirmed, Refuted int
}

// learnedJob is what a job that has not ended proved already.
type learnedJob struct {
	ID      core.JobID
	First   core.Gradients
	Changed bool
	Batch   *handedBatch `json:",omitempty"`
}

// Snapshot is what the jobs of this run taught. O(what is kept).
func (p *goodputAgent) Snapshot() ([]byte, error) {
	l := learnedHistory{Path: p.config.HistoryPath, Differ: p.differ}
	for id, silent := range p.silent {
		if silent {
			l.Silent = append(l.Silent, core.JobID(id))
		}
	}
	for id, a := range p.agents {
		if a != nil && (len(a.reported) > 0 || p.ruled != nil) {
			l.Jobs = append(l.Jobs, learnedJob{core.JobID(id), a.first, a.changed, handedBatchOf(a)})
		}
	}
	if p.pool == nil {
		return json.Marshal(l)
	}
	for _, name := range slices.Sorted(maps.Keys(p.pool.fresh)) {
		a := p.pool.fresh[name]
		l.Applications = append(l.Applications, learnedApplication{a.name, a.limits, a.seen, a.gradients, a.jobs, handedOn(a.endings)})
	}
	for _, name := range slices.Sorted(maps.Keys(p.pool.work.applications)) {
		if w := p.pool.work.applications[name]; len(w.now) > 0 {
			l.Work = append(l.Work, learnedWork{name, handedOn(w.now), w.confirmed, w.refuted})
		}
	}
	l.Beliefs = p.pool.beliefs()
	return json.Marshal(l)
}

// Restore takes it up. That of another history is of no use.
func (p *goodputAgent) Restore(learned []byte) error {
	var l learnedHistory
	if err := json.Unmarshal(learned, &l); err != nil {
		return err
	}
	if p.pool != nil && l.Path != p.config.HistoryPath {
		return fmt.Errorf("the history is that of %q", l.Path)
	}
	if p.pool == nil && len(l.Applications) > 0 {
		return errors.New("the history of the run is not used any more")
	}
	for _, a := range l.Applications {
		if !sane(a.Seen, a.Gradients) {
			return fmt.Errorf("what jobs of %q measured cannot be", a.Name)
		}
	}
	p.differ, p.settled = l.Differ, true
	for _, id := range l.Silent {
		for int(id) >= len(p.silent) {
			p.silent = append(p.silent, false)
		}
		p.silent[id] = true
	}
	p.handed = make(map[core.JobID]learnedJob, len(l.Jobs))
	for _, j := range l.Jobs {
		p.handed[j.ID] = j
	}
	if p.pool != nil {
		p.pool.takeUp(&l)
	}
	return nil
}

// takeUp adds what another pool learned in this run.
func (p *pool) takeUp(l *learnedHistory) {
	for _, a := range l.Applications {
		fresh := newPast(a.Name, a.Limits, a.Seen, a.Gradients)
		fresh.jobs, fresh.endings = a.Jobs, takenUp(a.Endings)
		p.fresh[a.Name] = fresh
	}
	for _, kept := range l.Work {
		w := p.work.of(kept.Name)
		w.now, w.confirmed, w.refuted = takenUp(kept.Now), kept.Confirmed, kept.Refuted
		w.refresh()
		p.work.stale = true
	}
	for _, b := range l.Beliefs {
		var a *pastApplication
		switch b.From {
		case fromPool:
			a = p.named(b.Name)
		case fromThisRun:
			a = p.ofThisRun(b.Name)
		case fromBorrowed:
			a = p.borrow(&core.Job{JobSpec: &core.JobSpec{Application: b.Name, Batch: b.Limits}})
		}
		if a != nil {
			p.proofs[a] = proof{b.Confirmed, b.Refuted}
		}
	}
}

// beliefs lists what was confirmed or refuted, in a fixed order.
func (p *pool) beliefs() (list []learnedBelief) {
	add := func(from, name string, limits core.BatchSpec, a *pastApplication) {
		if proved := p.proofs[a]; proved != (proof{}) {
			list = append(list, learnedBelief{from, name, limits, proved.confirmed, proved.refuted})
		}
	}
	for _, a := range p.applications {
		add(fromPool, a.name, core.BatchSpec{}, a)
	}
	for _, name := range slices.Sorted(maps.Keys(p.live)) {
		add(fromThisRun, name, core.BatchSpec{}, p.live[name])
	}
	kinds := slices.SortedFunc(maps.Keys(p.borrowed), func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.application, b.application), cmp.Compare(a.limits.Initial, b.limits.Initial), cmp.Compare(a.limits.Max, b.limits.Max),
			cmp.Compare(a.limits.MinPerDevice, b.limits.MinPerDevice), cmp.Compare(a.limits.MaxPerDevice, b.limits.MaxPerDevice))
	})
	for _, k := range kinds {
		add(fromBorrowed, k.application, k.limits, p.borrowed[k])
	}
	return list
}

func handedOn(endings []ending) []learnedEnding {
	list := make([]learnedEnding, len(endings))
	for i, e := range endings {
		list[i] = learnedEnding{e.work, e.seconds, e.finished}
	}
	return list
}

func takenUp(endings []learnedEnding) []ending {
	list := make([]ending, len(endings))
	for i, e := range endings {
		list[i] = ending{e.Work, e.Seconds, e.Finished}
	}
	return newest(list)
}
