package interference

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

func TestModelsOfAllOnADevice(t *testing.T) {
	t.Parallel()
	weighs := func(weight float64) *core.JobSpec { return &core.JobSpec{Weight: weight} }
	uses := func(ratio float64) *core.JobSpec { return &core.JobSpec{Weight: 1, Utilisation: ratio} }
	for name, tc := range map[string]struct {
		model  Model
		self   *core.JobSpec
		others []*core.JobSpec
		want   float64
	}{
		"a part of its own":                       {None{}, weighs(1), []*core.JobSpec{weighs(9)}, 1},
		"turns by weight":                         {Turns{}, weighs(1), []*core.JobSpec{weighs(3), weighs(4)}, 1.0 / 8},
		"the heavier one":                         {Turns{}, weighs(3), []*core.JobSpec{weighs(1)}, 3.0 / 4},
		"less the switches":                       {Turns{SwitchRatio: 0.1}, weighs(1), []*core.JobSpec{weighs(3)}, 0.225},
		"all the time goes to switches":           {Turns{SwitchRatio: 1}, weighs(1), []*core.JobSpec{weighs(1)}, 0},
		"below the knee":                          {UsualHinge(), uses(0.4), []*core.JobSpec{uses(0.4)}, 1},
		"at the knee":                             {UsualHinge(), uses(0.45), []*core.JobSpec{uses(0.4)}, 1},
		"above it":                                {UsualHinge(), uses(0.8), []*core.JobSpec{uses(0.55)}, 1 - 0.306*0.5},
		"all others count":                        {UsualHinge(), uses(0.35), []*core.JobSpec{uses(0.5), uses(0.5), uses(0.5)}, 1 - 0.306},
		"a job of unknown utilisation is a whole": {UsualHinge(), uses(0), []*core.JobSpec{uses(0.85)}, 1 - 0.306},
		"one of the others as well":               {UsualHinge(), uses(0.85), []*core.JobSpec{uses(0)}, 1 - 0.306},
		"never below the least":                   {UsualHinge(), uses(1), []*core.JobSpec{uses(1), uses(1), uses(1), uses(1)}, 0.05},
		"a slope of ten":                          {Hinge{Knee: 1, Slope: 10, Least: 0.01}, uses(0.55), []*core.JobSpec{uses(0.5)}, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.model.Rate(tc.self, tc.others, ""); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("rate %v, want %v", got, tc.want)
			}
		})
	}
}
