// Package publications holds what publications report of their schedulers against what ours come to: job for job where their answers are
// published, and as bounds elsewhere.
package publications

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/doortest"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// simulated runs a shipped composition, and returns its summary and the rows of jobs.csv by name.
func simulated(t testing.TB, config string, sets ...string) (*metrics.Summary, map[string]map[string]string) {
	t.Helper()
	c, err := quartet.Load(quartet.Builtins(), quartet.Options{
		Files: []string{path.Join("papers", config)}, Env: os.LookupEnv, Sets: sets,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Dir = t.TempDir()
	result := doortest.Simulate(t, c)
	return result.Summary, refdata.RowsBy(t, filepath.Join(result.Dir, "jobs.csv"), "name")
}

// workloads of the Pollux artifact for which there are published answers.
var polluxWorkloads = map[string][]int{"": {1, 2, 3, 4, 6}, "-0.5": {1, 2, 3, 4}}

// equalJobs compares every job's JCT with the published one, and returns how many are equal, of how many, and both means.
func equalJobs(t *testing.T, policy, load string, workload int) (equal, jobs int, mean, published float64) {
	t.Helper()
	file := fmt.Sprintf("workload-%d.csv", workload)
	want := refdata.RowsBy(t, refdata.Path(t, "reference", "pollux-osdi21", policy+load, file), "name")
	summary, got := simulated(t, "pollux-osdi21/"+policy+".yaml",
		"workload.config.path="+refdata.Path(t, "data", "pollux-osdi21", "workloads"+load, file))
	if len(got) != len(want) {
		t.Errorf("%d jobs, want %d", len(got), len(want))
	}
	for name, row := range want {
		published += refdata.Number(t, row["jct"])
		if got[name]["jct_s"] == row["jct"] {
			equal++
		}
	}
	return equal, len(want), float64(summary.JCTSeconds.Mean), published / float64(len(want))
}

func TestReproducesBaselinesOfPollux(t *testing.T) {
	for _, policy := range []string{"tiresias", "optimus"} {
		for load, numbers := range polluxWorkloads {
			for _, n := range numbers {
				t.Run(fmt.Sprintf("%s/workload%s-%d", policy, load, n), func(t *testing.T) {
					if equal, jobs, mean, published := equalJobs(t, policy, load, n); equal != jobs {
						t.Errorf("%d of %d jobs equal, mean JCT %v s, want %v s", equal, jobs, mean, published)
					}
				})
			}
		}
	}
}

// TestReproducesPollux holds rows of docs/results that cost little: the others are chaotic in the same way.
func TestReproducesPollux(t *testing.T) {
	published := publishedPollux(t)
	for name, tc := range map[string]struct {
		config, load string
		workload     int
		group, entry string
		sets         []string
		within       float64
	}{
		"exact":                       {"pollux-exact", "", 3, "results-jobload", "pollux-1.0", nil, 0.03},
		"exact, half the load":        {"pollux-exact", "-0.5", 1, "results-jobload", "pollux-0.5", nil, 0.03},
		"exact, 8 min":                {"pollux-exact", "", 2, "results-period", "pollux-8m", []string{"round.interval=8m"}, 0.05},
		"genetic, 8 min, workload 2":  {"pollux-genetic", "", 2, "results-period", "pollux-8m", []string{"round.interval=8m"}, 0.05},
		"genetic, 8 min, workload 3":  {"pollux-genetic", "", 3, "results-period", "pollux-8m", []string{"round.interval=8m"}, 0.05},
		"exact, interference avoided": {"pollux-exact", "", 3, "results-inter", "avoid", []string{"backend.config.interference=0.5"}, 0.03},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := fmt.Sprintf("workload-%d.csv", tc.workload)
			path := refdata.Path(t, "data", "pollux-osdi21", "workloads"+tc.load, file)
			summary, _ := simulated(t, "pollux-osdi21/"+tc.config+".yaml", append(tc.sets, "workload.config.path="+path)...)
			want := published[tc.group][tc.entry].Workloads[fmt.Sprintf("workload-%d", tc.workload)].Avg
			if got := float64(summary.JCTSeconds.Mean); math.Abs(got/want-1) > tc.within {
				t.Errorf("mean JCT %v s, want %v s within %v %%", got, want, 100*tc.within)
			}
		})
	}
}

