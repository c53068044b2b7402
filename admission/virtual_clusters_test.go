package admission

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/cells"
)

func TestVirtualClusters(t *testing.T) {
	config := VirtualClustersConfig{Admit: admitFitting, Others: othersReject, Config: cells.Config{Tenants: []cells.TenantConfig{
		{Name: "blue", Cells: []cells.CellConfig{{Level: cells.LevelNode, Count: 1}, {Level: cells.LevelDevice, Count: 3}}},
	}}}
	possible := config
	possible.Admit, possible.Others = admitPossible, othersOpportunistic
	held := func(id core.JobID, code core.Code, wanted, available float64, message string) core.Verdict {
		v := core.Verdict{Job: id, Code: code, Reason: core.QuotaExceeded, Wanted: wanted, Available: available, Message: message}
		if wanted > 0 {
			v.Unit = "devices"
		}
		return v
	}
	blue := func(j *coretest.JobBuilder) *coretest.JobBuilder { return j.Tenant("blue") }
	const alone, small, behind, none = "the job alone exceeds the virtual cluster of its tenant", "the cells that are left are too small",
		"an earlier job of its tenant waits for cells", "its tenant has no cells"
	cases := map[string]struct {
		config VirtualClustersConfig
		jobs   []*coretest.JobBuilder
		want   []core.Verdict
	}{
		"until the cells are full":       {config, []*coretest.JobBuilder{blue(active(4)), blue(pending(2)), blue(pending(1)), blue(pending(1))}, []core.Verdict{held(3, core.Defer, 1, 0, "")}},
		"larger than all":                {config, []*coretest.JobBuilder{blue(pending(8)), blue(pending(7))}, []core.Verdict{held(0, core.Reject, 8, 7, alone)}},
		"no node is left":                {config, []*coretest.JobBuilder{blue(active(1)), blue(active(1)), blue(active(1)), blue(active(1)), blue(pending(4)), blue(pending(1))}, []core.Verdict{held(4, core.Defer, 4, 3, ""), held(5, core.Defer, 0, 0, behind)}},
		"devices that are no node":       {config, []*coretest.JobBuilder{blue(active(4)), blue(pending(3)), blue(pending(4))}, []core.Verdict{held(2, core.Defer, 4, 0, "")}},
		"a tenant without cells":         {config, []*coretest.JobBuilder{pending(1), pending(1).BestEffort()}, []core.Verdict{held(0, core.Reject, 1, 0, none)}},
		"all that fit alone":             {possible, []*coretest.JobBuilder{blue(active(7)), blue(pending(7)), blue(pending(8)), pending(99)}, []core.Verdict{held(2, core.Reject, 8, 7, alone)}},
		"more are active than do fit":    {config, []*coretest.JobBuilder{blue(active(7)), blue(active(7)), blue(pending(1))}, []core.Verdict{held(2, core.Defer, 1, 0, "")}},
		"best effort jobs do not count":  {config, []*coretest.JobBuilder{blue(active(7)).BestEffort(), blue(pending(7))}, nil},
		"a node in pieces, and no other": {config, []*coretest.JobBuilder{blue(active(4)), blue(pending(1)), blue(pending(4))}, []core.Verdict{held(2, core.Defer, 4, 2, "")}},
		"a node among devices that suffice": {
			VirtualClustersConfig{Admit: admitFitting, Config: cells.Config{Tenants: []cells.TenantConfig{{Name: "blue", Cells: []cells.CellConfig{{Level: cells.LevelNode, Count: 1}, {Level: cells.LevelDevice, Count: 4}}}}}},
			[]*coretest.JobBuilder{blue(active(4)), blue(pending(4))},
			[]core.Verdict{held(1, core.Defer, 4, 4, small)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := admit(t, NewVirtualClusters(), tc.config, view(tc.jobs...))
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

// quotas are the same promises to two admissions: virtual clusters of devices, and counted quotas.
func quotas(devices int) (core.Factory[core.Admitter], map[string]any, map[string]any) {
	tenant := func(name string) map[string]any {
		return map[string]any{"name": name, "cells": []any{map[string]any{"level": "device", "count": devices}}}
	}
	counted := func(name string) map[string]any { return map[string]any{"name": name, "devices": devices} }
	return NewVirtualClusters(), map[string]any{"tenants": []any{tenant("blue"), tenant("red")}}, map[string]any{"tenants": []any{counted("blue"), counted("red")}}
}

func newAdmitter(t testing.TB, f core.Factory[core.Admitter], raw map[string]any) core.Admitter {
	t.Helper()
	config, ds := f.Decode(raw)
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	policy, err := f.New(config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// Where all cells are devices, virtual clusters decide as quotas of so many devices do.
func TestCellsOfDevicesAreQuotas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f, virtual, counted := quotas(rapid.IntRange(1, 12).Draw(rt, "devices"))
		one, other := newAdmitter(t, f, virtual), newAdmitter(t, NewQuota(), counted)
		jobs := make([]*coretest.JobBuilder, rapid.IntRange(1, 20).Draw(rt, "jobs"))
		for i := range jobs {
			jobs[i] = pending(rapid.IntRange(1, 6).Draw(rt, "replicas"))
			if rapid.Bool().Draw(rt, "active") {
				jobs[i] = jobs[i].Waiting()
			}
			jobs[i] = jobs[i].Tenant(rapid.SampledFrom([]string{"blue", "red", "green"}).Draw(rt, "tenant"))
		}
		v := view(jobs...)
		var waiting []*core.Job
		for _, j := range v.Jobs {
			if j.State == core.Pending {
				waiting = append(waiting, j)
			}
		}
		got, err := one.Admit(context.Background(), v, waiting)
		if err != nil {
			rt.Fatal(err)
		}
		want, err := other.Admit(context.Background(), v, waiting)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(core.Verdict{}, "Message")); diff != "" {
			rt.Fatalf("verdicts (-quota +virtual_clusters):\n%s", diff)
		}
	})
}

func BenchmarkQuotas(b *testing.B) {
	f, virtual, counted := quotas(500)
	jobs := make([]*coretest.JobBuilder, 1000)
	for i := range jobs {
		jobs[i] = pending(1).Tenant([]string{"blue", "red"}[i%2])
		if i < 900 {
			jobs[i] = jobs[i].Waiting()
		}
	}
	v := view(jobs...)
	for name, policy := range map[string]core.Admitter{"virtual_clusters": newAdmitter(b, f, virtual), "quota": newAdmitter(b, NewQuota(), counted)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = policy.Admit(context.Background(), v, v.Jobs[900:])
			}
		})
	}
}
