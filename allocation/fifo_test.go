package allocation

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

func TestFIFO(t *testing.T) {
	cases := map[string]struct {
		queue string
		jobs  []*coretest.JobBuilder
		want  string
	}{
		"submission order":                             {queue.Blocking, []*coretest.JobBuilder{policytest.Waits(2), policytest.Waits(4), policytest.Waits(2)}, "0×2| 1×4| 2×2|"},
		"running jobs come first":                      {queue.Blocking, []*coretest.JobBuilder{policytest.Waits(2), policytest.Waits(2), policytest.Runs(4)}, "2×4| 0×2| 1×2|"},
		"blocking ends with the first that lacks room": {queue.Blocking, []*coretest.JobBuilder{policytest.Runs(4), policytest.Waits(8), policytest.Waits(1)}, "0×4| 1×8|"},
		"backfill lets others pass it":                 {queue.Backfill, []*coretest.JobBuilder{policytest.Runs(4), policytest.Waits(8), policytest.Waits(1), policytest.Waits(3), policytest.Waits(1)}, "0×4 2×1 3×3"},
		"all leaves it to the placer":                  {queue.All, []*coretest.JobBuilder{policytest.Runs(4), policytest.Waits(8), policytest.Waits(1)}, "0×4 1×8 2×1"},
		"an elastic job gets what it requests":         {queue.Blocking, []*coretest.JobBuilder{policytest.Waits(1).Elastic(1, 3, 8)}, "0×3|"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := policytest.New(t, NewFIFO(), map[string]any{"queue": tc.queue})
			elasticOrRigid := func(j *core.Job) core.Response {
				return core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas}
			}
			if got := policytest.Allocate(t, policy, policytest.EightDevices(tc.jobs...), elasticOrRigid); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// The a100 are held, and the job that waits for them keeps nobody from the t4: the placer is shown all, and holds the turns.
func TestFIFOBlocksByType(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(1, "a100", 4).Nodes(1, "t4", 4).Obj()
	v := coretest.MakeView(cluster).Jobs(
		coretest.MakeJob("holds").Replicas(4).Accelerators("a100").Running(0, coretest.Seat(0, 0, 1, 2, 3)),
		policytest.Waits(4).Accelerators("a100"), policytest.Waits(4).Accelerators("t4"), policytest.Waits(1).Accelerators("a100"), policytest.Waits(1),
	).Obj()
	for discipline, want := range map[string]string{
		queue.Blocking: "0×4| 1×4| 2×4| 3×1| 4×1|",
		queue.Backfill: "0×4 1×4",
		queue.All:      "0×4 1×4 2×4 3×1 4×1",
	} {
		policy := policytest.New(t, NewFIFO(), map[string]any{"queue": discipline})
		if got := policytest.Allocate(t, policy, v, coretest.Rigid); got != want {
			t.Errorf("%s: got %q, want %q", discipline, got, want)
		}
	}
}

// An elastic job that asks for more than there is would wait for ever. Types are not mixed: of three a100 and four t4,
// four are the most, and three for a job that is bound to a100.
func TestGrantsFitTheCluster(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(1, "a100", 3).Nodes(2, "t4", 4).Health(1, core.Down).Obj()
	v := coretest.MakeView(cluster).Jobs(
		policytest.Waits(1).Elastic(1, 6, 8), policytest.Waits(1).Elastic(1, 6, 8).Accelerators("a100"), policytest.Waits(1).Elastic(5, 6, 8), policytest.Waits(6),
	).Obj()
	respond := func(j *core.Job) core.Response {
		rates := []float64{1, 2, 3, 4, 5, 6, 7, 8}
		return core.Response{
			MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas, RemainingWork: 1,
			Curves: []core.Curve{{OneNode: rates, ManyNodes: rates}},
		}
	}
	policy := policytest.New(t, NewFIFO(), map[string]any{"queue": queue.All})
	if got, want := policytest.Allocate(t, policy, v, respond), "0×4 1×3 2×5 3×6"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	alone := coretest.MakeView(cluster).Jobs(policytest.Waits(1).Elastic(1, 6, 8)).Obj()
	if got, want := policytest.Allocate(t, policytest.New(t, NewOptimus(), nil), alone, respond), "0×4"; got != want {
		t.Errorf("optimus: got %q, want %q", got, want)
	}
}

// Half of the cluster fails under a running job: the one whose node stays up must not lose its grant to it.
func TestFIFOKeepsRunningJobsWhenNodesFail(t *testing.T) {
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Health(0, core.Draining).Obj()
	v := coretest.MakeView(cluster).Jobs(
		coretest.MakeJob("loses").Replicas(4).Running(0, coretest.Seat(0, 0, 1, 2, 3)),
		coretest.MakeJob("stays").Replicas(4).Running(0, coretest.Seat(1, 0, 1, 2, 3)),
	).Obj()
	policy := policytest.New(t, NewFIFO(), nil)
	if got, want := policytest.Allocate(t, policy, v, coretest.Rigid), "0×4| 1×4|"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	grants := policytest.Ask(t, policy, v, coretest.Rigid)
	if got := policytest.StandsUntil(t, policy, v, grants); got != policytest.Forever {
		t.Errorf("both run: stands until %v s, want for ever", got)
	}
	v.Jobs[0].State, v.Jobs[0].Held = core.Waiting, 0
	if got := policytest.StandsUntil(t, policy, v, grants); got != v.NowSeconds {
		t.Errorf("one lost its devices: stands until %v s, want %v", got, v.NowSeconds)
	}
}
