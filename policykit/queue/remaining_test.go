package queue_test

import (
	"math"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// What elasticity reports comes first, then true step times where they are asked for, and then the declared work: in seconds, or in iterations of
// a known length.
func TestRemainingSeconds(t *testing.T) {
	nan := math.NaN()
	curve := []core.Curve{{OneNode: []float64{1, 2}, ManyNodes: []float64{0.5, 1, 1.5}}}
	times := &core.StepTimes{OneNode: []float64{10, 6}, ManyNodes: []float64{12, 8, 5}}
	holes := &core.StepTimes{OneNode: []float64{0, nan}, ManyNodes: []float64{0, 0, 5}}
	job := func() *coretest.JobBuilder { return coretest.MakeJob("a").Waiting() }
	sensitive := func(seconds float64) *core.Sensitivity { return &core.Sensitivity{IterationSeconds: seconds} }
	for name, tc := range map[string]struct {
		job      *coretest.JobBuilder
		curves   []core.Curve
		work     float64 // left, as reported
		n        int
		steps    bool
		want     float64
		declared bool
	}{
		"reported, on a node":                {job().Work(70), curve, 30, 2, false, 15, false},
		"reported, on several nodes":         {job().Work(70), curve, 30, 3, false, 20, false},
		"reported, rather than step times":   {job().StepTimes(times, 4), curve, 30, 2, true, 15, false},
		"nothing is left":                    {job().Work(70), curve, 0, 2, false, 0, false},
		"work without a rate":                {job().Work(70), nil, 30, 2, false, 70, true},
		"a rate without work":                {job().Work(70), curve, nan, 2, false, 70, true},
		"more replicas than the curve has":   {job().Work(70), curve, 30, 4, false, 70, true},
		"step times on a node":               {job().Work(70).StepTimes(times, 4), nil, nan, 2, true, 24, false},
		"step times on several nodes":        {job().Work(70).StepTimes(times, 4), nil, nan, 3, true, 20, false},
		"step times that nobody asks for":    {job().Work(70).StepTimes(times, 4), nil, nan, 2, false, 70, true},
		"step times are asked for, but none": {job().Work(70), nil, nan, 2, true, 70, true},
		"more than the step times have":      {job().StepTimes(times, 4), nil, nan, 4, true, nan, false},
		"a step time of 0":                   {job().StepTimes(holes, 4), nil, nan, 1, true, nan, false},
		"a step time that is unknown":        {job().StepTimes(holes, 4), nil, nan, 2, true, nan, false},
		"iterations":                         {job().Work(70).Sensitive(sensitive(3)), nil, nan, 2, false, 210, true},
		"iterations of no known length":      {job().Work(70).Sensitive(sensitive(0)), nil, nan, 2, false, 70, true},
		"iterations, how many is not known":  {job().Sensitive(sensitive(3)), nil, nan, 2, false, nan, false},
		"nothing is known":                   {job(), nil, nan, 2, false, nan, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 2).Obj()).Jobs(tc.job).Obj()
			c := core.Candidate{Job: v.Jobs[0], Response: &core.Response{MinReplicas: 1, MaxReplicas: 4, Curves: tc.curves, RemainingWork: tc.work}}
			seconds, declared := queue.RemainingSeconds(&c, 0, tc.n, 2, tc.steps)
			if same := seconds == tc.want || math.IsNaN(seconds) && math.IsNaN(tc.want); !same || declared != tc.declared {
				t.Errorf("%v s, declared %v; want %v, %v", seconds, declared, tc.want, tc.declared)
			}
		})
	}
}

// Declared work is less as time passes.
func TestDeclaredWorkThatIsLeft(t *testing.T) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 2).Obj()).Jobs(coretest.MakeJob("a").Work(100).Running(0, coretest.Seat(0, 0, 1)).Progress(20, 2)).Obj()
	c := coretest.Candidates(v, coretest.Rigid)[0]
	for now, want := range map[float64]float64{c.ProgressAsOf: 80, c.ProgressAsOf + 10: 60, c.ProgressAsOf + 50: 0} {
		if got, declared := queue.RemainingSeconds(&c, now, 1, 2, false); got != want || !declared {
			t.Errorf("at %v s %v s are left, declared %v; want %v", now, got, declared, want)
		}
	}
}

func TestStepTimesAreAskedFor(t *testing.T) {
	if got := queue.StepTimeCapabilities(true); !slices.Equal(got, []core.Capability{core.CapabilityStepTimes}) {
		t.Errorf("with step times: %v", got)
	}
	if got := queue.StepTimeCapabilities(false); len(got) > 0 {
		t.Errorf("without step times: %v", got)
	}
}
