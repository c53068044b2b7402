package allocation

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// Whatever a policy was asked before, it grants each job that is pinned to its seats just what it holds. One whose node is down or
// drained, or that can no longer run on so many devices, is as free as the others.
func TestPinnedJobsAreGrantedWhatTheyHold(t *testing.T) {
	for name, tc := range forms {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := coretest.DrawView(t)
				grants, err := newPolicy(t, tc.factory, tc.config).Allocate(context.Background(), v, candidates)
				if err != nil {
					t.Fatal(err)
				}
				granted := make(map[core.JobID]core.Grant)
				for _, g := range grants {
					granted[g.Job] = g
				}
				for i := range candidates {
					c := &candidates[i]
					if g, ok := granted[c.ID]; c.MustStay(v.Cluster, c.Response) && (!ok || g.Replicas != c.Held) {
						t.Fatalf("job %d is pinned to %d devices, and granted %d", c.ID, c.Held, g.Replicas)
					}
				}
			})
		})
	}
}

// What pinned jobs hold is nobody else's to be granted, and they count as kept.
func TestThePinnedComeFirst(t *testing.T) {
	pinned := func(replicas int) *coretest.JobBuilder { return coretest.MakeJob("p").Replicas(replicas).Pinned() }
	v := eightDevices(waits(2), waits(5), runs(1), pinned(4).Running(900, coretest.Seat(1, 0, 1, 2, 3)), pinned(1).Waiting())
	for name, tc := range map[string]struct {
		factory core.Factory[core.Allocator]
		config  map[string]any
		want    string
	}{
		"fifo backfill":    {NewFIFO(), map[string]any{"queue": queue.Backfill}, "3×4 2×1 0×2 4×1"},
		"fifo":             {NewFIFO(), nil, "3×4| 2×1| 0×2| 1×5|"},
		"las":              {NewLAS(), nil, "3×4 0×2 4×1 2×1"},
		"las all":          {NewLAS(), map[string]any{"queue": queue.All}, "3×4 0×2 1×5 4×1 2×1"},
		"tiresias":         {NewTiresias(), nil, "3×4 0×2 2×1 4×1"},
		"srtf":             {NewSRTF(), nil, "3×4 0×2 2×1 4×1"},
		"optimus":          {NewOptimus(), nil, "2×1 4×1 0×2 3×4"},
		"elastic_dp":       {NewElasticDP(), nil, "3×4 0×2 2×1 4×1"},
		"elastic_fifo":     {NewElasticFIFO(), nil, "3×4 0×2 2×1 4×1"},
		"elastic_srtf":     {NewElasticSRTF(), nil, "3×4 0×2 2×1 4×1"},
		"elastic_tiresias": {NewElasticTiresias(), nil, "3×4 0×2 2×1 4×1"},
		"afs":              {NewAFS(), nil, "2×1 4×1 0×2 3×4"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := allocate(t, newPolicy(t, tc.factory, tc.config), v, coretest.Rigid); got != tc.want {
				t.Errorf("granted %s, want %s", got, tc.want)
			}
		})
	}
}

// A job keeps what it holds also where it asked for another number, or sits on devices of two types.
func TestAPinnedJobIsNotResized(t *testing.T) {
	pinned := func() *coretest.JobBuilder { return coretest.MakeJob("p").Elastic(1, 2, 8).Work(1e6).Pinned() }
	elastic := func(j *core.Job) core.Response {
		r := coretest.Rigid(j)
		r.MinReplicas, r.MaxReplicas = j.MinReplicas, j.MaxReplicas
		return r
	}
	mixed := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "v100", 4).Obj()).Now(1000)
	for where, v := range map[string]*core.View{
		"on one type":  eightDevices(pinned().Running(900, coretest.Seat(0, 0, 1, 2)), waits(1)),
		"on two types": mixed.Jobs(pinned().MixesTypes().Running(900, coretest.Seat(0, 0, 1), coretest.Seat(1, 3)), waits(1)).Obj(),
	} {
		for name, tc := range forms {
			t.Run(name+" "+where, func(t *testing.T) {
				var got core.Grant
				for _, g := range ask(t, newPolicy(t, tc.factory, tc.config), v, elastic) {
					if g.Job == 0 {
						got = g
					}
				}
				if got.Replicas != 3 || where == "on two types" && got.Accelerator != core.AnyAccelerator {
					t.Errorf("granted %d devices of type %d, holds 3", got.Replicas, got.Accelerator)
				}
			})
		}
	}
}
