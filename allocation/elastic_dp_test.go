package allocation

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

func TestElasticDP(t *testing.T) {
	linear := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	flat := []float64{5, 5.5, 5.6, 5.7, 5.8, 5.9, 5.95, 6}
	border := []float64{1, 2, 3, 4, 2, 2.2, 2.4, 7} // slower across nodes, until there are two full ones
	elastic := func(most int) *coretest.JobBuilder { return policytest.Waits(1).Elastic(1, 1, most) }
	for name, tc := range map[string]struct {
		jobs   []*coretest.JobBuilder
		rates  [][]float64
		config map[string]any
		want   string
	}{
		"alone it takes all that helps":        {[]*coretest.JobBuilder{elastic(8)}, [][]float64{linear}, nil, "0×8"},
		"and no more than it may have":         {[]*coretest.JobBuilder{elastic(3)}, [][]float64{linear}, nil, "0×3"},
		"it passes a drop where a node ends":   {[]*coretest.JobBuilder{elastic(8)}, [][]float64{border}, nil, "0×8"},
		"or stays below it beside another one": {[]*coretest.JobBuilder{elastic(8), elastic(8)}, [][]float64{border, linear}, nil, "0×4 1×4"},
		"who scales gets more, whatever his rate is": {
			[]*coretest.JobBuilder{elastic(8), elastic(8)}, [][]float64{flat, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}}, nil, "1×7 0×1",
		},
		"everyone gets one before anyone gets two": {
			[]*coretest.JobBuilder{elastic(8), elastic(8), elastic(8), elastic(8), elastic(8), elastic(8), elastic(8), elastic(8), elastic(8)},
			[][]float64{linear, linear, linear, linear, linear, linear, linear, linear, linear},
			nil,
			"0×1 1×1 2×1 3×1 4×1 5×1 6×1 7×1",
		},
		"one that runs stays, though one before it waits": {
			[]*coretest.JobBuilder{policytest.Waits(6), policytest.Runs(5)}, [][]float64{nil, nil}, nil, "1×5",
		},
		"one that does not fit lets others by": {
			[]*coretest.JobBuilder{policytest.Runs(5), policytest.Waits(6), policytest.Waits(2)}, [][]float64{nil, nil, nil}, nil, "0×5 2×2",
		},
		"or holds them back": {
			[]*coretest.JobBuilder{policytest.Runs(5), policytest.Waits(6), policytest.Waits(2)}, [][]float64{nil, nil, nil}, map[string]any{"strict": true}, "0×5",
		},
		"without a curve it gets its least number": {
			[]*coretest.JobBuilder{policytest.Waits(1).Elastic(2, 4, 8)}, [][]float64{nil}, nil, "0×2",
		},
		"a number without a rate is none": {
			[]*coretest.JobBuilder{elastic(8)}, [][]float64{{0, 0, 2, 0}}, nil, "0×3",
		},
		"one that can run on nothing": {
			[]*coretest.JobBuilder{elastic(8), elastic(2)}, [][]float64{{0, 0, 0}, linear}, nil, "1×2 0×1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policytest.Allocate(t, policytest.New(t, NewElasticDP(), tc.config), policytest.EightDevices(tc.jobs...), policytest.Scales(tc.rates...)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// No division of the devices among the jobs that it lets run speeds them up more.
func TestElasticDPIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "jobs")
		var jobs []*coretest.JobBuilder
		rates := make([][]float64, n)
		for i := range n {
			jobs = append(jobs, policytest.Waits(1).Elastic(1, 1, rapid.IntRange(1, 6).Draw(t, "most")))
			rates[i] = append([]float64{1}, rapid.SliceOfN(rapid.SampledFrom([]float64{0.5, 1, 1.5, 2, 3, 4}), 5, 5).Draw(t, "rates")...)
		}
		v := coretest.MakeView(coretest.MakeCluster().Nodes(rapid.IntRange(1, 4).Draw(t, "nodes"), "t4", 2).Obj()).Jobs(jobs...).Obj()
		got, used := 0.0, 0
		granted := policytest.Ask(t, policytest.New(t, NewElasticDP(), nil), v, policytest.Scales(rates...))
		for _, g := range granted {
			got += rates[g.Job][g.Replicas-1]
			used += g.Replicas
		}
		if used > v.Devices || len(granted) != min(n, v.Devices) {
			t.Fatalf("granted %v of %d devices", granted, v.Devices)
		}
		var best func(job, left int) float64
		best = func(job, left int) float64 {
			if job == len(granted) { // all of them need one device, so that the first ones run
				return 0
			}
			value := math.Inf(-1)
			for k := 1; k <= min(left, v.Jobs[job].MaxReplicas); k++ {
				value = max(value, rates[job][k-1]+best(job+1, left-k))
			}
			return value
		}
		if want := best(0, v.Devices); math.Abs(got-want) > 1e-9 {
			t.Fatalf("together %v, want %v: %v", got, want, granted)
		}
	})
}
