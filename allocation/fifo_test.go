package allocation

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

func TestFIFO(t *testing.T) {
	cases := map[string]struct {
		queue string
		jobs  []*coretest.JobBuilder
		want  string
	}{
		"submission order":                             {blocking, []*coretest.JobBuilder{waits(2), waits(4), waits(2)}, "0×2| 1×4| 2×2|"},
		"running jobs come first":                      {blocking, []*coretest.JobBuilder{waits(2), waits(2), runs(4)}, "2×4| 0×2| 1×2|"},
		"blocking ends with the first that lacks room": {blocking, []*coretest.JobBuilder{runs(4), waits(8), waits(1)}, "0×4| 1×8|"},
		"backfill lets others pass it":                 {backfill, []*coretest.JobBuilder{runs(4), waits(8), waits(1), waits(3), waits(1)}, "0×4 2×1 3×3"},
		"all leaves it to the placer":                  {all, []*coretest.JobBuilder{runs(4), waits(8), waits(1)}, "0×4 1×8 2×1"},
		"an elastic job gets what it requests":         {blocking, []*coretest.JobBuilder{waits(1).Elastic(1, 3, 8)}, "0×3|"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := newPolicy(t, NewFIFO(), map[string]any{"queue": tc.queue})
			elasticOrRigid := func(j *core.Job) core.Response {
				return core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas}
			}
			if got := allocate(t, policy, eightDevices(tc.jobs...), elasticOrRigid); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// Half of the cluster fails under a running job: the one whose node stays up must not lose its grant to it.
func TestFIFOKeepsRunningJobsWhenNodesFail(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Health(0, core.Draining).Obj()
	v := coretest.MakeView(cluster).Jobs(
		coretest.MakeJob("loses").Replicas(4).Running(0, coretest.Seat(0, 0, 1, 2, 3)),
		coretest.MakeJob("stays").Replicas(4).Running(0, coretest.Seat(1, 0, 1, 2, 3)),
	).Obj()
	if got, want := allocate(t, newPolicy(t, NewFIFO(), nil), v, coretest.Rigid), "0×4| 1×4|"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
