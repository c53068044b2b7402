package gpufraction

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// A job that asks for a part of its devices attains that part of their time, and is not behind for it.
func TestGPUFractionOfJobsWithPartsOfDevices(t *testing.T) {
	for name, tc := range map[string]struct {
		milli int
		want  float64 // when its guarantee ends, of two devices for 500 s with nothing missed
	}{
		"whole devices":             {0, 500 + 120/0.05},
		"halves":                    {500, 500 + 120/0.05},
		"thousandths":               {1, 500 + 120/0.05},
		"all of them, in so many":   {1000, 500 + 120/0.05},
		"a third, which is no part": {333, 500 + 120/0.05},
	} {
		t.Run(name, func(t *testing.T) {
			j := coretest.MakeJob("r").Replicas(2).Submit(500).Tier(core.Premium)
			part := 1.0
			if tc.milli > 0 {
				j, part = j.Share(tc.milli), float64(tc.milli)/core.WholeDevice
			}
			// It was resized to what it has at 800 s, and had as many devices before.
			v := policytest.SharedDevices(core.Fractional, j.Running(800, coretest.Seat(0, 0), coretest.Seat(1, 0)).Executed(300, 600*part))
			policy := policytest.New(t, New(), nil)
			policytest.Ask(t, policy, v, policytest.Range)
			if until := policy.(core.Steady).Standing().UntilSeconds; math.Abs(until-tc.want) > 2*queue.EarlySeconds {
				t.Errorf("stands until %v s, want %v", until, tc.want)
			}
		})
	}
}

// What a job attained of parts does not tell when it was resized: the round after is held.
func TestGPUFractionIsAskedAgainAfterItResizedAJobWithParts(t *testing.T) {
	for how, want := range map[core.Sharing]float64{core.Exclusive: policytest.Forever, core.Fractional: 1000, core.Mig: 1000, core.TimeSlice: 1000} {
		policy := policytest.New(t, New(), nil)
		policytest.Ask(t, policy, policytest.SharedDevices(how, policytest.Waits(2).Share(0)), policytest.Range)
		if until := policy.(core.Steady).Standing().UntilSeconds; until != want {
			t.Errorf("%v: stands until %v s, want %v", how, until, want)
		}
	}
}
