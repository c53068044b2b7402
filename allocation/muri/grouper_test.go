package muri

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/interference"
)

// Jobs that need one resource for a second, or nearly.
var (
	loads    = core.Iteration{Load: 1}
	computes = core.Iteration{Compute: 1}
	syncs    = core.Iteration{Sync: 1}
)

func jobsOf(devices int, stages ...core.Iteration) (jobs []Job) {
	for _, s := range stages {
		jobs = append(jobs, Job{Devices: devices, Stages: s, Seconds: s.Seconds()})
	}
	return jobs
}

func TestGroups(t *testing.T) {
	slow := interference.PeriodModel{Factors: [interference.MaxInterleaved + 1]float64{2: 3, 3: 3, 4: 3}}
	cases := map[string]struct {
		grouper Grouper
		jobs    []Job
		devices int
		want    []Group
	}{
		"nobody": {devices: 8},
		"room for each alone": {
			jobs: jobsOf(1, computes, loads), devices: 2,
			want: []Group{{[]int32{0}, 1}, {[]int32{1}, 1}},
		},
		"two that do not meet share": {
			jobs: jobsOf(4, computes, loads), devices: 4,
			want: []Group{{[]int32{0, 1}, 1}},
		},
		"the best pairs, not the next ones": {
			grouper: Grouper{Largest: 2}, jobs: jobsOf(1, computes, computes, loads, loads), devices: 2,
			want: []Group{{[]int32{0, 2}, 1}, {[]int32{1, 3}, 1}},
		},
		"four on one device, in two rounds": {
			jobs: jobsOf(1, computes, loads, syncs, loads), devices: 1,
			want: []Group{{[]int32{0, 1, 2, 3}, 1}}, // one loads from storage while the other prepares on CPUs
		},
		"sizes do not mix": {
			jobs: slices.Concat(jobsOf(2, computes), jobsOf(1, loads), jobsOf(1, computes)), devices: 3,
			want: []Group{{[]int32{0}, 1}, {[]int32{1, 2}, 1}},
		},
		"the fifth of a size waits, and one that is too large": {
			jobs: slices.Concat(jobsOf(16, computes), jobsOf(8, computes, computes, computes, computes, computes)), devices: 8,
			want: []Group{{[]int32{1, 2, 3, 4}, 4}},
		},
		"slower than one after the other: apart, and those behind wait": {
			grouper: Grouper{Model: slow}, jobs: jobsOf(1, computes, loads), devices: 1,
			want: []Group{{[]int32{0}, 1}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.grouper.Solve(tc.jobs, tc.devices)
			if diff := cmp.Diff(tc.want, got); diff != "" && len(tc.want)+len(got) > 0 {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

// Exchanges never make groups less efficient together.
func TestExchangeMakesUpForMatching(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs, _ := drawJobs(t)
		devices := rapid.IntRange(1, 8).Draw(t, "devices")
		plain := Grouper{Model: interference.MeasuredPeriods()}
		better := Grouper{Model: interference.MeasuredPeriods(), Exchange: true}
		for i := range jobs {
			jobs[i].Devices = 1
		}
		efficiency := func(g *Grouper, groups []team) (sum float64) {
			for _, t := range groups {
				sum += g.efficiency(t.list())
			}
			return sum
		}
		plain.Solve(jobs, devices)
		better.Solve(jobs, devices)
		if plain.used == 0 {
			return
		}
		before, after := efficiency(&plain, plain.bins[0].groups), efficiency(&better, better.bins[0].groups)
		if after < before-1e-9 {
			t.Errorf("exchanges lower the efficiency from %v to %v", before, after)
		}
	})
}

// A running group stays whole when jobs of the same kinds are put together in another way.
func TestSteadyKeepsGroupsThatRun(t *testing.T) {
	jobs := jobsOf(1, computes, computes, loads, loads)
	for i, group := range []int32{7, 9, 9, 7} {
		jobs[i].Group = group
	}
	g := Grouper{Largest: 2, Steady: true}
	want := []Group{{[]int32{0, 3}, 1}, {[]int32{1, 2}, 1}}
	if diff := cmp.Diff(want, g.Solve(jobs, 2)); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func drawJobs(t *rapid.T) (jobs []Job, devices int) {
	kinds := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.Iteration {
		stage := rapid.Float64Range(0, 10)
		return core.Iteration{Load: stage.Draw(t, "load"), Compute: stage.Draw(t, "compute") + 0.1, Sync: stage.Draw(t, "sync")}
	}), 1, 5).Draw(t, "kinds")
	jobs = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Job {
		s := rapid.SampledFrom(kinds).Draw(t, "kind")
		return Job{Devices: 1 << rapid.IntRange(0, 3).Draw(t, "size"), Stages: s, Seconds: s.Seconds(), Group: int32(rapid.IntRange(0, 6).Draw(t, "group"))}
	}), 0, 40).Draw(t, "jobs")
	return jobs, rapid.IntRange(0, 20).Draw(t, "devices")
}

