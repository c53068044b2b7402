package placement

import (
	"context"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/placement/antman"
	"github.com/quartet-sched/quartet/placement/gandivaaffinity"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

var everyPolicy = map[string]core.Factory[core.Placer]{
	"first_fit": NewFirstFit(), "consolidated": NewConsolidated(), "most_free": NewMostFree(),
	"tiresias_skew": NewTiresiasSkew(), "proposed": NewProposed(), "tail_eviction": NewTailEviction(), "buddy": NewBuddy(),
}

// sharingPolicy is a placer in a cluster whose devices are shared, or whose CPUs are counted.
type sharingPolicy struct {
	factory core.Factory[core.Placer]
	config  map[string]any
	sharing core.Sharing
	counts  bool // CPUs and memory
	groups  bool // jobs on the same devices are of a group
}

var everySharingPolicy = map[string]sharingPolicy{
	"fgd": {factory: NewFGD(), sharing: core.Fractional, counts: true}, "fgd of whole devices": {factory: NewFGD()}, "fgd of slices": {factory: NewFGD(), sharing: core.Mig, counts: true},
	"fragmentation": {factory: NewFragmentation(), sharing: core.Fractional, counts: true}, "best_fit": {factory: NewBestFit(), sharing: core.Fractional, counts: true}, "dot_product": {factory: NewDotProduct(), sharing: core.Fractional, counts: true},
	"packing": {factory: NewPacking(), sharing: core.Fractional, counts: true}, "clustering": {factory: NewClustering(), sharing: core.Fractional, counts: true}, "random": {factory: NewRandom(), sharing: core.Fractional, counts: true},
	"antman": {factory: antman.New(), sharing: core.TimeSlice}, "antman of whole devices": {factory: antman.New()},
	"gandiva_affinity": {factory: gandivaaffinity.New(), sharing: core.TimeSlice, groups: true}, "first_fit": {factory: NewFirstFit(), sharing: core.TimeSlice, groups: true}, "synergy": {factory: NewSynergy(), counts: true},
	"cells": {factory: NewCells(), config: map[string]any{"tenants": []any{cellsOf("a", "node", 32)}}},
}

// busySharing is 32 nodes with four devices each, most of which have two jobs where they are shared, and otherwise one; 40 jobs wait.
func busySharing(p *sharingPolicy) (*core.View, []core.Grant) {
	c := coretest.MakeCluster().Nodes(32, "v100", 4).Obj()
	c.Sharing, c.CountsResources = p.sharing, p.counts
	if p.sharing == core.TimeSlice {
		c.MaxOwners = 2
	}
	for i := range c.Nodes {
		c.Nodes[i].CPUs, c.Nodes[i].MemoryGB, c.Nodes[i].DeviceMemoryGB = 32, 256, 16
	}
	var jobs []*coretest.JobBuilder
	for i := range 100 {
		at := coretest.Seat(core.NodeID(i/4), i%4)
		for k := range 2 {
			if k == 1 && p.sharing == core.Exclusive {
				continue
			}
			j := policytest.Holds(at).Asks(1, 8).DeviceMemory(4).Tenant("a")
			if p.sharing == core.Fractional {
				j.Share(500)
			}
			if k == 1 {
				j.BestEffort()
			}
			if p.sharing == core.Mig {
				j.Share(400) // 3g, of which a device has two
			}
			jobs = append(jobs, j)
		}
		if i%5 == 0 {
			jobs = append(jobs, policytest.Waits(129+i%7).Asks(1, 8).DeviceMemory(4).Tenant("a"), policytest.Waits(33).Asks(33, 8).BestEffort().Tenant("a"))
		}
	}
	v := coretest.MakeView(c).Now(1000).Jobs(jobs...).Obj()
	for _, j := range v.Jobs {
		if p.sharing == core.Mig && j.State == core.Running {
			j.Sliced = &core.Sliced{Starts: []uint8{0}}
			if j.BestEffort {
				j.Sliced.Starts[0] = 4
			}
		}
	}
	grants := policytest.InOrder(v)
	for i := range grants[1:] {
		a, b := v.Jobs[i], v.Jobs[i+1]
		if p.groups && a.Held > 0 && core.SameDevices(a.Seats, b.Seats) {
			grants[i].Group, grants[i+1].Group = i+1, i+1
		}
	}
	return v, grants
}

// Once what runs is known, nothing is allocated where devices are shared either, while jobs wait that fit nowhere.
func TestRoundOfSharedDevicesAllocatesNothing(t *testing.T) {
	for name, p := range everySharingPolicy {
		t.Run(name, func(t *testing.T) {
			config, problems := p.factory.Decode(p.config)
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			policy, err := p.factory.New(config, core.Settings{Rand: core.NewRand(1, name)})
			if err != nil {
				t.Fatal(err)
			}
			v, grants := busySharing(&p)
			seating, err := policy.Place(context.Background(), v, grants)
			if err != nil {
				t.Fatal(err)
			}
			if len(seating.Placed) < 100 || len(seating.Unseated) < 30 {
				t.Fatalf("%d are seated and %d wait, want 100 and 30 at least", len(seating.Placed), len(seating.Unseated))
			}
			if got := testing.AllocsPerRun(50, func() {
				if _, err := policy.Place(context.Background(), v, grants); err != nil {
					t.Fatal(err)
				}
			}); got > looseAllocations {
				t.Errorf("%v allocations a round, want %d", got, looseAllocations)
			}
		})
	}
}

// busy is 100 running and 10 waiting jobs on 32 nodes with four devices each.
func busy() (*core.View, []core.Grant) {
	var jobs []*coretest.JobBuilder
	for i := range 110 {
		if i%11 == 3 {
			jobs = append(jobs, policytest.Waits(1+i%5))
			continue
		}
		jobs = append(jobs, policytest.Holds(coretest.Seat(core.NodeID(i/4), i%4)))
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(32, "v100", 4).Obj()).Now(1000).Jobs(jobs...).Obj()
	return v, policytest.InOrder(v)
}

func TestRoundAllocatesNothing(t *testing.T) {
	for name, f := range everyPolicy {
		t.Run(name, func(t *testing.T) {
			policy := policytest.New(t, f, nil)
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
			policy := policytest.New(b, f, nil)
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
		s := coretest.Seat(core.NodeID(number(0, nodes-1)))
		if s.Devices = core.FirstDevices(size) << (size * number(0, devices/size-1)); ledger.Occupy([]core.Seat{s}) {
			all = append(all, policytest.Holds(s))
		}
	}
	for len(all) < jobs {
		all = append(all, policytest.Waits(1<<(number(0, 15)/4)))
	}
	v := coretest.MakeView(c).Now(1000).Jobs(all...).Obj()
	return v, policytest.InOrder(v)
}

// A round of 10,000 jobs on 4,096 devices: all of them start, or the free tenth is given to jobs that need blocks of it.
func BenchmarkBuddy(b *testing.B) {
	for name, running := range map[string]int{"all start": 0, "a tenth starts": 10_000} {
		b.Run(name, func(b *testing.B) {
			v, grants := crowded(running)
			policy := policytest.New(b, NewBuddy(), nil)
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
