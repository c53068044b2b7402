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

// crowded is 10,000 jobs for 512 nodes of eight devices, of which so many run on random aligned blocks, in pieces that leave a tenth free; the
// jobs that wait are granted devices in the order of their identifiers.
func crowded(running int) (*core.View, []core.Grant) {
	const nodes, devices, jobs = 512, 8, 10_000
	number := evenly(1)
	c := coretest.MakeCluster().Nodes(nodes, "v100", devices).Obj()
	var ledger core.Ledger
	ledger.Reset(c)
	var all []*coretest.JobBuilder
	for len(all) < running && ledger.Total() > nodes*devices/10 {
		size := 1 << (number(0, 7) / 3)
		s := seat(core.NodeID(number(0, nodes-1)))
		if s.Devices = core.FirstDevices(size) << (size * number(0, devices/size-1)); ledger.Occupy([]core.Seat{s}) {
			all = append(all, holds(s))
		}
	}
	for len(all) < jobs {
		all = append(all, waits(1<<(number(0, 15)/4)))
	}
	v := coretest.MakeView(c).Now(1000).Jobs(all...).Obj()
	return v, inOrder(v)
}

// A round of 10,000 jobs on 4,096 devices: all of them start, or the free tenth is given to jobs that need blocks of it.
func BenchmarkBuddy(b *testing.B) {
	for name, running := range map[string]int{"all start": 0, "a tenth starts": 10_000} {
		b.Run(name, func(b *testing.B) {
			v, grants := crowded(running)
			policy := newPlacer(b, NewBuddy(), nil)
			moves := 0
			b.ReportAllocs()
			for b.Loop() {
				seating, err := policy.Place(context.Background(), v, grants)
				if err != nil {
					b.Fatal(err)
				}
				moves = 0
				for _, p := range seating.Placed {
					if j := v.Jobs[p.Job]; j.Held > 0 && !core.SameSeats(j.Seats, p.Seats) {
						moves++
					}
				}
			}
			b.ReportMetric(float64(moves), "moves/round")
		})
	}
}
