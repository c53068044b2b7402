package restart_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/restart"
)

var listed = restart.Cost{
	RestartOverhead: 30 * time.Second,
	ApplicationOverhead: []restart.Application{
		{Application: "a", Overhead: 40 * time.Second, Devices: 4},
		{Application: "a", Overhead: 10 * time.Second, Devices: 2},
		{Application: "b", Overhead: 90 * time.Second},
	},
}

// The pause is that of the item for the most devices that the job asks for, or else the general one.
func TestPauseOf(t *testing.T) {
	for name, tc := range map[string]struct {
		application string
		devices     int
		want        time.Duration
	}{
		"not listed":             {"c", 8, 30 * time.Second},
		"fewer than any item":    {"a", 1, 30 * time.Second},
		"at the smaller item":    {"a", 2, 10 * time.Second},
		"below the larger item":  {"a", 3, 10 * time.Second},
		"at the larger item":     {"a", 4, 40 * time.Second},
		"an item for every size": {"b", 0, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := listed.PauseOf(tc.application, tc.devices); got != tc.want {
				t.Errorf("PauseOf(%q, %d) = %v, want %v", tc.application, tc.devices, got, tc.want)
			}
		})
	}
}

func TestLongestPause(t *testing.T) {
	for name, tc := range map[string]struct {
		cost restart.Cost
		want time.Duration
		key  string
	}{
		"an application":       {listed, 90 * time.Second, "application_overhead[2].overhead"},
		"the general one":      {restart.Cost{RestartOverhead: 91 * time.Second, ApplicationOverhead: listed.ApplicationOverhead}, 91 * time.Second, "restart_overhead"},
		"as long as the other": {restart.Cost{RestartOverhead: 90 * time.Second, ApplicationOverhead: listed.ApplicationOverhead}, 90 * time.Second, "restart_overhead"},
		"none":                 {restart.Cost{}, 0, "restart_overhead"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, key := tc.cost.LongestPause(); got != tc.want || key != tc.key {
				t.Errorf("LongestPause() = %v, %q, want %v, %q", got, key, tc.want, tc.key)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	if err := listed.Validate(); err != nil {
		t.Errorf("listed: %v", err)
	}
	wrong := restart.Cost{ApplicationOverhead: []restart.Application{{}, {Application: "a"}, {Application: "a"}, {Application: "b", Devices: 4}, {Application: "b", Devices: 4}}}
	const want = `application_overhead[0].application: must not be empty
application_overhead[2].application: application "a" is listed twice
application_overhead[4].application: application "b" is listed twice for 4 devices`
	if err := wrong.Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDiffer(t *testing.T) {
	const s = time.Second
	other := restart.Cost{RestartOverhead: 20 * s, ApplicationOverhead: []restart.Application{{Application: "b", Overhead: 90 * s}, {Application: "c", Overhead: 30 * s}}}
	want := []restart.Difference{{"", 0, 30 * s, 20 * s}, {"a", 4, 40 * s, 20 * s}, {"a", 2, 10 * s, 20 * s}}
	if diff := cmp.Diff(want, restart.Differ(&listed, &other)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	twice := restart.Cost{RestartOverhead: 30 * s, ApplicationOverhead: []restart.Application{{Application: "b", Overhead: 5 * s}}}
	want = []restart.Difference{{"a", 4, 40 * s, 30 * s}, {"a", 2, 10 * s, 30 * s}, {"b", 0, 90 * s, 5 * s}}
	if diff := cmp.Diff(want, restart.Differ(&listed, &twice)); diff != "" {
		t.Errorf("one that both list (-want +got):\n%s", diff)
	}
	if found := restart.Differ(&listed, &listed); found != nil {
		t.Errorf("a cost differs from itself: %v", found)
	}
}

// A job of 100 s with two restarts of 10 s behind it has lost 20 s, and loses the next pause.
func TestSpeedLeft(t *testing.T) {
	older := restart.Weighing{Pause: 25, Past: 10, Restarts: 2, Age: 100, Span: 200}
	with := func(change func(*restart.Weighing)) restart.Weighing {
		w := older
		change(&w)
		return w
	}
	for name, tc := range map[string]struct {
		charge restart.Charge
		job    restart.Weighing
		want   float64
	}{
		"age":                            {restart.Age, older, 80.0 / 125},
		"age, all lost":                  {restart.Age, with(func(w *restart.Weighing) { w.Restarts = 11 }), 0},
		"age, younger than a restart":    {restart.Age, with(func(w *restart.Weighing) { w.Age = 24 }), 4.0 / 49},
		"age, none and nothing to pay":   {restart.Age, restart.Weighing{}, 1},
		"age, before it was submitted":   {restart.Age, restart.Weighing{Age: -1}, 1},
		"mature":                         {restart.MatureAge, older, 80.0 / 125},
		"mature, younger than a restart": {restart.MatureAge, with(func(w *restart.Weighing) { w.Age = 24 }), 1},
		"mature, as old as one restart":  {restart.MatureAge, with(func(w *restart.Weighing) { w.Age = 25 }), 0.1},
		"mature, nothing to pay":         {restart.MatureAge, restart.Weighing{}, 1},
		"horizon":                        {restart.Horizon, older, 175.0 / 200},
		"horizon, shorter than a pause":  {restart.Horizon, with(func(w *restart.Weighing) { w.Span = 20 }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.charge.SpeedLeft(tc.job); got != tc.want {
				t.Errorf("SpeedLeft = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		charge      restart.Charge
		left, apart float64
		want        float64
	}{
		"for life":             {restart.Life, 900, 300, 30},
		"until arrival":        {restart.Arrival, 900, 300, 90},
		"done before it comes": {restart.Arrival, 100, 300, 30},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.charge.Seconds(30, tc.left, tc.apart); got != tc.want {
				t.Errorf("Seconds = %v, want %v", got, tc.want)
			}
		})
	}
}
