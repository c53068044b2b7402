package allocation

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/elastic"
	"github.com/quartet-sched/quartet/policykit/policytest"
)

func TestAFS(t *testing.T) {
	scaled := func(most int) *coretest.JobBuilder { return coretest.MakeJob("a").Elastic(1, 1, most).Waiting() }
	perfect := []float64{1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5, 1.0 / 6, 1.0 / 7, 1.0 / 8}
	poor := []float64{1, 0.8, 0.79, 0.78, 0.77, 0.76, 0.75, 0.74}
	dip := []float64{1, 0.5, 0.6, 0.55, 0.2, 0.19, 0.18, 0.17} // three and four devices are slower than two
	unknown := math.NaN()

	cases := map[string]struct {
		jobs      []*coretest.JobBuilder
		stepTimes [][]float64
		stepsLeft []float64
		want      string
	}{
		"alone it takes all that helps": {[]*coretest.JobBuilder{scaled(16)}, [][]float64{perfect}, []float64{10}, "0×8"},
		"and no more than it can use":   {[]*coretest.JobBuilder{scaled(3)}, [][]float64{perfect}, []float64{10}, "0×3"},
		"too few devices go to the shortest": {
			[]*coretest.JobBuilder{scaled(8), scaled(8), scaled(8), scaled(8), scaled(8), scaled(8), scaled(8), scaled(8), scaled(8)},
			[][]float64{poor, poor, poor, poor, poor, poor, poor, poor, poor},
			[]float64{9, 1, 2, 3, 4, 5, 6, 7, 8},
			"1×1 2×1 3×1 4×1 5×1 6×1 7×1 8×1",
		},
		// With perfect speed-up the long job's claim is 1/(n+1) and the short one's 1/n: the short one, which wins ties,
		// stays one or two devices ahead.
		"of two that scale alike the short one leads": {
			[]*coretest.JobBuilder{scaled(8), scaled(8)}, [][]float64{perfect, perfect}, []float64{70, 10}, "0×3 1×5",
		},
		// The short job's second device speeds it up by a quarter, and the third by 1 %; the long job's by half.
		"an efficient long job beats a poor short one": {
			[]*coretest.JobBuilder{scaled(8), scaled(8)}, [][]float64{poor, perfect}, []float64{1, 100}, "0×2 1×6",
		},
		"a dip is crossed": {[]*coretest.JobBuilder{scaled(8)}, [][]float64{dip}, []float64{10}, "0×8"},
		// Job 0, with two devices, wants three more at once, and job 1 cannot use them.
		"but not with fewer devices than that takes": {
			[]*coretest.JobBuilder{scaled(8), scaled(4)}, [][]float64{dip, perfect}, []float64{100, 1}, "0×2 1×4",
		},
		"a rigid job gets what it needs or nothing": {
			[]*coretest.JobBuilder{policytest.Waits(6).Work(9), policytest.Waits(4).Work(5), policytest.Waits(2).Work(7)},
			[][]float64{nil, nil, nil},
			[]float64{unknown, unknown, unknown},
			"2×2 1×4",
		},
		"declared work stands in for steps left": {
			[]*coretest.JobBuilder{scaled(8).Work(70), scaled(8).Work(10)}, [][]float64{perfect, perfect}, []float64{unknown, unknown}, "0×3 1×5",
		},
		"work unknown comes last": {
			[]*coretest.JobBuilder{policytest.Waits(6), policytest.Waits(4).Work(1e9)}, [][]float64{nil, nil}, []float64{unknown, unknown}, "1×4",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := policytest.New(t, NewAFS(), nil)
			if got := policytest.Allocate(t, policy, policytest.EightDevices(tc.jobs...), profiled(tc.stepTimes, tc.stepsLeft)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// With steps of one device, a job that the next one does not speed up gets no more; without the setting it passes the dip.
func TestAFSSteps(t *testing.T) {
	dip := []float64{1, 0.5, 0.6, 0.55, 0.2, 0.19, 0.18, 0.17} // three and four devices are slower than two
	perfect := []float64{1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5, 1.0 / 6, 1.0 / 7, 1.0 / 8}
	for name, tc := range map[string]struct {
		config map[string]any
		most   int // of a second job that scales perfectly and ends later; 0 for none
		want   string
	}{
		"absent":                            {nil, 0, "0×8"},
		"next_level":                        {map[string]any{"steps": elastic.NextLevel}, 0, "0×8"},
		"one":                               {map[string]any{"steps": elastic.OneByOne}, 0, "0×2"},
		"next_level beside another job":     {map[string]any{"steps": elastic.NextLevel}, 3, "1×3 0×5"},
		"one leaves to others what it lets": {map[string]any{"steps": elastic.OneByOne}, 8, "0×2 1×6"},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := []*coretest.JobBuilder{policytest.Waits(1).Elastic(1, 1, 8)}
			if tc.most > 0 {
				jobs = append(jobs, policytest.Waits(1).Elastic(1, 1, tc.most))
			}
			got := policytest.Allocate(t, policytest.New(t, NewAFS(), tc.config), policytest.EightDevices(jobs...), profiled([][]float64{dip, perfect}, []float64{1, 100}))
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A job that begins with two devices claims 1/2 by the device. The short job gains 1, 1/2 and 1/3 by each device it adds: the
// first three are its own, and the last one is not enough for the other.
func TestAFSWeighsALargeStartByTheDevice(t *testing.T) {
	short, long := coretest.MakeJob("a").Elastic(1, 1, 8).Waiting(), coretest.MakeJob("a").Elastic(2, 2, 2).Waiting()
	v := coretest.MakeView(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()).Now(1000).Jobs(short, long).Obj()
	perfect := []float64{1, 1.0 / 2, 1.0 / 3, 1.0 / 4}
	if got := policytest.Allocate(t, policytest.New(t, NewAFS(), nil), v, profiled([][]float64{perfect, perfect}, []float64{1, 100})); got != "0×4" {
		t.Errorf("got %q, want %q", got, "0×4")
	}
}

func TestAFSIsSteadyWithoutDeclaredWork(t *testing.T) {
	policy := policytest.New(t, NewAFS(), nil)
	v := policytest.EightDevices(policytest.Waits(1).Elastic(1, 1, 2).Work(10))
	for stepsLeft, want := range map[float64]float64{5: policytest.Forever, math.NaN(): 1000} {
		grants := policytest.Ask(t, policy, v, profiled([][]float64{{2, 1}}, []float64{stepsLeft}))
		if got := policytest.StandsUntil(t, policy, v, grants); got != want {
			t.Errorf("%v steps left: stands until %v s, want %v", stepsLeft, got, want)
		}
	}
}

// The pairwise rule, word for word, gives every job what the policy gives it, where each device helps.
func TestAFSFollowsTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "jobs")
		var jobs []*coretest.JobBuilder
		stepTimes, stepsLeft := make([][]float64, n), make([]float64, n)
		for i := range n {
			jobs = append(jobs, policytest.Waits(1).Elastic(1, 1, 12))
			seconds := 1.0
			for range 12 {
				stepTimes[i] = append(stepTimes[i], seconds)
				seconds *= rapid.Float64Range(0.3, 0.99).Draw(t, "speed-up")
			}
			stepsLeft[i] = rapid.Float64Range(1, 1000).Draw(t, "steps left")
		}
		v := coretest.MakeView(coretest.MakeCluster().Nodes(rapid.IntRange(1, 6).Draw(t, "nodes"), "t4", 2).Obj()).Jobs(jobs...).Obj()
		speed := func(i, k int) float64 {
			if k == 0 {
				return 0
			}
			return 1 / stepTimes[i][k-1]
		}
		got := make([]int, n)
		wins := func(a, b int) bool { // of devices a and b have now
			if got[a] == 0 && got[b] == 0 {
				return stepsLeft[a]*stepTimes[a][0] <= stepsLeft[b]*stepTimes[b][0]
			}
			short, long := a, b
			if stepsLeft[b]/speed(b, got[b]) < stepsLeft[a]/speed(a, got[a]) {
				short, long = b, a
			}
			gain := func(i int) float64 { return speed(i, got[i]+1) - speed(i, got[i]) }
			longWins := gain(long)/speed(long, got[long]+1) > gain(short)/speed(short, got[short])
			return longWins == (a == long)
		}
		for range v.Devices {
			best := -1
			for i := range n {
				if got[i] < 12 && (best < 0 || !wins(best, i)) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			got[best]++
		}
		want := ""
		for k := 1; k <= v.Devices; k++ {
			for i := range got {
				if got[i] == k {
					want += fmt.Sprintf(" %d×%d", i, k)
				}
			}
		}
		for _, steps := range [...]string{elastic.OneByOne, elastic.NextLevel} {
			policy := policytest.New(t, NewAFS(), map[string]any{"steps": steps})
			if grants := " " + policytest.Allocate(t, policy, v, profiled(stepTimes, stepsLeft)); grants != want {
				t.Fatalf("steps %s: got %q, want %q", steps, grants, want)
			}
		}
	})
}

func BenchmarkAFS(b *testing.B) {
	const jobs, devices = 500, 1000
	var builders []*coretest.JobBuilder
	rates := make([]float64, 64)
	for i := range rates {
		rates[i] = math.Pow(float64(i+1), 0.8)
	}
	for i := range jobs {
		builders = append(builders, policytest.Waits(1).Elastic(1, 1, 64).Work(float64(100+i*37%1000)))
	}
	v := coretest.MakeView(coretest.MakeCluster().Nodes(devices/4, "t4", 4).Obj()).Jobs(builders...).Obj()
	candidates := coretest.Candidates(v, func(j *core.Job) core.Response {
		curves := []core.Curve{{OneNode: rates, ManyNodes: rates}}
		return core.Response{Job: j.ID, MinReplicas: 1, MaxReplicas: 64, Curves: curves, RemainingWork: j.TotalWork}
	})
	policy := &afs{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := policy.Allocate(b.Context(), v, candidates); err != nil {
			b.Fatal(err)
		}
	}
}
