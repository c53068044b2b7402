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

// Losses are told, or there are none.
func TestGuaranteeLosses(t *testing.T) {
	opportunistic := func(gb float64) *core.JobSpec { return &core.JobSpec{BestEffort: true, Weight: 1, DeviceMemoryGB: gb} }
	owner := func(gb float64) *core.JobSpec { return &core.JobSpec{Weight: 1, DeviceMemoryGB: gb, Utilisation: 0.5} }
	memory := map[string]float64{"v100": 16}
	of := func(cost, spill float64) Guarantee {
		return Guarantee{Least: 0.05, Cost: cost, Spill: spill, DeviceMemoryGB: memory}
	}
	cases := map[string]struct {
		model       Guarantee
		self        *core.JobSpec
		others      []*core.JobSpec
		accelerator string
		want        float64
	}{
		"an owner loses beside opportunistic jobs":      {of(0.1, 0), owner(1), []*core.JobSpec{opportunistic(1), opportunistic(1)}, "v100", 0.9},
		"an owner loses nothing beside another":         {of(0.1, 0), owner(1), []*core.JobSpec{owner(1)}, "v100", 0.5},
		"two owners lose beside an opportunistic job":   {of(0.1, 0), owner(1), []*core.JobSpec{owner(1), opportunistic(1)}, "v100", 0.45},
		"an opportunistic job does not pay the owner's": {of(0.1, 0), opportunistic(1), []*core.JobSpec{owner(1)}, "v100", 0.5},
		"half of its memory is on the host":             {of(0, 0.4), opportunistic(8), []*core.JobSpec{owner(12)}, "v100", 0.5 * 0.8},
		"all of it is":                                  {of(0, 0.4), opportunistic(8), []*core.JobSpec{owner(16)}, "v100", 0.5 * 0.6},
		"no more than all":                              {of(0, 1), opportunistic(8), []*core.JobSpec{owner(17)}, "v100", 0},
		"it just fits":                                  {of(0, 1), opportunistic(8), []*core.JobSpec{owner(8)}, "v100", 0.5},
		"two miss the same part":                        {of(0, 1), opportunistic(8), []*core.JobSpec{opportunistic(24)}, "v100", 0.5 * 0.5},
		"an owner misses nothing":                       {of(0, 1), owner(12), []*core.JobSpec{opportunistic(12)}, "v100", 1},
		"nothing is lost unless told so":                {of(0, 0), opportunistic(8), []*core.JobSpec{owner(12)}, "v100", 0.5},
		"nor where memory is not known":                 {of(0, 1), opportunistic(8), []*core.JobSpec{owner(12)}, "t4", 0.5},
		"nor by who needs none":                         {of(0, 1), opportunistic(0), []*core.JobSpec{owner(20)}, "v100", 0.5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.model.Rate(tc.self, tc.others, tc.accelerator); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("rate %v, want %v", got, tc.want)
			}
		})
	}
}