// Nobody runs twice, groups are of one size and no more than there may be, all fit, no group is slower than its jobs in turn, those with the
// first jobs come first, and a second call gives the same.
func TestGroupsAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs, devices := drawJobs(t)
		g := Grouper{
			Model: interference.MeasuredPeriods(), Largest: rapid.IntRange(0, 4).Draw(t, "largest"),
			Exchange: rapid.Bool().Draw(t, "exchange"), Steady: rapid.Bool().Draw(t, "steady"),
		}
		groups := g.Solve(jobs, devices)
		seen, left, before := map[int32]bool{}, devices, int32(-1)
		var copied []Group
		for _, group := range groups {
			copied = append(copied, Group{slices.Clone(group.Jobs), group.Period})
			left -= jobs[group.Jobs[0]].Devices
			alone := 0.0
			for _, i := range group.Jobs {
				if seen[i] || jobs[i].Devices != jobs[group.Jobs[0]].Devices {
					t.Errorf("job %d in %v", i, group)
				}
				seen[i] = true
				alone += jobs[i].Seconds
			}
			if !slices.IsSorted(group.Jobs) || group.Jobs[0] <= before || len(group.Jobs) > g.largest() || group.Period > alone {
				t.Errorf("group %v, alone %v s, after %d", group, alone, before)
			}
			before = group.Jobs[0]
		}
		if left < 0 {
			t.Errorf("%d devices too many", -left)
		}
		if len(jobs) > 0 && jobs[0].Devices <= devices && len(groups) == 0 {
			t.Error("nobody runs, and there is room")
		}
		if diff := cmp.Diff(copied, g.Solve(jobs, devices)); diff != "" && len(copied) > 0 {
			t.Errorf("a second call (-first +second):\n%s", diff)
		}
	})
}

func TestSolveAllocatesNothing(t *testing.T) {
	var jobs []Job
	for i := range 300 {
		s := core.Iteration{Load: float64(1 + i%7), Compute: float64(1 + i%5), Sync: float64(i % 3)}
		jobs = append(jobs, Job{Devices: 1 << (i % 3), Stages: s, Seconds: s.Seconds(), Group: int32(i / 4)})
	}
	g := Grouper{Model: interference.MeasuredPeriods(), Exchange: true, Steady: true}
	g.Solve(jobs, 64)
	if n := testing.AllocsPerRun(20, func() { g.Solve(jobs, 64) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestKeys(t *testing.T) {
	if got := Remaining(10, 0.5, 8); got != 40 {
		t.Errorf("remaining %v device-seconds, want 40", got)
	}
	if got := Attained(60, 8, 4); math.Abs(got-120) > 1e-12 {
		t.Errorf("attained %v device-seconds, want 120", got)
	}
}

func BenchmarkSolve(b *testing.B) {
	var jobs []Job
	for i := range 400 {
		s := core.Iteration{Load: float64(1 + i%7), Compute: float64(1 + i%5), Sync: float64(i % 3)}
		jobs = append(jobs, Job{Devices: 1, Stages: s, Seconds: s.Seconds(), Group: int32(i / 4)})
	}
	for name, g := range map[string]*Grouper{"muri": {Model: interference.MeasuredPeriods()}, "exchange": {Model: interference.MeasuredPeriods(), Exchange: true, Steady: true}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				g.Solve(jobs, 64)
			}
		})
	}
}

// busy is the part of all resources that jobs keep busy in a group.
func busy(m *interference.PeriodModel, jobs []Job, group []int32) float64 {
	var stages []core.Iteration
	seconds := 0.0
	for _, i := range group {
		stages = append(stages, jobs[i].Stages)
		seconds += jobs[i].Stages.Seconds()
	}
	if len(group) == 1 {
		return seconds / (interference.MaxInterleaved * jobs[group[0]].Seconds)
	}
	return seconds / (interference.MaxInterleaved * m.Period(stages))
}

