package accounts_test

import (
	"bytes"
	"encoding/csv"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// growing is small on a cluster that changes, where nothing is done at once.
func growing() quartet.Spec {
	s := doortest.Small()
	s.Pipeline.Allocation.Type = "las"
	s.Workload.Config["jobs"] = 60
	s.Round.Interval = 5 * time.Minute
	s.Output.Write = []string{"jobs", "decisions", "timeline", "usage", "accelerators", "fairness"}
	s.Backend.Config = map[string]any{
		"restart_overhead": "5s", "start_delay": "10s", "start_delay_spread": "20s", "release_delay": "15s",
		"joining_nodes": []any{
			map[string]any{"at": "10m", "name": "new", "count": 2, "accelerator": "h100", "devices": 2, "provisioning": "5m"},
			map[string]any{"at": "40m", "name": "late", "accelerator": "t4", "devices": 4},
		},
		"node_events": []any{
			map[string]any{"node": "new-0", "at": "30m", "to": "draining"},
			map[string]any{"node": "new-0", "at": "35m", "to": "gone"},
			map[string]any{"node": "n-1", "at": "45m", "to": "gone"},
		},
		"outages": []any{map[string]any{"at": "20m", "for": "3m"}, map[string]any{"at": "50m", "for": "90s"}},
	}
	return s
}

// written runs a composition and returns its files but for the summary and the manifest, which tell how long it took.
func written(t *testing.T, s quartet.Spec) (files map[string][]byte, r *quartet.Result) {
	t.Helper()
	c := doortest.Compose(t, quartet.Builtins(), s)
	c.Dir, c.Keep = "", true
	r = doortest.Simulate(t, c)
	files = map[string][]byte{}
	for _, f := range r.Files {
		files[f.File] = f.Content
	}
	return files, r
}

func rows(t *testing.T, content []byte) []map[string]string {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]string
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, name := range all[0] {
			m[name] = row[i]
		}
		list = append(list, m)
	}
	return list
}

func toNumber(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// What a job attained is the devices that it held times the time, also while it starts, and the cluster is used by as much of
// the devices that were there.
func TestTheAccountsOfAClusterThatChanges(t *testing.T) {
	files, r := written(t, growing())
	if !strings.Contains(string(files["decisions.jsonl"]), "devices_released") || !strings.Contains(string(files["decisions.jsonl"]), "job_started") {
		t.Fatal("no job let go of devices, or none started, later: the test shows nothing")
	}
	held, sum := map[string]float64{}, 0.0
	for _, stay := range rows(t, files["timeline.csv"]) {
		held[stay["job"]] += (toNumber(t, stay["end_s"]) - toNumber(t, stay["start_s"])) * toNumber(t, stay["replicas"])
	}
	first, last := math.Inf(1), 0.0
	for _, job := range rows(t, files["jobs.csv"]) {
		attained := toNumber(t, job["gpu_seconds"])
		if math.Abs(attained-held[job["job"]]) > 1e-6 {
			t.Errorf("job %s attained %v device-seconds and held %v", job["job"], attained, held[job["job"]])
		}
		sum += attained
		first = min(first, toNumber(t, job["submit_s"]))
		if job["outcome"] != "completed" {
			t.Fatalf("job %s is %s: the makespan is not that of the jobs", job["job"], job["outcome"])
		}
		last = max(last, toNumber(t, job["finish_s"]))
	}
	there := 0.0
	for _, node := range rows(t, files["nodes.csv"]) {
		from, to := max(toNumber(t, node["start_s"]), first), min(toNumber(t, node["end_s"]), last)
		there += max(to-from, 0) * toNumber(t, node["devices"])
	}
	if got, want := float64(r.Summary.UtilizationRatio), sum/there; math.Abs(got-want) > 1e-12 {
		t.Errorf("utilisation %v, want %v", got, want)
	}
	var seconds, used float64
	for _, a := range r.Summary.Accelerators {
		seconds += float64(a.DeviceSeconds)
		used += float64(a.DeviceSeconds / a.UtilizationRatio)
	}
	if math.Abs(seconds-sum) > 1e-6 || math.Abs(used-there) > 1e-6 {
		t.Errorf("by type %v of %v device-seconds, in all %v of %v", seconds, used, sum, there)
	}
}

func TestAClusterThatChangesRepeats(t *testing.T) {
	want, _ := written(t, growing())
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	for _, procs := range []int{1, 3} {
		runtime.GOMAXPROCS(procs)
		got, _ := written(t, growing())
		for name := range want {
			if !bytes.Equal(got[name], want[name]) {
				t.Errorf("%s differs on %d processors", name, procs)
			}
		}
	}
}

// Options that say what holds without them change nothing.
func TestOptionsOfGrowthThatAreOffChangeNothing(t *testing.T) {
	plain, off := doortest.Small(), doortest.Small()
	plain.Output.Write = []string{"jobs", "decisions", "timeline", "usage", "accelerators", "fairness"}
	off.Output.Write = plain.Output.Write
	off.Backend.Config = map[string]any{
		"start_delay": "0s", "start_delay_spread": "0s", "release_delay": "0s", "joining_nodes": []any{}, "node_events": []any{}, "outages": []any{},
	}
	want, _ := written(t, plain)
	got, _ := written(t, off)
	for name := range want {
		if !bytes.Equal(got[name], want[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

// Jobs that only nodes can run that are to join are no misfits.
func TestJobsWaitForNodesThatJoin(t *testing.T) {
	s := doortest.Small()
	s.Workload.Config = map[string]any{"jobs": 12, "span": "1m"}
	s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: 1, Accelerator: "t4", Devices: 1}}
	s.Backend.Config = map[string]any{
		"joining_nodes": []any{map[string]any{"at": "5m", "name": "new", "count": 16, "accelerator": "t4", "devices": 8}},
	}
	var notes []string
	c := doortest.Compose(t, quartet.Builtins(), s)
	c.Dir, c.Keep, c.Note = "", true, func(text string) { notes = append(notes, text) }
	r := doortest.Simulate(t, c)
	if len(notes) > 0 {
		t.Errorf("notes %q, want none of jobs that do not fit", notes)
	}
	if n := r.Summary.Jobs; n.Completed != 12 {
		t.Errorf("%+v, want all completed", n)
	}
	waited := false
	for _, f := range r.Files {
		waited = waited || strings.Contains(string(f.Content), "awaiting_nodes")
	}
	if !waited {
		t.Error("no job waited for nodes: the test shows nothing")
	}
}
