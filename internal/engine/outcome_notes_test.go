package engine_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// outcome simulates jobs on two devices, and returns what it noted at its end.
func outcome(t *testing.T, rows string, allocation quartet.Policy, interval time.Duration) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.csv")
	put(t, path, "name,submit_s,duration_s,replicas\n"+rows)
	s := doortest.Small()
	s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: 1, Accelerator: "t4", Devices: 2}}
	s.Workload = quartet.Part{Type: "csv", Config: map[string]any{"path": path}}
	s.Pipeline.Allocation = allocation
	s.Round.Interval, s.Round.OnEvents = interval, interval == 0
	s.Backend.Config = map[string]any{"restart_overhead": "0s"}
	c := doortest.Compose(t, quartet.Builtins(), s)
	var notes []string
	c.Note = func(note string) {
		if strings.Contains(note, "jobs restarted ") || strings.Contains(note, " waited ") {
			notes = append(notes, note)
		}
	}
	doortest.Simulate(t, c)
	return strings.Join(notes, "\n")
}

// Jobs that took turns all the time are said to have, with the settings that let them keep their devices.
func TestThrashingIsSaid(t *testing.T) {
	three := "a,0,3000,2\nb,0,3000,2\nc,0,3000,2\n"
	exact := quartet.Policy{Type: "las", Config: map[string]any{"quantum_seconds": 0.0}}
	const hint = `: "allocation/las" may hand their devices to others in every round; a larger pipeline.allocation.config.quantum_seconds (0 s on one device), or a longer round.interval (`
	for name, tc := range map[string]struct {
		rows       string
		allocation quartet.Policy
		interval   time.Duration
		want       string
	}{
		"turns of a round": {three, exact, 10 * time.Second, "jobs restarted 299.0 times each on average, a 299 times" + hint + "10s), lets them keep their devices for longer"},
		"few rounds":       {three, exact, 150 * time.Second, ""}, // 19.0
		"more than twenty": {three, exact, 140 * time.Second, "jobs restarted 21.0 times each on average, a 21 times" + hint + "2m20s), lets them keep their devices for longer"},
		"turns by default": {three, quartet.Policy{Type: "las"}, 10 * time.Second, ""},
		"one job":          {"a,0,3000,2\n", exact, 10 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, tc.rows, tc.allocation, tc.interval); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// A job that waited while many others passed it is said to have.
func TestStarvationIsSaid(t *testing.T) {
	shorter := func(jobs int) string {
		rows := "first,0,100,1\nwide,1,1000,2\n"
		for i := range jobs {
			rows += fmt.Sprintf("j%d,%d,100,1\n", i, 50+i*50)
		}
		return rows
	}
	preemptive := map[string]any{"preemptive": true}
	for name, tc := range map[string]struct {
		rows   string
		config map[string]any
		want   string
	}{
		"many pass":     {shorter(400), preemptive, "wide waited 5h34m59s for its first devices, 132 times the mean completion time, while 400 jobs that were submitted after it started"},
		"few pass":      {shorter(10), preemptive, ""},
		"nobody passes": {"wide,1,1000,2\n", preemptive, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, tc.rows, quartet.Policy{Type: "srtf", Config: tc.config}, 0); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
