package advise_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/lab/advise"
	"github.com/quartet-sched/quartet/lab/study"
)

var update = flag.Bool("update", false, "write the golden files anew")

const site = `version: 1
cluster: {nodes: [{name: n, count: 2, accelerator: t4, devices: 4}]}
round: {interval: 1m}
backend: {type: simulator, config: {restart_overhead: 10s}}
`

// jobsOf writes a trace of n jobs: lengths and widths vary, and some columns say more.
func jobsOf(t *testing.T, n int, columns string, more func(i, seconds int) string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("name,submit_s,duration_s,replicas" + columns + "\n")
	for i := range n {
		seconds := 120 + (i*i*37)%1900
		fmt.Fprintf(&b, "j%d,%d,%d,%d%s\n", i, i*90, seconds, []int{1, 2, 1, 4, 1, 8}[i%6], more(i, seconds))
	}
	return write(t, "trace.csv", b.String())
}

func nothing(int, int) string { return "" }

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// asked is what advice is asked for in these tests, with what a test changes.
func asked(t *testing.T, trace string, change func(*advise.Options)) advise.Options {
	t.Helper()
	goal, err := advise.ParseGoal("mean")
	if err != nil {
		t.Fatal(err)
	}
	o := advise.Options{
		Files: []string{write(t, "site.yaml", site)}, Goal: goal, Windows: 2, Jobs: 12, Seed: 1, Name: "advice",
		Study: study.Options{Catalog: quartet.Builtins(), Dir: filepath.Join(t.TempDir(), "advice"), Workers: 2, Build: "test"},
	}
	if trace != "" {
		o.Trace.Set = []study.Setting{{Path: "workload", Value: map[string]any{"type": "csv", "config": map[string]any{"path": trace}}}}
	}
	if change != nil {
		change(&o)
	}
	return o
}

func limitsOf(t *testing.T, texts ...string) (list []advise.Limit) {
	t.Helper()
	for _, text := range texts {
		l, err := advise.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

func named(names ...string) func(*advise.Options) {
	return func(o *advise.Options) { o.Named = names }
}

// Advice and its evidence, as they come of small traces.
func TestAdvice(t *testing.T) {
	cases := map[string]func(t *testing.T) advise.Options{
		"rigid": func(t *testing.T) advise.Options { return asked(t, jobsOf(t, 60, "", nothing), nil) },
		"three": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), named("fifo", "las", "tiresias"))
		},
		"one":   func(t *testing.T) advise.Options { return asked(t, jobsOf(t, 60, "", nothing), named("las")) },
		"short": func(t *testing.T) advise.Options { return asked(t, jobsOf(t, 9, "", nothing), named("fifo", "las")) },
		"later jobs": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) { o.Named, o.FirstJob = []string{"fifo", "las"}, 13 })
		},
		"enough windows": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 130, "", nothing), func(o *advise.Options) {
				o.Named, o.Windows = []string{"fifo", "fifo-backfill", "las", "tiresias", "las-1h"}, 5
			})
		},
		"limits": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) {
				o.Named, o.Limits = []string{"fifo", "las", "fifo-backfill"}, limitsOf(t, "rho_max<3", "utilization_ratio>=0.01")
			})
		},
		"makespan": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) { o.Named, o.Goal = []string{"fifo", "las"}, advise.Goals[2] })
		},
		"told by limits": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, ",limit_s", func(_, seconds int) string { return fmt.Sprintf(",%d", 2*seconds) }), named("fifo", "srtf"))
		},
		"told by estimates": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, ",limit_s,estimate_s", func(_, seconds int) string { return fmt.Sprintf(",%d,%d", 9*seconds, seconds+60) }), named("fifo", "srtf"))
		},
		"some limits": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, ",limit_s", func(i, _ int) string { return []string{",9000", ","}[i%2] }), named("fifo", "las"))
		},
		"told the truth": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) {
				o.Named, o.Estimate = []string{"fifo", "srtf"}, map[string]any{"source": "declared"}
			})
		},
		"told with an error": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) {
				o.Named, o.Estimate = []string{"fifo", "srtf"}, map[string]any{"source": "noisy", "sigma": 0.5}
			})
		},
		"as the config says": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) {
				o.Named, o.Set = []string{"fifo", "srtf"}, []study.Setting{{Path: "estimate", Value: map[string]any{"source": "noisy", "sigma": 1}}}
			})
		},
		"too large": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, ",min_replicas", func(i, _ int) string { return map[bool]string{true: ",1", false: ","}[i%6 == 0] }), func(o *advise.Options) {
				o.Named = []string{"fifo", "las"}
				o.Set = []study.Setting{{Path: "cluster.nodes", Value: []any{map[string]any{"name": "n", "count": 1, "accelerator": "t4", "devices": 4}}}}
			})
		},
		"of their own": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) {
				pick := func(name, allocation string) study.Item {
					return study.Item{Name: name, Set: []study.Setting{{Path: "pipeline.allocation.type", Value: allocation}}}
				}
				o.Candidates = []study.Item{pick("a", "fifo"), pick("twin", "fifo"), pick("unknown", "fof"), pick("b", "las")}
			})
		},
		"room for all": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) {
				o.Named = []string{"fifo", "fifo-backfill", "las", "tiresias"}
				o.Set = []study.Setting{{Path: "cluster.nodes[0].count", Value: 50}}
			})
		},
		"elastic": func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, ",min_replicas,max_replicas", func(i, _ int) string {
				return fmt.Sprintf(",%d,%d", 1, []int{1, 2, 1, 4, 1, 8}[i%6])
			}), nil)
		},
		"adaptive": func(t *testing.T) advise.Options {
			return asked(t, "", func(o *advise.Options) {
				o.Files, o.Estimate = []string{"default.yaml"}, map[string]any{"source": "declared"}
				o.Set = []study.Setting{{Path: "workload.config.jobs", Value: 24}}
				o.Named, o.Windows, o.Jobs = []string{"as-configured", "las-goodput", "las-first-fit"}, 1, 12
			})
		},
	}
	for name, of := range cases {
		t.Run(name, func(t *testing.T) {
			o := of(t)
			a, err := advise.Advise(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			e := json.NewEncoder(&got)
			e.SetEscapeHTML(false)
			e.SetIndent("", " ")
			if err := e.Encode(a); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&got, strings.Join(a.Evidence(), "\n"))
			fmt.Fprintln(&got, "candidates", strings.Join(a.Candidates, " "), a.Rungs, "limits hold", a.LimitsHold(), "nearest", a.Nearest().Name)
			for line := range strings.Lines(string(a.Config)) {
				if strings.HasPrefix(line, "#") {
					got.WriteString(line)
				}
			}
			if _, err := configs.Parse(quartet.Builtins(), "advised.yaml", a.Config, configs.Options{}); err != nil {
				t.Errorf("its config: %v", err)
			}
			path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".golden")
			if *update {
				if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, got.Bytes(), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("advice (-want +got):\n%s", diff)
			}
			// The same advice again runs nothing.
			again, err := advise.Advise(t.Context(), o)
			if err != nil || again.Reused != a.Runs || again.Chosen != a.Chosen {
				t.Errorf("again: %v, %d of %d runs kept", err, again.Reused, a.Runs)
			}
		})
	}
}

