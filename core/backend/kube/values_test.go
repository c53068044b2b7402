package kube

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

func TestReasonsOfConditions(t *testing.T) {
	for reason, want := range map[string]string{
		"waiting_for_devices": "WaitingForDevices", "EvictionByEvictionAPI": "EvictionByEvictionAPI", "": "None", "_": "None", "7": "None",
		"OutOfnvidia.com/gpu": "OutOfnvidiaComGpu", "node gone": "NodeGone", "äh": "H", "x2_3": "X23",
	} {
		if got := camel(reason); got != want {
			t.Errorf("camel(%q) = %q, want %q", reason, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if got := camel(rapid.String().Draw(t, "reason")); len(validation.IsCIdentifier(got)) > 0 {
			t.Fatalf("%q is no reason of a condition", got)
		}
	})
}

func TestOlder(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{{"1", "2", true}, {"2", "1", false}, {"9", "10", true}, {"1", "1", false}, {"", "1", true}, {"1", "", false}, {"", "", false}} {
		if got := gang.Older(tc.a, tc.b); got != tc.want {
			t.Errorf("Older(%q, %q) is %v", tc.a, tc.b, got)
		}
	}
}

// A scheduler that takes over at any moment has the account that the one before would have had.
func TestAccountOverATakeover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, a := 0.0, account{firstStart: math.NaN()}
		status := &trainingjob.Status{Decision: &trainingjob.Decision{Stop: true}, Progress: a.entry()}
		for range rapid.IntRange(0, 10).Draw(t, "changes") {
			now += float64(rapid.IntRange(0, 100).Draw(t, "after"))
			devices := rapid.IntRange(0, 3).Draw(t, "devices")
			a.hold(devices, now)
			status.Decision = &trainingjob.Decision{AtSeconds: now, Stop: devices == 0}
			for i := range devices {
				status.Decision.Seats = append(status.Decision.Seats, trainingjob.Seat{Member: i, Node: "a", Devices: string(rune('0' + i))})
			}
			status.Progress = a.entry()
			for range rapid.IntRange(0, 2).Draw(t, "takeovers") { // each writes a status while the job runs
				now += float64(rapid.IntRange(0, 100).Draw(t, "after"))
				a = known(status, now)
				status.Progress = a.entry()
			}
		}
		now += float64(rapid.IntRange(0, 100).Draw(t, "after"))
		got := known(status, now)
		a.settle(now)
		if total := got.executed; total > now {
			t.Fatalf("%v s with devices in %v s", total, now)
		}
		if diff := cmp.Diff(a, got, cmp.AllowUnexported(account{}, progress{}), cmp.Comparer(func(x, y float64) bool { return x == y || x != x && y != y })); diff != "" {
			t.Fatalf("(-before +after):\n%s", diff)
		}
	})
}

// Numbers that somebody wrote into a status do not end the scheduler.
func TestAccountOfAnEditedStatus(t *testing.T) {
	first := math.MaxFloat64
	for name, s := range map[string]*trainingjob.Status{
		"no progress": {Decision: &trainingjob.Decision{AtSeconds: 5, Seats: []trainingjob.Seat{{Node: "a", Devices: "0"}}}},
		"negative":    {Progress: &trainingjob.Progress{ExecutedSeconds: -1, AttainedSeconds: -1, Restarts: -1, Preemptions: -1}},
		"in the future": {
			Decision: &trainingjob.Decision{AtSeconds: 1e9, Seats: []trainingjob.Seat{{Node: "a", Devices: "0"}}},
			Progress: &trainingjob.Progress{FirstStartSeconds: &first},
		},
		"no devices": {Decision: &trainingjob.Decision{AtSeconds: -5, Seats: []trainingjob.Seat{{Node: "a", Devices: "?"}}}},
	} {
		a := known(s, 10)
		for _, number := range []float64{a.lastChange, a.executed, a.attained, float64(a.restarts), float64(a.preemptions)} {
			if !(number >= 0 && number <= 10) {
				t.Errorf("%s: %+v", name, a)
			}
		}
		if a.held > 0 && !(a.firstStart >= 0 && a.firstStart <= 10) {
			t.Errorf("%s: it holds devices, and started at %v", name, a.firstStart)
		}
	}
}

func TestWakes(t *testing.T) {
	started, finished := core.Event{Kind: core.JobStarted, AtSeconds: 12}, core.Event{Kind: core.JobFinished, AtSeconds: 12}
	reported := core.Event{Kind: core.JobReported, AtSeconds: 12}
	for name, tc := range map[string]struct {
		event core.Event
		wake  core.Wake
		want  float64
	}{
		"an end, on events":                     {finished, core.Wake{OnEvents: true, IntervalSeconds: 10}, 12},
		"an end, on the grid":                   {finished, core.Wake{IntervalSeconds: 10}, 20},
		"a start, on events":                    {started, core.Wake{OnEvents: true}, 12 + gather},
		"a start, on events and the grid":       {started, core.Wake{OnEvents: true, IntervalSeconds: 10}, 20},
		"a start, on neither of them":           {started, core.Wake{}, 12 + gather},
		"an end, when nothing is waited for":    {finished, core.Wake{}, 12},
		"a report that policies follow":         {reported, core.Wake{OnEvents: true, OnReports: true}, 12},
		"a report that they follow on the grid": {reported, core.Wake{OnEvents: true, OnReports: true, IntervalSeconds: 10}, 20},
		"a report that nobody waits for":        {reported, core.Wake{OnEvents: true}, 12 + unheard},
		"the same on the grid":                  {reported, core.Wake{OnEvents: true, IntervalSeconds: 10}, 30},
		"progress":                              {core.Event{Kind: core.JobProgressed, AtSeconds: 12}, core.Wake{OnEvents: true}, inf},
		"a node, on events, though not of jobs": {core.Event{Kind: core.NodeChanged, AtSeconds: 3}, core.Wake{OnEvents: true}, 3},
	} {
		if got := wakes(&tc.event, tc.wake); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
