package allocation

import (
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/elastic"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

func TestElasticTiresias(t *testing.T) {
	linear := []float64{1, 2, 3, 4, 5, 6, 7, 8}
	half := []float64{1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5}
	poor := []float64{1, 1.2, 1.3, 1.35, 1.4, 1.45, 1.5, 1.55}
	border := []float64{1, 2, 3, 4, 2, 2.2, 2.4, 7} // slower across nodes, until there are two full ones
	asks := func(n int) *coretest.JobBuilder { return policytest.Waits(1).Elastic(1, n, 8) }
	sunk := func(j *coretest.JobBuilder) *coretest.JobBuilder { return j.Executed(200, 200) }
	for name, tc := range map[string]struct {
		jobs   []*coretest.JobBuilder
		rates  [][]float64
		config map[string]any
		want   string
	}{
		"all get what they request, and the best the rest": {[]*coretest.JobBuilder{asks(2), asks(3)}, [][]float64{half, linear}, nil, "0×2 1×6"},
		"the first queue is served first":                  {[]*coretest.JobBuilder{sunk(policytest.Waits(5)), policytest.Waits(5)}, [][]float64{nil, nil}, nil, "1×5"},
		"one that does not fit lets others by":             {[]*coretest.JobBuilder{policytest.Waits(5), policytest.Waits(4), policytest.Waits(3)}, [][]float64{nil, nil, nil}, nil, "0×5 2×3"},
		// Job 1 waits with a gain of 1, and then gains 0.5 by a second device.
		"who waits begins with less than he requests": {[]*coretest.JobBuilder{policytest.Waits(6), asks(4)}, [][]float64{nil, half}, nil, "0×6 1×2"},
		// Job 1 gains 1.2 by two devices, 0.6 by each; job 0 gains 1 by each of them.
		"a waiting one counts by the device": {
			[]*coretest.JobBuilder{asks(6), policytest.Waits(1).Elastic(2, 4, 8)}, [][]float64{linear, poor}, nil, "0×8",
		},
		"against one that gains less": {
			[]*coretest.JobBuilder{asks(6), policytest.Waits(1).Elastic(2, 4, 8)}, [][]float64{half, poor}, nil, "0×6 1×2",
		},
		"ties go to the queue before": {[]*coretest.JobBuilder{sunk(asks(3)), asks(3)}, [][]float64{linear, linear}, nil, "1×5 0×3"},
		"and to the job before":       {[]*coretest.JobBuilder{asks(3), asks(3)}, [][]float64{linear, linear}, nil, "0×5 1×3"},
		// Job 0 gives five back. Job 1 takes four of the seven at a gain of 1, before job 0 grows again by gains of 0.5.
		"when many wait, those who sank shrink": {
			[]*coretest.JobBuilder{sunk(asks(6)), sunk(policytest.Waits(4))}, [][]float64{half, nil}, map[string]any{"compact_above": 0}, "0×4 1×4",
		},
		"not when few do": {
			[]*coretest.JobBuilder{sunk(asks(6)), sunk(policytest.Waits(4))}, [][]float64{half, nil}, map[string]any{"compact_above": 1}, "0×8",
		},
		"nor those of the first queue": {
			[]*coretest.JobBuilder{asks(6), policytest.Waits(4)}, [][]float64{half, nil}, map[string]any{"compact_above": 0}, "0×8",
		},
		"many are more than ten": {
			[]*coretest.JobBuilder{
				sunk(asks(8)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)),
				sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)),
			},
			[][]float64{half, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil},
			nil,
			"0×1 1×7",
		},
		"ten are not": {
			[]*coretest.JobBuilder{
				sunk(asks(8)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)),
				sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)), sunk(policytest.Waits(7)),
			},
			[][]float64{half, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil},
			nil,
			"0×8",
		},
		"it passes a drop where a node ends":              {[]*coretest.JobBuilder{asks(1)}, [][]float64{border}, nil, "0×8"},
		"one by one it stops there":                       {[]*coretest.JobBuilder{asks(1)}, [][]float64{border}, map[string]any{"steps": elastic.OneByOne}, "0×4"},
		"when fewer are left than that takes, so it does": {[]*coretest.JobBuilder{asks(1), policytest.Waits(2)}, [][]float64{border, nil}, nil, "0×4 1×2"},
		"without a curve it gets what it requests":        {[]*coretest.JobBuilder{asks(2)}, [][]float64{nil}, nil, "0×2"},
		"a number without a rate is none":                 {[]*coretest.JobBuilder{asks(2)}, [][]float64{{1, 0, 1, 0}}, nil, "0×3"},
		"nor one above":                                   {[]*coretest.JobBuilder{asks(2)}, [][]float64{{1, 0, 0, 0}}, nil, "0×1"},
		"it starts where it can run at all": {
			[]*coretest.JobBuilder{policytest.Waits(5), asks(4)}, [][]float64{nil, {0, 0, 3, 3.5, 4, 4.5, 5, 5.5}}, nil, "0×5 1×3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := map[string]any{"thresholds": []any{100}}
			maps.Copy(config, tc.config)
			if got := policytest.Allocate(t, policytest.New(t, NewElasticTiresias(), config), policytest.EightDevices(tc.jobs...), policytest.Scales(tc.rates...)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// The rule, word for word and by looking at everyone at each step, gives every job what the heap gives it.
func TestElasticTiresiasFollowsTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "jobs")
		var jobs []*coretest.JobBuilder
		rates := make([][]float64, n)
		for i := range n {
			least := rapid.IntRange(1, 3).Draw(t, "least")
			asked := least + rapid.IntRange(0, 3).Draw(t, "more asked")
			ran := rapid.SampledFrom([]float64{0, 1, 1000}).Draw(t, "ran")
			jobs = append(jobs, policytest.Waits(1).Elastic(least, asked, asked+rapid.IntRange(0, 3).Draw(t, "more")).Executed(ran, ran))
			rates[i] = append([]float64{1}, rapid.SliceOfN(rapid.SampledFrom([]float64{0.5, 1, 1.5, 2, 3, 4, 6}), 8, 8).Draw(t, "rates")...)
		}
		v := coretest.MakeView(coretest.MakeCluster().Nodes(rapid.IntRange(1, 8).Draw(t, "nodes"), "t4", 2).Obj()).Jobs(jobs...).Obj()
		above := rapid.IntRange(0, 4).Draw(t, "compact above")

		var order []*core.Job // by queue, then submission
		for _, sunk := range [...]bool{false, true} {
			for _, j := range v.Jobs {
				if (j.Executed*float64(j.Requested) >= 100) == sunk {
					order = append(order, j)
				}
			}
		}
		got, left := make([]int, n), v.Devices
		most := func(j *core.Job) int { return max(min(j.MaxReplicas, v.Devices), j.MinReplicas) }
		waiting := 0
		for _, j := range order {
			if want := max(min(j.Requested, most(j)), j.MinReplicas); want <= left {
				got[j.ID] = want
				left -= want
			} else {
				waiting++
			}
		}
		for _, j := range order {
			if waiting > above && got[j.ID] > 0 && j.Executed*float64(j.Requested) >= 100 {
				left += got[j.ID] - j.MinReplicas
				got[j.ID] = j.MinReplicas
			}
		}
		for {
			best, bestStep, bestGain := core.JobID(-1), 0, 0.0
			for _, j := range order {
				k, step, gain := got[j.ID], j.MinReplicas, 0.0
				if k == 0 {
					gain = rates[j.ID][step-1] / float64(step)
				} else if step = 1; k < most(j) {
					gain = rates[j.ID][k] - rates[j.ID][k-1]
				}
				if step <= left && gain > bestGain {
					best, bestStep, bestGain = j.ID, step, gain
				}
			}
			if best < 0 {
				break
			}
			got[best] += bestStep
			left -= bestStep
		}

		granted := make([]int, n)
		policy := policytest.New(t, NewElasticTiresias(), map[string]any{"thresholds": []any{100}, "steps": elastic.OneByOne, "compact_above": above})
		for _, g := range policytest.Ask(t, policy, v, policytest.Scales(rates...)) {
			granted[g.Job] = g.Replicas
		}
		if diff := cmp.Diff(got, granted); diff != "" {
			t.Fatalf("replicas by job (-want +got):\n%s", diff)
		}
	})
}

