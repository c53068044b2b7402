package elasticity

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// typeModel is what is known of a job on an accelerator type.
type typeModel struct {
	fitted int // measurements that performance was fitted to
	goodput.Performance
	curves *goodput.Curves // nil where nothing was measured: then
	like   int             // it does as on this type,
	ratio  float64         // so many times as fast
}

// anyType is the list of types where they make no difference.
var anyType = []string{""}

// model makes the models of a job: one for each accelerator type, or a single one while types make no difference.
func (p *goodputAgent) model(a *agent, c *core.Cluster, j *core.Job) {
	types := c.Accelerators
	if !a.tellsTypes() {
		types = anyType
	}
	if len(a.models) != len(types) {
		a.models = make([]typeModel, len(types))
	}
	for t := range types {
		m := &a.models[t]
		m.curves = nil
		if types[t] != "" && !j.CanRunOn(c, core.AcceleratorID(t)) || !p.know(a, m, types[t]) {
			continue
		}
		limits := limitsOf(j.BatchOn(types[t]))
		m.curves = goodput.NewCurves(p.grid(limits), m.Performance, goodput.Gradients(a.gradients), a.most)
	}
	p.borrow(a, c, j)
}

// tellsTypes reports whether what is known of a job names accelerator types.
func (a *agent) tellsTypes() bool {
	known := a.seen
	if a.past != nil {
		known = a.past.seen
	}
	return slices.ContainsFunc(known, func(m core.Measurement) bool { return m.Accelerator != "" })
}

// know brings a model up to what is known of its type; false when that is nothing.
func (p *goodputAgent) know(a *agent, m *typeModel, accelerator string) bool {
	if a.past != nil {
		known := a.past.on(accelerator)
		if known != nil {
			m.Performance = *known
		}
		return known != nil
	}
	seen := measuredOn(a.seen, accelerator)
	if len(seen) != m.fitted {
		m.Performance, m.fitted = p.fits.fit(seen), len(seen)
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

// update takes in new gradient statistics.
func (a *agent) update() {
	for t := range a.models {
		if curves := a.models[t].curves; curves != nil {
			curves.Update(goodput.Gradients(a.gradients))
		}
	}
}

// tell makes the curves of the response.
func (a *agent) tell(j *core.Job) {
	if len(a.models) == 0 {
		return
	}
	a.told = make([]core.Curve, len(a.models))
	for t := range a.models {
		m := &a.models[t]
		if m.ratio == 0 {
			continue // it cannot run there
		}
		curves := a.models[m.like].curves
		a.told[t] = core.Curve{
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
