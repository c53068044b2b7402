package queue

import "github.com/quartet-sched/quartet/core"

// The queue disciplines: what happens to those behind a candidate that does not fit the devices left.
const (
	Backfill = "backfill" // it is skipped; the walk ends when no device is left
	Blocking = "blocking" // nobody behind it may start on a type that it can use
	All      = "all"      // everyone is granted, and the placer finds out who fits
)

// Walk hands out the devices of a cluster along an order. It counts devices, and parts of them where jobs have parts; whether their shape suits,
// and whether what is left is in pieces, is for the placer to say. Grants of the blocking discipline are Blocking, so that its promise holds through placement. Which type a
// job gets is for the placer to say, too: in a cluster of several types, blocking grants everyone and leaves it to the placer
// who waits behind whom.
type Walk struct {
	Discipline string // one of the queue disciplines
	// Keeps says that those who run are granted their devices before those who wait, with Keep. Where devices are shared, blocking then grants everyone, too: a
	// job that the devices do not suffice for may find room beside others, and those behind it are to be seated in the same round.
	Keeps bool

	capacity Capacity
	left     int // in core.PartUnits of a device
	now      float64
	all      bool // everyone is granted
	parts    bool // jobs have parts of devices
	shares   bool // jobs may be on a device together
	overruns bool // see Standing
	pinned   int  // grants to pinned candidates, the first of those kept
	kept     int  // grants by Keep and to pinned candidates, the first ones
	fitted   int  // grants that may be seated; with blocking, one more may follow them
	grants   []core.Grant
}

// Begin starts a round. Nothing is granted yet.
func (w *Walk) Begin(v *core.View) {
	w.capacity.CountIn(v)
	w.left, w.pinned, w.kept, w.fitted, w.grants = v.Devices*core.PartUnits, 0, 0, 0, w.grants[:0]
	w.now, w.shares, w.overruns = v.NowSeconds, v.Cluster.Sharing != core.Exclusive, false
	w.parts = v.Cluster.Sharing.Parts()
	w.all = w.Discipline == All || w.Discipline == Blocking && (len(v.Cluster.Accelerators) > 1 || w.Keeps && w.shares)
}

// KeepPinned grants pinned candidates that run what they hold, and passes them over when their turn comes. It comes before any other
// grant.
func (w *Walk) KeepPinned(v *core.View, candidates []core.Candidate) {
	if v.NonePinned() {
		return
	}
	for i := range candidates {
		if c := &candidates[i]; Stays(v, c) {
			w.take(v, c, c.Held)
		}
	}
	w.pinned, w.kept = len(w.grants), len(w.grants)
}

// Replicas is what the candidate is granted when its turn comes: the number it requested, within what it can use and
// what ready nodes could give it.
func (w *Walk) Replicas(v *core.View, c *core.Candidate) int {
	return w.capacity.Limit(c, v.Cluster, Requested(c))
}

// Fits reports whether the devices left suffice for the candidate, counted in parts where jobs have parts.
func (w *Walk) Fits(v *core.View, c *core.Candidate) bool {
	return w.Replicas(v, c)*v.Cluster.PartUnits(c.JobSpec) <= w.left
}

// Offer grants the candidate its replicas if the discipline allows, and reports whether the walk goes on.
func (w *Walk) Offer(v *core.View, c *core.Candidate) bool {
	if w.pinned > 0 && Stays(v, c) { // it was granted what it holds
		return w.goesOn()
	}
	n := w.Replicas(v, c)
	switch {
	case n*v.Cluster.PartUnits(c.JobSpec) <= w.left || w.all:
		w.take(v, c, n)
		return w.goesOn()
	case w.Discipline == Blocking:
		w.grant(c, n) // its verdict says why everyone waits
		w.overruns = w.shares
		return false
	}
	return w.goesOn()
}

// goesOn reports whether somebody may still be granted something: where jobs have parts of devices, one that takes nothing of them always.
func (w *Walk) goesOn() bool { return w.left > 0 || w.all || w.parts }

// Take grants the candidate its replicas whatever is left, and the placer finds out whether they fit.
func (w *Walk) Take(v *core.View, c *core.Candidate) {
	if w.pinned == 0 || !Stays(v, c) {
		w.take(v, c, w.Replicas(v, c))
	}
}

// Keep is Take for a job that runs, which may have lost its devices with a node. It comes before any grant but those to pinned
// candidates.
func (w *Walk) Keep(v *core.View, c *core.Candidate) {
	if w.pinned == 0 || !Stays(v, c) {
		w.kept++
		w.take(v, c, w.Replicas(v, c))
	}
}

// Grants are those of the round so far, in order. They are the walk's own, until the next round begins.
func (w *Walk) Grants() []core.Grant { return w.grants }

// Kept is the number of grants by Keep and to pinned candidates, which are the first ones.
func (w *Walk) Kept() int { return w.kept }

// Fitted is the number of grants, from the first on, that the devices suffice for, or all where everyone is granted. With
// Blocking one more may follow.
func (w *Walk) Fitted() int { return w.fitted }

// Standing is s, unless the last grant is one that the devices do not suffice for, and whose job may be seated all the same, beside others: once it runs it may
// be served before others, and the walk ends elsewhere.
func (w *Walk) Standing(s core.Standing) core.Standing {
	if w.overruns {
		s.UntilSeconds = w.now
	}
	return s
}

func (w *Walk) take(v *core.View, c *core.Candidate, n int) {
	w.left -= n * v.Cluster.PartUnits(c.JobSpec)
	w.fitted++
	w.grant(c, n)
}

func (w *Walk) grant(c *core.Candidate, n int) {
	w.grants = append(w.grants, core.Grant{
		Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: n, Blocking: w.Discipline == Blocking,
	})
}
