package muri

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

// staged is a job whose iterations are of one stage alone: the devices compute, or data is loaded.
func staged(name string, of core.Iteration) *coretest.JobBuilder {
	return coretest.MakeJob(name).Iteration(of)
}

// granted asks the policy, and writes each group of its answer, its jobs with + between them, and the replicas of one.
func granted(t *testing.T, p core.Allocator, v *core.View) string {
	t.Helper()
	grants, err := p.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	for i := 0; i < len(grants); i += core.GroupOf(grants, i) {
		var names []string
		for _, g := range grants[i : i+core.GroupOf(grants, i)] {
			names = append(names, v.Jobs[g.Job].Name)
		}
		groups = append(groups, fmt.Sprintf("%s×%d", strings.Join(names, "+"), grants[i].Replicas))
	}
	return strings.Join(groups, " ")
}

func policyOf(config map[string]any) core.Allocator { return coretest.Component(New(), config, nil) }

func TestPolicy(t *testing.T) {
	ideal := map[string]any{"period": idealPeriod}
	with := func(key string, value any) map[string]any { return map[string]any{"period": idealPeriod, key: value} }
	two := coretest.Seat(0, 0, 1)
	cases := map[string]struct {
		config  map[string]any
		devices int
		owners  int
		jobs    []*coretest.JobBuilder
		want    string
	}{
		"where there is room for all, each is alone": {ideal, 4, 4, []*coretest.JobBuilder{
			staged("a", computes).Replicas(2).Waiting(), staged("b", loads).Replicas(2).Waiting(),
		}, "a×2 b×2"},
		"two that do not meet": {ideal, 2, 4, []*coretest.JobBuilder{
			staged("a", computes).Replicas(2).Waiting(), staged("b", loads).Replicas(2).Waiting(),
		}, "a+b×2"},
		"no more than a device may have": {ideal, 1, 2, []*coretest.JobBuilder{
			staged("a", computes).Waiting(), staged("b", loads).Waiting(), staged("c", syncs).Waiting(),
		}, "a+b×1"},
		"no more than the config says": {with("largest_group", 1), 2, 4, []*coretest.JobBuilder{
			staged("a", computes).Replicas(2).Waiting(), staged("b", loads).Replicas(2).Waiting(),
		}, "a×2"},
		"no stages, no group": {ideal, 2, 4, []*coretest.JobBuilder{
			staged("a", core.Iteration{}).Replicas(2).Waiting(), staged("b", loads).Replicas(2).Waiting(), staged("c", computes).Replicas(2).Waiting(),
		}, "a×2"},
		"other types, no group": {ideal, 2, 4, []*coretest.JobBuilder{
			staged("a", computes).Replicas(2).Waiting(), staged("b", loads).Replicas(2).Accelerators("t4").Waiting(),
		}, "a×2"},
		"too much memory together, no group": {ideal, 2, 4, []*coretest.JobBuilder{
			staged("a", computes).Replicas(2).DeviceMemory(10).Waiting(), staged("b", loads).Replicas(2).DeviceMemory(7).Waiting(),
		}, "a×2"},
		"all the memory together": {ideal, 2, 4, []*coretest.JobBuilder{
			staged("a", computes).Replicas(2).DeviceMemory(10).Waiting(), staged("b", loads).Replicas(2).DeviceMemory(6).Waiting(),
		}, "a+b×2"},
		"a pinned one that runs is alone": {ideal, 2, 4, []*coretest.JobBuilder{
			staged("a", computes).Replicas(2).Waiting(), staged("b", loads).Replicas(2).Pinned().Running(0, two),
		}, "b×2"},
		"pinned ones that run together stay so": {ideal, 2, 4, []*coretest.JobBuilder{
			staged("a", loads).Replicas(2).Pinned().Running(0, two), staged("b", loads).Replicas(2).Pinned().Running(0, two), staged("c", computes).Replicas(2).Waiting(),
		}, "a+b×2"},
		"the least to go first": {map[string]any{"knowledge": knowsRemaining, "largest_group": 1}, 2, 4, []*coretest.JobBuilder{
			staged("long", computes).Replicas(2).Work(100).Waiting(), staged("short", computes).Replicas(2).Work(50).Waiting(),
		}, "short×2"},
		"by the devices, too": {map[string]any{"knowledge": knowsRemaining, "largest_group": 1}, 2, 4, []*coretest.JobBuilder{
			staged("wide", computes).Replicas(2).Work(100).Waiting(), staged("narrow", computes).Work(150).Waiting(), staged("another", computes).Work(190).Waiting(),
		}, "narrow×1 another×1"},
		"of unknown length last": {map[string]any{"knowledge": knowsRemaining, "largest_group": 1}, 2, 4, []*coretest.JobBuilder{
			staged("unknown", computes).Replicas(2).Waiting(), staged("known", computes).Replicas(2).Work(1e9).Waiting(),
		}, "known×2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", tc.devices).TakesTurns(tc.owners, 16).Obj()).Jobs(tc.jobs...).Obj()
			if got := granted(t, policyOf(tc.config), v); got != tc.want {
				t.Errorf("granted %s, want %s", got, tc.want)
			}
		})
	}
}

