package gavel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/coretest/drawn"
)

// measured is a table of pairs of single devices of type a: "x y" keeps the parts.
func measured(pairs map[string][2]float64) *core.PairTable {
	var list []core.Pair
	for names, parts := range pairs {
		both := strings.Fields(names)
		list = append(list, core.Pair{Accelerator: "a", Applications: [2]string{both[0], both[1]}, Replicas: 1, Parts: parts})
	}
	slices.SortFunc(list, func(x, y core.Pair) int {
		return cmp.Compare(x.Applications[0]+x.Applications[1], y.Applications[0]+y.Applications[1])
	})
	return core.NewPairTable(list)
}

// newPolicy is a policy of a factory.
func newPolicy(t interface{ Fatal(...any) }, f core.Factory[core.Allocator], raw map[string]any) core.Allocator {
	config, problems := f.Decode(raw)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	policy, err := f.New(config, core.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// holdPairs holds rounds of 360 s, and renders who was granted: "0+1 2" is jobs 0 and 1 together, and 2 alone.
func holdPairs(t *testing.T, policy core.Allocator, c *core.Cluster, table *core.PairTable, jobs []*coretest.JobBuilder, rounds int) []string {
	t.Helper()
	executed := make([]float64, len(jobs))
	var ran []string
	for round := range rounds {
		for i, j := range jobs {
			j.Waiting().Executed(executed[i], executed[i])
		}
		v := coretest.MakeView(c).Now(float64(360 * round)).Round(round + 1).Interval(360).Jobs(jobs...).Obj()
		for _, j := range v.Jobs {
			j.Pairs = table
		}
		grants, err := policy.Allocate(t.Context(), v, coretest.Candidates(v, coretest.Rigid))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for i, g := range grants {
			if i > 0 && g.Group != 0 && g.Group == grants[i-1].Group {
				text.WriteByte('+')
			} else if i > 0 {
				text.WriteByte(' ')
			}
			fmt.Fprint(&text, g.Job)
			executed[g.Job] += 360
		}
		ran = append(ran, text.String())
	}
	return ran
}

func TestPairsShareDevices(t *testing.T) {
	job := func(application string) *coretest.JobBuilder {
		return coretest.MakeJob("j").Application(application).Replicas(1).Work(1e5)
	}
	one := func() *coretest.ClusterBuilder { return coretest.MakeCluster().Nodes(1, "a", 1) }
	good := map[string][2]float64{"x y": {0.8, 0.7}}
	cases := map[string]struct {
		cluster *core.Cluster
		table   map[string][2]float64
		jobs    []*coretest.JobBuilder
		config  map[string]any
		want    []string
	}{
		"a pair that gains":               {one().TakesTurns(2, 0).Obj(), good, []*coretest.JobBuilder{job("x"), job("y")}, nil, []string{"0+1", "0+1", "0+1"}},
		"two of a kind":                   {one().TakesTurns(2, 0).Obj(), map[string][2]float64{"x x": {0.7, 0.7}}, []*coretest.JobBuilder{job("x"), job("x")}, nil, []string{"0+1", "0+1"}},
		"a pair that gains nothing":       {one().TakesTurns(2, 0).Obj(), map[string][2]float64{"x y": {0.5, 0.5}}, []*coretest.JobBuilder{job("x"), job("y")}, nil, []string{"0", "1", "0"}},
		"a pair that gains too little":    {one().TakesTurns(2, 0).Obj(), good, []*coretest.JobBuilder{job("x"), job("y")}, map[string]any{"least_gain": 1.5}, []string{"0", "1"}},
		"a pair that does not fit":        {one().TakesTurns(2, 0).Obj(), map[string][2]float64{"x y": {}}, []*coretest.JobBuilder{job("x"), job("y")}, map[string]any{"least_gain": 0.0}, []string{"0", "1"}},
		"nobody measured the pair":        {one().TakesTurns(2, 0).Obj(), good, []*coretest.JobBuilder{job("x"), job("z")}, nil, []string{"0", "1"}},
		"nobody measured anything":        {one().TakesTurns(2, 0).Obj(), nil, []*coretest.JobBuilder{job("x"), job("y")}, nil, []string{"0", "1"}},
		"too little memory for both":      {one().TakesTurns(2, 16).Obj(), good, []*coretest.JobBuilder{job("x").DeviceMemory(9), job("y").DeviceMemory(8)}, nil, []string{"0", "1"}},
		"memory for both":                 {one().TakesTurns(2, 16).Obj(), good, []*coretest.JobBuilder{job("x").DeviceMemory(8), job("y").DeviceMemory(8)}, nil, []string{"0+1", "0+1"}},
		"a pinned job":                    {one().TakesTurns(2, 0).Obj(), good, []*coretest.JobBuilder{job("x").Pinned(), job("y")}, nil, []string{"0", "1"}},
		"one job":                         {one().TakesTurns(2, 0).Obj(), good, []*coretest.JobBuilder{job("x")}, nil, []string{"0"}},
		"jobs of different size":          {coretest.MakeCluster().Nodes(1, "a", 2).TakesTurns(2, 0).Obj(), good, []*coretest.JobBuilder{job("x"), job("y").Replicas(2)}, nil, []string{"0", "1", "0"}},
		"devices that nobody may share":   {one().Obj(), good, []*coretest.JobBuilder{job("x"), job("y")}, nil, []string{"0", "1"}},
		"as published, room for everyone": {coretest.MakeCluster().Nodes(2, "a", 1).TakesTurns(2, 0).Obj(), map[string][2]float64{"x y": {0.4, 0.4}}, []*coretest.JobBuilder{job("x"), job("y")}, nil, []string{"0 1", "0 1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for of, f := range map[string]core.Factory[core.Allocator]{"max-min": NewMaxMinPacked(), "makespan": NewMakespanPacked()} {
				if d := diff.Diff(tc.want, holdPairs(t, newPolicy(t, f, tc.config), tc.cluster, measured(tc.table), tc.jobs, len(tc.want))); d != "" {
					t.Errorf("%s: rounds (-want +got):\n%s", of, d)
				}
			}
		})
	}
}

// Both of a pair do 0.6 of what they do alone, and the third what is left: 0.6 s = 1 - s, so that the pair has five eighths of the time. As for jobs,
// a pair is charged what it ran.
func TestPairsFollowTheirShares(t *testing.T) {
	jobs := []*coretest.JobBuilder{coretest.MakeJob("j").Application("x").Replicas(1), coretest.MakeJob("j").Application("y").Replicas(1), coretest.MakeJob("j").Application("z").Replicas(1)}
	table := measured(map[string][2]float64{"x y": {0.6, 0.6}})
	got := holdPairs(t, newPolicy(t, NewMaxMinPacked(), nil), coretest.MakeCluster().Nodes(1, "a", 1).TakesTurns(2, 0).Obj(), table, jobs, 8)
	counts := map[string]int{}
	for _, round := range got {
		counts[round]++
	}
	if want := map[string]int{"0+1": 5, "2": 3}; !diff.Equal(want, counts) {
		t.Errorf("granted %v, want %v", counts, want)
	}
}

// Where no pair gains anything, the packed policies are the others, whatever happens.
func TestWithoutPairsNothingChanges(t *testing.T) {
	for name, both := range map[string][2]core.Factory[core.Allocator]{
		"max-min": {NewMaxMin(), NewMaxMinPacked()}, "makespan": {NewMakespan(), NewMakespanPacked()},
		"finish-time fairness": {NewFinishTimeFairness(), NewFinishTimeFairnessPacked()},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawn.View(t)
				v.Cluster.Sharing, v.Cluster.MaxOwners = core.TimeSlice, 2
				var pairs []core.Pair
				for _, on := range v.Cluster.Accelerators {
					for _, a := range []string{"bert", "ncf", "resnet"} {
						parts := [2]float64{0.5, 0.5}
						if a != "bert" {
							parts[0] = rapid.Float64Range(0, 1).Draw(t, "part")
							parts[1] = 0.999 * (1 - parts[0])
						}
						pairs = append(pairs, core.Pair{Accelerator: on, Applications: [2]string{a, "bert"}, Replicas: 1, Parts: parts})
					}
				}
				table := core.NewPairTable(pairs)
				for _, j := range v.Jobs {
					if j != nil {
						spec := *j.JobSpec
						spec.Pairs = table
						j.JobSpec = &spec
					}
				}
				alone, packed := newPolicy(t, both[0], nil), newPolicy(t, both[1], nil)
				for range 3 {
					want, err := alone.Allocate(t.Context(), v, candidates)
					if err != nil {
						t.Fatal(err)
					}
					got, err := packed.Allocate(t.Context(), v, candidates)
					if err != nil {
						t.Fatal(err)
					}
					if d := diff.Diff(want, got); d != "" {
						t.Fatalf("grants (-alone +packed):\n%s", d)
					}
					v.NowSeconds += 60
				}
			})
		})
	}
}

