package study_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/lab/study"
)

// Runs are compared over the same jobs, unless the study asks for others.
func TestOtherJobsAreRefused(t *testing.T) {
	const (
		begin = "version: 1\nset: {workload.config.jobs: 6, workload.config.span: 1h}\naxes:\n"
		jobs  = `  scheduler: [fifo, {name: las, set: {pipeline.allocation.type: las, workload.config.jobs: 3}}]` + "\n"
		seeds = `  scheduler: [fifo, {name: las, set: {pipeline.allocation.type: las, seed: 3}}]` + "\nseeds: {config: true}\n"
		hint  = "; set it for the whole study, or on an axis of its own; unequal_inputs: true (--unequal-inputs, of flags alone) compares all the same"
		fifo  = "baseline: {scheduler: fifo}\n"
	)
	tests := map[string]struct{ text, want string }{
		"workload":        {begin + jobs + fifo, `small.yaml:4:70: axes.scheduler: "las" has other jobs than those of the baseline "fifo": another workload` + hint},
		"many replicates": {begin + jobs + "seeds: {count: 3}\n" + fifo, `small.yaml:4:70: axes.scheduler: "las" has other jobs than those of the baseline "fifo": another workload` + hint},
		"seed":            {begin + seeds + fifo, `small.yaml:4:70: axes.scheduler: "las" has other jobs than those of the baseline "fifo": another seed` + hint},
		"sample": {
			begin + "  scheduler: [fifo, {name: las, set: {pipeline.allocation.type: las, sample.load.factor: 0.5}}]\n" + fifo,
			`small.yaml:4:70: axes.scheduler: "las" has other jobs than those of the baseline "fifo": another sample` + hint,
		},
		"another axis that is compared": {
			begin + "  length: [{name: short, set: {workload.config.span: 1h}}, {name: long, set: {workload.config.span: 2h}}]\nbaseline: {length: short}\n",
			`small.yaml:4:79: axes.length: "long" has other jobs than those of the baseline "short": another workload` + hint,
		},
		"asked for":             {begin + jobs + fifo + "unequal_inputs: true\n", ""},
		"no baseline":           {begin + jobs, ""},
		"no baseline, by seeds": {begin + seeds, ""},
		"workloads compared":    {begin + "  workload: [default, {name: b, set: {workload.config.jobs: 3}}]\nbaseline: {workload: default}\n", ""},
		"loads compared":        {begin + "  load: [1, 0.5]\nbaseline: {load: \"1\"}\n", ""},
		"on another axis":       {begin + "  scheduler: [fifo, las]\n  length: [{name: b, set: {workload.config.jobs: 3}}, {name: c, set: {workload.config.jobs: 4}}]\n" + fifo, ""},
		"estimates": {
			begin + "  scheduler: [fifo, {name: srtf, set: {pipeline.allocation.type: srtf, estimate.source: noisy, estimate.sigma: 1}}]\nseeds: {count: 2}\n" + fifo, "",
		},
		"the seed of another part": {
			"version: 1\nset: {workload.type: csv, workload.config: {path: TRACE}}\naxes:\n" + seeds + fifo, "",
		},
	}
	path := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(path, []byte("name,submit_s,duration_s,replicas\na,0,60,1\nb,10,60,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll(tc.text, "TRACE", path)
			_, err := parse(t, text).Count(t.Context(), options(t.TempDir()))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("warned of", func(t *testing.T) {
		o := options(t.TempDir())
		execute(t, begin+jobs+fifo+"unequal_inputs: true\n", o)
		all := tables(t, o.Dir)
		text, err := os.ReadFile(filepath.Join(o.Dir, study.StudyFile))
		if err != nil {
			t.Fatal(err)
		}
		if got := all[study.WarningsFile]; !strings.Contains(got, `las,1,unequal_inputs,"other jobs than those of the baseline ""fifo"": another workload"`) || strings.Contains(got, "fifo,1,") {
			t.Errorf("warnings:\n%s", got)
		}
		if !strings.Contains(string(text), "unequal_inputs: true") {
			t.Errorf("study:\n%s", text)
		}
	})
}

// A study whose runs have the seeds of their configs has a run a window.
func TestWindowsWithTheSeedOfTheConfig(t *testing.T) {
	text := "version: 1\nset: {workload.config.jobs: 9, seed: 7}\naxes:\n  workload: [{name: w, windows: {jobs: 3, count: 3}}]\nseeds: {config: true}\n"
	r := execute(t, text, options(t.TempDir()))
	if len(r.Rows) != 3 || r.Rows[0].Seed != 7 || r.Rows[2].Seed != 7 {
		t.Errorf("%d runs", len(r.Rows))
	}
}

// What is no truth value is told, and nothing that follows from it.
func TestASeedOfNoTruthValue(t *testing.T) {
	for value, seeded := range map[string]bool{"yes": true, "1": true, "false": false} {
		_, err := study.Parse("small.yaml", "small", []byte("version: 1\nset: {seed: 4}\naxes: {scheduler: [fifo]}\nseeds: {config: "+value+"}\n"))
		if err == nil || strings.Contains(err.Error(), `"seed" is for the study to set`) == seeded || strings.Contains(err.Error(), "seeds.config") != seeded {
			t.Errorf("%s: %v", value, err)
		}
	}
}
