package tiresias

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/policykit/policytest"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// The rules of the Pollux artifact: two queues, threshold 57,600 device-seconds, FIFO inside, smaller jobs pass.
func TestTiresias(t *testing.T) {
	demoted := func(replicas int) *coretest.JobBuilder { // in 100 s it reaches the threshold
		return policytest.Runs(replicas).Executed(57600/float64(replicas)-100, 0)
	}
	cases := map[string]struct {
		config map[string]any
		jobs   []*coretest.JobBuilder
		want   string
	}{
		"new jobs are served in submission order":  {nil, []*coretest.JobBuilder{policytest.Waits(4), policytest.Waits(2), policytest.Waits(2)}, "0×4 1×2 2×2"},
		"a running job yields to an earlier one":   {nil, []*coretest.JobBuilder{policytest.Waits(8), policytest.Runs(1)}, "0×8"},
		"a smaller job passes one that lacks room": {nil, []*coretest.JobBuilder{policytest.Runs(4), policytest.Waits(8), policytest.Waits(4)}, "0×4 2×4"},
		"at the threshold a job sinks":             {nil, []*coretest.JobBuilder{demoted(8), policytest.Waits(1), policytest.Waits(1)}, "1×1 2×1"},
		"and is served when the first queue is":    {nil, []*coretest.JobBuilder{demoted(4), demoted(4), policytest.Waits(4)}, "2×4 0×4"},
		"just below it stays":                      {nil, []*coretest.JobBuilder{policytest.Runs(8).Executed(57600/8-100.25, 0), policytest.Waits(1)}, "0×8"},
		"service counts requested replicas":        {nil, []*coretest.JobBuilder{demoted(4).Elastic(1, 2, 4), policytest.Waits(8)}, "0×2"},
		"wall time does not count replicas":        {map[string]any{"service": queue.WallTime}, []*coretest.JobBuilder{demoted(8), policytest.Waits(1)}, "0×8"},
		"more queues": {
			map[string]any{"thresholds": []any{1000, 2000}},
			[]*coretest.JobBuilder{policytest.Runs(1).Executed(1950, 0), policytest.Runs(1).Executed(1000, 0), policytest.Waits(6)},
			"2×6 1×1 0×1",
		},
		"running jobs first inside a queue": {
			map[string]any{"inside": insideRunningFirst}, []*coretest.JobBuilder{policytest.Waits(8), policytest.Runs(1), policytest.Waits(7)}, "1×1 2×7",
		},
		"blocking": {map[string]any{"queue": queue.Blocking}, []*coretest.JobBuilder{policytest.Runs(4), policytest.Waits(8), policytest.Waits(4)}, "0×4| 1×8|"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy, v := policytest.New(t, New(), tc.config), policytest.EightDevices(tc.jobs...)
			elastic := func(j *core.Job) core.Response {
				return core.Response{Job: j.ID, MinReplicas: j.MinReplicas, MaxReplicas: j.MaxReplicas}
			}
			policytest.Allocate(t, policy, v, elastic) // the round in which the jobs are new
			if got := policytest.Allocate(t, policy, v, elastic); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A job of eight devices has 3250 device-seconds after 406.25 s. It has a round of its own after 407 s, and sinks in one that comes between.
func TestTiresiasSinksAfterWholeSeconds(t *testing.T) {
	cases := map[string]struct {
		sinks    string
		executed float64
		queue    int // the first is 1
		until    float64
	}{
		"a whole second later":                  {sinksWholeSeconds, 406, 1, 1001},
		"wherever it was interrupted":           {sinksWholeSeconds, 405.7, 1, 1001.3},
		"past the threshold, in another round":  {sinksWholeSeconds, 406.25, 2, 1493.75},
		"rounding does not keep it back":        {sinksWholeSeconds, 406.25 - 1e-9, 2, 1493.75},
		"a threshold of whole seconds":          {sinksWholeSeconds, 899, 2, 1001},
		"the last queue":                        {sinksWholeSeconds, 900, 3, policytest.Forever},
		"at the threshold itself where it may":  {sinksAtThreshold, 406, 1, 1000.25},
		"at the threshold itself, it has to be": {sinksAtThreshold, 406.25 - 1e-9, 1, 1000},
		"and not at the whole second behind it": {sinksAtThreshold, 406.25, 2, 1493.75},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := policytest.New(t, New(), map[string]any{"thresholds": []any{3250, 7200}, "sinks": tc.sinks})
			v := policytest.EightDevices(policytest.Runs(8).Executed(tc.executed-100, 0)) // it runs for another 100 s
			grants := policytest.Ask(t, policy, v, coretest.Rigid)
			lists := policy.(*tiresias).Lists
			if got := 1 + slices.IndexFunc(lists, func(ids []core.JobID) bool { return slices.Contains(ids, 0) }); got != tc.queue {
				t.Errorf("queue %d, want %d", got, tc.queue)
			}
			if got := policytest.StandsUntil(t, policy, v, grants); got != tc.until && !(math.Abs(got-tc.until) <= 1e-5) {
				t.Errorf("stands until %v s, want %v", got, tc.until)
			}
		})
	}
}

// Job 1 sinks two rounds before job 0, so it is ahead of it in the second queue.
func TestTiresiasSinksToTheTail(t *testing.T) {
	policy := policytest.New(t, New(), map[string]any{"thresholds": []any{1000}})
	v := policytest.EightDevices(policytest.Runs(1), policytest.Runs(1).Executed(850, 0))
	for _, tc := range []struct {
		now  float64
		want string
	}{{1000, "0×1 1×1"}, {1060, "0×1 1×1"}, {1900, "1×1 0×1"}} {
		v.NowSeconds = tc.now
		if got := policytest.Allocate(t, policy, v, coretest.Rigid); got != tc.want {
			t.Errorf("at %v s: got %q, want %q", tc.now, got, tc.want)
		}
	}
}

// Job 0 ran 500 s, sank, and waits since 1000 s. With factor 2 it rises at 2000 s, to the tail of the first queue;
// having forgotten its service, it sinks again after 100 s.
func TestTiresiasPromotes(t *testing.T) {
	policy := policytest.New(t, New(), map[string]any{"thresholds": []any{100}, "promote_factor": 2})
	v := policytest.EightDevices(policytest.Waits(1).Executed(500, 500).Submit(1000), policytest.Waits(1).Submit(1000))
	for _, tc := range []struct {
		now    float64
		starts bool
		want   [][]core.JobID
	}{
		{now: 1000, want: [][]core.JobID{{1}, {0}}},
		{now: 1999, want: [][]core.JobID{{1}, {0}}},
		{now: 2000, want: [][]core.JobID{{1, 0}, {}}, starts: true},
		{now: 2099, want: [][]core.JobID{{1, 0}, {}}},
		{now: 2100, want: [][]core.JobID{{1}, {0}}},
	} {
		v.NowSeconds = tc.now
		policytest.Allocate(t, policy, v, coretest.Rigid)
		if diff := cmp.Diff(tc.want, policy.(*tiresias).Lists); diff != "" {
			t.Errorf("queues at %v s (-want +got):\n%s", tc.now, diff)
		}
		if j := v.Jobs[0]; tc.starts {
			j.State, j.Held, j.AsOfSeconds = core.Running, 1, tc.now
		}
	}
}

func TestTiresiasForgetsEndedJobs(t *testing.T) {
	policy := policytest.New(t, New(), nil)
	v := policytest.EightDevices(policytest.Waits(1), policytest.Waits(1), policytest.Waits(1))
	policytest.Allocate(t, policy, v, coretest.Rigid)
	v.Jobs[1], v.Active = nil, []core.JobID{0, 2}
	if got, want := policytest.Allocate(t, policy, v, coretest.Rigid), "0×1 2×1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff([][]core.JobID{{0, 2}, nil}, policy.(*tiresias).Lists); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}

func TestTiresiasStandsUntilAJobChangesQueue(t *testing.T) {
	cases := map[string]struct {
		config map[string]any
		jobs   []*coretest.JobBuilder
		want   float64
	}{
		"the first to reach a threshold": { // at 1000 s they have executed 100 s: (57600/4-100) and (57600/2-100-28000) to go
			nil, []*coretest.JobBuilder{policytest.Runs(4), policytest.Runs(2).Executed(28000, 0), policytest.Waits(4)}, 1700,
		},
		"nobody left to sink":              {nil, []*coretest.JobBuilder{policytest.Runs(1).Executed(99999, 0), policytest.Waits(9)}, policytest.Forever},
		"one that may start now sinks too": {nil, []*coretest.JobBuilder{policytest.Runs(1).Executed(99999, 0), policytest.Waits(1)}, 58600},
		"the first to rise": {
			map[string]any{"promote_factor": 10}, []*coretest.JobBuilder{policytest.Waits(1).Submit(500).Executed(60000, 60000)}, 600500,
		},
		"one that loses its devices waits from now": { // and has executed 50100 s
			map[string]any{"promote_factor": 0.1}, []*coretest.JobBuilder{policytest.Waits(8), policytest.Runs(8).Executed(50000, 0)}, 6010,
		},
		"a Gittins index moves while jobs wait": {
			map[string]any{"inside": insideGittins, "samples": []any{1}}, []*coretest.JobBuilder{policytest.Runs(1), policytest.Waits(8)}, 1000,
		},
		"running first, but one was not seated": {map[string]any{"inside": insideRunningFirst}, []*coretest.JobBuilder{policytest.Runs(1), policytest.Waits(1)}, 1000},
		"running first, and all granted run":    {map[string]any{"inside": insideRunningFirst}, []*coretest.JobBuilder{policytest.Runs(1), policytest.Waits(8)}, 58500},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy, v := policytest.New(t, New(), tc.config), policytest.EightDevices(tc.jobs...)
			grants := policytest.Ask(t, policy, v, coretest.Rigid)
			got := policytest.StandsUntil(t, policy, v, grants)
			if late := got - tc.want; got != tc.want && !(late < 0 && late > -0.001) {
				t.Errorf("stands until %v s, want %v or a hair before", got, tc.want)
			}
		})
	}
}

