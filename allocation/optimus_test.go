package allocation

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// profiled responds with the step times of each job on any number of nodes, and its steps left.
func profiled(stepTimes [][]float64, stepsLeft []float64) func(*core.Job) core.Response {
	return func(j *core.Job) core.Response {
		rates := make([]float64, len(stepTimes[j.ID]))
		for i, seconds := range stepTimes[j.ID] {
			if seconds > 0 {
				rates[i] = 1 / seconds
			}
		}
		return core.Response{
			Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas,
			Curves: []core.Curve{{OneNode: rates, ManyNodes: rates}}, RemainingWork: stepsLeft[j.ID],
		}
	}
}

func TestOptimus(t *testing.T) {
	halving, flat := []float64{8, 4, 2, 1, 0.5, 0.25, 0.125, 0.0625}, []float64{8, 8, 1, 1, 1, 1, 1, 1}
	elastic := func(most int) *coretest.JobBuilder { return policytest.Waits(1).Elastic(1, 1, most) }
	cases := map[string]struct {
		jobs      []*coretest.JobBuilder
		stepTimes [][]float64
		stepsLeft []float64
		want      string
	}{
		"alone it takes all that helps": {[]*coretest.JobBuilder{elastic(16)}, [][]float64{halving}, []float64{10}, "0×8"},
		"and no more than it can use":   {[]*coretest.JobBuilder{elastic(3)}, [][]float64{halving}, []float64{10}, "0×3"},
		"everyone gets one before anyone gets two": {
			[]*coretest.JobBuilder{elastic(8), elastic(8), elastic(8), elastic(8), elastic(8), elastic(8), elastic(8), elastic(8), elastic(8)},
			[][]float64{halving, halving, halving, halving, halving, halving, halving, halving, halving},
			[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9},
			"0×1 1×1 2×1 3×1 4×1 5×1 6×1 7×1",
		},
		// Gains of job 0: 40, 20, 10, 5, …; of job 1: 80, 40, 20, 10, …; ties to job 0. The six devices left go to
		// 80, 40 (0), 40 (1), 20 (0), 20 (1), 10 (0).
		"the largest gain wins, ascending order seats": {
			[]*coretest.JobBuilder{elastic(8), elastic(8)}, [][]float64{halving, halving}, []float64{10, 20}, "0×4 1×4",
		},
		"seating order is ascending": {
			[]*coretest.JobBuilder{elastic(8), elastic(8), elastic(1)}, [][]float64{halving, halving, halving}, []float64{20, 10, 1}, "2×1 1×3 0×4",
		},
		"a step without gain traps": {
			[]*coretest.JobBuilder{elastic(8), elastic(2)}, [][]float64{flat, halving}, []float64{1e6, 1}, "0×1 1×2",
		},
		"an unknown rate ends it": {
			[]*coretest.JobBuilder{elastic(8)}, [][]float64{{8, 4, 0, 1}}, []float64{10}, "0×2",
		},
		"a rigid job gets what it needs or nothing": {
			[]*coretest.JobBuilder{policytest.Waits(6), policytest.Waits(4), policytest.Waits(2)}, [][]float64{nil, nil, nil}, []float64{math.NaN(), math.NaN(), math.NaN()}, "2×2 0×6",
		},
		"declared work stands in for steps left": {
			[]*coretest.JobBuilder{elastic(8).Work(10), elastic(8).Work(20)},
			[][]float64{halving, halving},
			[]float64{math.NaN(), math.NaN()},
			"0×4 1×4",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := policytest.New(t, NewOptimus(), nil)
			if got := policytest.Allocate(t, policy, policytest.EightDevices(tc.jobs...), profiled(tc.stepTimes, tc.stepsLeft)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOptimusIsSteadyWithoutDeclaredWork(t *testing.T) {
	policy := policytest.New(t, NewOptimus(), nil)
	v := policytest.EightDevices(policytest.Waits(1).Elastic(1, 1, 2).Work(10))
	for stepsLeft, want := range map[float64]float64{5: policytest.Forever, math.NaN(): 1000} {
		grants := policytest.Ask(t, policy, v, profiled([][]float64{{2, 1}}, []float64{stepsLeft}))
		if got := policytest.StandsUntil(t, policy, v, grants); got != want {
			t.Errorf("%v steps left: stands until %v s, want %v", stepsLeft, got, want)
		}
	}
}

// The greedy rule, word for word, must give every job what the heap gives it.
func TestOptimusIsGreedy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "jobs")
		var jobs []*coretest.JobBuilder
		stepTimes, stepsLeft := make([][]float64, n), make([]float64, n)
		for i := range n {
			jobs = append(jobs, policytest.Waits(1).Elastic(1, 1, rapid.IntRange(1, 10).Draw(t, "most")))
			stepTimes[i] = rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, 2, 3, 4, 8}), 1, 10).Draw(t, "step times")
			stepsLeft[i] = rapid.SampledFrom([]float64{0, 1, 10, 20}).Draw(t, "steps left")
		}
		v := coretest.MakeView(coretest.MakeCluster().Nodes(rapid.IntRange(1, 8).Draw(t, "nodes"), "t4", 2).Obj()).Jobs(jobs...).Obj()
		respond := profiled(stepTimes, stepsLeft)

		want := make([]int, n)
		left := v.Devices
		for i := range want {
			if left > 0 {
				want[i]++
				left--
			}
		}
		for ; left > 0; left-- {
			best, most := -1, 0.0
			for i, k := range want {
				r := respond(v.Jobs[i])
				now, next := r.Rate(0, k, 2), r.Rate(0, k+1, 2)
				if k == 0 || k+1 > r.MaxReplicas || now == 0 || next == 0 {
					continue
				}
				if gain := (1/now - 1/next) * stepsLeft[i]; gain > most {
					best, most = i, gain
				}
			}
			if best < 0 {
				break
			}
			want[best]++
		}
		text := ""
		for k := 1; k <= v.Devices; k++ {
			for i := range want {
				if want[i] == k {
					text += fmt.Sprintf(" %d×%d", i, k)
				}
			}
		}
		if got := " " + policytest.Allocate(t, &optimus{}, v, respond); got != text {
			t.Fatalf("got %q, want %q", got, text)
		}
	})
}