// Who takes over knows what the pairs received.
func TestPairsAreHandedOn(t *testing.T) {
	job := func(application string) *coretest.JobBuilder {
		return coretest.MakeJob("j").Application(application).Replicas(1).Work(1e5)
	}
	jobs := []*coretest.JobBuilder{job("x"), job("y"), job("z"), job("x")}
	table := measured(map[string][2]float64{"x y": {0.8, 0.7}, "x z": {0.6, 0.6}, "y z": {0.7, 0.5}})
	c := coretest.MakeCluster().Nodes(1, "a", 1).TakesTurns(2, 0).Obj()
	for name, f := range map[string]core.Factory[core.Allocator]{"max-min": NewMaxMinPacked(), "fairness": NewFinishTimeFairnessPacked()} {
		t.Run(name, func(t *testing.T) {
			first := newPolicy(t, f, map[string]any{"recompute_interval": time.Hour.String()})
			want := holdPairs(t, first, c, table, jobs, 5)
			learned, err := first.(core.Snapshotter).Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			second := newPolicy(t, f, map[string]any{"recompute_interval": time.Hour.String()})
			if err := second.(core.Snapshotter).Restore(learned); err != nil {
				t.Fatal(err)
			}
			again, err := second.(core.Snapshotter).Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if string(again) != string(learned) || !strings.Contains(string(learned), `"Pairs":[{`) {
				t.Errorf("after rounds %v it learned\n%s\nand was handed\n%s", want, again, learned)
			}
			for broken, text := range map[string]string{
				"a job that is not there":  strings.Replace(string(learned), `"Pairs":[{"Jobs":[0,`, `"Pairs":[{"Jobs":[9,`, 1),
				"a type that is not there": strings.Replace(string(learned), `"Pairs":[{"Jobs":[0,1],"Granted":`, `"Pairs":[{"Jobs":[0,1],"Granted":7`, 1),
			} {
				if err := newPolicy(t, f, nil).(core.Snapshotter).Restore([]byte(text)); text != string(learned) && err == nil {
					t.Errorf("%s is taken up", broken)
				}
			}
			if err := newPolicy(t, NewMaxMin(), nil).(core.Snapshotter).Restore(learned); err == nil {
				t.Error("a policy without pairs takes up those of one with")
			}
		})
	}
}

func TestPackedConfig(t *testing.T) {
	if err := (PackedConfig{Rounds: Rounds{TypeBlind: true}}).Validate(); err == nil || !strings.HasPrefix(err.Error(), "type_blind: ") {
		t.Errorf("blind to types: %v", err)
	}
}
