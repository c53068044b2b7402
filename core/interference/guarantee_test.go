package interference

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

func TestGuarantee(t *testing.T) {
	opportunistic := func(of core.JobSpec) *core.JobSpec { of.BestEffort, of.Weight = true, max(of.Weight, 1); return &of }
	owner := core.Iteration{Load: 3, Compute: 1}
	cases := map[string]struct {
		self   *core.JobSpec
		others []*core.JobSpec
		want   float64
	}{
		"an owner is as fast as alone":             {&core.JobSpec{Weight: 1, Utilisation: 1}, []*core.JobSpec{opportunistic(core.JobSpec{}), opportunistic(core.JobSpec{Weight: 9})}, 1},
		"two owners take turns":                    {&core.JobSpec{Weight: 5}, []*core.JobSpec{{Weight: 1}, opportunistic(core.JobSpec{})}, 0.5},
		"in the gaps of the owner":                 {opportunistic(core.JobSpec{Iteration: core.Iteration{Load: 4}}), []*core.JobSpec{{Iteration: owner}}, 4.0 / 20},
		"by measured iterations":                   {opportunistic(core.JobSpec{Iteration: core.Iteration{Load: 4, Measured: 5}}), []*core.JobSpec{{Iteration: core.Iteration{Load: 3, Compute: 1, Measured: 6}}}, 5.0 / 30},
		"never faster than alone":                  {opportunistic(core.JobSpec{Iteration: core.Iteration{Compute: 2, Sync: 3}}), []*core.JobSpec{{Iteration: core.Iteration{Load: 3, Compute: 0.5, Sync: 0.1}}}, 1},
		"the owner leaves nothing":                 {opportunistic(core.JobSpec{Iteration: core.Iteration{Load: 1}}), []*core.JobSpec{{Iteration: core.Iteration{Load: 3}}}, 0},
		"without stages by what is not used":       {opportunistic(core.JobSpec{}), []*core.JobSpec{{Utilisation: 0.6}}, 0.4},
		"a little of what seems to be used":        {opportunistic(core.JobSpec{}), []*core.JobSpec{{Utilisation: 1}}, 0.05},
		"and of what nobody knows":                 {opportunistic(core.JobSpec{Iteration: owner}), []*core.JobSpec{{}}, 0.05},
		"those without an owner divide the device": {opportunistic(core.JobSpec{}), []*core.JobSpec{opportunistic(core.JobSpec{Weight: 3})}, 0.25},
		"those with one divide what is left":       {opportunistic(core.JobSpec{}), []*core.JobSpec{{Utilisation: 0.5}, opportunistic(core.JobSpec{})}, 0.25},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := UsualGuarantee().Rate(tc.self, tc.others, ""); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("rate %v, want %v", got, tc.want)
			}
		})
	}
}
