package queue_test

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// A pinned job stays where it runs as long as its devices are ready; one that is yet to be seated may have to share devices.
func TestStays(t *testing.T) {
	job := func() *coretest.JobBuilder { return coretest.MakeJob("a").Replicas(1) }
	for name, tc := range map[string]struct {
		job            *coretest.JobBuilder
		how            core.Sharing
		stays, mayStay bool
	}{
		"it runs":                       {job().Pinned().Running(0, coretest.Seat(0, 0)), core.Exclusive, true, false},
		"it runs, beside others":        {job().Pinned().Running(0, coretest.Seat(0, 0)), core.Fractional, true, false},
		"its node is down":              {job().Pinned().Running(0, coretest.Seat(1, 0)), core.Exclusive, false, false},
		"its node is down, with others": {job().Pinned().Running(0, coretest.Seat(1, 0)), core.Fractional, false, true},
		"it waits":                      {job().Pinned().Waiting(), core.Exclusive, false, false},
		"it waits for devices of all":   {job().Pinned().Waiting(), core.Fractional, false, true},
		"it runs and is not pinned":     {job().Running(0, coretest.Seat(0, 0)), core.Fractional, false, false},
		"it waits and is not pinned":    {job().Waiting(), core.Fractional, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := coretest.MakeCluster().Nodes(2, "t4", 2).Health(1, core.Down).Obj()
			cluster.Sharing = tc.how
			// The other one is pinned, so that there is one for certain.
			v := coretest.MakeView(cluster).Jobs(tc.job, coretest.MakeJob("other").Replicas(1).Pinned().Running(0, coretest.Seat(0, 1))).Obj()
			candidates := coretest.Candidates(v, coretest.Rigid)
			if got := queue.Stays(v, &candidates[0]); got != tc.stays {
				t.Errorf("stays: %v, want %v", got, tc.stays)
			}
			if got := queue.MayStay(v, &candidates[0]); got != tc.mayStay {
				t.Errorf("may stay: %v, want %v", got, tc.mayStay)
			}
			want := 1
			if tc.stays {
				want = 2
			}
			if got := queue.Pinned(v, candidates); got != want {
				t.Errorf("%d devices are pinned, want %d", got, want)
			}
		})
	}
}

// A device that pinned jobs share is counted once.
func TestPinnedCountsDevicesOnce(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(1, "t4", 4).Obj()
	cluster.Sharing = core.Fractional
	shared := func(devices ...int) *coretest.JobBuilder {
		return coretest.MakeJob("a").Replicas(len(devices)).Share(300).Pinned().Running(0, coretest.Seat(0, devices...))
	}
	v := coretest.MakeView(cluster).Jobs(shared(0), shared(0, 1), shared(1, 3)).Obj()
	if got := queue.Pinned(v, coretest.Candidates(v, coretest.Rigid)); got != 3 {
		t.Errorf("%d devices are pinned, want 3", got)
	}
}