// An answer stands up to the moment at which one of those that are to run sinks; so does one that begins with less than it requests.
func TestElasticTiresiasStands(t *testing.T) {
	policy := policytest.New(t, NewElasticTiresias(), map[string]any{"thresholds": []any{1000}})
	v := policytest.EightDevices(policytest.Waits(6), policytest.Waits(1).Elastic(1, 7, 7))
	grants := policytest.Ask(t, policy, v, policytest.Scales(nil, []float64{1, 2, 3, 4, 5, 6, 7}))
	if len(grants) != 2 {
		t.Fatalf("granted %v, want both", grants)
	}
	if got, want := policytest.StandsUntil(t, policy, v, grants), 1000+1000.0/7-queue.EarlySeconds; math.Abs(got-want) > 1e-9 {
		t.Errorf("stands until %v s, want %v", got, want)
	}
}

func TestElasticTiresiasConfigNamesEveryProblem(t *testing.T) {
	for _, tc := range []struct {
		config map[string]any
		want   core.Diagnostics
	}{
		{map[string]any{"thresholds": []any{5, 5, 1}}, core.Diagnostics{
			{Path: "thresholds[1]", Summary: "must be positive and above the one before, got 5"},
			{Path: "thresholds[2]", Summary: "must be positive and above the one before, got 1"},
		}},
		{map[string]any{"steps": "two", "compact_above": -1}, core.Diagnostics{
			{Path: "steps", Summary: `unknown value "two"`, Hint: "valid values: one, next_level"},
			{Path: "compact_above", Summary: "must be at least 0, got -1"},
		}},
	} {
		_, problems := NewElasticTiresias().Decode(tc.config)
		if diff := cmp.Diff(tc.want, problems); diff != "" {
			t.Errorf("problems (-want +got):\n%s", diff)
		}
	}
}
