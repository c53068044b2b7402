package muri

import (
	"fmt"
	"math"
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

// What jobs received in groups goes on in a policy that takes up the snapshot of another one.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	config := map[string]any{"period": idealPeriod, "largest_group": 2}
	cluster := coretest.MakeCluster().Nodes(1, "t4", 1).TakesTurns(2, 0).Obj()
	together := coretest.Seat(0, 0)
	first := policyOf(config)
	granted(t, first, coretest.MakeView(cluster).Jobs(staged("a", computes).Waiting(), staged("b", loads).Waiting(), staged("c", computes).Waiting()).Obj())
	later := func() *core.View {
		return coretest.MakeView(cluster).Now(60).Jobs(staged("a", computes).Running(0, together), staged("b", loads).Running(0, together), staged("c", computes).Waiting()).Obj()
	}
	granted(t, first, later())
	data, err := first.(core.Snapshotter).Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	second := policyOf(config)
	if err := second.(core.Snapshotter).Restore(data); err != nil {
		t.Fatal(err)
	}
	again, err := second.(core.Snapshotter).Snapshot()
	if err != nil || string(again) != string(data) {
		t.Errorf("the snapshot %s becomes %s, %v", data, again, err)
	}
	// a and c ran together since: a received 60, of which half each counts 30 before and 30 after.
	view := coretest.MakeView(cluster).Now(120).Jobs(staged("a", computes).Running(0, together), staged("b", loads).Waiting(), staged("c", computes).Running(60, together)).Obj()
	want := granted(t, first, view)
	if got := granted(t, second, view); got != want {
		t.Errorf("granted %s, want %s as without a break", got, want)
	}
	one, two := first.(*policy).accounts, second.(*policy).accounts
	for i := range 3 {
		if one[i] != two[i] {
			t.Errorf("the account of job %d is %+v, want %+v as without a break", i, two[i], one[i])
		}
	}
}

func TestSnapshotsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		data string
		want bool
	}{
		"nobody":         {`[]`, true},
		"one":            {`[{"Job":0,"Key":1,"Attained":2,"Owners":1}]`, true},
		"two":            {`[{"Job":0,"Owners":1},{"Job":7,"Owners":4}]`, true},
		"neighbours":     {`[{"Job":3,"Owners":1},{"Job":4,"Owners":1}]`, true},
		"no list":        {`{}`, false},
		"no data":        {``, false},
		"no such job":    {`[{"Job":-1,"Owners":1}]`, false},
		"nobody owns it": {`[{"Job":0,"Owners":0}]`, false},
		"nor the second": {`[{"Job":0,"Owners":1},{"Job":1,"Owners":0}]`, false},
		"the same twice": {`[{"Job":2,"Owners":1},{"Job":2,"Owners":1}]`, false},
		"out of order":   {`[{"Job":2,"Owners":1},{"Job":1,"Owners":1}]`, false},
	} {
		if err := policyOf(nil).(core.Snapshotter).Restore([]byte(tc.data)); (err == nil) != tc.want {
			t.Errorf("%s: %v, want it to be taken: %t", name, err, tc.want)
		}
	}
}

// With periods as measured, two jobs that use a second of two each are sooner one after the other: 1.9 s becomes 2.5 s.
func TestMeasuredPeriod(t *testing.T) {
	t.Parallel()
	for period, want := range map[string]string{idealPeriod: "a+b×1", measuredPeriod: "a×1"} {
		v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 1).TakesTurns(2, 0).Obj()).Jobs(
			staged("a", core.Iteration{Compute: 0.9, Load: 0.1}).Waiting(), staged("b", core.Iteration{Compute: 0.9, Load: 0.1}).Waiting(),
		).Obj()
		if got := granted(t, policyOf(map[string]any{"period": period}), v); got != want {
			t.Errorf("%s: granted %s, want %s", period, got, want)
		}
	}
}

// Pairs that run stay together where others of the same stages would do as well, unless the config says otherwise.
func TestSteady(t *testing.T) {
	t.Parallel()
	for steady, want := range map[bool]string{true: "a+d×1 b+c×1", false: "a+c×1 b+d×1"} {
		v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 2).TakesTurns(2, 0).Obj()).Jobs(
			staged("a", computes).Running(0, coretest.Seat(0, 0)), staged("b", computes).Running(0, coretest.Seat(0, 1)),
			staged("c", loads).Running(0, coretest.Seat(0, 1)), staged("d", loads).Running(0, coretest.Seat(0, 0)),
		).Obj()
		if got := granted(t, policyOf(map[string]any{"period": idealPeriod, "steady": steady}), v); got != want {
			t.Errorf("steady %t: granted %s, want %s", steady, got, want)
		}
	}
}