// TestBeatsPollux holds our objectives on all workloads given: mean JCT, its 99th percentile and the makespan against the
// published means, as parts of them.
func TestBeatsPollux(t *testing.T) {
	published := publishedPollux(t)["results-jobload"]
	for name, tc := range map[string]struct {
		config, load        string
		mean, p99, makespan float64
	}{
		"best":                   {config: "pollux-best", mean: -0.13, p99: 0, makespan: 0.06},
		"guarded":                {config: "pollux-guarded", mean: -0.085, p99: 0, makespan: 0.025},
		"unknown":                {config: "pollux-unknown", mean: -0.08, p99: 0, makespan: 0.015},
		"unknown, half the load": {config: "pollux-unknown", load: "-0.5", mean: -0.06, p99: 0.01, makespan: 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ours, theirs polluxFigures
			entry := "pollux" + cmp.Or(tc.load, "-1.0")
			for _, n := range polluxWorkloads[tc.load] {
				workload := fmt.Sprintf("workload-%d", n)
				path := refdata.Path(t, "data", "pollux-osdi21", "workloads"+tc.load, workload+".csv")
				ours.add(polluxRun(t, tc.config, "workload.config.path="+path))
				theirs.add(published[entry].Workloads[workload])
			}
			for figure, tc := range map[string]struct{ got, want, most float64 }{
				"mean JCT": {ours.Avg, theirs.Avg, tc.mean}, "p99": {ours.P99, theirs.P99, tc.p99}, "makespan": {ours.Makespan, theirs.Makespan, tc.makespan},
			} {
				if difference := tc.got/tc.want - 1; difference > tc.most {
					t.Errorf("%s: %+.2f %% against the published, want at most %+.0f %%", figure, 100*difference, 100*tc.most)
				}
			}
		})
	}
}

// TestBeatsPolluxAtAnyRestart charges restarts of other lengths, and tells the policies so.
func TestBeatsPolluxAtAnyRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: ten runs under Pollux")
	}
	path := refdata.Path(t, "data", "pollux-osdi21", "workloads", "workload-2.csv")
	for _, overhead := range []string{"0s", "120s", "150s", "200s", "300s"} {
		mean := func(config string) float64 {
			summary, _ := simulated(t, "pollux-osdi21/"+config+".yaml", "workload.config.path="+path,
				"pipeline.allocation.config.restart_overhead="+overhead, "backend.config.restart_overhead="+overhead)
			return float64(summary.JCTSeconds.Mean)
		}
		published := mean("pollux-exact")
		for _, config := range []string{"pollux-best", "pollux-guarded"} {
			if got := mean(config); got > 1.01*published {
				t.Errorf("%s at restarts of %s: mean JCT %v s, want at most 1 %% more than %v s", config, overhead, got, published)
			}
		}
	}
}

type polluxFigures struct{ Avg, P99, Makespan float64 }

func (f *polluxFigures) add(o polluxFigures) {
	f.Avg, f.P99, f.Makespan = f.Avg+o.Avg, f.P99+o.P99, f.Makespan+o.Makespan
}

// quantile interpolates between order statistics, as the publication does.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// publishedPollux reads the published figures of Pollux by group, entry and workload.
func publishedPollux(t *testing.T) map[string]map[string]struct {
	Workloads map[string]polluxFigures
} {
	t.Helper()
	text, err := os.ReadFile(refdata.Path(t, "reference", "pollux-osdi21", "published.json"))
	if err != nil {
		t.Fatal(err)
	}
	var published map[string]map[string]struct {
		Workloads map[string]polluxFigures
	}
	if err := json.Unmarshal(text, &published); err != nil {
		t.Fatal(err)
	}
	return published
}

