package placement

import (
	"context"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

var everyPolicy = map[string]core.Factory[core.Placer]{
	"first_fit": NewFirstFit(), "consolidated": NewConsolidated(), "most_free": NewMostFree(),
	"tiresias_skew": NewTiresiasSkew(), "proposed": NewProposed(), "tail_eviction": NewTailEviction(), "buddy": NewBuddy(),
}

// busy is 100 running and 10 waiting jobs on 32 nodes with four devices each.
func busy() (*core.View, []core.Grant) {
	var jobs []*coretest.JobBuilder
	for i := range 110 {
		if i%11 == 3 {
			jobs = append(jobs, waits(1+i%5))
			continue
		}
		jobs = append(jobs, holds(seat(core.NodeID(i/4), i%4)))
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(32, "v100", 4).Obj()).Now(1000).Jobs(jobs...).Obj()
	return v, inOrder(v)
}

func TestRoundAllocatesNothing(t *testing.T) {
	for name, f := range everyPolicy {
		t.Run(name, func(t *testing.T) {
			policy := newPlacer(t, f, nil)
			v, grants := busy()
			if got := testing.AllocsPerRun(50, func() {
				if _, err := policy.Place(context.Background(), v, grants); err != nil {
					t.Fatal(err)
				}
			}); got != 0 {
				t.Errorf("%v allocations a round, want 0", got)
			}
		})
	}
}

func BenchmarkRound(b *testing.B) {
	for name, f := range everyPolicy {
		b.Run(name, func(b *testing.B) {
			policy := newPlacer(b, f, nil)
			v, grants := busy()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := policy.Place(context.Background(), v, grants); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
