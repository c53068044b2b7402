package placement

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

// cellsOf is a tenant with cells of an only accelerator type.
func cellsOf(tenant, level string, count int) map[string]any {
	return map[string]any{"name": tenant, "cells": []any{map[string]any{"level": level, "count": count}}}
}

func TestCells(t *testing.T) {
	config := func(more ...any) map[string]any {
		c := map[string]any{"tenants": []any{cellsOf("blue", "node", 1), cellsOf("red", "node", 2)}}
		for i := 0; i < len(more); i += 2 {
			c[more[i].(string)] = more[i+1]
		}
		return c
	}
	blue := func(j *coretest.JobBuilder) *coretest.JobBuilder { return j.Tenant("blue") }
	red := func(j *coretest.JobBuilder) *coretest.JobBuilder { return j.Tenant("red") }
	nodes := func(n int) *core.Cluster { return coretest.MakeCluster().Nodes(n, "t4", 4).Obj() }
	cases := map[string]struct {
		config  map[string]any
		cluster *core.Cluster
		jobs    []*coretest.JobBuilder
		want    string
	}{
		"tenants share no cell": {
			config(), nodes(3),
			[]*coretest.JobBuilder{blue(policytest.Waits(1)), red(policytest.Waits(1)), blue(policytest.Waits(1)), red(policytest.Waits(4))},
			policytest.Lines("0: 0[0]", "1: 1[0]", "2: 0[1]", "3: 2[0,1,2,3]"),
		},
		"nobody takes more than its cells": {
			config(), nodes(4),
			[]*coretest.JobBuilder{blue(policytest.Waits(4)), blue(policytest.Waits(1)), red(policytest.Waits(12)), red(policytest.Waits(8))},
			policytest.Lines("0: 0[0,1,2,3]", "3: 1[0,1,2,3] 2[0,1,2,3]", "1: waiting_for_devices 1/0", "2: quota_exceeded 12/8 (the job is larger than the virtual cluster of its tenant)"),
		},
		"guests keep their distance and give way": {
			config(), nodes(3),
			[]*coretest.JobBuilder{blue(policytest.Holds(coretest.Seat(0, 0))), policytest.Waits(4), policytest.Waits(2), red(policytest.Waits(4)), red(policytest.Waits(1))},
			policytest.Lines("0: 0[0]", "1: 0[1,2,3] 1[1]", "2: 1[2,3]", "3: 2[0,1,2,3]", "4: 1[0]"),
		},
		"best effort jobs are guests": {
			config(), nodes(3),
			[]*coretest.JobBuilder{blue(policytest.Waits(4)), blue(policytest.Waits(4)).BestEffort(), red(policytest.Waits(8))},
			policytest.Lines("0: 0[0,1,2,3]", "2: 1[0,1,2,3] 2[0,1,2,3]", "1: waiting_for_devices 4/0"),
		},
		"the cell with the fewest guests": {
			config(), nodes(3),
			[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0)), policytest.Holds(coretest.Seat(1, 1, 2)), blue(policytest.Waits(4)), red(policytest.Waits(4))},
			policytest.Lines("0: 1[0] evicted", "1: 1[1,2]", "2: 2[0,1,2,3]", "3: 0[0,1,2,3]"),
		},
		"a pinned guest keeps tenants away": {
			config(), nodes(3),
			[]*coretest.JobBuilder{policytest.Holds(coretest.Seat(0, 0)).Pinned(), red(policytest.Waits(8)), blue(policytest.Waits(4))},
			policytest.Lines("0: 0[0]", "1: 1[0,1,2,3] 2[0,1,2,3]", "2: fragmented 4/4 (the idle cells of its tenant are in pieces, or there are not enough sound ones)"),
		},
		"in pieces": {
			config(), nodes(3),
			[]*coretest.JobBuilder{red(policytest.Holds(coretest.Seat(0, 0, 1))), red(policytest.Holds(coretest.Seat(1, 0, 1))), red(policytest.Waits(4))},
			policytest.Lines("0: 0[0,1]", "1: 1[0,1]", "2: 0[2,3] 1[2,3]"),
		},
		"never in pieces": {
			config("strict", true), nodes(3),
			[]*coretest.JobBuilder{red(policytest.Holds(coretest.Seat(0, 0, 1))), red(policytest.Holds(coretest.Seat(1, 0, 1))), red(policytest.Waits(4))},
			policytest.Lines("0: 0[0,1]", "1: 1[0,1]", "2: fragmented 4/4 (the idle cells of its tenant are in pieces, or there are not enough sound ones)"),
		},
		"the last of the order gives way inside": {
			config("inside", insideOrder), nodes(3),
			[]*coretest.JobBuilder{blue(policytest.Waits(2)), red(policytest.Holds(coretest.Seat(0, 0, 1))), blue(policytest.Holds(coretest.Seat(1, 0, 1))), blue(policytest.Holds(coretest.Seat(1, 2, 3)))},
			policytest.Lines("0: 1[2,3]", "1: 0[0,1]", "2: 1[0,1]", "3: waiting_for_devices 2/0"),
		},
		"nobody gives way in vain": {
			config("inside", insideOrder), nodes(3),
			[]*coretest.JobBuilder{blue(policytest.Holds(coretest.Seat(1, 0, 1))), blue(policytest.Waits(4)), blue(policytest.Holds(coretest.Seat(1, 2, 3)))},
			policytest.Lines("0: 1[0,1]", "2: 1[2,3]", "1: waiting_for_devices 4/0"),
		},
		"a job that nobody's cells explain is a guest": {
			config(), nodes(3),
			[]*coretest.JobBuilder{blue(policytest.Holds(coretest.Seat(0, 0))), blue(policytest.Holds(coretest.Seat(1, 0))), red(policytest.Waits(8))},
			policytest.Lines("0: 0[0]", "1: 0[1]"+" evicted", "2: 1[0,1,2,3] 2[0,1,2,3]"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(tc.cluster).Jobs(tc.jobs...).Obj()
			policy := policytest.New(t, NewCells(), tc.config)
			if got := policytest.Place(t, policy, v, policytest.InOrder(v)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// A new placer that knows which cells were bound seats the next job as the one before it would have.
func TestCellsSnapshot(t *testing.T) {
	config := map[string]any{"tenants": []any{
		map[string]any{"name": "blue", "cells": []any{map[string]any{"level": "node", "count": 1}, map[string]any{"level": "device", "count": 1}}},
	}}
	before, after := policytest.New(t, NewCells(), config), policytest.New(t, NewCells(), config)
	cluster := coretest.MakeCluster().Nodes(2, "t4", 2).Obj()
	first := coretest.MakeView(cluster).Jobs(policytest.Waits(2).Tenant("blue"), policytest.Waits(1).Tenant("blue")).Obj()
	if got, want := policytest.Place(t, before, first, policytest.InOrder(first)), policytest.Lines("0: 0[0,1]", "1: 1[0]"); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	learned, err := before.(core.Snapshotter).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := after.(core.Snapshotter).Restore(learned); err != nil {
		t.Fatal(err)
	}
	if err := after.(core.Snapshotter).Restore([]byte("{")); err == nil {
		t.Error("takes up what nobody can read")
	}
	second := coretest.MakeView(cluster).Jobs(policytest.Holds(coretest.Seat(0, 0, 1)).Tenant("blue"), policytest.Holds(coretest.Seat(1, 0)).Tenant("blue"), policytest.Waits(1).Tenant("blue")).Obj()
	second.Jobs[0] = nil // its node is free again, and that of the other job is a device
	grants := []core.Grant{{Job: 1, Accelerator: core.AnyAccelerator, Replicas: 1}, {Job: 2, Accelerator: core.AnyAccelerator, Replicas: 1}}
	want := policytest.Lines("1: 1[0]", "2: 0[0]")
	for name, policy := range map[string]core.Placer{"before": before, "after": after} {
		if got := policytest.Place(t, policy, second, grants); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

// Whatever guests do, the jobs of tenants start as if they were alone.
func TestGuestsHoldUpNoTenant(t *testing.T) {
	config := map[string]any{"tenants": []any{cellsOf("blue", "node", 2), cellsOf("red", "device", 6)}}
	rapid.Check(t, func(rt *rapid.T) {
		busy, alone := policytest.New(t, NewCells(), config), policytest.New(t, NewCells(), config)
		specs := make([]*coretest.JobBuilder, 24)
		for i := range specs {
			specs[i] = policytest.Waits(rapid.IntRange(1, 5).Draw(rt, "replicas")).Tenant(rapid.SampledFrom([]string{"blue", "red", "green"}).Draw(rt, "tenant"))
		}
		cluster := coretest.MakeCluster().Nodes(4, "t4", 4).Obj()
		here, there := coretest.MakeView(cluster).Jobs(specs...).Obj(), coretest.MakeView(cluster).Jobs(specs...).Obj()
		ended := map[core.JobID]bool{}
		for n := 1; n <= len(specs); n++ {
			if rapid.Bool().Draw(rt, "one ends") {
				ended[core.JobID(rapid.IntRange(0, n-1).Draw(rt, "which"))] = true
			}
			got, want := hold(rt, busy, here, n, ended, false), hold(rt, alone, there, n, ended, true)
			if got != want {
				rt.Fatalf("seated %s beside guests, %s without", got, want)
			}
		}
	})
}

// hold asks for seats for the first n jobs, without guests if they are to be left out, and tells which jobs of tenants have some.
func hold(t *rapid.T, policy core.Placer, v *core.View, n int, ended map[core.JobID]bool, withoutGuests bool) string {
	var grants []core.Grant
	for _, j := range v.Jobs[:n] {
		if j != nil && ended[j.ID] {
			v.Jobs[j.ID] = nil
		} else if j != nil && !(withoutGuests && j.Tenant == "green") {
			grants = append(grants, core.Grant{Job: j.ID, Accelerator: core.AnyAccelerator, Replicas: j.Requested})
		}
	}
	seating, err := policy.Place(context.Background(), v, grants)
	if err != nil {
		t.Fatal(err)
	}
	var ledger core.Ledger
	ledger.Reset(v.Cluster)
	seated := ""
	for _, p := range seating.Placed {
		if !ledger.Occupy(p.Seats) {
			t.Fatalf("a device is given twice: %v", p)
		}
		j := v.Jobs[p.Job]
		j.State, j.Seats, j.Held = core.Running, append([]core.Seat(nil), p.Seats...), core.Replicas(p.Seats)
		if j.Tenant != "green" {
			seated += fmt.Sprintf(" %d", p.Job)
		}
	}
	for _, u := range seating.Unseated {
		j := v.Jobs[u.Job]
		if j.State == core.Running && j.Tenant != "green" {
			t.Fatalf("a tenant's job loses its devices: %v", u)
		}
		j.State, j.Seats, j.Held = core.Waiting, nil, 0
	}
	return seated
}

// A round in which nothing changes costs no allocation.
func TestCellsQuietRound(t *testing.T) {
	policy := policytest.New(t, NewCells(), map[string]any{"tenants": []any{cellsOf("blue", "node", 2)}})
	v := coretest.MakeView(coretest.MakeCluster().Nodes(4, "t4", 4).Obj()).
		Jobs(policytest.Holds(coretest.Seat(0, 0, 1)).Tenant("blue"), policytest.Holds(coretest.Seat(2, 0, 1, 2, 3)), policytest.Waits(8).Tenant("blue")).Obj()
	grants := policytest.InOrder(v)
	policytest.Place(t, policy, v, grants)
	if n := testing.AllocsPerRun(100, func() { _, _ = policy.Place(context.Background(), v, grants[:2]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// One job ends and another one comes among 2,500 on 10,000 devices of ten tenants; and nothing changes.
func BenchmarkCells(b *testing.B) {
	var tenants []any
	for i := range 10 {
		tenants = append(tenants, cellsOf(fmt.Sprintf("tenant-%d", i), "node", 125))
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1250, "t4", 8).Obj())
	for i := range 2500 {
		v = v.Jobs(policytest.Waits(1 << (i % 4)).Tenant(fmt.Sprintf("tenant-%d", i%10)))
	}
	view := v.Obj()
	for name, policy := range map[string]core.Placer{
		"cells": policytest.New(b, NewCells(), map[string]any{"tenants": tenants}), "consolidated": policytest.New(b, NewConsolidated(), nil),
	} {
		grants := policytest.InOrder(view)
		ask := func() {
			seating, err := policy.Place(context.Background(), view, grants)
			if err != nil {
				b.Fatal(err)
			}
			for _, p := range seating.Placed {
				if j := view.Jobs[p.Job]; j.State != core.Running {
					j.State, j.Seats, j.Held = core.Running, append([]core.Seat(nil), p.Seats...), core.Replicas(p.Seats)
				}
			}
		}
		ask()
		b.Run(name+"/quiet", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ask()
			}
		})
		b.Run(name+"/one comes", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				j := view.Jobs[i%len(view.Jobs)]
				j.State, j.Seats, j.Held = core.Waiting, nil, 0
				ask()
			}
		})
		for _, j := range view.Jobs {
			j.State, j.Seats, j.Held = core.Waiting, nil, 0
		}
	}
}