func TestReproducesBlox(t *testing.T) {
	for name, tc := range map[string]struct {
		config, fit string
		preemptions int // spec/blox.md, section 5
	}{
		"s500_Las":     {"las", "prefix_sum", 0},
		"s1000_Fifo":   {"fifo", "prefix_sum", 0},
		"s1000_Las":    {"las", "prefix_sum", 362},
		"s1000_Srtf":   {"srtf", "prefix_sum", 129},
		"m500_Fifo":    {"fifo", "prefix_sum", 0},
		"m500fix_Fifo": {"fifo", "scattered", 0},
		"m500fix_Las":  {"las", "scattered", 579},
		"m500fix_Srtf": {"srtf", "scattered", 128},
	} {
		t.Run(name, func(t *testing.T) {
			path := refdata.Path(t, "reference", "blox", "ref_"+name+".csv")
			summary, got := simulated(t, "blox-eurosys24/"+tc.config+".yaml",
				"workload.config.path="+path, "pipeline.placement.config.fit="+tc.fit)
			want := refdata.RowsBy(t, path, "job_id")
			if len(got) != len(want) {
				t.Fatalf("%d jobs, want %d", len(got), len(want))
			}
			completions, firstRuns := 0, 0
			for id, row := range want {
				if refdata.Number(t, got[id]["finish_s"]) != refdata.Number(t, row["blox_completion_s"]) {
					completions++
				}
				// Blox sees a job running one round after it placed it
				if refdata.Number(t, got[id]["first_start_s"])+300 != refdata.Number(t, row["blox_first_run_seen_s"]) {
					firstRuns++
				}
			}
			if completions > 0 || firstRuns > 0 {
				t.Errorf("%d completions and %d first runs differ, want none", completions, firstRuns)
			}
			if summary.Preemptions != tc.preemptions {
				t.Errorf("%d preemptions, want %d", summary.Preemptions, tc.preemptions)
			}
		})
	}
}

// TestReproducesBloxFigures compares with figures of runs that were published without their jobs: the input is that of
// another run, of which the five input columns are read.
func TestReproducesBloxFigures(t *testing.T) {
	summary, _ := simulated(t, "blox-eurosys24/las.yaml", "workload.config.path="+refdata.Path(t, "reference", "blox", "ref_m500_Fifo.csv"))
	if mean := math.Floor(float64(summary.JCTSeconds.Mean)); mean != 75741 || summary.Preemptions != 1966 {
		t.Errorf("m500_Las: mean JCT %v s and %d preemptions, want 75741.5 s and 1966 (spec/blox.md, section 5)", mean, summary.Preemptions)
	}
}

func TestReproducesTiresiasSimulator(t *testing.T) {
	path := refdata.Path(t, "data", "tiresias", "60_job.csv")
	for config, want := range map[string]float64{"fifo": 1556.5, "dlas": 715.3, "shortest": 519.9} { // spec/heterogeneity.md, 5.5
		t.Run(config, func(t *testing.T) {
			summary, _ := simulated(t, "tiresias-nsdi19/"+config+".yaml", "workload.config.path="+path)
			if got := float64(summary.JCTSeconds.Mean); math.Abs(got/want-1) > 0.001 {
				t.Errorf("mean JCT %v s, want %v s within 0.1 %%", got, want)
			}
		})
	}
}

func TestSchedulesThePhillyTrace(t *testing.T) {
	summary, _ := simulated(t, "philly/las.yaml", "workload.config.path="+refdata.Path(t, "data", "pollux-osdi21", "philly.csv.gz"))
	if summary.Jobs.Submitted != 82247 || summary.Jobs.Completed != 82247 {
		t.Errorf("%d of %d jobs completed, want 82247 of 82247", summary.Jobs.Completed, summary.Jobs.Submitted)
	}
}
