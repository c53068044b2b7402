package promises_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/doortest"
	"github.com/quartet-sched/quartet/internal/refdata"
)

const tiered = `version: 1
name: tiers
seed: %d
cluster: {nodes: [{name: n, count: 6, accelerator: t4, devices: 4}]}
workload: {type: generated, config: {jobs: 100, span: 6h, applications: true}}
sample: {tiers: {premium: 0.3, standard: 0.3, basic: 0.2}}
round: {interval: 60s, on_events: %t}
pipeline:
  allocation: {type: gpu_fraction, config: {window: 20m, turn: %s}}
  placement: {type: first_fit}
  elasticity: {job: {type: fixed, config: {replicas: %s}}}
backend: {type: simulator, config: {restart_overhead: 30s}}
output: {write: []}
`

// askedAlways is an allocator that does not tell how long its answers stand, and counts how often it is asked.
type askedAlways struct {
	core.Allocator
	core.Guarantor
}

// Whoever is asked in every round and whoever is asked when another answer may come run the same jobs alike, with far fewer rounds.
func TestTiersStandWhileNobodyFallsBehind(t *testing.T) {
	t.Parallel()
	alike := cmp.Comparer(func(a, b metrics.Number) bool { return a == b || !a.Known() && !b.Known() })
	for _, elastic := range []string{"requested", "elastic"} {
		for _, turn := range []string{"0s", "3m"} {
			for seed := range 4 {
				t.Run(fmt.Sprint(elastic, " ", turn, " ", seed), func(t *testing.T) {
					t.Parallel()
					c, err := quartet.Parse(quartet.Builtins(), "tiers.yaml", fmt.Sprintf(tiered, seed, seed%2 == 0, turn, elastic), quartet.Options{})
					if err != nil {
						t.Fatal(err)
					}
					skipping := doortest.Simulate(t, c)
					policy, err := c.Allocation.New(c.Seed, nil)
					if err != nil {
						t.Fatal(err)
					}
					always := askedAlways{policy, policy.(core.Guarantor)}
					s := fmt.Sprintf(tiered, seed, seed%2 == 0, turn, elastic)
					c, err = quartet.Parse(quartet.Builtins().WithAllocation(quartet.Given[core.Allocator]("always", always)), "tiers.yaml", s,
						quartet.Options{Sets: []string{"pipeline.allocation={type: always}"}})
					if err != nil {
						t.Fatal(err)
					}
					asked := doortest.Simulate(t, c)
					if diff := cmp.Diff(asked.Jobs, skipping.Jobs, alike); diff != "" {
						t.Errorf("jobs (-asked always +asked when needed):\n%s", diff)
					}
					if diff := cmp.Diff(asked.Summary.Tiers, skipping.Summary.Tiers, alike); diff != "" {
						t.Errorf("tiers (-asked always +asked when needed):\n%s", diff)
					}
					t.Logf("%d rounds of %d", skipping.Summary.Rounds, asked.Summary.Rounds)
					if skipping.Summary.Rounds >= asked.Summary.Rounds {
						t.Errorf("%d rounds, and %d when it is asked in each", skipping.Summary.Rounds, asked.Summary.Rounds)
					}
				})
			}
		}
	}
}

// The figures of docs/tiers.md: what is guaranteed is kept where there are devices enough, for premium jobs before standard ones where
// there are not, and by no other policy.
func TestTiersOnPhilly(t *testing.T) {
	t.Parallel()
	refdata.Path(t, "data", "pollux-osdi21")
	for _, tc := range []struct {
		allocation        string
		nodes             int
		premium, standard [2]float64 // ratios, from and to
	}{
		{"gpu_fraction", 36, [2]float64{1, 1}, [2]float64{1, 1}},
		{"gpu_fraction", 28, [2]float64{1, 1}, [2]float64{0.88, 0.91}},
		{"fifo", 28, [2]float64{0.1, 0.3}, [2]float64{0.1, 0.3}},
		{"las, config: {quantum_seconds: 0}", 28, [2]float64{0.89, 0.92}, [2]float64{0.87, 0.89}},
	} {
		t.Run(fmt.Sprint(tc.allocation, " on ", tc.nodes), func(t *testing.T) {
			t.Parallel()
			c, err := quartet.Load(quartet.Builtins(), configs.Options{Files: []string{"compositions/gpu-fraction.yaml"}, Env: os.LookupEnv, Sets: []string{
				fmt.Sprintf("cluster.nodes=[{name: gpu, count: %d, accelerator: p100, devices: 8}]", tc.nodes),
				fmt.Sprintf("pipeline.allocation={type: %s}", tc.allocation), "output.write=[]",
			}})
			if err != nil {
				t.Fatal(err)
			}
			tiers := doortest.Simulate(t, c).Summary.Tiers
			for tier, of := range map[*metrics.TierUse][2]float64{tiers.Premium: tc.premium, tiers.Standard: tc.standard} {
				if ratio := float64(tier.Ratio); ratio < of[0] || ratio > of[1] {
					t.Errorf("%+v, want a ratio of %v to %v", *tier, of[0], of[1])
				}
			}
		})
	}
}
