package allocation

import "github.com/quartet-sched/quartet/core"

// The queue disciplines: what happens to those behind a candidate that does not fit the devices left.
const (
	backfill = "backfill" // it is skipped; the walk ends when no device is left
	blocking = "blocking" // nobody behind it may start
	all      = "all"      // everyone is granted, and the placer finds out who fits
)

// walk hands out the devices of a cluster along an order. It counts devices; whether their shape suits is for the
// placer to say. Grants of the blocking discipline are Blocking, so that its promise holds through placement.
type walk struct {
	queue    string
	capacity capacity
	left     int
	kept     int // grants by keep, the first ones
	fitted   int // grants within the devices there are; with blocking, one more may follow them
	grants   []core.Grant
}

func (w *walk) begin(v *core.View) {
	w.capacity.count(v.Cluster)
	w.left, w.kept, w.fitted, w.grants = v.Devices, 0, 0, w.grants[:0]
}

// replicas is what the candidate is granted when its turn comes: the number it requested, within what it can use and
// what ready nodes could give it.
func (w *walk) replicas(v *core.View, c *core.Candidate) int {
	n := min(max(c.Requested, c.Response.MinReplicas), c.Response.MaxReplicas)
	return w.capacity.limit(c, v.Cluster, n)
}

// offer grants the candidate its replicas if the discipline allows, and reports whether the walk goes on.
func (w *walk) offer(v *core.View, c *core.Candidate) bool {
	n := w.replicas(v, c)
	switch {
	case n <= w.left || w.queue == all:
		w.take(c, n)
		return w.left > 0 || w.queue == all
	case w.queue == blocking:
		w.grant(c, n) // its verdict says why everyone waits
		return false
	}
	return w.left > 0
}

// keep grants the candidate its replicas whatever is left: after a node failed, the placer finds out who lost. It comes
// before any offer.
func (w *walk) keep(v *core.View, c *core.Candidate) {
	w.kept++
	w.take(c, w.replicas(v, c))
}

func (w *walk) take(c *core.Candidate, n int) {
	w.left -= n
	w.fitted++
	w.grant(c, n)
}

func (w *walk) grant(c *core.Candidate, n int) {
	w.grants = append(w.grants, core.Grant{
		Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: n, Blocking: w.queue == blocking,
	})
}