// After exchanges no two groups would be more efficient together if they divided their jobs in another way, as many to each, of those that may be together.
func TestExchangeEndsAtAnOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs, _ := drawJobs(t)
		for i := range jobs {
			jobs[i].Devices, jobs[i].Seconds = 1, jobs[i].Stages.Seconds()*rapid.Float64Range(1, 2).Draw(t, "measured")
			jobs[i].MemoryGB = float64(rapid.IntRange(0, 5).Draw(t, "memory"))
		}
		fits := func(group []int32) bool {
			memory := 0.0
			for _, i := range group {
				memory += jobs[i].MemoryGB
			}
			return memory <= 10
		}
		g := Grouper{Model: interference.MeasuredPeriods(), Exchange: true, Fits: fits, Largest: rapid.IntRange(2, 4).Draw(t, "largest")}
		g.Solve(jobs, rapid.IntRange(1, 8).Draw(t, "devices"))
		if g.used == 0 {
			return
		}
		seen := map[int32]bool{}
		groups := g.bins[0].groups
		for u := range groups {
			x := slices.Clone(groups[u].list())
			for _, i := range x {
				if seen[i] {
					t.Errorf("job %d is in two groups", i)
				}
				seen[i] = true
			}
			if !fits(x) && len(x) > 1 {
				t.Errorf("%v do not fit together", x)
			}
			for v := range u {
				y := groups[v].list()
				all := slices.Concat(x, y)
				now := busy(&g.Model, jobs, x) + busy(&g.Model, jobs, y)
				for mask := range 1 << len(all) {
					var p, q []int32
					for k, i := range all {
						if mask>>k&1 == 1 {
							p = append(p, i)
						} else {
							q = append(q, i)
						}
					}
					together := func(group []int32) bool { return len(group) == 1 || fits(group) }
					if len(p) != len(x) || !together(p) || !together(q) {
						continue
					}
					if then := busy(&g.Model, jobs, p) + busy(&g.Model, jobs, q); then > now+1e-6 {
						t.Errorf("%v and %v keep %v busy, %v and %v would %v", x, y, now, p, q, then)
					}
				}
			}
		}
	})
}

// Of the groups that run as many stay whole as there are groups of the same kinds.
func TestSteadyRestoresGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := []core.Iteration{loads, computes, syncs}
		var jobs []Job
		for range rapid.IntRange(2, 16).Draw(t, "jobs") {
			s := rapid.SampledFrom(kinds).Draw(t, "kind")
			jobs = append(jobs, Job{Devices: 1, Stages: s, Seconds: 1, Group: int32(rapid.IntRange(0, 4).Draw(t, "group"))})
		}
		g := Grouper{Largest: rapid.IntRange(2, 4).Draw(t, "largest"), Steady: true}
		g.Solve(jobs, rapid.IntRange(1, 8).Draw(t, "devices"))
		if g.used == 0 {
			return
		}
		runs, there, whole := map[kindsAndSize]int{}, map[kindsAndSize]int{}, map[kindsAndSize]int{}
		running := map[int32][]int32{}
		members := 0
		for _, team := range g.bins[0].groups {
			of := kindsAndSize{g.kindsOf(team.list()), team.n}
			there[of]++
			members += team.n
			for _, i := range team.list() {
				if jobs[i].Group > 0 {
					running[jobs[i].Group] = append(running[jobs[i].Group], i)
				}
			}
		}
		for _, run := range running {
			slices.Sort(run)
			if len(run) < 2 || len(run) > g.Largest {
				continue
			}
			of := kindsAndSize{g.kindsOf(run), len(run)}
			runs[of]++
			for _, team := range g.bins[0].groups {
				if list := slices.Sorted(slices.Values(team.list())); slices.Equal(list, run) {
					whole[of]++
				}
			}
		}
		for of, n := range runs {
			if want := min(n, there[of]); whole[of] != want {
				t.Errorf("%d groups of %v run, there are %d of these kinds, and %d are whole", n, of, there[of], whole[of])
			}
		}
	})
}

type kindsAndSize struct {
	kinds
	n int
}

// No more jobs share than the devices make necessary.
func TestNoMoreGroupsThanNeeded(t *testing.T) {
	for devices, want := range map[int]int{8: 0, 7: 1, 6: 2, 5: 3, 4: 4} {
		g := Grouper{Largest: 2}
		pairs := 0
		for _, group := range g.Solve(jobsOf(1, computes, loads, computes, loads, computes, loads, computes, loads), devices) {
			if len(group.Jobs) == 2 {
				pairs++
			}
		}
		if pairs != want {
			t.Errorf("%d pairs on %d devices, want %d", pairs, devices, want)
		}
	}
}
