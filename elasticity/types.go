package elasticity

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// typeModel is what is known of a job on an accelerator type.
type typeModel struct {
	goodput.Performance
	most   int             // replicas that the curves end at
	batch  int             // that the curves are of; 0 where they choose it
	curves *goodput.Curves // nil where nothing was measured: then
	like   int             // it does as on this type,
	ratio  float64         // so many times as fast
}

// anyType is the list of types where they make no difference.
var anyType = []string{""}

// model makes the models of a job: one for each accelerator type, or a single one while types make no difference.
func (p *goodputAgent) model(a *agent, c *core.Cluster, j *core.Job) {
	types := c.Accelerators
	if !a.knowsTypes() || p.config.Types == blindType {
		types = anyType
	}
	if len(a.models) != len(types) {
		a.models = make([]typeModel, len(types))
	}
	for t := range types {
		m := &a.models[t]
		before, batch := m.Performance, p.ruledBatch(a, j)
		switch {
		case types[t] != "" && !j.CanRunOn(c, core.AcceleratorID(t)) || !p.know(a, m, types[t]):
			m.curves = nil
		case m.curves != nil && m.Performance == before && m.most == a.most && m.batch == batch:
			m.curves.Update(a.worth())
		default:
			m.most, m.batch = a.most, batch
			limits := limitsOf(p.bounds(j, types[t]))
			limits.Requested = batch
			if batch := p.ungradedBatch(a, j); batch > 0 {
				limits.Initial, limits.Max = batch, batch
			}
			m.curves = goodput.NewCurves(p.grid(limits), m.Performance, a.worth(), a.most)
		}
	}
	p.borrow(a, c, j)
}

// knowsTypes reports whether what is known of a job names accelerator types.
func (a *agent) knowsTypes() bool {
	named := func(m core.Measurement) bool { return m.Accelerator != "" }
	return slices.ContainsFunc(a.seen, named) || a.past != nil && slices.ContainsFunc(a.past.seen, named)
}

// bounds are those of a job's batch on a type; to the blind, those that hold on every type.
func (p *goodputAgent) bounds(j *core.Job, accelerator string) core.BatchSpec {
	if p.config.Types != blindType {
		return j.BatchOn(accelerator)
	}
	b := j.Batch
	for i, on := range j.BatchByType {
		if i == 0 {
			b.MinPerDevice, b.MaxPerDevice = on.MinPerDevice, on.MaxPerDevice
		}
		b.MinPerDevice, b.MaxPerDevice = max(b.MinPerDevice, on.MinPerDevice), min(b.MaxPerDevice, on.MaxPerDevice)
	}
	return b
}

// collect is what the agent takes of a job's measurements. The blind does not see the type: of several on as many nodes
// and replicas with one batch, the first counts.
func (p *goodputAgent) collect(kept, all []core.Measurement) []core.Measurement {
	if p.config.Types != blindType {
		return append(kept, all...)
	}
	for _, m := range all {
		m.Accelerator = ""
		if !slices.ContainsFunc(kept, m.SameConfiguration) {
			kept = append(kept, m)
		}
	}
	return kept
}

// confirmed leaves out what was reported once, if reports are known to differ: such a report may be far off, and a job that
// shrinks by it never makes another. A job of which nothing else is known keeps it.
func (p *goodputAgent) confirmed(seen []core.Measurement, nothingElse bool) []core.Measurement {
	p.differ = p.differ || slices.ContainsFunc(seen, func(m core.Measurement) bool { return m.Spread > 0 })
	once := func(m core.Measurement) bool { return m.Count < 2 }
	if !p.differ || !slices.ContainsFunc(seen, once) {
		return seen
	}
	if nothingElse && !slices.ContainsFunc(seen, func(m core.Measurement) bool { return !once(m) }) {
		return seen
	}
	return slices.DeleteFunc(seen, once)
}

// know brings a model up to what is known of its type; false when that is nothing.
func (p *goodputAgent) know(a *agent, m *typeModel, accelerator string) bool {
	if a.past != nil {
		if known := a.past.on(accelerator); known != nil {
			m.Performance = *known
			return true
		}
	}
	seen := measuredOn(a.seen, accelerator)
	if len(seen) > 0 {
		m.Performance = fit(seen)
	}
	return len(seen) > 0
}

// measuredOn are the measurements on an accelerator type; all of them if they are all on it.
func measuredOn(all []core.Measurement, accelerator string) []core.Measurement {
	other := func(m core.Measurement) bool { return m.Accelerator != accelerator }
	if !slices.ContainsFunc(all, other) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), other)
}

// borrow lets the first model that rests on measurements stand for the types that have none.
func (p *goodputAgent) borrow(a *agent, c *core.Cluster, j *core.Job) {
	like := slices.IndexFunc(a.models, func(m typeModel) bool { return m.curves != nil })
	if like < 0 {
		a.models = nil
		return
	}
	for t := range a.models {
		m := &a.models[t]
		if m.like, m.ratio = like, 1; m.curves != nil {
			m.like = t
			continue
		}
		if !j.CanRunOn(c, core.AcceleratorID(t)) {
			m.ratio = 0
			continue
		}
		if p.config.Profiled && j.Truth != nil {
			own, others := alone(j.Truth, c.Accelerators[t]), alone(j.Truth, c.Accelerators[like])
			if own > 0 && others > 0 {
				m.ratio = own / others
			}
		}
	}
}

// alone is the samples a second of one device of a type at the largest batch measured; 0 when there is none.
func alone(known *core.Truth, accelerator string) float64 {
	best, largest := 0.0, 0
	for _, m := range known.Measurements {
		if m.Accelerator == accelerator && m.Replicas == 1 && m.PerDevice > largest {
			best, largest = float64(m.PerDevice)/m.StepSeconds, m.PerDevice
		}
	}
	return best
}

// worth says what samples of a larger batch are worth.
func (a *agent) worth() goodput.Gradients {
	if a.everySample || a.batch.Batch > 0 && a.gradients == (core.Gradients{}) {
		return goodput.Gradients(everySample)
	}
	return goodput.Gradients(a.gradients)
}

// update takes in new gradient statistics.
func (a *agent) update() {
	for t := range a.models {
		if curves := a.models[t].curves; curves != nil {
			curves.Update(a.worth())
		}
	}
}

// makeCurves makes the curves of the response.
func (a *agent) makeCurves(j *core.Job) {
	if len(a.models) == 0 {
		return
	}
	a.curves = make([]core.Curve, len(a.models))
	for t := range a.models {
		m := &a.models[t]
		if m.ratio == 0 {
			continue // it cannot run there
		}
		curves := a.models[m.like].curves
		a.curves[t] = core.Curve{
			OneNode:   perIteration(curves.Goodput[goodput.OneNode], j.Batch.Initial, m.ratio),
			ManyNodes: perIteration(curves.Goodput[goodput.ManyNodes], j.Batch.Initial, m.ratio),
		}
	}
}

// choice is the batch that suits replicas best; zero where that is not known.
func (a *agent) choice(t core.AcceleratorID, shape, replicas int) goodput.Choice {
	if len(a.models) == 0 {
		return goodput.Choice{}
	}
	curves := a.models[min(int(t), len(a.models)-1)].curves
	if curves == nil || replicas > len(curves.Choices[shape]) {
		return goodput.Choice{}
	}
	return curves.Choices[shape][replicas-1]
}