// What advice cannot be given on is told.
func TestNoAdvice(t *testing.T) {
	for name, tc := range map[string]struct {
		options func(t *testing.T) advise.Options
		want    string
	}{
		"open": {func(t *testing.T) advise.Options {
			return asked(t, "", func(o *advise.Options) { o.Set = []study.Setting{{Path: "workload.type", Value: "submitted"}} })
		}, "has no jobs of its own"},
		"one job": {func(t *testing.T) advise.Options { return asked(t, jobsOf(t, 1, "", nothing), nil) }, "has 1 jobs from job 0 on"},
		"after the last": {func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 5, "", nothing), func(o *advise.Options) { o.FirstJob = 9 })
		}, "has 0 jobs from job 9 on"},
		"no length": {func(t *testing.T) advise.Options {
			jobs := write(t, "jobs.yaml", "version: 1\njobs: [{name: a, command: [x]}, {name: b, command: [x]}]\n")
			return asked(t, "", func(o *advise.Options) {
				o.Trace.Set = []study.Setting{{Path: "workload", Value: map[string]any{"type": "jobs", "config": map[string]any{"path": jobs}}}}
			})
		}, `job "a" does not say how long it runs`},
		"all too large": {func(t *testing.T) advise.Options {
			return asked(t, write(t, "huge.csv", "name,submit_s,duration_s,replicas\na,0,1,9\nb,0,1,99\n"), nil)
		}, "every job needs more devices than the cluster has for it"},
		"unknown names": {func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), named("fifo", "fifi", "lass"))
		}, `there is no candidate "lass" for this cluster and trace; did you mean "las"?`},
		"no limits": {func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) { o.Estimate = map[string]any{"source": "limit"} })
		}, "60 of 60 jobs have no limit_s"},
		"no candidate that is valid": {func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) {
				o.Candidates = []study.Item{{Name: "a", Set: []study.Setting{{Path: "pipeline.allocation.type", Value: "fof"}}}}
			})
		}, `unknown allocation "fof"`},
		"a site that is wrong": {func(t *testing.T) advise.Options {
			return asked(t, jobsOf(t, 60, "", nothing), func(o *advise.Options) { o.Set = []study.Setting{{Path: "round.interval", Value: "soon"}} })
		}, "round.interval"},
		"a trace that is not there": {func(t *testing.T) advise.Options { return asked(t, "none.csv", nil) }, "none.csv: cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := advise.Advise(t.Context(), tc.options(t))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if _, ok := errors.AsType[core.Diagnostics](err); !ok {
				t.Errorf("%v (%T) is not a list of diagnostics", err, err)
			}
		})
	}
}

// The default candidates are those that the facts say, in their order.
func TestGridInOrder(t *testing.T) {
	var got strings.Builder
	for _, f := range []advise.Facts{
		{Types: 1},
		{Types: 1, WorkKnown: true},
		{Types: 1, Seated: true},
		{Types: 1, Elastic: true},
		{Types: 1, Elastic: true, WorkKnown: true, Seated: true},
		{Types: 1, Adaptive: true},
		{Types: 2, WorkKnown: true, Mixing: true},
		{Types: 2, Elastic: true, Adaptive: true, WorkKnown: true, Seated: true, Jobs: 100},
		{Types: 3, Jobs: 100_000, WorkKnown: true},
	} {
		fmt.Fprintf(&got, "%+v\n", f)
		for _, item := range advise.Grid(f) {
			fmt.Fprintf(&got, "  %s\n", item.Name)
		}
	}
	path := filepath.Join("testdata", "grid.golden")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
}
