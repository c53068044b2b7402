package publications

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/quartet-sched/quartet/internal/refdata"
)

// pooled is a run of a composition with a pool: frozen, or to be filled.
func pooled(t *testing.T, config, pool string, frozen bool, workload int) polluxFigures {
	t.Helper()
	path := refdata.Path(t, "data", "pollux-osdi21", "workloads", fmt.Sprintf("workload-%d.csv", workload))
	return polluxRun(t, config, "workload.config.path="+path, "pipeline.elasticity.job.config.history_path="+pool,
		fmt.Sprintf("pipeline.elasticity.job.config.history_frozen=%t", frozen))
}

// polluxRun takes the figures of a run as the publication does.
func polluxRun(t *testing.T, config string, sets ...string) polluxFigures {
	t.Helper()
	_, jobs := simulated(t, "pollux-osdi21/"+config+".yaml", sets...)
	var jct []float64
	last := 0.0
	for _, name := range slices.Sorted(maps.Keys(jobs)) {
		jct, last = append(jct, refdata.Number(t, jobs[name]["jct_s"])), max(last, refdata.Number(t, jobs[name]["finish_s"]))
	}
	slices.Sort(jct)
	return polluxFigures{stat.Mean(jct, nil), quantile(jct, 0.99), last}
}

var poolName = regexp.MustCompile(`(?m)^(\s*-\s*name:\s*)(\S+)$`)

// wrongPool is a pool in which every application carries the name of the next.
func wrongPool(t *testing.T, pool string) string {
	t.Helper()
	text, err := os.ReadFile(pool)
	if err != nil {
		t.Fatal(err)
	}
	names, i := poolName.FindAllStringSubmatch(string(text), -1), 0
	if len(names) < 2 {
		t.Fatalf("%d applications in the pool, want several", len(names))
	}
	turned := poolName.ReplaceAllStringFunc(string(text), func(line string) string {
		i++
		return strings.TrimSuffix(line, names[i-1][2]) + names[i%len(names)][2]
	})
	if err := os.WriteFile(pool+".wrong", []byte(turned), 0o600); err != nil {
		t.Fatal(err)
	}
	return pool + ".wrong"
}

// TestBeatsPolluxByKnowledge holds what pools of the four other workloads are worth on each of the five, and that a pool of
// other applications does no harm.
func TestBeatsPolluxByKnowledge(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 85 simulations, a minute and a half")
	}
	published := publishedPollux(t)["results-jobload"]["pollux-1.0"].Workloads
	var theirs, unknown, wrong polluxFigures
	for _, n := range polluxWorkloads[""] {
		theirs.add(published[fmt.Sprintf("workload-%d", n)])
		path := refdata.Path(t, "data", "pollux-osdi21", "workloads", fmt.Sprintf("workload-%d.csv", n))
		unknown.add(polluxRun(t, "pollux-unknown", "workload.config.path="+path))
	}
	for _, tc := range []struct {
		config         string
		mean, makespan float64
	}{
		{"pollux-known", -0.14, 0.03}, {"pollux-known-fast", -0.165, 0.05}, {"pollux-history", -0.13, 0.03},
	} {
		workloads := polluxWorkloads[""]
		each, eachWrong := make([]polluxFigures, len(workloads)), make([]polluxFigures, len(workloads))
		t.Run(tc.config, func(t *testing.T) {
			for i, n := range workloads {
				t.Run(fmt.Sprintf("workload-%d", n), func(t *testing.T) {
					t.Parallel()
					pool := filepath.Join(t.TempDir(), "pool.yaml")
					for _, other := range workloads {
						if other != n {
							pooled(t, tc.config, pool, false, other)
						}
					}
					each[i] = pooled(t, tc.config, pool, true, n)
					if tc.config == "pollux-history" {
						eachWrong[i] = pooled(t, tc.config, wrongPool(t, pool), true, n)
					}
				})
			}
		})
		var ours polluxFigures
		for i := range workloads {
			ours.add(each[i])
			wrong.add(eachWrong[i])
		}
		if mean, makespan := ours.Avg/theirs.Avg-1, ours.Makespan/theirs.Makespan-1; mean > tc.mean || makespan > tc.makespan {
			t.Errorf("%s: mean JCT %+.2f %% and makespan %+.2f %% against the published, want at most %+.1f and %+.1f %%",
				tc.config, 100*mean, 100*makespan, 100*tc.mean, 100*tc.makespan)
		}
	}
	if got := wrong.Avg/unknown.Avg - 1; got > 0.01 {
		t.Errorf("pollux-history with a wrong pool: mean JCT %+.2f %% against pollux-unknown, want at most +1 %%", 100*got)
	}
}

// TestPolluxBearsWrongReports disturbs what jobs report of their times.
func TestPolluxBearsWrongReports(t *testing.T) {
	path := "workload.config.path=" + refdata.Path(t, "data", "pollux-osdi21", "workloads", "workload-1.csv")
	for _, config := range []string{"pollux-exact", "pollux-best"} {
		calm := polluxRun(t, config, path).Avg
		disturbed := polluxRun(t, config, path, "backend.config.measurement_noise={outliers: 0.05, outlier_factor: 3, first_factor: 2}").Avg
		if got := disturbed/calm - 1; got > 0.03 {
			t.Errorf("%s: mean JCT %+.2f %%, want at most +3 %%", config, 100*got)
		}
	}
}
