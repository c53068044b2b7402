package sharing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core/metrics"
)

const twoClasses = `version: 1
name: classes
cluster:
  %s
  nodes:
    - {name: a, count: 2, accelerator: large, devices: 4, device_memory_gb: 16}
    - {name: b, count: 1, accelerator: small, devices: 3, device_memory_gb: 8}
workload: {type: csv, config: {path: %q}}
round: {interval: %s, on_events: true}
pipeline:
  allocation: {type: %s}
  placement: %s
backend:
  type: simulator
  config:
    restart_overhead: %s
    co_location: {model: guarantee}
    node_events: %s
output: {write: []}
`

// classJob is a job of one of the two classes.
type classJob struct {
	name             string
	submit, duration float64
	replicas         int
	bestEffort       bool
	memory           float64
	stages           [3]float64
}

func drawClassJobs(t *rapid.T) (jobs []classJob) {
	for i := range rapid.IntRange(1, 20).Draw(t, "jobs") {
		j := classJob{
			name: fmt.Sprintf("j%02d", i), submit: float64(rapid.IntRange(0, 600).Draw(t, "submit")), duration: rapid.Float64Range(1, 500).Draw(t, "duration"),
			replicas: rapid.IntRange(1, 8).Draw(t, "replicas"), bestEffort: rapid.Bool().Draw(t, "best effort"), memory: rapid.SampledFrom([]float64{0, 4, 8, 12}).Draw(t, "memory"),
		}
		if rapid.Bool().Draw(t, "tells stages") {
			j.stages = rapid.SampledFrom([][3]float64{{0.1, 0.2, 0.1}, {0.5, 0.01, 0}, {0, 0.4, 0.3}}).Draw(t, "stages")
		}
		jobs = append(jobs, j)
	}
	slices.SortStableFunc(jobs, func(a, b classJob) int { return int(a.submit - b.submit) })
	return jobs
}

// simulateClasses runs jobs that keep to a condition, and returns how they fared by name, and how many of them were slower than alone at some time.
func simulateClasses(t *rapid.T, folder string, jobs []classJob, keep func(classJob) bool, args ...any) (fared map[string]metrics.Job, slowed int) {
	trace := &strings.Builder{}
	trace.WriteString("name,submit_s,duration_s,replicas,best_effort,device_memory_gb,load_s,compute_s,sync_s\n")
	for _, j := range jobs {
		if keep(j) {
			fmt.Fprintf(trace, "%s,%v,%v,%d,%v,%v,%v,%v,%v\n", j.name, j.submit, j.duration, j.replicas, j.bestEffort, j.memory, j.stages[0], j.stages[1], j.stages[2])
		}
	}
	path := filepath.Join(folder, "trace.csv")
	if err := os.WriteFile(path, []byte(trace.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	result, seen := simulateSlowest(t, "classes.yaml", fmt.Sprintf(twoClasses, append([]any{args[0], path}, args[1:]...)...))
	fared = map[string]metrics.Job{}
	for _, j := range result.Jobs {
		fared[j.Name] = j
	}
	_, slowed = seen.beyond(0)
	return fared, slowed
}

// Guaranteed jobs that want one device start and end at the very moments at which they would if nobody else were there: they wait for no opportunistic job, and none
// slows them down, whatever the memory, the owners of a device, types and failing nodes. Where larger ones keep nodes, when these are given on depends on when there are rounds.
func TestOpportunisticJobsAreNotNoticed(t *testing.T) {
	t.Parallel()
	folder, shared := t.TempDir(), 0 // of jobs that were slowed down
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawClassJobs(t)
		jobs[0].bestEffort = false // somebody is there without the others
		for i := range jobs {
			if !jobs[i].bestEffort {
				jobs[i].replicas = 1
			}
		}
		args := []any{
			rapid.SampledFrom([]string{"sharing: timeslice", "sharing: timeslice\n  max_owners: 4", "sharing: timeslice\n  max_owners: 1", "sharing: none"}).Draw(t, "sharing"),
			rapid.SampledFrom([]string{"0s", "60s"}).Draw(t, "interval"), "antman",
			rapid.SampledFrom([]string{"{type: antman}", "{type: antman, config: {opportunistic_per_device: 2, loads: summed}}"}).Draw(t, "placement"),
			rapid.SampledFrom([]string{"0s", "20s"}).Draw(t, "overhead"),
			rapid.SampledFrom([]string{"[]", "[{node: a-0, at: 200s, to: down}, {node: a-0, at: 400s, to: ready}, {node: b, at: 300s, to: down}, {node: b, at: 500s, to: ready}]"}).Draw(t, "node events"),
		}
		all, slowed := simulateClasses(t, folder, jobs, func(classJob) bool { return true }, args...)
		alone, none := simulateClasses(t, folder, jobs, func(j classJob) bool { return !j.bestEffort }, args...)
		shared += slowed
		if none > 0 {
			t.Errorf("%d guaranteed jobs are slower than alone", none)
		}
		for _, j := range jobs {
			got, want := all[j.name], alone[j.name]
			if want.ID = got.ID; !j.bestEffort && fmt.Sprint(got) != fmt.Sprint(want) { // numbers that are none are alike
				t.Errorf("beside others %+v, without them %+v", got, want)
			}
		}
	})
	if shared == 0 {
		t.Error("nobody shared devices")
	}
}

// Without opportunistic jobs it is first submitted, first served, where others pass one that does not fit: where all want one device, no node is kept.
func TestAntManOfOneClassIsFIFO(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawClassJobs(t)
		for i := range jobs {
			jobs[i].replicas, jobs[i].bestEffort, jobs[i].memory = 1, false, 0
		}
		got, want := besideFIFO(t, folder, jobs)
		for name, j := range got {
			if j.FinishSeconds != want[name].FinishSeconds {
				t.Errorf("job %s ends at %v, with fifo at %v", name, j.FinishSeconds, want[name].FinishSeconds)
			}
		}
	})
}

// besideFIFO is what becomes of jobs of one class under AntMan, none of them slower than alone, and under FIFO where nobody shares.
func besideFIFO(t *rapid.T, folder string, jobs []classJob) (got, want map[string]metrics.Job) {
	t.Helper()
	everyone := func(classJob) bool { return true }
	got, slowed := simulateClasses(t, folder, jobs, everyone, "sharing: timeslice", "0s", "antman", "{type: antman}", "5s", "[]")
	want, _ = simulateClasses(t, folder, jobs, everyone, "sharing: none", "0s", "fifo, config: {queue: all}", "{type: first_fit}", "5s", "[]")
	if slowed > 0 {
		t.Errorf("%d jobs are slower than alone", slowed)
	}
	return got, want
}

// Opportunistic jobs of their own are served in the order of their submission, one on a device.
func TestAntManOfOpportunisticJobsIsFIFO(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawClassJobs(t)
		for i := range jobs {
			jobs[i].replicas, jobs[i].memory = min(jobs[i].replicas, 3), 0 // every type can hold it
			jobs[i].bestEffort = true
		}
		got, want := besideFIFO(t, folder, jobs)
		for name, j := range got {
			if fmt.Sprint(j) != fmt.Sprint(want[name]) {
				t.Errorf("got %+v, with fifo %+v", j, want[name])
			}
		}
	})
}
