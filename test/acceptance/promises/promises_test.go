package promises_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/doortest"
	"github.com/quartet-sched/quartet/internal/refdata"
)

const promising = `version: 1
name: promises
cluster: {nodes: [%s]}
workload: {type: csv, config: {path: %q}}
round: {interval: %s, on_events: true}
pipeline:
  admission: [{type: deadline, config: {overhead: %s, levels: %s}}]
  allocation: {type: elasticflow, config: {overhead: %s, levels: %s, expand: %s}}
  placement: {type: first_fit}
  elasticity: {job: {type: fixed, config: {replicas: elastic}}}
backend: {type: simulator, config: {restart_overhead: %s}}
output: {write: []}
`

// Whatever jobs come, and whatever a change of their devices costs, a deadline that was promised is met, and all that were admitted end.
func TestNoPromiseIsBroken(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var sum promises
	rapid.Check(t, func(t *rapid.T) {
		nodes, devices := rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices")
		trace := dueHeader + "\n"
		for i := range rapid.IntRange(1, 25).Draw(t, "jobs") {
			trace += drawDue(t, i, nodes*devices) + "\n"
		}
		sum.add(keepsPromises(t, folder, fmt.Sprintf("{name: n, count: %d, accelerator: gpu, devices: %d}", nodes, devices), trace, "0s", "1s", "17s", "160s"))
	})
	sum.check(t)
}

// Nor is one broken where devices are of several types and jobs are bound to some of them.
func TestNoPromiseOfTypesIsBroken(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var sum promises
	rapid.Check(t, func(t *rapid.T) {
		nodes, most := "", 0
		for i, name := range []string{"t4", "v100", "a100"}[:rapid.IntRange(2, 3).Draw(t, "types")] {
			count, devices := rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices")
			nodes += fmt.Sprintf("%s{name: n%d, count: %d, accelerator: %s, devices: %d}", []string{"", ", "}[min(i, 1)], i, count, name, devices)
			if most == 0 || count*devices < most {
				most = count * devices // of the least type
			}
		}
		trace := dueHeader + ",accelerators\n"
		for i := range rapid.IntRange(1, 25).Draw(t, "jobs") {
			trace += drawDue(t, i, most) + "," + rapid.SampledFrom([]string{"", "t4", "v100", "t4|v100"}).Draw(t, "on") + "\n"
		}
		sum.add(keepsPromises(t, folder, nodes, trace, "0s", "17s", "160s"))
	})
	sum.check(t)
}

// promises counts deadlines that were asked for and those that were promised and met, over all workloads that a property drew.
type promises struct{ asked, met int }

func (p *promises) add(d *metrics.Deadlines) {
	if d != nil {
		p.asked += d.Met + d.Missed + d.Declined
		p.met += d.Met
	}
}

// check fails where hardly anything was promised, for who promises nothing breaks nothing. A few workloads may all be hopeless.
func (p *promises) check(t *testing.T) {
	t.Helper()
	t.Logf("%d of %d deadlines were promised and met", p.met, p.asked)
	if p.asked >= 100 && p.met*10 < p.asked {
		t.Errorf("%d of %d deadlines were promised and met, want at least a tenth", p.met, p.asked)
	}
}

const dueHeader = "name,submit_s,duration_s,replicas,min_replicas,max_replicas,deadline_s,best_effort,pinned"

// drawDue draws the row of a job, most of which are due some time, that can run on so many devices.
func drawDue(t *rapid.T, i, most int) string {
	replicas := rapid.IntRange(1, 4).Draw(t, "replicas")
	deadline := ""
	if rapid.IntRange(0, 5).Draw(t, "due") > 0 {
		deadline = fmt.Sprint(rapid.Float64Range(1, 4000).Draw(t, "deadline"))
	}
	return fmt.Sprintf("j%d,%v,%v,%d,%d,%d,%s,%t,%t", i, rapid.Float64Range(0, 3000).Draw(t, "submit"), rapid.Float64Range(1, 3000).Draw(t, "duration"),
		replicas, rapid.IntRange(1, min(replicas, most)).Draw(t, "least"), replicas+rapid.IntRange(0, 8).Draw(t, "more"), deadline,
		rapid.IntRange(0, 5).Draw(t, "best effort") == 0, rapid.IntRange(0, 9).Draw(t, "pinned") == 0)
}

// keepsPromises runs a trace on nodes, where changes cost one of the overheads, and fails when a promise is broken or an admitted job does not end. It
// tells what became of the deadlines; nil when there were none.
func keepsPromises(t *rapid.T, folder, nodes, trace string, overheads ...string) *metrics.Deadlines {
	t.Helper()
	return keepsPromisesOf(t, folder, promising, nodes, trace, overheads...)
}

