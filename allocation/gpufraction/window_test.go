package gpufraction

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// The moments at which a surplus reaches a level are those that counting second by second finds, up to rounding.
func TestAttainmentReachesLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window, guaranteed = 100.0, 0.5
		quarters := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(0, 4).Draw(t, "quarters")) / 4 })
		j := coretest.MakeJob("j").Elastic(1, 4, 4).Waiting().Obj()
		var a attainment
		var had []float64 // second by second
		now := 0.0
		a.see(j, 4, now, window)
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			j.Attained, j.AsOfSeconds, j.Held = j.AttainedService(now), now, int(4*quarters.Draw(t, "held"))
			for range rapid.IntRange(0, 70).Draw(t, "seconds") {
				had = append(had, float64(j.Held)/4)
				now++
			}
			a.see(j, 4, now, window)
		}
		surplusAt := func(had []float64) float64 {
			recent := had[max(len(had)-window, 0):]
			sum := 0.0
			for _, part := range recent {
				sum += part - guaranteed
			}
			return sum
		}
		surplus := a.surplus(now, window, guaranteed)
		if want := surplusAt(had); math.Abs(surplus-want) > 1e-9 {
			t.Fatalf("surplus %v, want %v", surplus, want)
		}
		s := slide{window: window, guaranteed: guaranteed, now: now, surplus: surplus, rate: quarters.Draw(t, "rate from now on")}
		level := float64(rapid.IntRange(-40, 40).Draw(t, "level")) + 1.0/3 // reached between two seconds
		rises, falls := math.Inf(1), math.Inf(1)
		for second := now; second <= now+2*window; second++ {
			at := surplusAt(had)
			if at > level && rises > second {
				rises = second
			}
			if at < level && falls > second {
				falls = second
			}
			had = append(had, s.rate)
		}
		check := func(what string, got, want float64) {
			if got != want && !(want == now && got == now) && !(got <= want && got > want-1) {
				t.Errorf("%s %v from %v s on at %v s, want up to a second before %v s: %+v, %+v", what, level, now, got, want, s, a.spans)
			}
		}
		if surplus < level {
			check("rises to", a.rises(s, level), rises)
		} else {
			check("falls to", a.falls(s, level), falls)
		}
	})
}

// One that is at a level already is there now, and a window loses what it had at first.
func TestAttainmentAtALevel(t *testing.T) {
	a := attainment{spans: []span{{Rate: 0.25}}}
	for name, tc := range map[string]struct {
		rate, surplus, level float64
		rises                bool
		want                 float64
	}{
		"high enough":     {1, 5, 5, true, 10},
		"low enough":      {0, 5, 5, false, 10},
		"never lower":     {0.5, 5, 5, false, math.Inf(1)},
		"later higher":    {0.5, 4, 5, true, 19}, // from 15 s on, when the first seconds leave the window
		"rises by halves": {1, 4, 5, true, 12},
		"falls by halves": {0, 6, 5, false, 12},
	} {
		s := slide{window: 15, guaranteed: 0.5, now: 10, surplus: tc.surplus, rate: tc.rate}
		got := a.falls(s, tc.level)
		if tc.rises {
			got = a.rises(s, tc.level)
		}
		if got != tc.want {
			t.Errorf("%s: %v s, want %v", name, got, tc.want)
		}
	}
}

// Numbers of replicas without a rate are none: a job gets the largest below that has one.
func TestGPUFractionGrantsWhatRuns(t *testing.T) {
	policy := policytest.New(t, New(), map[string]any{"premium": 0.5, "standard": 0.5, "basic": 0.5})
	v := policytest.EightDevices(policytest.Waits(1).Elastic(1, 4, 4).Tier(core.Premium), policytest.Waits(5))
	if got, want := policytest.Allocate(t, policy, v, policytest.Scales([]float64{1, 2, 0, 0}, nil)), "0×2 1×5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
