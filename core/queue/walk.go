package queue

import "github.com/quartet-sched/quartet/core"

// The queue disciplines: what happens to those behind a candidate that does not fit the devices left.
const (
	Backfill = "backfill" // it is skipped; the walk ends when no device is left
	Blocking = "blocking" // nobody behind it may start
	All      = "all"      // everyone is granted, and the placer finds out who fits
)

// Walk hands out the devices of a cluster along an order. It counts devices; whether their shape suits is for the
// placer to say. Grants of the blocking discipline are Blocking, so that its promise holds through placement.
type Walk struct {
	Discipline string // one of the queue disciplines

	capacity Capacity
	left     int
	kept     int // grants by Keep, the first ones
	fitted   int // grants within the devices there are; with blocking, one more may follow them
	grants   []core.Grant
}

// Begin starts a round. Nothing is granted yet.
func (w *Walk) Begin(v *core.View) {
	w.capacity.Count(v.Cluster)
	w.left, w.kept, w.fitted, w.grants = v.Devices, 0, 0, w.grants[:0]
}

// Replicas is what the candidate is granted when its turn comes: the number it requested, within what it can use and
// what ready nodes could give it.
func (w *Walk) Replicas(v *core.View, c *core.Candidate) int {
	n := min(max(c.Requested, c.Response.MinReplicas), c.Response.MaxReplicas)
	return w.capacity.Limit(c, v.Cluster, n)
}

// Offer grants the candidate its replicas if the discipline allows, and reports whether the walk goes on.
func (w *Walk) Offer(v *core.View, c *core.Candidate) bool {
	n := w.Replicas(v, c)
	switch {
	case n <= w.left || w.Discipline == All:
		w.take(c, n)
		return w.left > 0 || w.Discipline == All
	case w.Discipline == Blocking:
		w.grant(c, n) // its verdict says why everyone waits
		return false
	}
	return w.left > 0
}

// Take grants the candidate its replicas whatever is left, and the placer finds out whether they fit.
func (w *Walk) Take(v *core.View, c *core.Candidate) { w.take(c, w.Replicas(v, c)) }

// Keep is Take for a job that runs, which may have lost its devices with a node. It comes before any other grant.
func (w *Walk) Keep(v *core.View, c *core.Candidate) {
	w.kept++
	w.Take(v, c)
}

// Grants are those of the round so far, in order. They are the walk's own, until the next round begins.
func (w *Walk) Grants() []core.Grant { return w.grants }

// Kept is the number of grants by Keep, which are the first ones.
func (w *Walk) Kept() int { return w.kept }

// Fitted is the number of grants, from the first on, that the devices suffice for. With Blocking one more may follow.
func (w *Walk) Fitted() int { return w.fitted }

func (w *Walk) take(c *core.Candidate, n int) {
	w.left -= n
	w.fitted++
	w.grant(c, n)
}

func (w *Walk) grant(c *core.Candidate, n int) {
	w.grants = append(w.grants, core.Grant{
		Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: n, Blocking: w.Discipline == Blocking,
	})
}
