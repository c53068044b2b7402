package elasticity

import (
	"cmp"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// exactKey is what jobs must have in common to share a table.
type exactKey struct {
	truth *core.Truth
	batch core.BatchSpec // Requested is 0
	types int
	// gradients are those that the job reported last, where the truth does not tell how many steps the training takes: a batch is worth what it is in this epoch.
	gradients core.Gradients
}

// latestTable is the table of a job that reported its gradients.
type latestTable struct {
	key   exactKey
	table *exactTable
}

// exactTable is the best batch of a job on each number of replicas, by the truth itself. The batches tried are those of
// [goodput.GeometricBatches], each as even as whole samples allow and without accumulation; between two batches that the truth tells
// a step takes as long as on the line through them.
type exactTable struct {
	curves  []core.Curve
	alone   float64         // best rate on one device with any batch, where the batch is fixed; 0 where it is free
	choices [][]exactChoice // by AcceleratorID and replicas-1, as curves
}

// exactChoice is a batch on some replicas; the zero value is none.
type exactChoice struct {
	perDevice, total int
	parts            []int // by replica; nil where all are equal
	rate             float64
}

// knowsExactly reports whether a job is one of which the truth is looked up, not fitted.
func (p *goodputAgent) knowsExactly(j *core.Job) bool {
	return p.tables != nil && j != nil && j.Truth != nil && j.Batch.Initial > 0 && j.Batch.Max > 0
}

func (p *goodputAgent) respondExactly(v *core.View, j *core.Job) core.Response {
	table := p.exactTable(v.Cluster, j)
	r := core.Response{Job: j.ID, MinReplicas: max(j.MinReplicas, 1), Curves: table.curves, SingleDeviceRate: table.alone, RemainingWork: math.NaN()}
	for _, c := range table.choices {
		r.MaxReplicas = max(r.MaxReplicas, len(c))
	}
	r.MaxReplicas = max(min(r.MaxReplicas, j.MaxReplicas), r.MinReplicas)
	if p.config.DeclaredWork {
		r.RemainingWork = j.RemainingWork(v.NowSeconds)
	}
	return r
}

// tuneExactly is the best batch on what a job gets. One that the truth does not tell of keeps the batch that its user asked for.
func (p *goodputAgent) tuneExactly(v *core.View, j *core.Job, seats []core.Seat) core.Tuning {
	c := v.Cluster
	table, replicas := p.exactTable(c, j), core.Replicas(seats)
	accelerator := c.Nodes[seats[0].Node].Accelerator
	t := core.Tuning{Job: j.ID}
	choices := table.choices[min(int(accelerator), len(table.choices)-1)]
	total := 0
	if replicas <= len(choices) && choices[replicas-1].total > 0 {
		best := &choices[replicas-1]
		t.BatchPerDevice, t.BatchByReplica, total = best.perDevice, best.parts, best.total
	} else {
		limits := p.bounds(j, c.Accelerators[accelerator])
		t.BatchPerDevice, t.AccumulationSteps = goodput.SplitBatch(max(j.Batch.Requested, limits.Initial, limits.MinPerDevice*replicas), replicas, limits)
		total = replicas * t.BatchPerDevice * (t.AccumulationSteps + 1)
	}
	t.LearningRateFactor = goodput.ScalingRule(p.config.ScalingRule).Factor(float64(total)/float64(j.Batch.Initial), goodput.Gradients(j.Gradients),
		goodput.Warmup{Progress: j.WorkDone(v.NowSeconds), Iterations: p.config.WarmupIterations})
	return t
}

func (p *goodputAgent) exactTable(c *core.Cluster, j *core.Job) *exactTable {
	key := exactKey{truth: j.Truth, batch: j.Batch, types: len(c.Accelerators)}
	if key.batch.Requested = 0; slices.Contains(p.config.FixedBatch, j.Application) && j.Batch.Requested > 0 {
		key.batch.Requested = j.Batch.Requested
	}
	table, reports := p.tables[key], len(j.Truth.Steps) == 0 && !p.everySample && j.Gradients != core.Gradients{}
	if reports { // it is of no use to others
		if key.gradients = j.Gradients; p.latest[j.ID].key == key {
			return p.latest[j.ID].table
		}
		table = nil
	}
	if table == nil {
		types := c.Accelerators
		named := func(m core.Measurement) bool { return m.Accelerator != "" }
		if p.config.Types == blindType || !slices.ContainsFunc(j.Truth.Measurements, named) {
			types = anyType
		}
		table = &exactTable{}
		seen := p.collect(nil, j.Truth.Measurements)
		for _, accelerator := range types {
			batch := p.bounds(j, accelerator)
			on, cost := measuredOn(seen, accelerator), func(batch int) float64 { return p.costsExactly(j.Truth, key.gradients, batch, j.Batch.Initial) }
			if batch.Requested = 0; key.batch.Requested > 0 {
				var free exactTable
				free.add(on, batch, 1, cost)
				table.alone = max(table.alone, free.choices[0][0].rate)
			}
			batch.Requested = key.batch.Requested
			table.add(on, batch, p.config.MostReplicas, cost)
		}
		if !reports {
			p.tables[key] = table
		} else {
			p.latest[j.ID] = latestTable{key, table}
		}
	}
	return table
}

// costsExactly is how many times the samples a training takes at a batch that it takes at the initial one.
func (p *goodputAgent) costsExactly(truth *core.Truth, reported core.Gradients, batch, initial int) float64 {
	if p.everySample {
		return 1
	}
	if len(truth.Steps) > 0 {
		return truth.Multiplier(batch, initial)
	}
	if reported == (core.Gradients{}) {
		reported = truth.Gradients
	}
	return 1 / goodput.Gradients(reported).Efficiency(float64(batch)/float64(initial))
}

// add adds the curve of a type: what a job does on each number of replicas up to most.
func (t *exactTable) add(seen []core.Measurement, batch core.BatchSpec, most int, cost func(batch int) float64) {
	batches := []int{batch.Requested}
	if batch.Requested == 0 {
		batches = goodput.GeometricBatches(batch)
	}
	steps := map[int][]core.Measurement{} // by replicas, ascending batch
	for _, m := range seen {
		steps[m.Replicas] = append(steps[m.Replicas], m)
	}
	var curve core.Curve
	var choices []exactChoice
	for replicas := 1; replicas <= most; replicas++ {
		if len(steps[replicas]) == 0 {
			choices = append(choices, exactChoice{})
			continue
		}
		on := steps[replicas]
		slices.SortStableFunc(on, func(a, b core.Measurement) int {
			return cmp.Or(cmp.Compare(a.Nodes, b.Nodes), cmp.Compare(a.PerDevice, b.PerDevice))
		})
		if wider := slices.IndexFunc(on, func(m core.Measurement) bool { return m.Nodes > on[0].Nodes }); wider > 0 {
			on = on[:wider]
		}
		var best exactChoice
		for _, total := range batches {
			perDevice := (total + replicas - 1) / replicas
			if perDevice < batch.MinPerDevice || batch.MaxPerDevice > 0 && perDevice > batch.MaxPerDevice {
				continue
			}
			seconds := stepAt(on, perDevice)
			if rate := float64(total) / seconds / cost(total) / float64(batch.Initial); rate > best.rate && !math.IsInf(rate, 1) {
				best = exactChoice{perDevice: perDevice, total: total, rate: rate}
			}
		}
		best.parts = partsOf(best.total, replicas)
		choices = append(choices, best)
	}
	for len(choices) > 1 && choices[len(choices)-1].total == 0 {
		choices = choices[:len(choices)-1]
	}
	for _, c := range choices {
		curve.OneNode = append(curve.OneNode, c.rate)
	}
	curve.ManyNodes = curve.OneNode // what they do on the fewest nodes that they were measured on
	t.curves, t.choices = append(t.curves, curve), append(t.choices, choices)
}

// stepAt is the time of a step at a batch per device, of measurements by ascending batch; NaN outside them.
func stepAt(seen []core.Measurement, perDevice int) float64 {
	i, exact := slices.BinarySearchFunc(seen, perDevice, func(m core.Measurement, b int) int { return cmp.Compare(m.PerDevice, b) })
	switch {
	case exact:
		return seen[i].StepSeconds
	case i == 0 || i == len(seen):
		return math.NaN()
	}
	low, high := &seen[i-1], &seen[i]
	share := float64(perDevice-low.PerDevice) / float64(high.PerDevice-low.PerDevice)
	return low.StepSeconds + float64(share*(high.StepSeconds-low.StepSeconds))
}

// partsOf divides a batch over replicas, the larger parts first; nil where they are equal.
func partsOf(total, replicas int) []int {
	if total%replicas == 0 {
		return nil
	}
	parts := make([]int, replicas)
	for i := range parts {
		parts[i] = (total + replicas - 1 - i) / replicas
	}
	return parts
}
