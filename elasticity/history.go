package elasticity

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// pool is the experience of jobs that have run: what each application measured.
type pool struct {
	applications []*pastApplication          // as read, by name
	borrowed     map[kind]*pastApplication   // for jobs of applications that were never seen, that of the nearest one
	fresh        map[string]*pastApplication // what jobs of this run add
	live         map[string]*pastApplication // the same as jobs that begin see it, until more is added
	runs         int                         // that contributed
	sha256       string                      // of the file, hex; "" for none
	work         workPool
	// What jobs of this run proved of those that jobs may begin with now. Applications themselves do not change, so that forks of a pool share them.
	proofs map[*pastApplication]proof
}

// newPool knows nothing.
func newPool() *pool {
	return &pool{
		borrowed: map[kind]*pastApplication{}, fresh: map[string]*pastApplication{}, live: map[string]*pastApplication{}, proofs: map[*pastApplication]proof{},
	}
}

// proof is how often jobs of this run confirmed and refuted something.
type proof struct{ confirmed, refuted int }

// kind is what tells jobs of unseen applications apart.
type kind struct {
	application string
	limits      core.BatchSpec
}

// pastApplication is what is known of an application before a job of it starts.
type pastApplication struct {
	name      string
	limits    core.BatchSpec
	seen      []core.Measurement
	gradients core.Gradients     // at the start of training
	jobs      int                // that contributed
	replicas  int                // the most that were ever measured
	run       int                // the last that contributed, counted from 1
	endings   []ending           // oldest first
	models    func() []pastModel // fitted when they are asked for first; nil for what is only added to
}

// pastModel is a throughput model on an accelerator type.
type pastModel struct {
	accelerator string
	goodput.Performance
}

// newPast is an application of which so much was measured.
func newPast(name string, limits core.BatchSpec, seen []core.Measurement, g core.Gradients) *pastApplication {
	a := &pastApplication{name: name, limits: limits, seen: seen, gradients: g}
	for _, m := range seen {
		a.replicas = max(a.replicas, m.Replicas)
	}
	a.models = sync.OnceValue(func() []pastModel { return fitEach(seen) })
	return a
}

// fitEach makes a model for each accelerator type, in the order in which they were measured.
func fitEach(seen []core.Measurement) (models []pastModel) {
	for _, m := range seen {
		if !slices.ContainsFunc(models, func(known pastModel) bool { return known.accelerator == m.Accelerator }) {
			models = append(models, pastModel{m.Accelerator, goodput.Fit(measuredOn(seen, m.Accelerator))})
		}
	}
	return models
}

// on is the model on an accelerator type; nil when nothing was measured there.
func (a *pastApplication) on(accelerator string) *goodput.Performance {
	models := a.models()
	for i := range models {
		if models[i].accelerator == accelerator {
			return &models[i].Performance
		}
	}
	return nil
}

// find is what is known and believed of a job's application, nil for nothing: what earlier runs tell, or else what jobs
// told that ended in this one, or else what is borrowed.
func (p *pool) find(j *core.Job) *pastApplication {
	if a := p.named(j.Application); a != nil && len(a.seen) > 0 && p.believes(a) {
		return a
	}
	if a := p.ofThisRun(j.Application); a != nil && p.believes(a) {
		return a
	}
	if a := p.borrow(j); a != nil && p.believes(a) {
		return a
	}
	return nil
}

// ofThisRun is what the jobs of an application that have ended measured; nil for nothing.
func (p *pool) ofThisRun(application string) *pastApplication {
	fresh := p.fresh[application]
	if fresh == nil || len(fresh.seen) == 0 {
		return nil
	}
	old := p.live[application]
	if old != nil && old.jobs == fresh.jobs {
		return old
	}
	a := newPast(application, fresh.limits, fresh.seen, fresh.gradients)
	a.jobs = fresh.jobs
	p.live[application], p.proofs[a] = a, p.proofs[old]
	delete(p.proofs, old) // what jobs that began with it prove from now on is of no use
	return a
}

// borrow is what is known of the application whose batch limits are nearest, if they are near at all. It is believed or
// refuted for itself, and not its owner's fault. An application that is known itself borrows nothing.
func (p *pool) borrow(j *core.Job) *pastApplication {
	var nearest *pastApplication
	least := 1.0 // within a factor e over all limits
	for _, a := range p.applications {
		if len(a.seen) == 0 {
			continue
		}
		if a.name == j.Application {
			return nil
		}
		if d := distance(a.limits, j.Batch); d < least {
			nearest, least = a, d
		}
	}
	if nearest == nil {
		return nil
	}
	k := kind{j.Application, j.Batch}
	k.limits.Requested = 0
	if p.borrowed[k] == nil {
		copied := *nearest
		p.borrowed[k], p.proofs[&copied] = &copied, proof{}
	}
	return p.borrowed[k]
}

// believes reports whether not most jobs proved an application wrong.
func (p *pool) believes(a *pastApplication) bool { return p.proofs[a].refuted <= p.proofs[a].confirmed }

// prove notes what a job that began with an application proved of it.
func (p *pool) prove(a *pastApplication, right bool) {
	proved, current := p.proofs[a]
	switch {
	case !current:
		return
	case right:
		proved.confirmed++
	default:
		proved.refuted++
	}
	p.proofs[a] = proved
}

