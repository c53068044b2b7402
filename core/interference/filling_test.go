package interference

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func TestFilling(t *testing.T) {
	cases := map[string]struct {
		owner, job core.Iteration
		want       float64
	}{
		"nothing is needed":                             {core.Iteration{Compute: 1}, core.Iteration{}, 1},
		"an owner of unknown stages":                    {core.Iteration{}, core.Iteration{Load: 1}, 1},
		"all fits in one":                               {core.Iteration{Load: 2, Compute: 2, Sync: 2}, core.Iteration{Load: 2, Compute: 2, Sync: 2}, 1},
		"the exchange reaches into the loading":         {core.Iteration{Load: 2, Compute: 4, Sync: 4}, core.Iteration{Load: 4, Compute: 4, Sync: 2}, 1},
		"and beyond":                                    {core.Iteration{Load: 2, Compute: 4, Sync: 4}, core.Iteration{Load: 4, Compute: 4, Sync: 2.5}, 2},
		"computing may not":                             {core.Iteration{Load: 2, Compute: 4, Sync: 4}, core.Iteration{Load: 4, Compute: 4.5}, 2},
		"loading fills several gaps to the end":         {core.Iteration{Load: 3, Compute: 1}, core.Iteration{Load: 4}, 5},
		"a little less is over in the last":             {core.Iteration{Load: 3, Compute: 1}, core.Iteration{Load: 3.9}, 4},
		"a little more is another one":                  {core.Iteration{Load: 3, Compute: 1}, core.Iteration{Load: 4.1}, 5},
		"a single gap may be filled to the end":         {core.Iteration{Load: 3, Compute: 1}, core.Iteration{Load: 1}, 1},
		"computing fills several gaps to the end":       {core.Iteration{Compute: 2, Sync: 1}, core.Iteration{Compute: 3}, 4},
		"computing waits for the owner's":               {core.Iteration{Load: 1, Compute: 8, Sync: 1}, core.Iteration{Load: 1, Compute: 3}, 2},
		"as many gaps as it fills, and the owner once":  {core.Iteration{Load: 2, Compute: 2}, core.Iteration{Load: 8}, 5},
		"no more of a resource than is left":            {core.Iteration{Load: 1, Compute: 0.5, Sync: 1}, core.Iteration{Compute: 0.5, Sync: 1.75}, 2},
		"as many of each of two stages":                 {core.Iteration{Load: 2, Compute: 1, Sync: 1}, core.Iteration{Load: 4, Sync: 6}, 4},
		"not whole gaps":                                {core.Iteration{Load: 2, Compute: 2}, core.Iteration{Load: 5}, 3},
		"stages follow one another":                     {core.Iteration{Load: 1, Compute: 6, Sync: 3}, core.Iteration{Load: 2, Compute: 3, Sync: 2}, 2},
		"the owner leaves none of it":                   {core.Iteration{Compute: 5}, core.Iteration{Load: 1, Compute: 1}, math.Inf(1)},
		"which it does not need":                        {core.Iteration{Compute: 5}, core.Iteration{Load: 1, Sync: 1}, 1},
		"several gaps from the middle of an iteration":  {core.Iteration{Load: 1, Compute: 2, Sync: 1}, core.Iteration{Load: 2, Compute: 6}, 4},
		"next to nothing where it need not wait":        {core.Iteration{Load: 1, Compute: 1}, core.Iteration{Compute: 1e-9, Sync: 2}, 1},
		"the owner leaves next to nothing":              {core.Iteration{Load: 1e-12, Compute: 1}, core.Iteration{Compute: 1e-12}, math.Inf(1)},
		"in another unit it is the same":                {core.Iteration{Load: 3e-3, Compute: 1e-3}, core.Iteration{Load: 4e-3}, 5},
		"a measured iteration says nothing of its gaps": {core.Iteration{Load: 3, Compute: 1, Measured: 9}, core.Iteration{Load: 4, Measured: 1}, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Filling(tc.owner, tc.job); got != tc.want {
				t.Errorf("%v iterations, want %v", got, tc.want)
			}
		})
	}
}

// A job needs no fewer iterations than its longest stage has gaps to fill, nor more than those of each stage by itself and one for each time it waits for the next.
func TestFillingIsWithinBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Float64Range(0, 10)
		owner := [3]float64{seconds.Draw(t, "load"), seconds.Draw(t, "compute"), seconds.Draw(t, "sync")}
		needs := [3]float64{seconds.Draw(t, "needs load"), seconds.Draw(t, "needs compute"), seconds.Draw(t, "needs sync")}
		least, most := 1.0, 3.0
		for i, need := range needs {
			if gap := owner[0] + owner[1] + owner[2] - owner[i]; need > 0 {
				if gap < 1e-6 {
					t.Skip("the draw is an owner that leaves no gap")
				}
				least, most = max(least, need/gap-1e-6), most+math.Floor(need/gap)+1
			}
		}
		got := Filling(core.Iteration{Load: owner[0], Compute: owner[1], Sync: owner[2]}, core.Iteration{Load: needs[0], Compute: needs[1], Sync: needs[2]})
		if got < least || got > most || got != math.Trunc(got) {
			t.Errorf("%v iterations, want a whole number from %v to %v", got, least, most)
		}
	})
}