// Which jobs may be together is asked again when nodes come, go or are other ones: what two groups made of their jobs before holds no longer.
func TestNodesThatChangeWhatFits(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(v *core.View){
		"another cluster": func(v *core.View) {
			v.Cluster = coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "t4", 1).TakesTurns(2, 12).Obj()
		},
		"the same one": func(v *core.View) { v.HealthChanges++ },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "t4", 1).TakesTurns(2, 12).Health(1, core.Gone).Obj()).Jobs(
				staged("a", computes).Replicas(2).DeviceMemory(1).Waiting(),
				staged("b", loads).Replicas(2).DeviceMemory(4).Waiting(),
				staged("c", core.Iteration{Load: 0.9, Measured: 10}).Replicas(2).DeviceMemory(9).Waiting(), // so slow alone that an exchange gives it b's place
			).Obj()
			p := policyOf(map[string]any{"period": idealPeriod})
			for step, tc := range []struct {
				health   core.Health
				memoryGB float64 // of the device that joins
				want     string
			}{
				{core.Gone, 8, "a+c×2 b×2"}, {core.Ready, 8, "a+b×2 c×2"}, {core.Gone, 8, "a+c×2 b×2"}, {core.Ready, 10, "a+c×2 b×2"}, {core.Ready, 9.9, "a+b×2 c×2"},
			} {
				change(v)
				v.Cluster.Nodes[1].Health, v.Cluster.Nodes[1].DeviceMemoryGB = tc.health, tc.memoryGB
				if got := granted(t, p, v); got != tc.want {
					t.Errorf("step %d, a device of %v GB is %v: granted %s, want %s", step, tc.memoryGB, tc.health, got, tc.want)
				}
			}
		})
	}
}

// What is remembered of jobs of one type of device is not held of those of another one, whose memory is smaller.
func TestTypesDoNotStandInForEachOther(t *testing.T) {
	t.Parallel()
	cluster := coretest.MakeCluster().Nodes(1, "t4", 4).Nodes(1, "k80", 4).TakesTurns(2, 12).Obj()
	cluster.Nodes[1].DeviceMemoryGB = 9
	p := policyOf(map[string]any{"period": idealPeriod})
	for _, of := range []struct{ accelerator, want string }{{"t4", "a+c×3 b×3"}, {"k80", "a+b×3 c×3"}, {"t4", "a+c×3 b×3"}} {
		v := coretest.MakeView(cluster).Jobs(
			staged("a", computes).Replicas(3).Accelerators(of.accelerator).DeviceMemory(1).Waiting(),
			staged("b", loads).Replicas(3).Accelerators(of.accelerator).DeviceMemory(4).Waiting(),
			staged("c", core.Iteration{Load: 0.9, Measured: 10}).Replicas(3).Accelerators(of.accelerator).DeviceMemory(9).Waiting(),
		).Obj()
		v.Cluster = cluster
		if got := granted(t, p, v); got != of.want {
			t.Errorf("%s: granted %s, want %s", of.accelerator, got, of.want)
		}
	}
}

func TestLeastTurn(t *testing.T) {
	t.Parallel()
	for knowledge, want := range map[string]bool{knowsAttained: true, knowsRemaining: false} {
		if _, _, turns := (Config{Knowledge: knowledge}).LeastTurn(); turns != want {
			t.Errorf("by what %s, jobs take turns: %t, want %t", knowledge, turns, want)
		}
	}
}

// By device-seconds that are left: at the rate of the job's own curve, else of its work as submitted; last where nobody knows.
func TestKeyByRemaining(t *testing.T) {
	t.Parallel()
	p := policyOf(map[string]any{"knowledge": knowsRemaining}).(*policy)
	for name, tc := range map[string]struct {
		rates     []float64
		remaining float64
		work      float64
		want      float64
	}{
		"at its rate":              {[]float64{1, 4}, 20, 999, 10},
		"of which nothing is left": {[]float64{1, 4}, 0, 999, 0},
		"no rate":                  {nil, 20, 30, 60},
		"a rate of 0":              {[]float64{1, 0}, 20, 30, 60},
		"not known what is left":   {[]float64{1, 4}, math.NaN(), 30, 60},
		"nothing known":            {nil, math.NaN(), 0, math.Inf(1)},
	} {
		v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).TakesTurns(2, 0).Obj()).Jobs(staged("a", computes).Replicas(2).Work(tc.work).Waiting()).Obj()
		candidates := coretest.Candidates(v, coretest.Rigid)
		r := *candidates[0].Response
		r.RemainingWork, r.Curves = tc.remaining, nil
		if tc.rates != nil {
			r.Curves = []core.Curve{{OneNode: tc.rates, ManyNodes: tc.rates}}
		}
		candidates[0].Response = &r
		p.capacity.CountIn(v)
		if got := p.key(v, &candidates[0]); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
