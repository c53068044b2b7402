package goodput

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Model is all that is needed to predict a job's goodput.
type Model struct {
	Performance Performance    // of steps, by devices and batch
	Gradients   Gradients      // which say what a larger batch is worth
	Limits      core.BatchSpec // of the batch, in samples
}

// Choice is a batch setting and what it promises.
type Choice struct {
	PerDevice    int // samples on a device in a pass
	Accumulation int // passes of a step before its last one, which synchronises
	// Goodput is samples per second that count as samples at the initial batch; divided by the initial batch it is
	// iterations at that batch per second. 0 when the job cannot run so.
	Goodput float64
}

// candidates is how many batch sizes are tried, in geometric steps.
const candidates = 50

// Best finds the batch with the highest goodput on R replicas over N nodes, the first among equals (Pollux, section 4.1;
// the published agent tries the same 50 sizes).
func (m *Model) Best(nodes, replicas int) Choice {
	logSync := math.Log(m.Performance.SyncTime(nodes, replicas))
	var best Choice
	m.each(replicas, func(c Choice) {
		if c.Goodput = m.goodput(replicas, c, logSync); c.Goodput > best.Goodput {
			best = c
		}
	})
	return best
}

// each calls try with the settings to be tried, by ascending batch and without repetitions.
func (m *Model) each(replicas int, try func(Choice)) {
	l := &m.Limits
	var last Choice
	m.totals(replicas, func(total float64) {
		choice := m.split(total, replicas)
		if choice.PerDevice < l.MinPerDevice || choice.PerDevice > l.MaxPerDevice || choice == last {
			return
		}
		last = choice
		try(choice)
	})
}

// totals calls try with the total batches to be tried, in samples, ascending.
func (m *Model) totals(replicas int, try func(total float64)) {
	l := &m.Limits
	from, to := math.Max(float64(l.Initial), float64(l.MinPerDevice*replicas)), float64(l.Max)
	logFrom, logTo := math.Log10(from), math.Log10(to)
	for i := range candidates {
		total := math.Pow(10, logFrom+float64(i)*((logTo-logFrom)/(candidates-1)))
		switch i {
		case 0:
			total = from
		case candidates - 1:
			total = to
		}
		try(total)
	}
}

// slack forgives a quotient the rounding that would make one pass more of it.
const slack = 1e-8

// split divides a total batch over replicas and passes.
func (m *Model) split(total float64, replicas int) Choice {
	local := total / float64(replicas)
	s := int(math.Ceil(local/float64(m.Limits.MaxPerDevice)-slack)) - 1
	if replicas == 1 && local > float64(m.Limits.Initial)+slack {
		s = max(s, 1) // one pass alone tells nothing of the gradient's variance
	}
	return Choice{PerDevice: int(math.Ceil(local/float64(s+1) - slack)), Accumulation: s}
}

// SplitWithin divides a total batch over replicas as core.SplitBatch does, and raises it to the least batch of each: before the split,
// and where rounding makes a pass smaller than that. Where the largest batch does not suffice for all, perDevice is less than the least.
func SplitWithin(total, replicas int, limits core.BatchSpec) (perDevice, accumulation int) {
	limits.MinPerDevice = max(limits.MinPerDevice, 1) // no pass is empty
	perDevice, accumulation = SplitBatch(max(total, limits.MinPerDevice*replicas), replicas, limits)
	least := limits.MinPerDevice * replicas
	for accumulation > 0 && perDevice < limits.MinPerDevice && least*(accumulation+1) > limits.Max {
		accumulation--
		perDevice = limits.Max / replicas / (accumulation + 1)
		if limits.MaxPerDevice > 0 {
			perDevice = min(perDevice, limits.MaxPerDevice)
		}
	}
	if perDevice < limits.MinPerDevice && least*(accumulation+1) <= limits.Max {
		perDevice = limits.MinPerDevice
	}
	return perDevice, accumulation
}

func (m *Model) goodput(replicas int, c Choice, logSync float64) float64 {
	p := &m.Performance
	grad := p.GradTime(float64(c.PerDevice))
	step := float64(c.Accumulation)*grad + math.Exp(p.lastPass(math.Log(grad), logSync))
	total := float64(replicas * c.PerDevice * (c.Accumulation + 1))
	return total / step * m.Gradients.Efficiency(total/float64(m.Limits.Initial))
}

// batchCandidates is how many batches GeometricBatches returns at most.
const batchCandidates = 40

// GeometricBatches are the total batches of a range in geometric steps, both ends included: those that a search for the best one
// tries. Halves are rounded to even.
//
// Source: the experiment on elastic scaling, after the candidates of Saxena et al. (MASCOTS'20).
func GeometricBatches(b core.BatchSpec) []int {
	first, last := float64(b.Initial), float64(b.Max)
	batches := make([]int, batchCandidates)
	for i := range batches {
		batches[i] = int(math.RoundToEven(first * math.Pow(last/first, float64(i)/(batchCandidates-1))))
	}
	batches[batchCandidates-1] = b.Max
	return slices.Compact(batches)
}
