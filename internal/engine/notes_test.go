package engine_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// contended is six jobs on two devices, with rounds every ten seconds. A run in which nobody gets on ends after half an hour.
func contended(t *testing.T, allocation string, settings map[string]any, restart string) quartet.Spec {
	t.Helper()
	rows := "name,submit_s,duration_s,replicas,application,load_s,compute_s,sync_s,min_replicas,max_replicas\n"
	for i := range 6 {
		rows += fmt.Sprintf("j%d,%d,%d,1,x%d,0.1,0.%d,0.05,1,2\n", i, i, 150+i*25, i%2, i+1)
	}
	path := filepath.Join(t.TempDir(), "t.csv")
	put(t, path, rows)
	s := doortest.Small()
	s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: 1, Accelerator: "t4", Devices: 2}}
	s.Workload = quartet.Part{Type: "csv", Config: map[string]any{"path": path}}
	s.Pipeline.Allocation = quartet.Policy{Type: allocation, Config: settings}
	s.Round.Interval, s.Round.OnEvents = 10*time.Second, false
	s.Backend.Config = map[string]any{"restart_overhead": restart, "stall_after": "30m"}
	for _, f := range quartet.Builtins().Allocation {
		if f.Type == allocation && len(f.Sharing) > 0 {
			s.Cluster.Sharing = core.TimeSlice.String()
		}
	}
	return s
}

// turnsNoted reports whether it is told that jobs may restart for ever.
func turnsNoted(c *quartet.Composition) (text string) {
	for _, n := range c.Notes {
		if strings.Contains(n.Summary, "jobs may restart for ever") {
			text = n.String()
		}
	}
	return text
}

// No jobs restart for ever of which it was not told that they may, whatever the allocation and however short its turns.
func TestJobsThatRestartForEverAreTold(t *testing.T) {
	short := map[string][]map[string]any{
		"las":                   {{"quantum_seconds": 15.0}, {"quantum_seconds": 300.0}, {"quantum_seconds": 0.0}, {"service": "wall_time", "quantum_seconds": 0.0}, {"starvation_after": "30s"}},
		"tiresias":              {{"thresholds": []any{5.0, 10.0, 20.0}, "promote_factor": 0.5}, {"thresholds": []any{5.0, 10.0, 20.0, 40.0, 80.0}}},
		"elastic_tiresias":      {{"thresholds": []any{5.0, 10.0, 20.0}, "promote_factor": 0.5}},
		"themis":                {{"lease": "5s"}, {"lease": "20s"}},
		"gandiva":               {{"slice": "10s"}, {"slice": "10s", "pairs": "none"}},
		"gpu_fraction":          {{"turn": "0s", "window": "1m", "basic": 0.5, "standard": 0.6}},
		"gavel_max_min":         {{"lease": "0s"}, {"lease": "15s"}},
		"gavel_water_filling":   {{"lease": "0s"}},
		"finish_time_fairness":  {{"lease": "0s"}},
		"gavel_makespan":        {{"lease": "0s"}},
		"gavel_max_sum":         {{"lease": "0s"}},
		"best_normalised_sum":   {{"lease": "0s"}},
		"fifo_perf":             {{"lease": "0s"}},
		"allox":                 {{"lease": "0s"}},
		"isolated":              {{"lease": "0s"}},
		"gavel_max_min_packed":  {{"lease": "0s"}},
		"gavel_makespan_packed": {{"lease": "0s"}},
		"muri":                  {{"knowledge": "remaining"}},
		"drf":                   {{"by": "job"}},
	}
	told := 0
	for _, f := range quartet.Builtins().Allocation {
		t.Run(f.Type, func(t *testing.T) {
			for _, settings := range append([]map[string]any{nil}, short[f.Type]...) {
				for _, restart := range []string{"0s", "9s", "10s", "20s"} {
					c := doortest.Compose(t, quartet.Builtins(), contended(t, f.Type, settings, restart))
					text := turnsNoted(c)
					r := doortest.Simulate(t, c)
					if len(r.Unfinished) > 0 && text == "" {
						t.Errorf("%v, restart %s: %d jobs do not end, and nobody told", settings, restart, len(r.Unfinished))
					}
					if text != "" {
						told++
					}
					if never := restart == "0s" || restart == "9s"; never && text != "" {
						t.Errorf("%v, restart %s: told that %s", settings, restart, text)
					}
				}
			}
		})
	}
	if told < 20 {
		t.Errorf("got %d times: nothing was tried", told)
	}
}