// Those that run where most of a group do come first, so that the group is seated there and the others move.
func TestMostOfAGroupStay(t *testing.T) {
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).TakesTurns(4, 0).Obj()).Jobs(
		staged("a", computes).Replicas(4).Waiting(), staged("b", loads).Replicas(4).Running(0, coretest.Seat(0, 0, 1, 2, 3)), staged("c", syncs).Replicas(4).Running(0, coretest.Seat(0, 0, 1, 2, 3)),
	).Obj()
	if got := granted(t, policyOf(map[string]any{"period": idealPeriod}), v); got != "b+a+c×4" {
		t.Errorf("granted %s, want b first", got)
	}
}

// In a group, each has received its part: of two that ran together for a minute half of it.
func TestAttainedServiceOfAGroupIsShared(t *testing.T) {
	p := policyOf(map[string]any{"period": idealPeriod, "largest_group": 2})
	cluster := coretest.MakeCluster().Nodes(1, "t4", 1).TakesTurns(2, 0).Obj()
	view := func(now float64, jobs ...*coretest.JobBuilder) *core.View {
		return coretest.MakeView(cluster).Now(now).Jobs(jobs...).Obj()
	}
	together := coretest.Seat(0, 0)
	if got := granted(t, p, view(0, staged("a", computes).Waiting(), staged("b", loads).Waiting(), staged("c", computes).Waiting())); got != "a+b×1" {
		t.Fatalf("granted %s", got)
	}
	// a and b received 60 device-seconds each, and count as 30; c counts as 0 and is first, and the next of its size is a.
	got := granted(t, p, view(60, staged("a", computes).Running(0, together), staged("b", loads).Running(0, together), staged("c", computes).Waiting()))
	if got != "a+c×1" {
		t.Fatalf("granted %s, want a and c", got)
	}
	accounts := p.(*policy).accounts
	if accounts[0].key != 30 || accounts[1].key != 30 || accounts[2].key != 0 {
		t.Errorf("device-seconds %v, %v and %v, want 30, 30 and 0", accounts[0].key, accounts[1].key, accounts[2].key)
	}
}

// The answer stands where everybody has devices alone, and where somebody shares or waits it does not.
func TestStanding(t *testing.T) {
	for devices, want := range map[int]bool{1: false, 2: true} {
		p := policyOf(map[string]any{"period": idealPeriod})
		v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", devices).TakesTurns(2, 0).Obj()).Now(5).Jobs(staged("a", computes).Waiting(), staged("b", loads).Waiting()).Obj()
		granted(t, p, v)
		if got := p.(core.Steady).Standing(); (got.UntilSeconds > 5) != want || want && got.IfSeated != 2 {
			t.Errorf("%d devices: stands %+v", devices, got)
		}
	}
}
