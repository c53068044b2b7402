package interference

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// This file models jobs that take turns on the same devices: while one loads its data, another computes, and a third one exchanges
// gradients.
//
// Source: Zhao et al., Muri (SIGCOMM 2022), interleaving of stages with up to four kinds of resources. Storage and CPUs are one stage here,
// which may take two of four slots in a row; devices and the network take one each. All members of a group make one iteration in a period.
//
// Deviation: the period is that of the steady state, in closed form. The simulator of the authors steps eight slots from rest and stops when
// two periods in a row look alike; [PeriodModel.Stepped] does so.

// MaxInterleaved is how many jobs a group has at most: one for each kind of resource.
const MaxInterleaved = 4

// PeriodModel says how the period of a group follows from the stages of its jobs.
type PeriodModel struct {
	// Stepped takes the period that the authors' simulator measures.
	Stepped bool
	// Factors by the number of jobs are what the period is longer than that of ideal stages; 0 for 1.
	Factors [MaxInterleaved + 1]float64
}

// MeasuredPeriods returns the model of the paper's simulator: factors by the number of jobs that were measured on its cluster, over the one of a
// job alone.
func MeasuredPeriods() PeriodModel {
	return PeriodModel{Stepped: true, Factors: [MaxInterleaved + 1]float64{2: 1.33 / 1.015, 3: 1.5 / 1.015, 4: 1.37 / 1.015}}
}

// Period is the seconds in which each job of a group makes one iteration, in the best order of the jobs. A group of one needs its stages one after
// the other. It is +Inf for a group of none, or of more than MaxInterleaved. It does not allocate; up to 6 orders of 7 sums.
func (m *PeriodModel) Period(group []core.Iteration) float64 {
	k := len(group)
	if k == 0 || k > MaxInterleaved {
		return math.Inf(1)
	}
	period := math.Inf(1)
	if k == 1 {
		period = group[0].Seconds()
	}
	for _, order := range orders[k] {
		var slots [MaxInterleaved]core.Iteration
		spread := k == 2 && order[1] < 0
		for slot, job := range order {
			if job >= 0 {
				slots[slot] = group[job]
			}
		}
		if m.Stepped && !spread {
			period = min(period, stepped(&slots, k))
		} else {
			period = min(period, steady(&slots))
		}
	}
	if f := m.Factors[k]; f > 0 {
		period *= f
	}
	return period
}

// orders are the different ways to put so many jobs in a cycle of four slots; -1 leaves a slot empty.
var orders = [MaxInterleaved + 1][][MaxInterleaved]int8{
	2: {{0, 1, -1, -1}, {1, 0, -1, -1}, {0, -1, 1, -1}},
	3: {{0, 1, 2, -1}, {0, 2, 1, -1}, {1, 0, 2, -1}, {1, 2, 0, -1}, {2, 0, 1, -1}, {2, 1, 0, -1}},
	4: {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}},
}

// In slot i the job of slot i+1 exchanges and that of slot i+2 computes; that of slot i+3 loads in slots i-1 and i. A period is
// the longest way around: slots one by one, or two at a time for a load.

// steady is the period of an order that repeats for ever: the longest of the seven ways around.
func steady(s *[MaxInterleaved]core.Iteration) float64 {
	one, two, three, four := max(s[1].Sync, s[2].Compute), max(s[2].Sync, s[3].Compute), max(s[3].Sync, s[0].Compute), max(s[0].Sync, s[1].Compute)
	return max(
		max(s[0].Load, one+two)+max(s[2].Load, three+four),
		max(s[1].Load, two+three)+max(s[3].Load, four+one),
	)
}

// stepped is the period that the authors' simulator finds for k jobs in the first slots: it begins with all resources free, and stops at the first two periods
// in a row that differ by less than a microsecond, or after eight slots.
func stepped(s *[MaxInterleaved]core.Iteration, k int) float64 {
	const (
		steps = 2 * MaxInterleaved
		alike = 1e-6
	)
	var end [steps + 1]float64
	for i := range steps {
		at := math.Inf(-1)
		if j := (i + 1) % MaxInterleaved; j < k {
			at = end[i] + s[j].Sync
		}
		if j := (i + 2) % MaxInterleaved; j < k {
			at = max(at, end[i]+s[j].Compute)
		}
		if j := (i + 3) % MaxInterleaved; j < k && i > 0 {
			at = max(at, end[i-1]+s[j].Load)
		}
		end[i+1] = at
		if i >= MaxInterleaved && math.Abs(end[i+1]-end[i-3]-(end[i]-end[i-4])) < alike {
			return end[i+1] - end[i-3]
		}
	}
	return end[steps] - end[steps-MaxInterleaved]
}