// What is told holds the two figures and the keys to change; what is long enough is not told.
func TestTurnsShorterThanAStart(t *testing.T) {
	type config = map[string]any
	exact := config{"quantum_seconds": 0.0} // service is compared exactly
	cases := map[string]struct {
		allocation string
		settings   config
		interval   float64 // seconds
		events     bool
		backend    config
		want       []string // parts of it; none for nothing
	}{
		"as long as a start": {allocation: "las", settings: exact, interval: 20, backend: config{"restart_overhead": "20s"}, want: []string{
			`"allocation/las" may hand their devices to others after 20s (round.interval), and a start takes up to 20s (backend.config.restart_overhead)`,
			"set round.interval above 20s, or hold rounds on events only with round.interval: 0s and round.on_events: true, or pipeline.allocation.config.quantum_seconds above 20s",
		}},
		"longer than a start":     {allocation: "las", settings: exact, interval: 20.1, backend: config{"restart_overhead": "20s"}},
		"ten times shorter":       {allocation: "las", settings: exact, interval: 2, backend: config{"restart_overhead": "20s"}, want: []string{"after 2s (round.interval)"}},
		"free starts":             {allocation: "las", settings: exact, interval: 1},
		"on events":               {allocation: "las", settings: exact, events: true, backend: config{"restart_overhead": "20s"}},
		"on events as well":       {allocation: "las", settings: exact, events: true, interval: 20, backend: config{"restart_overhead": "20s"}, want: []string{"after 20s (round.interval)"}},
		"starts that are events":  {allocation: "las", settings: exact, events: true, backend: config{"start_delay": "30s"}, want: []string{"after 30s (backend.config.start_delay), and a start takes up to 30s (backend.config.start_delay)", "and round.on_events to false"}},
		"ends that are events":    {allocation: "las", settings: exact, events: true, backend: config{"release_delay": "5s", "start_delay": "30s", "start_delay_spread": "1s"}, want: []string{"after 5s (backend.config.release_delay), and a start takes up to 36s (backend.config.release_delay + backend.config.start_delay + backend.config.start_delay_spread)"}},
		"no events":               {allocation: "las", settings: exact, interval: 60, backend: config{"start_delay": "30s"}},
		"the longest application": {allocation: "las", settings: exact, interval: 30, backend: config{"restart_overhead": "20s", "application_overhead": []any{config{"application": "a", "overhead": "5s"}, config{"application": "b", "overhead": "30s"}}}, want: []string{"a start takes up to 30s (backend.config.application_overhead[1].overhead)"}},
		"a quantum by default":    {allocation: "las", interval: 1, backend: config{"restart_overhead": "59m"}},
		"a quantum":               {allocation: "las", settings: config{"quantum_seconds": 21.0}, interval: 10, backend: config{"restart_overhead": "20s"}},
		"a short quantum":         {allocation: "las", settings: config{"quantum_seconds": 11.0}, interval: 10, backend: config{"restart_overhead": "20s"}, want: []string{"after 20s (pipeline.allocation.config.quantum_seconds)"}},
		"a lease":                 {allocation: "gavel_max_min", interval: 10, backend: config{"restart_overhead": "20s"}},
		"a short lease":           {allocation: "gavel_max_min", settings: config{"lease": "20s"}, interval: 10, backend: config{"restart_overhead": "20s"}, want: []string{"after 20s (pipeline.allocation.config.lease)"}},
		"no lease":                {allocation: "gavel_max_min", settings: config{"lease": "0s"}, interval: 10, backend: config{"restart_overhead": "20s"}, want: []string{"after 10s (round.interval)", "or pipeline.allocation.config.lease above 20s"}},
		"a slice":                 {allocation: "gandiva", settings: config{"slice": "20s"}, interval: 5, backend: config{"restart_overhead": "20s"}, want: []string{"after 20s (pipeline.allocation.config.slice)"}},
		"a longer slice":          {allocation: "gandiva", interval: 5, backend: config{"restart_overhead": "20s"}},
		"a turn":                  {allocation: "gpu_fraction", settings: config{"turn": "20s"}, interval: 5, backend: config{"restart_overhead": "20s"}, want: []string{"after 20s (pipeline.allocation.config.turn)"}},
		"queues":                  {allocation: "tiresias", settings: config{"thresholds": []any{15.0}}, interval: 5, backend: config{"restart_overhead": "20s"}},
		"queues and promotion":    {allocation: "tiresias", settings: config{"thresholds": []any{15.0}, "promote_factor": 1.0}, interval: 5, backend: config{"restart_overhead": "20s"}, want: []string{"after 15s (pipeline.allocation.config.thresholds)"}},
		"groups":                  {allocation: "muri", interval: 10, backend: config{"restart_overhead": "20s"}, want: []string{"after 10s (round.interval)", "hold rounds on events only"}},
		"groups on events":        {allocation: "muri", events: true, backend: config{"restart_overhead": "20s"}},
		"groups by what they need": {
			allocation: "muri", settings: config{"knowledge": "remaining"}, interval: 10, backend: config{"restart_overhead": "20s"},
		},
		"shortest first": {allocation: "srtf", interval: 10, backend: config{"restart_overhead": "20s"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := contended(t, tc.allocation, tc.settings, "0s")
			s.Round.Interval, s.Round.OnEvents = time.Duration(tc.interval*float64(time.Second)), tc.events
			s.Backend.Config = tc.backend
			got := turnsNoted(doortest.Compose(t, quartet.Builtins(), s))
			if (got == "") != (tc.want == nil) {
				t.Fatalf("got %q", got)
			}
			for _, part := range tc.want {
				if !strings.Contains(got, part) {
					t.Errorf("got %q, want %q in it", got, part)
				}
			}
		})
	}
}
