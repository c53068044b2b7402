package allocation

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
	"github.com/quartet-sched/quartet/policykit/synergy"
)

// countedNodes is two nodes of four devices, 8 CPUs and 40 GB each, at 1000 s.
func countedNodes(cpus float64, jobs ...*coretest.JobBuilder) *core.View {
	c := coretest.MakeCluster().Nodes(2, "t4", 4).Obj()
	c.CountsResources = true
	for i := range c.Nodes {
		c.Nodes[i].CPUs, c.Nodes[i].MemoryGB = cpus, 40
	}
	return coretest.MakeView(c).Now(1000).Jobs(jobs...).Obj()
}

func sensitive(cpus, speedup float64) *core.Sensitivity {
	return &core.Sensitivity{Base: core.Resources{CPUs: 2, MemoryGB: 10}, Ideal: core.Resources{CPUs: cpus, MemoryGB: 10}, Speedup: speedup}
}

func TestOrdersByResources(t *testing.T) {
	t.Parallel()
	job := coretest.MakeJob
	all := func(config map[string]any) map[string]any {
		config["queue"] = queue.All
		return config
	}
	for name, tc := range map[string]struct {
		factory core.Factory[core.Allocator]
		config  map[string]any
		cpus    float64 // of a node
		jobs    []*coretest.JobBuilder
		want    string
	}{
		"drf by job: half the CPUs are more than two devices": { // 8/16 CPUs, 2/8 devices and 8/16 CPUs at most, 3/8 devices
			NewDRF(),
			map[string]any{"by": drfByJob},
			8,
			[]*coretest.JobBuilder{job("a").Replicas(1).Sensitive(sensitive(8, 2)).Waiting(), job("b").Replicas(2).Asks(1, 1).Waiting(), job("c").Replicas(3).Asks(1, 1).Waiting()},
			"1×2 2×3 0×1",
		},
		"drf by job where no node tells its CPUs": {
			NewDRF(),
			map[string]any{"by": drfByJob},
			0,
			[]*coretest.JobBuilder{job("a").Replicas(3).Asks(8, 1).Waiting(), job("b").Replicas(2).Asks(1, 1).Waiting()},
			"1×2 0×3",
		},
		"drf by tenant takes turns": { // red has 2/8 devices after its first, blue 8/16 CPUs after its first
			NewDRF(), nil, 8,
			[]*coretest.JobBuilder{
				job("a").Replicas(1).Tenant("blue").Asks(8, 1).Waiting(), job("b").Replicas(1).Tenant("blue").Asks(8, 1).Waiting(),
				job("c").Replicas(2).Tenant("red").Asks(1, 1).Waiting(), job("d").Replicas(2).Tenant("red").Asks(1, 1).Waiting(),
			},
			"0×1 2×2 3×2",
		},
		"drf by tenant, with weights": {
			NewDRF(),
			map[string]any{"tenants": []any{map[string]any{"name": "blue", "weight": 3}}},
			80,
			[]*coretest.JobBuilder{
				job("a").Replicas(2).Tenant("red").Waiting(), job("b").Replicas(2).Tenant("red").Waiting(),
				job("c").Replicas(2).Tenant("blue").Waiting(), job("d").Replicas(2).Tenant("blue").Waiting(), job("e").Replicas(2).Tenant("blue").Waiting(),
			},
			"0×2 2×2 3×2 4×2",
		},
		"drf by tenant leaves what fits nowhere to placement": {
			NewDRF(), all(map[string]any{}), 8,
			[]*coretest.JobBuilder{job("a").Replicas(1).Tenant("blue").Asks(8, 1).Waiting(), job("b").Replicas(3).Tenant("blue").Asks(8, 1).Waiting(), job("c").Replicas(8).Tenant("red").Waiting()},
			"0×1 2×8 1×3",
		},
		"drf by tenant keeps what is pinned": {
			NewDRF(), nil, 80,
			[]*coretest.JobBuilder{job("a").Replicas(6).Tenant("blue").Waiting(), job("b").Replicas(4).Tenant("red").Pinned().Running(0, coretest.Seat(0, 0, 1, 2, 3)), job("c").Replicas(4).Tenant("red").Waiting()},
			"1×4 2×4",
		},
		"tetris": { // 100 s times 1/8 + 2/16 + 10/80, and 200 s times the same at most: 60 s times 4/8 + 1/16 + 1/80
			NewTetris(), all(map[string]any{}), 8,
			[]*coretest.JobBuilder{
				job("a").Replicas(1).Work(200).Waiting(), job("b").Replicas(1).Work(100).Waiting(), job("c").Replicas(4).Work(60).Asks(0.25, 0.25).Waiting(),
			},
			"2×4 1×1 0×1",
		},
		"tetris with the best speed": {
			NewTetris(), all(map[string]any{"speed": synergy.PresentSpeed}), 8,
			[]*coretest.JobBuilder{job("a").Replicas(1).Work(100).Waiting(), job("b").Replicas(1).Work(190).Sensitive(sensitive(2.5, 2)).Waiting()},
			"0×1 1×1",
		},
		"srtf at the base": {
			NewSRTF(), all(map[string]any{}), 8,
			[]*coretest.JobBuilder{job("a").Replicas(1).Work(100).Waiting(), job("b").Replicas(1).Work(150).Sensitive(sensitive(8, 2)).Waiting()},
			"0×1 1×1",
		},
		"srtf at the best speed of who waits": {
			NewSRTF(), all(map[string]any{"speed": synergy.PresentSpeed}), 8,
			[]*coretest.JobBuilder{job("a").Replicas(1).Work(100).Waiting(), job("b").Replicas(1).Work(150).Sensitive(sensitive(8, 2)).Waiting()},
			"1×1 0×1",
		},
		"srtf at what who runs has": {
			NewSRTF(), all(map[string]any{"speed": synergy.PresentSpeed}), 8,
			[]*coretest.JobBuilder{
				job("a").Replicas(1).Work(100).Waiting(), job("b").Replicas(1).Work(150).Sensitive(sensitive(8, 2)).Running(1000, coretest.Seat(0, 0)).Given(2, 10),
			},
			"0×1 1×1",
		},
		"ftf": { // 1000 s of waiting for 100 s of work is worse than for 1000 s
			NewFTF(), all(map[string]any{}), 8,
			[]*coretest.JobBuilder{job("a").Replicas(1).Work(1000).Waiting(), job("b").Replicas(1).Work(100).Waiting()},
			"1×1 0×1",
		},
		"ftf by the slip": {
			NewFTF(), all(map[string]any{"first": bestFirst}), 8,
			[]*coretest.JobBuilder{job("a").Replicas(1).Work(100).Waiting(), job("b").Replicas(1).Work(1000).Waiting()},
			"1×1 0×1",
		},
		"fifo that preempts": {
			NewFIFO(),
			map[string]any{"preemptive": true},
			8,
			[]*coretest.JobBuilder{job("a").Replicas(6).Waiting(), job("b").Replicas(4).Running(0, coretest.Seat(0, 0, 1, 2, 3))},
			"0×6| 1×4|",
		},
		"fifo that does not": {
			NewFIFO(), nil, 8,
			[]*coretest.JobBuilder{job("a").Replicas(6).Waiting(), job("b").Replicas(4).Running(0, coretest.Seat(0, 0, 1, 2, 3))},
			"1×4| 0×6|",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := countedNodes(tc.cpus, tc.jobs...)
			p := policytest.New(t, tc.factory, tc.config)
			for again := range 2 {
				if got := policytest.Allocate(t, p, v, coretest.Rigid); got != tc.want {
					t.Errorf("asked %d times before: %s, want %s", again, got, tc.want)
				}
			}
		})
	}
}

