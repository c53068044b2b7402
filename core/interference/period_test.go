package interference

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func iteration(load, compute, sync float64) core.Iteration {
	return core.Iteration{Load: load, Compute: compute, Sync: sync}
}

func TestPeriod(t *testing.T) {
	var ideal PeriodModel
	measured := MeasuredPeriods()
	cases := map[string]struct {
		model *PeriodModel
		group []core.Iteration
		want  float64
	}{
		"alone, its stages":             {&ideal, []core.Iteration{iteration(3, 2, 1)}, 6},
		"none":                          {&ideal, nil, math.Inf(1)},
		"more than there are resources": {&ideal, make([]core.Iteration, 5), math.Inf(1)},
		"two that do not meet":          {&ideal, []core.Iteration{iteration(4, 0, 0), iteration(0, 2, 2)}, 4},
		"two that want the same":        {&ideal, []core.Iteration{iteration(0, 3, 0), iteration(0, 5, 0)}, 8},
		"one loads while the other computes and syncs":  {&ideal, []core.Iteration{iteration(3, 2, 1), iteration(3, 1, 1)}, 6},
		"three, each waits for a device":                {&ideal, []core.Iteration{iteration(0, 1, 0), iteration(0, 2, 0), iteration(0, 3, 0)}, 6},
		"four, perfectly staggered":                     {&ideal, []core.Iteration{iteration(2, 1, 1), iteration(2, 1, 1), iteration(2, 1, 1), iteration(2, 1, 1)}, 4},
		"four loads, two at a time":                     {&ideal, []core.Iteration{iteration(4, 0, 0), iteration(3, 0, 0), iteration(2, 0, 0), iteration(1, 0, 0)}, 5},
		"a pair as measured: gpt2 with shufflenet":      {&measured, []core.Iteration{iteration(.6, 419, 49), iteration(769, 57, 10)}, 836 * 1.33 / 1.015},
		"a group of four as measured, largest at eight": {&measured, []core.Iteration{iteration(502, 14, .4), iteration(502, 14, .4), iteration(.5, 167, 59), iteration(82, 88, 60)}, 604 * 1.37 / 1.015},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.model.Period(tc.group); math.Abs(got-tc.want) > 1e-9*tc.want {
				t.Errorf("period %v, want %v", got, tc.want)
			}
		})
	}
}

func drawGroup(t *rapid.T, least int) []core.Iteration {
	stage := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 100))
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.Iteration {
		return iteration(stage.Draw(t, "load"), stage.Draw(t, "compute"), stage.Draw(t, "sync"))
	}), least, MaxInterleaved).Draw(t, "group")
}

// repeated is the mean period of an order that goes on for long, by walking it slot by slot.
func repeated(slots [MaxInterleaved]core.Iteration) float64 {
	const rounds = 200
	end := []float64{0}
	for i := range 2 * rounds * MaxInterleaved {
		at := end[i] + max(slots[(i+1)%MaxInterleaved].Sync, slots[(i+2)%MaxInterleaved].Compute)
		if i > 0 {
			at = max(at, end[i-1]+slots[(i+3)%MaxInterleaved].Load)
		}
		end = append(end, at)
	}
	return (end[2*rounds*MaxInterleaved] - end[rounds*MaxInterleaved]) / rounds
}

// The closed form is the period of the best of all ways to seat the jobs in four slots.
func TestSteadyPeriodIsThatOfTheBestOrder(t *testing.T) {
	var m PeriodModel
	rapid.Check(t, func(t *rapid.T) {
		group := drawGroup(t, 2)
		want := math.Inf(1)
		for code := range 4 * 4 * 4 * 4 { // the slot of each job
			var slots [MaxInterleaved]core.Iteration
			var taken [MaxInterleaved]bool
			fits := true
			for _, job := range group {
				slot := code % MaxInterleaved
				code /= MaxInterleaved
				fits = fits && !taken[slot]
				slots[slot], taken[slot] = job, true
			}
			if fits {
				want = min(want, repeated(slots))
			}
		}
		if got := m.Period(group); math.Abs(got-want) > 1e-9*max(want, 1) {
			t.Errorf("period %v, want %v", got, want)
		}
	})
}