// The formula by hand: at 0, of {10, 20, 100} two end within 50, and a job consumes (10+20+50)/3 of them on average.
func TestGittins(t *testing.T) {
	index := newGittins([]float64{100, 10, 20}, 50)
	for attained, want := range map[float64]float64{
		0:   (2.0 / 3) / ((10.0 + 20 + 50) / 3),
		10:  (1.0 / 2) / ((10.0 + 50) / 2),
		20:  0,
		60:  1 / 40.0,
		100: 0,
		999: 0,
	} {
		if got := index.at(attained); math.Abs(got-want) > 1e-15 {
			t.Errorf("index at %v is %v, want %v", attained, got, want)
		}
	}
}

// With those samples, jobs that attained 60, 0, 10 and 20 have indices 0.025, 0.025, 1/60 and 0.
func TestTiresiasOrdersByGittinsIndex(t *testing.T) {
	policy := policytest.New(t, New(), map[string]any{
		"inside": insideGittins, "samples": []any{10, 20, 100}, "gittins_quantum": 50,
	})
	v := policytest.EightDevices(policytest.Waits(2).Executed(10, 0), policytest.Waits(2).Executed(10, 0), policytest.Waits(1).Executed(10, 0), policytest.Waits(1).Executed(60, 0), policytest.Waits(1))
	if got, want := policytest.Allocate(t, policy, v, coretest.Rigid), "3×1 4×1 2×1 0×2 1×2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTiresiasConfigNamesEveryProblem(t *testing.T) {
	_, problems := New().Decode(map[string]any{
		"thresholds": []any{5, 5, 0}, "inside": insideGittins, "gittins_quantum": 0,
	})
	want := core.Diagnostics{
		{Path: "thresholds[1]", Summary: "must be positive and above the one before, got 5"},
		{Path: "thresholds[2]", Summary: "must be positive and above the one before, got 0"},
		{Path: "samples", Summary: "required with inside gittins"},
		{Path: "gittins_quantum", Summary: "must be positive with inside gittins"},
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