// The example of section 4.1 of the paper: of 9 CPUs and 18 GB, tasks of 1 CPU and 4 GB get three, and those of 3 CPUs and 1 GB two.
func TestDRFOfThePaper(t *testing.T) {
	t.Parallel()
	c := coretest.MakeCluster().Nodes(1, "t4", 16).Obj()
	c.CountsResources, c.Nodes[0].CPUs, c.Nodes[0].MemoryGB = true, 9, 18
	var jobs []*coretest.JobBuilder
	for i := range 10 {
		job := coretest.MakeJob(string(rune('a'+i))).Replicas(1).Tenant("A").Asks(1, 4)
		if i >= 5 {
			job.Tenant("B").Asks(3, 1)
		}
		jobs = append(jobs, job.Waiting())
	}
	v := coretest.MakeView(c).Now(1000).Jobs(jobs...).Obj()
	if got, want := policytest.Allocate(t, policytest.New(t, NewDRF(), nil), v, coretest.Rigid), "0×1 5×1 1×1 6×1 2×1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestDRFRefusesTenantsTwice(t *testing.T) {
	t.Parallel()
	tenant := TenantWeight{Name: "blue", Weight: 1}
	for name, tc := range map[string]struct {
		config DRFConfig
		wrong  bool
	}{
		"once":   {DRFConfig{By: drfByTenant, Tenants: []TenantWeight{tenant}}, false},
		"twice":  {DRFConfig{By: drfByTenant, Tenants: []TenantWeight{tenant, tenant}}, true},
		"by job": {DRFConfig{By: drfByJob, Tenants: []TenantWeight{tenant}}, true},
	} {
		if err := tc.config.Validate(); (err != nil) != tc.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}
