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
	queue  string
	left   int
	fitted int // grants within the devices there are; with blocking, one more may follow them
	grants []core.Grant
}

func (w *walk) begin(v *core.View) {
	w.left, w.fitted, w.grants = v.Devices, 0, w.grants[:0]
}

// offer grants the candidate its replicas if the discipline allows, and reports whether the walk goes on.
func (w *walk) offer(c *core.Candidate) bool {
	n := replicas(c)
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

// keep grants the candidate its replicas whatever is left: after a node failed, the placer finds out who lost.
func (w *walk) keep(c *core.Candidate) { w.take(c, replicas(c)) }

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

// allRun reports whether every grant that fitted runs by now.
func (w *walk) allRun(v *core.View) bool {
	for i := range w.grants[:w.fitted] {
		if j := v.Job(w.grants[i].Job); j == nil || j.State != core.Running {
			return false
		}
	}
	return true
}
