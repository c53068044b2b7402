package elasticity

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// ending is how far a job came.
type ending struct {
	work     float64 // done, in iterations at the initial batch
	seconds  float64 // that the work takes on one device
	finished bool    // and not failed or cancelled, which only says that there was more to do
}

// mostEndings bounds what is kept of an application: the oldest are dropped first.
const mostEndings = 100

// total is a distribution of how much a job has to do in all. The zero value knows nothing.
type total struct {
	at      []float64 // ends, ascending
	survive []float64 // by end: the share of the jobs that came so far that go on
	beyond  []float64 // by end: what is expected of those that go on
}

// newTotal estimates the distribution by the product limit of Kaplan and Meier (1958), for a job that did not finish had
// more to do. O(n log n).
func newTotal(endings []ending, amount func(ending) float64) total {
	sorted := slices.Clone(endings)
	slices.SortStableFunc(sorted, func(a, b ending) int {
		return cmp.Or(cmp.Compare(amount(a), amount(b)), compareFinished(a, b))
	})
	n := len(sorted)
	d := total{at: make([]float64, n), survive: make([]float64, n), beyond: make([]float64, n)}
	for i := n - 1; i >= 0; i-- {
		d.at[i], d.survive[i] = amount(sorted[i]), 1
		if sorted[i].finished {
			d.survive[i] = 1 - 1/float64(n-i)
		}
		if i == n-1 {
			d.beyond[i] = d.at[i]
		} else {
			d.beyond[i] = d.at[i+1] - d.at[i] + d.survive[i+1]*d.beyond[i+1]
		}
	}
	return d
}

// compareFinished puts a job that finished before one that did not, at the same work.
func compareFinished(a, b ending) int {
	switch {
	case a.finished == b.finished:
		return 0
	case a.finished:
		return -1
	default:
		return 1
	}
}

// left is the mean that is left of jobs that did so much; NaN when nothing is known. O(log n).
func (d *total) left(done float64) float64 {
	n := len(d.at)
	if n == 0 {
		return math.NaN()
	}
	next, _ := slices.BinarySearchFunc(d.at, done, func(at, done float64) int {
		if at > done {
			return 1
		}
		return -1
	})
	if next == n {
		return double(d.at[n-1], done)
	}
	return d.at[next] - done + d.survive[next]*d.beyond[next]
}

// double is what is left of a guess that was doubled until it lay beyond what is done. The guess stands for a while, so that
// of two jobs that go on beyond all others the one that is ahead stays so.
func double(guess, done float64) float64 {
	for guess <= done && !math.IsInf(guess, 1) {
		guess *= 2
	}
	return guess - done
}

// newest drops the oldest endings beyond what is kept.
func newest(endings []ending) []ending {
	if excess := len(endings) - mostEndings; excess > 0 {
		return slices.Delete(endings, 0, excess)
	}
	return endings
}

// workPool is what is known of how much work jobs have to do: by application, and over all of them, in seconds on one
// device, for applications that were never seen.
type workPool struct {
	unmeasured   float64 // seconds
	applications map[string]*pastWork
	prior        total
	stale        bool // prior
}

// pastWork is how far the jobs of an application came.
type pastWork struct {
	before, now        []ending // in earlier runs, and in this one
	confirmed, refuted int      // by jobs of this run
	whole, own         total    // of all, and of this run alone
}

// within is the factor by which a job may have more to do than any before it, or less, and prove nothing.
const within = 2

// of is what is known of an application.
func (p *workPool) of(application string) *pastWork {
	w := p.applications[application]
	if w == nil {
		w = &pastWork{}
		if p.applications == nil {
			p.applications = map[string]*pastWork{}
		}
		p.applications[application] = w
	}
	return w
}

// read takes in what earlier runs kept of an application.
func (p *workPool) read(application string, before []ending) {
	w := p.of(application)
	w.before = before
	w.refresh()
	p.stale = true
}

// add takes in how far a job of this run came.
func (p *workPool) add(application string, e ending) {
	added := *p.of(application) // others may hold what it was before
	w := &added
	if least, most := w.span(); e.finished && most > 0 {
		if e.work < least/within || e.work > most*within {
			w.refuted++
		} else {
			w.confirmed++
		}
	}
	w.now = newest(append(slices.Clone(w.now), e))
	w.refresh()
	p.applications[application], p.stale = w, true
}

// span is the least and the most work that jobs of earlier runs finished with; 0 when none did.
func (w *pastWork) span() (least, most float64) {
	least = math.Inf(1)
	for _, e := range w.before {
		if e.finished {
			least, most = min(least, e.work), max(most, e.work)
		}
	}
	return least, most
}

func (w *pastWork) refresh() {
	w.own = newTotal(w.now, byWork)
	w.whole = newTotal(slices.Concat(w.before, w.now), byWork)
}

// believed reports whether not most jobs of this run proved earlier ones wrong.
func (w *pastWork) believed() bool { return w.refuted <= w.confirmed }

func (p *workPool) believed(application string) bool { return p.of(application).believed() }

// left is the work that a job is expected to have left, given how much it has done and how much one device does in a
// second. Before anything is known, a job is taken to need unmeasured seconds, or twice or four times as many. Earlier runs are left aside when the application is not what it was.
func (p *workPool) left(application string, changed bool, done, perSecond float64) float64 {
	w := p.of(application)
	switch {
	case !changed && w.believed() && len(w.whole.at) > 0:
		return w.whole.left(done)
	case len(w.own.at) > 0:
		return w.own.left(done)
	}
	if p.stale {
		p.prior, p.stale = newTotal(p.all(), bySeconds), false
	}
	if len(p.prior.at) == 0 {
		return double(p.unmeasured, done/perSecond) * perSecond
	}
	return p.prior.left(done/perSecond) * perSecond
}

// whole is the seconds on one device that a job which has not begun is expected to need.
func (p *workPool) whole(application string) float64 {
	w, d := p.of(application), total{}
	switch {
	case w.believed() && len(w.whole.at) > 0:
		d = newTotal(slices.Concat(w.before, w.now), bySeconds)
	case len(w.own.at) > 0:
		d = newTotal(w.now, bySeconds)
	default:
		return p.left(application, true, 0, 1)
	}
	return d.left(0)
}

func byWork(e ending) float64 { return e.work }

func bySeconds(e ending) float64 { return e.seconds }

// all are the endings of all applications, by name.
func (p *workPool) all() []ending {
	var list []ending
	for _, name := range slices.Sorted(maps.Keys(p.applications)) {
		list = append(list, p.applications[name].before...)
		list = append(list, p.applications[name].now...)
	}
	return list
}
