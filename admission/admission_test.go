package admission

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// admit asks a policy about the pending jobs of a view.
func admit[C any](t *testing.T, f core.Factory[core.Admitter], config C, v *core.View) []core.Verdict {
	t.Helper()
	policy, err := f.New(&config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var pending []*core.Job
	for _, j := range v.Jobs {
		if j.State == core.Pending {
			pending = append(pending, j)
		}
	}
	verdicts, err := policy.Admit(context.Background(), v, pending)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}

func view(jobs ...*coretest.JobBuilder) *core.View {
	return coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Jobs(jobs...).Obj()
}

func pending(replicas int) *coretest.JobBuilder {
	return coretest.MakeJob("pending").Replicas(replicas)
}

func active(replicas int) *coretest.JobBuilder { return pending(replicas).Waiting() }

func TestLoadThreshold(t *testing.T) {
	held := func(id core.JobID, wanted, available float64) core.Verdict {
		return core.Verdict{Job: id, Code: core.Defer, Reason: core.LoadLimit, Wanted: wanted, Available: available, Unit: "devices"}
	}
	cases := map[string]struct {
		factor float64
		jobs   []*coretest.JobBuilder
		want   []core.Verdict
	}{
		"fills up to the threshold, its own demand included": {
			factor: 1.25, // of 8 devices: 10
			jobs:   []*coretest.JobBuilder{active(6), pending(4), pending(1)},
			want:   []core.Verdict{held(2, 1, 0)},
		},
		"the first that does not fit holds back those behind it": {
			factor: 1,
			jobs:   []*coretest.JobBuilder{active(4), pending(8), pending(1)},
			want:   []core.Verdict{held(1, 8, 4), held(2, 1, 4)},
		},
		"a job above the threshold is admitted when nothing is active": {
			factor: 0.5,
			jobs:   []*coretest.JobBuilder{pending(8), pending(1)},
			want:   []core.Verdict{held(1, 1, 0)},
		},
		"but not next to another": {
			factor: 0.5,
			jobs:   []*coretest.JobBuilder{active(1), pending(8)},
			want:   []core.Verdict{held(1, 8, 3)},
		},
		"an elastic job counts for what it requests": {
			factor: 1,
			jobs:   []*coretest.JobBuilder{coretest.MakeJob("elastic").Elastic(1, 6, 16).Waiting(), pending(2), pending(1)},
			want:   []core.Verdict{held(2, 1, 0)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := admit(t, NewLoadThreshold(), LoadThresholdConfig{Factor: tc.factor}, view(tc.jobs...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuota(t *testing.T) {
	config := QuotaConfig{
		Tenants: []TenantQuota{{Name: "blue", Devices: new(4)}, {Name: "red", Jobs: 2}, {Name: "free"}, {Name: "none", Devices: new(0)}, {Name: "two", Devices: new(0), Jobs: 2}}, DefaultDevices: 1,
	}
	exceeded := func(id core.JobID, wanted, available float64, unit string) core.Verdict {
		return core.Verdict{Job: id, Code: core.Defer, Reason: core.QuotaExceeded, Wanted: wanted, Available: available, Unit: unit}
	}
	cases := map[string]struct {
		jobs []*coretest.JobBuilder
		want []core.Verdict
	}{
		"devices are counted for each tenant": {
			jobs: []*coretest.JobBuilder{active(3).Tenant("blue"), pending(2).Tenant("blue"), pending(2).Tenant("red")},
			want: []core.Verdict{exceeded(1, 2, 1, "devices")},
		},
		"jobs admitted in this round count": {
			jobs: []*coretest.JobBuilder{pending(4).Tenant("blue"), pending(1).Tenant("blue")},
			want: []core.Verdict{exceeded(1, 1, 0, "devices")},
		},
		"jobs are counted": {
			jobs: []*coretest.JobBuilder{active(8).Tenant("red"), pending(8).Tenant("red"), pending(1).Tenant("red")},
			want: []core.Verdict{exceeded(2, 1, 0, "jobs")},
		},
		"a tenant's jobs stay in order": {
			jobs: []*coretest.JobBuilder{active(2).Tenant("blue"), pending(3).Tenant("blue"), pending(1).Tenant("blue"), pending(1)},
			want: []core.Verdict{
				exceeded(1, 3, 2, "devices"),
				{Job: 2, Code: core.Defer, Reason: core.QuotaExceeded, Message: "an earlier job of its tenant waits for quota"},
			},
		},
		"what can never fit is rejected and holds nobody back": {
			jobs: []*coretest.JobBuilder{active(2).Tenant("blue"), pending(5).Tenant("blue"), pending(2).Tenant("blue")},
			want: []core.Verdict{{
				Job: 1, Code: core.Reject, Reason: core.QuotaExceeded, Wanted: 5, Available: 4, Unit: "devices",
				Message: "the job alone exceeds the quota of its tenant",
			}},
		},
		"other tenants have the default limits": {
			jobs: []*coretest.JobBuilder{active(1).Tenant("green"), pending(1).Tenant("green"), pending(1).Tenant("grey")},
			want: []core.Verdict{exceeded(1, 1, 0, "devices")},
		},
		"none is no limit": {
			jobs: []*coretest.JobBuilder{active(8).Tenant("free"), pending(8).Tenant("free")},
		},
		"zero is nothing": {
			jobs: []*coretest.JobBuilder{pending(1).Tenant("none"), pending(8).Tenant("none"), pending(1).Tenant("blue")},
			want: []core.Verdict{
				{Job: 0, Code: core.Reject, Reason: core.QuotaExceeded, Wanted: 1, Unit: "devices", Message: "the quota of its tenant is 0 devices"},
				{Job: 1, Code: core.Reject, Reason: core.QuotaExceeded, Wanted: 8, Unit: "devices", Message: "the quota of its tenant is 0 devices"},
			},
		},
		"zero beside another limit is none": {
			jobs: []*coretest.JobBuilder{active(8).Tenant("two"), pending(8).Tenant("two"), pending(8).Tenant("two")},
			want: []core.Verdict{exceeded(2, 1, 0, "jobs")},
		},
		"a job of a higher tier is first": {
			jobs: []*coretest.JobBuilder{active(2).Tenant("blue"), pending(2).Tenant("blue"), pending(2).Tenant("blue").Tier(core.Premium)},
			want: []core.Verdict{exceeded(1, 2, 0, "devices")},
		},
		"and is not overtaken": {
			jobs: []*coretest.JobBuilder{active(2).Tenant("blue"), pending(1).Tenant("blue"), pending(3).Tenant("blue").Tier(core.Standard), pending(3).Tenant("blue").Tier(core.Standard)},
			want: []core.Verdict{
				{Job: 1, Code: core.Defer, Reason: core.QuotaExceeded, Message: "a job of a higher tier of its tenant waits for quota"},
				exceeded(2, 3, 2, "devices"), exceeded(3, 3, 2, "devices"),
			},
		},
		"tiers of other tenants do not count": {
			jobs: []*coretest.JobBuilder{pending(4).Tenant("blue"), pending(1).Tenant("free").Tier(core.Premium)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := admit(t, NewQuota(), config, view(tc.jobs...))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuotaConfigListsTenantsOnce(t *testing.T) {
	tenant := func() any { return map[string]any{"name": "blue", "devices": 1} }
	_, problems := NewQuota().Decode(map[string]any{"tenants": []any{tenant(), tenant()}})
	want := core.Diagnostics{{Path: "tenants[1].name", Summary: `tenant "blue" is listed twice`}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestAdmitAllocatesNothing(t *testing.T) {
	jobs := []*coretest.JobBuilder{}
	for range 100 {
		jobs = append(jobs, active(1).Tenant("blue"), pending(2).Tenant("blue"))
	}
	v := view(jobs...)
	var waiting []*core.Job
	for _, j := range v.Jobs {
		if j.State == core.Pending {
			waiting = append(waiting, j)
		}
	}
	for name, policy := range map[string]core.Admitter{
		"accept_all": acceptAll{}, "load_threshold": &loadThreshold{factor: 10}, "quota": newQuota(QuotaConfig{DefaultDevices: 110}),
	} {
		t.Run(name, func(t *testing.T) {
			if got := testing.AllocsPerRun(10, func() {
				if _, err := policy.Admit(context.Background(), v, waiting); err != nil {
					t.Fatal(err)
				}
			}); got != 0 {
				t.Errorf("%v allocations a round, want 0", got)
			}
		})
	}
}

// On two nodes of four devices, 8 CPUs and 100 GB each a tenant may demand half of each.
func TestQuotaByDominantShare(t *testing.T) {
	exceeded := func(id core.JobID, wanted, available float64, unit string) core.Verdict {
		return core.Verdict{Job: id, Code: core.Defer, Reason: core.QuotaExceeded, Wanted: wanted, Available: available, Unit: unit}
	}
	alone := func(v core.Verdict) core.Verdict {
		v.Code, v.Message = core.Reject, "the job alone exceeds the share of its tenant"
		return v
	}
	whatever := func(v core.Verdict) core.Verdict {
		v.Code, v.Message = core.Reject, "the job alone exceeds the share of its tenant, whatever nodes may join"
		return v
	}
	cases := map[string]struct {
		jobs   []*coretest.JobBuilder
		change func(*core.Cluster)
		want   []core.Verdict
	}{
		"devices":          {jobs: []*coretest.JobBuilder{active(3), pending(2)}, want: []core.Verdict{exceeded(1, 2, 1, "devices")}},
		"CPUs":             {jobs: []*coretest.JobBuilder{active(2).Asks(3, 0), pending(1).Asks(3, 0)}, want: []core.Verdict{exceeded(1, 3, 2, "cpus")}},
		"memory":           {jobs: []*coretest.JobBuilder{active(1).Asks(1, 80), pending(1).Asks(1, 30)}, want: []core.Verdict{exceeded(1, 30, 20, "GB")}},
		"the dominant one": {jobs: []*coretest.JobBuilder{active(2).Asks(3, 45), pending(2).Asks(3, 45)}, want: []core.Verdict{exceeded(1, 90, 10, "GB")}},
		"just the share":   {jobs: []*coretest.JobBuilder{active(2).Asks(2, 25), pending(2).Asks(2, 25)}},
		"alone":            {jobs: []*coretest.JobBuilder{pending(1).Asks(9, 0)}, want: []core.Verdict{alone(exceeded(0, 9, 8, "cpus"))}},
		"alone, may grow":  {jobs: []*coretest.JobBuilder{pending(1).Asks(9, 0)}, change: func(c *core.Cluster) { c.MayGrow = true }, want: []core.Verdict{exceeded(0, 9, 8, "cpus")}},
		"alone, a pool": {
			jobs: []*coretest.JobBuilder{pending(6), pending(5)},
			change: func(c *core.Cluster) {
				c.MayGrow, c.Pools = true, []core.Pool{{Name: "p", Devices: 2, Max: 1}}
			},
			want: []core.Verdict{whatever(exceeded(0, 6, 5, "devices")), exceeded(1, 5, 4, "devices")},
		},
		"alone, a pool of nodes that are there": {
			jobs: []*coretest.JobBuilder{pending(5), pending(6)},
			change: func(c *core.Cluster) {
				c.Nodes[0].Pool, c.MayGrow, c.Pools = "p", true, []core.Pool{{Name: "q", Devices: 8, Max: 0}, {Name: "p", Devices: 2, Max: 2}}
			},
			want: []core.Verdict{exceeded(0, 5, 4, "devices"), whatever(exceeded(1, 6, 5, "devices"))},
		},
		"alone, CPUs of a pool": {
			jobs: []*coretest.JobBuilder{pending(1).Asks(13, 0), pending(1).Asks(12, 0)},
			change: func(c *core.Cluster) {
				c.MayGrow, c.Pools = true, []core.Pool{{Name: "p", Devices: 2, CPUs: 4, Max: 2}}
			},
			want: []core.Verdict{whatever(exceeded(0, 13, 12, "cpus")), exceeded(1, 12, 8, "cpus")},
		},
		"alone, a pool that does not tell its CPUs": {
			jobs:   []*coretest.JobBuilder{pending(1).Asks(13, 0)},
			change: func(c *core.Cluster) { c.MayGrow, c.Pools = true, []core.Pool{{Name: "p", Devices: 2, Max: 2}} },
			want:   []core.Verdict{exceeded(0, 13, 8, "cpus")},
		},
		"alone, a pool that nobody has grow": {
			jobs:   []*coretest.JobBuilder{pending(5)},
			change: func(c *core.Cluster) { c.Pools = []core.Pool{{Name: "p", Devices: 2, Max: 1}} },
			want:   []core.Verdict{alone(exceeded(0, 5, 4, "devices"))},
		},
		"of each tenant":     {jobs: []*coretest.JobBuilder{active(4), pending(4).Tenant("blue")}},
		"nobody counts CPUs": {jobs: []*coretest.JobBuilder{pending(1).Asks(9, 0)}, change: func(c *core.Cluster) { c.CountsResources = false }},
		"a node is unknown":  {jobs: []*coretest.JobBuilder{pending(1).Asks(9, 0)}, change: func(c *core.Cluster) { c.Nodes[1].CPUs = 0 }},
		"a node is down":     {jobs: []*coretest.JobBuilder{pending(4)}, change: func(c *core.Cluster) { c.Nodes[1].Health = core.Down }},
		"a node is gone":     {jobs: []*coretest.JobBuilder{pending(4)}, change: func(c *core.Cluster) { c.Nodes[1].Health = core.Gone }, want: []core.Verdict{alone(exceeded(0, 4, 2, "devices"))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := coretest.MakeCluster().Nodes(2, "t4", 4).Obj()
			c.CountsResources = true
			for i := range c.Nodes {
				c.Nodes[i].CPUs, c.Nodes[i].MemoryGB = 8, 100
			}
			if tc.change != nil {
				tc.change(c)
			}
			v := coretest.MakeView(c).Jobs(tc.jobs...).Obj()
			var waiting []*core.Job
			for _, j := range v.Jobs {
				if j.State == core.Pending {
					waiting = append(waiting, j)
				}
			}
			got, err := newQuota(QuotaConfig{DefaultShare: 0.5}).Admit(t.Context(), v, waiting)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("error %v, verdicts (-want +got):\n%s", err, diff)
			}
		})
	}
}

// A quota counts what is active now, however often it was asked before.
func TestQuotaIsAskedAgain(t *testing.T) {
	policy, err := NewQuota().New(&QuotaConfig{DefaultDevices: 4}, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	v := view(active(2), pending(2))
	for range 3 {
		verdicts, err := policy.Admit(context.Background(), v, []*core.Job{v.Jobs[1]})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]core.Verdict{}, verdicts, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("verdicts (-want +got):\n%s", diff)
		}
	}
}

// Jobs that have parts of devices count for these, and those that take turns for whole ones.
func TestPartsOfDevicesAreCounted(t *testing.T) {
	quarter := func(milli int) *coretest.JobBuilder { return pending(1).Share(milli) }
	held := func(id core.JobID, code core.Code, reason core.Reason, wanted, available float64, message string) core.Verdict {
		return core.Verdict{Job: id, Code: code, Reason: reason, Wanted: wanted, Available: available, Unit: "devices", Message: message}
	}
	alone, share := "the job alone exceeds the quota of its tenant", "the job alone exceeds the share of its tenant"
	jobs := []*coretest.JobBuilder{quarter(250).Waiting(), quarter(250), quarter(500), quarter(250), quarter(0)} // 1.25 together
	load := func(c core.Factory[core.Admitter], config any) func(*testing.T, *core.View) []core.Verdict {
		return func(t *testing.T, v *core.View) []core.Verdict {
			p, err := c.New(config, core.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Admit(t.Context(), v, v.Jobs[1:])
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
	}
	shares := func(part float64) func(*testing.T, *core.View) []core.Verdict {
		return load(NewQuota(), &QuotaConfig{DefaultShare: part})
	}
	for name, tc := range map[string]struct {
		admit func(*testing.T, *core.View) []core.Verdict
		how   core.Sharing
		want  []core.Verdict
	}{
		"quota": {load(NewQuota(), &QuotaConfig{DefaultDevices: 1}), core.Fractional, []core.Verdict{
			held(3, core.Defer, core.QuotaExceeded, 0.25, 0, ""),
			{Job: 4, Code: core.Defer, Reason: core.QuotaExceeded, Message: "an earlier job of its tenant waits for quota"},
		}},
		"quota by share": {shares(0.5), core.Fractional, []core.Verdict{
			held(2, core.Defer, core.QuotaExceeded, 0.5, 0, ""), held(3, core.Defer, core.QuotaExceeded, 0.25, 0, ""),
			{Job: 4, Code: core.Defer, Reason: core.QuotaExceeded, Message: "an earlier job of its tenant waits for quota"},
		}},
		"too large for the share": {shares(0.25), core.Fractional, []core.Verdict{
			held(1, core.Defer, core.QuotaExceeded, 0.25, 0, ""), held(2, core.Reject, core.QuotaExceeded, 0.5, 0, share), held(3, core.Defer, core.QuotaExceeded, 0.25, 0, ""),
			{Job: 4, Code: core.Defer, Reason: core.QuotaExceeded, Message: "an earlier job of its tenant waits for quota"},
		}},
		"load": {load(NewLoadThreshold(), &LoadThresholdConfig{Factor: 1}), core.Fractional, []core.Verdict{
			held(3, core.Defer, core.LoadLimit, 0.25, 0, ""), held(4, core.Defer, core.LoadLimit, 0, 0, ""),
		}},
		"all fit":          {load(NewFitsAll(), &FitsAllConfig{Misfits: queueMisfits, Batch: smallestBatch}), core.Fractional, []core.Verdict{held(3, core.Defer, core.LoadLimit, 0.25, 0, "")}},
		"all fit, dropped": {load(NewFitsAll(), &FitsAllConfig{Misfits: dropMisfits, Batch: smallestBatch}), core.Fractional, []core.Verdict{held(3, core.Reject, core.LoadLimit, 0.25, 0, "")}},
		"quota, turns": {load(NewQuota(), &QuotaConfig{DefaultDevices: 1}), core.TimeSlice, []core.Verdict{
			held(1, core.Defer, core.QuotaExceeded, 1, 0, ""), held(2, core.Defer, core.QuotaExceeded, 1, 0, ""),
			held(3, core.Defer, core.QuotaExceeded, 1, 0, ""), held(4, core.Defer, core.QuotaExceeded, 1, 0, ""),
		}},
		"share, nobody shares": {shares(0.5), core.Exclusive, []core.Verdict{
			held(1, core.Reject, core.QuotaExceeded, 1, 0, share), held(2, core.Reject, core.QuotaExceeded, 1, 0, share),
			held(3, core.Reject, core.QuotaExceeded, 1, 0, share), held(4, core.Reject, core.QuotaExceeded, 1, 0, share),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := coretest.MakeCluster().Nodes(1, "t4", 1).Obj()
			c.Sharing, c.MaxOwners = tc.how, 2
			if diff := cmp.Diff(tc.want, tc.admit(t, coretest.MakeView(c).Jobs(jobs...).Obj())); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
	c := coretest.MakeCluster().Nodes(1, "t4", 2).Obj()
	c.Sharing = core.Fractional
	v := coretest.MakeView(c).Jobs(pending(1).Share(0).Waiting(), pending(3).Share(500)).Obj()
	want := []core.Verdict{held(1, core.Reject, core.QuotaExceeded, 1.5, 1, alone)}
	if diff := cmp.Diff(want, load(NewQuota(), &QuotaConfig{DefaultDevices: 1})(t, v)); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
}