// distance compares batch limits, as the sum of the logarithms of their ratios.
func distance(a, b core.BatchSpec) float64 {
	sum := 0.0
	for _, pair := range [][2]int{{a.Initial, b.Initial}, {a.Max, b.Max}, {a.MinPerDevice, b.MinPerDevice}, {a.MaxPerDevice, b.MaxPerDevice}} {
		sum += math.Abs(math.Log(float64(max(pair[0], 1)) / float64(max(pair[1], 1))))
	}
	return sum
}

// The most that a pool takes, as the tags of its form say: sums and products of so much are finite.
const (
	mostGradient = 1e30
	mostSeconds  = 1e9
)

// sane reports whether a pool with what a job measured could be read again.
func sane(seen []core.Measurement, g core.Gradients) bool {
	part := func(x float64) bool { return x >= 0 && x <= mostGradient }
	return part(g.SquaredNorm) && part(g.Variance) && !slices.ContainsFunc(seen, func(m core.Measurement) bool {
		return !(m.PassSeconds > 0 && m.PassSeconds <= m.StepSeconds && m.StepSeconds <= mostSeconds)
	})
}

// add takes in what a job measured.
func (p *pool) add(a *agent) {
	if len(a.seen) == 0 || !sane(a.seen, a.first) {
		return
	}
	p.extend(a).join(&pastApplication{seen: a.seen, gradients: a.first, jobs: 1})
}

// extend is what this run adds to the application of a job, to be added to at once: others may hold what it was before.
func (p *pool) extend(a *agent) *pastApplication {
	fresh := &pastApplication{name: a.application, limits: a.limits}
	if before := p.fresh[a.application]; before != nil {
		*fresh = *before
		fresh.seen, fresh.endings = slices.Clone(before.seen), slices.Clone(before.endings)
	}
	p.fresh[a.application] = fresh
	return fresh
}

// join adds what others of the application measured later.
func (a *pastApplication) join(o *pastApplication) {
	if total := float64(min(a.jobs, mostWeight) + o.jobs); o.jobs > 0 {
		share := float64(o.jobs) / total
		a.gradients.SquaredNorm += share * (o.gradients.SquaredNorm - a.gradients.SquaredNorm)
		a.gradients.Variance += share * (o.gradients.Variance - a.gradients.Variance)
	}
	a.jobs = min(a.jobs+o.jobs, mostJobs)
	for _, m := range o.seen {
		at := slices.IndexFunc(a.seen, m.SameConfiguration)
		switch {
		case at >= 0:
			a.seen[at] = blend(a.seen[at], m)
		case len(a.seen) < mostKept:
			a.seen = append(a.seen, m)
		}
	}
	a.endings = newest(append(a.endings, o.endings...))
}

// blend corrects a measurement by a later one of the same configuration, by how often each was made. However often the
// earlier one was, it counts as mostWeight at most: what was measured long ago is forgotten.
func blend(old, later core.Measurement) core.Measurement {
	before, now := max(old.Count, 1), max(later.Count, 1)
	share := float64(now) / float64(min(before, mostWeight)+now)
	old.PassSeconds += share * (later.PassSeconds - old.PassSeconds)
	old.StepSeconds += share * (later.StepSeconds - old.StepSeconds)
	old.Spread += share * (later.Spread - old.Spread)
	old.Count = min(before+now, mostJobs)
	return old
}

// The bounds of what is kept.
const (
	mostKept         = 200     // measurements of an application
	mostApplications = 1000    // those that contributed last
	mostWeight       = 4       // reports that earlier ones count as, against one that is new
	mostJobs         = 1 << 30 // counted
)

// merged is a pool on disk together with what this run adds, by name. Of what jobs of this run proved wrong nothing is
// kept, unless another run has changed it meanwhile.
func (p *pool) merged(disk *pool) []*pastApplication {
	all := maps.Clone(p.fresh)
	for _, a := range disk.applications {
		fresh := p.fresh[a.name]
		if fresh == nil {
			all[a.name] = a
			continue
		}
		kept := *a
		kept.seen, kept.endings = slices.Clone(a.seen), slices.Clone(a.endings)
		if read := p.named(a.name); read != nil && read.run == a.run {
			if !p.believes(read) {
				kept.seen, kept.jobs = nil, 0
			}
			if !p.work.believed(a.name) {
				kept.endings = nil
			}
		}
		kept.limits = fresh.limits
		kept.join(fresh)
		all[a.name] = &kept
	}
	for name := range p.fresh {
		added := *all[name]
		added.run = disk.runs + 1
		all[name] = &added
	}
	list := slices.SortedFunc(maps.Values(all), func(a, b *pastApplication) int {
		return cmp.Or(cmp.Compare(b.run, a.run), cmp.Compare(a.name, b.name))
	})
	list = list[:min(len(list), mostApplications)]
	slices.SortFunc(list, func(a, b *pastApplication) int { return cmp.Compare(a.name, b.name) })
	return list
}

// named is what was read of an application; nil for nothing.
func (p *pool) named(application string) *pastApplication {
	at, found := slices.BinarySearchFunc(p.applications, application, func(a *pastApplication, name string) int { return cmp.Compare(a.name, name) })
	if !found {
		return nil
	}
	return p.applications[at]
}
