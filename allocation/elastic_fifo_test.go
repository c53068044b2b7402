package allocation

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

func TestElasticFIFO(t *testing.T) {
	elastic := func(least, most int) *coretest.JobBuilder { return policytest.Waits(1).Elastic(least, least, most) }
	for name, tc := range map[string]struct {
		jobs  []*coretest.JobBuilder
		rates [][]float64
		want  string
	}{
		"alone it takes all there is":   {[]*coretest.JobBuilder{elastic(1, 16)}, [][]float64{nil}, "0×8"},
		"and no more than it may have":  {[]*coretest.JobBuilder{elastic(1, 3)}, [][]float64{nil}, "0×3"},
		"the rest goes round in turns":  {[]*coretest.JobBuilder{elastic(1, 8), elastic(1, 8), elastic(1, 8)}, [][]float64{nil, nil, nil}, "0×3 1×3 2×2"},
		"from any numbers they started": {[]*coretest.JobBuilder{elastic(3, 8), elastic(1, 8)}, [][]float64{nil, nil}, "0×5 1×3"},
		"who has his most leaves the turns to others": {
			[]*coretest.JobBuilder{elastic(1, 2), elastic(1, 8), elastic(1, 8)}, [][]float64{nil, nil, nil}, "0×2 1×3 2×3",
		},
		"one that does not fit lets others by": {
			[]*coretest.JobBuilder{elastic(5, 5), elastic(4, 4), elastic(2, 2)}, [][]float64{nil, nil, nil}, "0×5 2×2",
		},
		// The released code would go on: 0×7 1×1, though job 1 cannot run on one device.
		"and gets no single devices": {
			[]*coretest.JobBuilder{elastic(5, 8), elastic(5, 8), elastic(1, 1)}, [][]float64{nil, nil, nil}, "0×7 2×1",
		},
		"one that runs has no precedence": {
			[]*coretest.JobBuilder{elastic(6, 6), policytest.Runs(4).Elastic(4, 4, 8)}, [][]float64{nil, nil}, "0×6",
		},
		"a number without a rate is passed over": {
			[]*coretest.JobBuilder{elastic(1, 3), elastic(1, 8)}, [][]float64{{1, 0, 3}, nil}, "0×3 1×5",
		},
		"when enough are left for the next": {
			[]*coretest.JobBuilder{elastic(1, 4), elastic(6, 6)}, [][]float64{{1, 0, 3, 4}, nil}, "0×1 1×6",
		},
		"it starts with the least number that has a rate": {[]*coretest.JobBuilder{elastic(1, 2)}, [][]float64{{0, 2}}, "0×2"},
		"a drop where a node ends is nothing to it":       {[]*coretest.JobBuilder{elastic(1, 5)}, [][]float64{{1, 2, 3, 4, 2}}, "0×5"},
		"one of which no rate is known":                   {[]*coretest.JobBuilder{elastic(2, 8)}, [][]float64{{0, 0, 0}}, "0×8"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policytest.Allocate(t, policytest.New(t, NewElasticFIFO(), nil), policytest.EightDevices(tc.jobs...), policytest.Scales(tc.rates...)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// The rule, word for word, gives every job what the policy gives it.
func TestElasticFIFOFollowsTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var jobs []*coretest.JobBuilder
		for range rapid.IntRange(1, 12).Draw(t, "jobs") {
			least := rapid.IntRange(1, 5).Draw(t, "least")
			jobs = append(jobs, policytest.Waits(1).Elastic(least, least, least+rapid.IntRange(0, 5).Draw(t, "more")))
		}
		v := coretest.MakeView(coretest.MakeCluster().Nodes(rapid.IntRange(1, 12).Draw(t, "nodes"), "t4", 2).Obj()).Jobs(jobs...).Obj()
		want, left := make([]int, len(jobs)), v.Devices
		for i, j := range v.Jobs {
			if j.MinReplicas <= left {
				want[i] = j.MinReplicas
				left -= want[i]
			}
		}
		for turn := 0; turn < len(jobs)*v.Devices; turn++ {
			if i := turn % len(jobs); left > 0 && want[i] > 0 && want[i] < v.Jobs[i].MaxReplicas {
				want[i]++
				left--
			}
		}
		for _, g := range policytest.Ask(t, policytest.New(t, NewElasticFIFO(), nil), v, policytest.Scales(make([][]float64, len(jobs))...)) {
			if g.Replicas != want[g.Job] || want[g.Job] == 0 {
				t.Fatalf("job %d: granted %d, want %v", g.Job, g.Replicas, want)
			}
			want[g.Job] = 0
		}
		for i, n := range want {
			if n > 0 {
				t.Fatalf("job %d: granted nothing, want %d", i, n)
			}
		}
	})
}

func TestElasticFIFOStands(t *testing.T) {
	for name, tc := range map[string]struct {
		job  *coretest.JobBuilder
		want float64
	}{
		"for ever":                          {policytest.Waits(1).Elastic(1, 1, 4), policytest.Forever},
		"not before a pinned job has begun": {policytest.Waits(1).Elastic(1, 1, 4).Pinned(), 1000},
		"once it has":                       {coretest.MakeJob("p").Elastic(1, 1, 4).Pinned().Running(900, coretest.Seat(0, 0, 1)), policytest.Forever},
	} {
		t.Run(name, func(t *testing.T) {
			policy, v := policytest.New(t, NewElasticFIFO(), nil), policytest.EightDevices(tc.job)
			if got := policytest.StandsUntil(t, policy, v, policytest.Ask(t, policy, v, policytest.Scales(nil))); got != tc.want {
				t.Errorf("stands until %v s, want %v", got, tc.want)
			}
		})
	}
}
