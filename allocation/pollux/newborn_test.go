package pollux

import (
	"math"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// On a grid a job that comes at the moment of a round waits for the next one, as published. With rounds on events each
// comes at such a moment, and starts.
func TestAJobOfNoAge(t *testing.T) {
	for name, tc := range map[string]struct {
		interval float64
		onEvents bool
		want     int // grants
	}{
		"on a grid":        {60, false, 0},
		"on events":        {0, true, 1},
		"on a grid and so": {60, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Jobs(coretest.MakeJob("new").Elastic(1, 1, 4).Waiting()).Obj()
			v.NowSeconds, v.IntervalSeconds, v.OnEvents = v.Jobs[0].SubmitSeconds, tc.interval, tc.onEvents
			got, err := component(t, New(), nil).Allocate(t.Context(), v, []core.Candidate{{Job: v.Jobs[0], Response: &core.Response{
				MinReplicas: 1, MaxReplicas: 1, RemainingWork: math.NaN(),
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != tc.want {
				t.Errorf("grants %+v, want %d", got, tc.want)
			}
		})
	}
}