// keepsPromisesOf is keepsPromises by another config of the form of promising.
func keepsPromisesOf(t *rapid.T, folder, form, nodes, trace string, overheads ...string) *metrics.Deadlines {
	t.Helper()
	path := filepath.Join(folder, "trace.csv")
	if err := os.WriteFile(path, []byte(trace), 0o600); err != nil {
		t.Fatal(err)
	}
	overhead := rapid.SampledFrom(overheads).Draw(t, "overhead")
	levels := rapid.SampledFrom([]string{"powers_of_two", "all"}).Draw(t, "levels")
	config := fmt.Sprintf(form, nodes, path,
		rapid.SampledFrom([]string{"10s", "60s", "600s"}).Draw(t, "interval"), overhead, levels, overhead, levels,
		rapid.SampledFrom([]string{"least_growth", "most_growth"}).Draw(t, "expand"), overhead)
	c, err := quartet.Parse(quartet.Builtins(), "promises.yaml", config, quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := c.Simulate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := result.Summary.Deadlines; d != nil && (d.Broken > 0 || d.Missed > 0) {
		t.Fatalf("%+v\n%s\n%s", *d, config, trace)
	}
	if result.Summary.Jobs.Unfinished > 0 {
		t.Fatalf("%d jobs did not end\n%s\n%s", result.Summary.Jobs.Unfinished, config, trace)
	}
	return result.Summary.Deadlines
}

// Figure 8a of ElasticFlow in exact accounting: no promise is broken at any cost of a change, and more deadlines are met than the artifact
// meets by its own log. EDF meets those that the artifact's does.
func TestFigure8aExactly(t *testing.T) {
	t.Parallel()
	refdata.Path(t, "reference", "elasticflow-asplos23")
	for name, tc := range map[string]struct {
		config string
		set    []string
		least  float64
	}{
		"elasticflow":              {"elasticflow", nil, 0.86},
		"elasticflow, most growth": {"elasticflow", []string{"pipeline.allocation.config.expand=most_growth"}, 0.86},
		"changes are free": {"elasticflow", []string{
			"backend.config.restart_overhead=0s", "pipeline.allocation.config.overhead=0s", "pipeline.admission=[{type: deadline}]",
		}, 0.92},
		"ten times the cost": {"elasticflow", []string{
			"backend.config.restart_overhead=160s", "pipeline.allocation.config.overhead=160s", "pipeline.admission=[{type: deadline, config: {overhead: 160s}}]",
		}, 0.78},
		// Moves are in no plan, so that a change must be planned with more than it costs.
		"buddy, three times the cost planned": {"elasticflow", []string{
			"pipeline.placement.type=buddy", "pipeline.allocation.config.overhead=48s", "pipeline.admission=[{type: deadline, config: {overhead: 48s}}]",
		}, 0.81},
		"buddy, changes are free": {"elasticflow", []string{
			"pipeline.placement.type=buddy", "backend.config.restart_overhead=0s", "pipeline.allocation.config.overhead=0s", "pipeline.admission=[{type: deadline}]",
		}, 0.92},
		"edf": {"edf", nil, 23.0 / 195},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := quartet.Load(quartet.Builtins(), configs.Options{
				Files: []string{"papers/elasticflow-asplos23/" + tc.config + ".yaml"}, Env: os.LookupEnv, Sets: append(tc.set, "output.write=[]"),
			})
			if err != nil {
				t.Fatal(err)
			}
			d := doortest.Simulate(t, c).Summary.Deadlines
			t.Logf("%+v", *d)
			if d.Broken > 0 || float64(d.Ratio) < tc.least || d.Met+d.Missed+d.Declined != 195 {
				t.Errorf("%+v, want none broken and a ratio of at least %v", *d, tc.least)
			}
		})
	}
}

// Without an interval of rounds a note says that promises may break.
func TestPromisesWithoutAnInterval(t *testing.T) {
	t.Parallel()
	for interval, want := range map[string]int{"0s": 1, "60s": 0} {
		c, err := quartet.Load(quartet.Builtins(), configs.Options{
			Files: []string{"default.yaml"}, Env: os.LookupEnv, Sets: []string{
				"pipeline.admission=[{type: deadline}]", "pipeline.allocation={type: elasticflow}", "workload.config.jobs=3", "output.write=[]",
				"round={interval: " + interval + ", on_events: true}",
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		notes := 0
		c.Note = func(text string) {
			if strings.HasPrefix(text, "admission/deadline promises deadlines, and may break them") {
				notes++
			}
		}
		if _, err := c.Simulate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if notes != want {
			t.Errorf("rounds each %s: %d notes, want %d", interval, notes, want)
		}
	}
}

// Where jobs share devices a note says that whole ones are counted, so that jobs may be declined which would fit.
func TestPromisesWhereDevicesAreShared(t *testing.T) {
	t.Parallel()
	const want = "admission/deadline promises deadlines, and may break them: it counts whole devices, and the cluster shares them; for the same reason it may decline jobs that would fit beside others"
	for sharing, told := range map[string]int{"none": 0, "fractional": 1, "mig": 1} {
		c, err := quartet.Load(quartet.Builtins(), configs.Options{
			Files: []string{"default.yaml"}, Env: os.LookupEnv, Sets: []string{
				"pipeline.admission=[{type: deadline}]", "pipeline.allocation={type: elasticflow}", "pipeline.placement={type: best_fit}", "cluster.sharing=" + sharing,
				"workload.config.jobs=3", "output.write=[]", "round={interval: 60s, on_events: true}",
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		notes := 0
		c.Note = func(text string) {
			if text == want {
				notes++
			}
		}
		if _, err := c.Simulate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if notes != told {
			t.Errorf("sharing %s: %d notes, want %d", sharing, notes, told)
		}
	}
}