// fromRest is the period that the authors' simulator finds for jobs in the slots of an order: each job loads in two slots, then computes in one and
// exchanges in one. It begins with all resources free, goes through eight slots, and stops at two periods in a row that are alike.
func fromRest(group []core.Iteration, order []int) float64 {
	ends := []float64{0}
	period := 0.0
	for step := range 2 * MaxInterleaved {
		end := math.Inf(-1)
		for slot, job := range order {
			switch (slot - step + 2*MaxInterleaved) % MaxInterleaved {
			case 1:
				end = max(end, ends[step]+group[job].Sync)
			case 2:
				end = max(end, ends[step]+group[job].Compute)
			case 3:
				if step > 0 { // nobody began to load before
					end = max(end, ends[step-1]+group[job].Load)
				}
			}
		}
		ends = append(ends, end)
		if step >= MaxInterleaved-1 {
			before := period
			period = ends[step+1] - ends[step+1-MaxInterleaved]
			if step >= MaxInterleaved && math.Abs(period-before) < 1e-6 {
				break
			}
		}
	}
	return period
}

// The stepped period is the best that the authors' simulator finds; two jobs may also be two slots apart, which it takes as it goes on for ever.
func TestSteppedPeriodIsThatFromRest(t *testing.T) {
	m := PeriodModel{Stepped: true}
	orders := map[int][][]int{
		2: {{0, 1}, {1, 0}},
		3: {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}},
		4: {{0, 1, 2, 3}, {0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}},
	}
	few, many := rapid.IntRange(0, 2), rapid.IntRange(3, 6)
	rapid.Check(t, func(t *rapid.T) {
		group := drawGroup(t, 2)
		if rapid.Bool().Draw(t, "long loads") { // of which it sees the first begin together, so that it may take long until two periods are alike
			for i := range group {
				group[i] = iteration(float64(many.Draw(t, "load")), float64(few.Draw(t, "compute")), float64(few.Draw(t, "sync")))
			}
		}
		want := math.Inf(1)
		for _, order := range orders[len(group)] {
			want = min(want, fromRest(group, order))
		}
		if len(group) == 2 {
			want = min(want, repeated([MaxInterleaved]core.Iteration{0: group[0], 2: group[1]}))
		}
		if got := m.Period(group); math.Abs(got-want) > 1e-9*max(want, 1) {
			t.Errorf("period %v, want %v", got, want)
		}
	})
}

// No resource does two things at once, no job is ahead of itself, and who joins slows nobody's group by more than its own stages.
func TestPeriodBounds(t *testing.T) {
	var m PeriodModel
	rapid.Check(t, func(t *rapid.T) {
		group := drawGroup(t, 1)
		period := m.Period(group)
		var compute, sync, load, all, longest float64
		for _, s := range group {
			compute, sync, load, all = compute+s.Compute, sync+s.Sync, load+s.Load, all+s.Seconds()
			longest = max(longest, s.Load, s.Compute, s.Sync)
		}
		if least := max(compute, sync, load/2, longest); period < least*(1-1e-12) {
			t.Errorf("period %v, resources alone need %v", period, least)
		}
		if period > all*(1+1e-12) {
			t.Errorf("period %v, one after the other takes %v", period, all)
		}
		shuffled := rapid.Permutation(group).Draw(t, "shuffled")
		if other := m.Period(shuffled); math.Abs(other-period) > 1e-12*period {
			t.Errorf("period %v, in another order of the jobs %v", period, other)
		}
	})
}

func TestPeriodAllocatesNothing(t *testing.T) {
	group := []core.Iteration{iteration(502, 14, .4), iteration(435, 8, .5), iteration(.5, 167, 59), iteration(82, 88, 60)}
	for name, m := range map[string]PeriodModel{"steady": {}, "stepped": MeasuredPeriods()} {
		if n := testing.AllocsPerRun(100, func() { m.Period(group) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkPeriod(b *testing.B) {
	group := []core.Iteration{iteration(502, 14, .4), iteration(435, 8, .5), iteration(.5, 167, 59), iteration(82, 88, 60)}
	for name, m := range map[string]PeriodModel{"steady": {}, "stepped": MeasuredPeriods()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				m.Period(group)
			}
		})
	}
}
