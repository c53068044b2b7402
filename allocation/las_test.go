package allocation

import (
	"testing"

	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

func TestLAS(t *testing.T) {
	// The running ones run since 900 s: 100 s more than they had then.
	const hour = 3600
	var inSteps map[string]any
	exact := map[string]any{"quantum_seconds": 0}
	cases := map[string]struct {
		config map[string]any
		jobs   []*coretest.JobBuilder
		want   string
	}{
		"device time weighs a wide job": { // 100 s × 4 + 0 against 100 s × 1 + 200
			exact, []*coretest.JobBuilder{policytest.Runs(4), policytest.Runs(1).Executed(200, 200)}, "1×1 0×4",
		},
		"wall time does not": {
			map[string]any{"service": queue.WallTime, "quantum_seconds": 0}, []*coretest.JobBuilder{policytest.Runs(4), policytest.Runs(1).Executed(200, 200)}, "0×4 1×1",
		},
		"the newcomer preempts":              {exact, []*coretest.JobBuilder{policytest.Runs(8), policytest.Waits(4)}, "1×4"},
		"ties go to the earlier job":         {exact, []*coretest.JobBuilder{policytest.Waits(4), policytest.Waits(4), policytest.Waits(4)}, "0×4 1×4"},
		"a quantum makes near ones equal":    {map[string]any{"quantum_seconds": 500}, []*coretest.JobBuilder{policytest.Runs(4), policytest.Waits(8)}, "0×4"},
		"and keeps far ones apart":           {map[string]any{"quantum_seconds": 400}, []*coretest.JobBuilder{policytest.Runs(4), policytest.Waits(8)}, "1×8"},
		"a starved job comes first":          {map[string]any{"starvation_after": "1000s"}, []*coretest.JobBuilder{policytest.Waits(8).Submit(1), policytest.Waits(8).Executed(5, 40)}, "1×8"},
		"of two starved the longest wait":    {map[string]any{"starvation_after": "500s"}, []*coretest.JobBuilder{policytest.Waits(8).Submit(100), policytest.Waits(8).Submit(50).Executed(9, 9)}, "1×8"},
		"one that runs is not starved":       {map[string]any{"starvation_after": "50s", "quantum_seconds": 0}, []*coretest.JobBuilder{policytest.Runs(8), policytest.Waits(8).Submit(980)}, "1×8"},
		"nobody gives way in the first step": {inSteps, []*coretest.JobBuilder{policytest.Runs(8), policytest.Waits(8)}, "0×8"}, // 800 s
		"steps begin at their end":           {inSteps, []*coretest.JobBuilder{policytest.Runs(8).Executed(350, hour-800), policytest.Waits(8)}, "1×8"},
		"and end before the next":            {inSteps, []*coretest.JobBuilder{policytest.Runs(8).Executed(800, 2*hour-801), policytest.Waits(8).Executed(450, hour)}, "0×8"},
		"each is twice the one before":       {inSteps, []*coretest.JobBuilder{policytest.Runs(8).Executed(3000, 8*hour-801), policytest.Waits(8).Executed(2000, 4*hour)}, "0×8"},
		"which has been passed then":         {inSteps, []*coretest.JobBuilder{policytest.Runs(8).Executed(3000, 8*hour-800), policytest.Waits(8).Executed(2000, 4*hour)}, "1×8"},
		"steps of wall time":                 {map[string]any{"service": queue.WallTime}, []*coretest.JobBuilder{policytest.Runs(8).Executed(hour-101, 8*hour), policytest.Waits(8)}, "0×8"},
		"blocking ends with the first large": {map[string]any{"queue": queue.Blocking}, []*coretest.JobBuilder{policytest.Waits(5), policytest.Waits(5), policytest.Waits(1)}, "0×5| 1×5|"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := policytest.Allocate(t, policytest.New(t, NewLAS(), tc.config), policytest.EightDevices(tc.jobs...), coretest.Rigid); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLASIsSteadyWhileNobodyWaits(t *testing.T) {
	cases := map[string]struct {
		jobs []*coretest.JobBuilder
		want float64
	}{
		"everyone runs":                  {[]*coretest.JobBuilder{policytest.Runs(4), policytest.Runs(4)}, policytest.Forever},
		"there is no room for one":       {[]*coretest.JobBuilder{policytest.Runs(8), policytest.Waits(1)}, 1000},
		"there was room, but not a seat": {[]*coretest.JobBuilder{policytest.Runs(4), policytest.Waits(1)}, 1000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy, v := policytest.New(t, NewLAS(), nil), policytest.EightDevices(tc.jobs...)
			grants := policytest.Ask(t, policy, v, coretest.Rigid)
			if got := policytest.StandsUntil(t, policy, v, grants); got != tc.want {
				t.Errorf("stands until %v s, want %v", got, tc.want)
			}
		})
	}
}
