package allocation

import (
	"context"
	"testing"

	"github.com/quartet-sched/quartet/allocation/tiresias"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// everyPolicy lists each order-based policy and optimus in the forms whose work differs.
var everyPolicy = map[string]struct {
	factory core.Factory[core.Allocator]
	config  map[string]any
}{
	"fifo":             {NewFIFO(), nil},
	"srtf":             {NewSRTF(), nil},
	"las":              {NewLAS(), nil},
	"tiresias":         {tiresias.New(), nil},
	"running_first":    {tiresias.New(), map[string]any{"inside": "running_first"}},
	"gittins":          {tiresias.New(), map[string]any{"inside": "gittins", "samples": []any{1000, 2000, 60000}}},
	"optimus":          {NewOptimus(), nil},
	"afs":              {NewAFS(), nil},
	"elastic_dp":       {NewElasticDP(), nil},
	"elastic_fifo":     {NewElasticFIFO(), nil},
	"elastic_srtf":     {NewElasticSRTF(), nil},
	"elastic_tiresias": {NewElasticTiresias(), map[string]any{"compact_above": 0}},
}

// busy is 110 jobs on 32 nodes with four devices each; about 100 of them run.
func busy() *core.View {
	var jobs []*coretest.JobBuilder
	for i := range 110 {
		j := coretest.MakeJob("a").Submit(float64(i)).Replicas(1 + i%11/10).Work(float64(1000 + i*37%500))
		if i%11 == 3 {
			jobs = append(jobs, j.Waiting().Executed(float64(i), float64(i)))
			continue
		}
		jobs = append(jobs, j.Running(float64(i), core.Seat{Node: core.NodeID(i / 4), Devices: 1}).Progress(0, 1))
	}
	return coretest.MakeView(coretest.MakeCluster().Nodes(32, "v100", 4).Obj()).Now(1000).Jobs(jobs...).Obj()
}

func TestRoundAllocatesNothing(t *testing.T) {
	for name, tc := range everyPolicy {
		t.Run(name, func(t *testing.T) {
			policy, v := policytest.New(t, tc.factory, tc.config), busy()
			candidates := coretest.Candidates(v, coretest.Rigid)
			got := testing.AllocsPerRun(50, func() {
				v.NowSeconds += 300
				grants, err := policy.Allocate(context.Background(), v, candidates)
				if err != nil {
					t.Fatal(err)
				}
				policytest.StandsUntil(t, policy, v, grants)
			})
			if got != 0 {
				t.Errorf("%v allocations a round, want 0", got)
			}
		})
	}
}

func BenchmarkRound(b *testing.B) {
	for name, tc := range everyPolicy {
		b.Run(name, func(b *testing.B) {
			policy, v := policytest.New(b, tc.factory, tc.config), busy()
			candidates := coretest.Candidates(v, coretest.Rigid)
			b.ReportAllocs()
			for b.Loop() {
				v.NowSeconds += 300
				if _, err := policy.Allocate(context.Background(), v, candidates); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
