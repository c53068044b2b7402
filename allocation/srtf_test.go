package allocation

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

func TestSRTF(t *testing.T) {
	short, long := func() *coretest.JobBuilder { return policytest.Waits(4).Work(100) }, func() *coretest.JobBuilder { return policytest.Waits(4).Work(300) }
	cases := map[string]struct {
		config map[string]any
		jobs   []*coretest.JobBuilder
		want   string
	}{
		"least work left first": {nil, []*coretest.JobBuilder{long(), short(), policytest.Waits(4).Work(200)}, "1×4 2×4"},
		"work done counts":      {nil, []*coretest.JobBuilder{policytest.Runs(4).Work(350).Progress(50, 2.1), short(), long()}, "0×4 1×4"},
		"a shorter job preempts": {
			nil, []*coretest.JobBuilder{policytest.Runs(8).Work(1000).Progress(0, 1), short()}, "1×4",
		},
		"or waits": {
			map[string]any{"preemptive": false}, []*coretest.JobBuilder{policytest.Runs(8).Work(1000).Progress(0, 1), short()}, "0×8",
		},
		"weighed by devices a wide job is long": {
			map[string]any{"weigh_by_devices": true}, []*coretest.JobBuilder{policytest.Waits(8).Work(100), policytest.Waits(1).Work(700)}, "1×1",
		},
		"ties go to the earlier job": {nil, []*coretest.JobBuilder{short(), short(), short()}, "0×4 1×4"},
		"blocking": {
			map[string]any{"queue": queue.Blocking}, []*coretest.JobBuilder{short(), policytest.Waits(8).Work(200), long()}, "0×4| 1×8|",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := policytest.Allocate(t, policytest.New(t, NewSRTF(), tc.config), policytest.EightDevices(tc.jobs...), coretest.Rigid); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Job 0 declares less work, but needs 100 steps at 0.5 steps/s, job 1 needs 150 steps at 1 step/s.
func TestSRTFReadsTheCurve(t *testing.T) {
	v := policytest.EightDevices(policytest.Waits(8).Work(1), policytest.Waits(8).Work(2))
	rates := [][]float64{{0, 0, 0, 0, 0, 0, 0, 0.5}, {0, 0, 0, 0, 0, 0, 0, 1}}
	steps := []float64{100, 150}
	respond := func(j *core.Job) core.Response {
		r := coretest.Rigid(j)
		r.Curves, r.RemainingWork = []core.Curve{{ManyNodes: rates[j.ID]}}, steps[j.ID]
		return r
	}
	if got, want := policytest.Allocate(t, policytest.New(t, NewSRTF(), nil), v, respond), "1×8"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// Without the work left a curve says nothing, and the declared work decides.
	steps = []float64{math.NaN(), math.NaN()}
	if got, want := policytest.Allocate(t, policytest.New(t, NewSRTF(), nil), v, respond), "0×8"; got != want {
		t.Errorf("unknown work left: got %q, want %q", got, want)
	}
}

// Without a curve the time left of a profiled job is steps × step time, whatever iterations it declares. On two nodes of
// four devices, eight replicas span both.
func TestSRTFReadsStepTimesWithoutACurve(t *testing.T) {
	table := &core.StepTimes{OneNode: []float64{8, 4, 2, 1}, ManyNodes: []float64{0, 0, 0, 0, 5, 0, 0, 3}}
	profiled := func(replicas int, steps float64) *coretest.JobBuilder {
		return policytest.Waits(replicas).Work(1e6).StepTimes(table, steps)
	}
	cases := map[string]struct {
		config map[string]any
		jobs   []*coretest.JobBuilder
		want   string
	}{
		"not if told not to":                 {map[string]any{"step_times": false}, []*coretest.JobBuilder{profiled(8, 99), policytest.Waits(8).Work(1e6 - 1)}, "1×8"},
		"seconds against seconds":            {nil, []*coretest.JobBuilder{policytest.Waits(8).Work(200), profiled(4, 150)}, "1×4"},
		"and the other way round":            {nil, []*coretest.JobBuilder{profiled(4, 250), policytest.Waits(8).Work(200)}, "1×8"},
		"iterations do not count":            {nil, []*coretest.JobBuilder{profiled(8, 100).Work(1), profiled(8, 99).Work(2)}, "1×8"},
		"on one node":                        {nil, []*coretest.JobBuilder{profiled(2, 100), profiled(4, 101), policytest.Waits(8).Work(300)}, "1×4 0×2"},
		"across nodes":                       {nil, []*coretest.JobBuilder{policytest.Waits(8).Work(301), profiled(8, 100)}, "1×8"},
		"a placement without a time is last": {nil, []*coretest.JobBuilder{profiled(6, 1), policytest.Waits(8).Work(1e6)}, "1×8"},
		"a placement beyond the table too":   {nil, []*coretest.JobBuilder{policytest.Waits(8).StepTimes(&core.StepTimes{OneNode: []float64{1}}, 1), policytest.Waits(8).Work(1e6)}, "1×8"},
		"steps left unknown are last":        {nil, []*coretest.JobBuilder{profiled(8, math.NaN()), policytest.Waits(8).Work(1e6)}, "1×8"},
		"work unknown is last":               {nil, []*coretest.JobBuilder{policytest.Waits(8), policytest.Waits(8).Work(1e6)}, "1×8"},
		"also weighed by devices":            {map[string]any{"weigh_by_devices": true}, []*coretest.JobBuilder{policytest.Waits(8), profiled(6, 1), policytest.Waits(1).Work(1e6)}, "2×1 1×6"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := policytest.Allocate(t, policytest.New(t, NewSRTF(), tc.config), policytest.EightDevices(tc.jobs...), coretest.Rigid); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSRTFIsSteadyOnceItsGrantsRun(t *testing.T) {
	cases := map[string]struct {
		config map[string]any
		jobs   []*coretest.JobBuilder
		want   float64
	}{
		"granted jobs run":                        {nil, []*coretest.JobBuilder{policytest.Runs(8).Work(150).Progress(0, 1), policytest.Waits(8).Work(200)}, policytest.Forever},
		"a granted job was not seated":            {nil, []*coretest.JobBuilder{policytest.Runs(8).Work(900), policytest.Waits(4).Work(200)}, 1000},
		"the job that blocks need not run":        {map[string]any{"queue": queue.Blocking}, []*coretest.JobBuilder{policytest.Runs(4).Work(1), policytest.Waits(8).Work(2)}, policytest.Forever},
		"nobody waits":                            {nil, []*coretest.JobBuilder{policytest.Runs(4).Work(9), policytest.Runs(4).Work(3)}, policytest.Forever},
		"without preemption nothing changes":      {map[string]any{"preemptive": false}, []*coretest.JobBuilder{policytest.Runs(6).Work(9), policytest.Waits(2).Work(3)}, policytest.Forever},
		"with a grant for all it is the placer's": {map[string]any{"queue": queue.All}, []*coretest.JobBuilder{policytest.Runs(6).Work(9), policytest.Waits(2).Work(3)}, policytest.Forever},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy, v := policytest.New(t, NewSRTF(), tc.config), policytest.EightDevices(tc.jobs...)
			grants := policytest.Ask(t, policy, v, coretest.Rigid)
			if got := policytest.StandsUntil(t, policy, v, grants); got != tc.want {
				t.Errorf("stands until %v s, want %v", got, tc.want)
			}
		})
	}
}
