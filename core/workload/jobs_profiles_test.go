package workload

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

const profileOfTest = `version: 1
name: NAME
batch: {initial: 32, max: 256, min_per_device: 8, max_per_device: 128}
max_replicas: 4
epochs: 10
iterations_per_epoch: 100
performance: {alpha_grad: 0.01, beta_grad: 0.001, alpha_node: 0.02, beta_node: 0.002, alpha_local: 0.006, beta_local: 0.001, gamma: 1.5}
noise: [{progress: 0.5, samples: 64}]
`

// jobsWithProfiles loads a job file whose jobs may go by profiles of some names.
func jobsWithProfiles(t *testing.T, jobs string, names ...string) (*Workload, error) {
	t.Helper()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := map[string]any{"path": write("jobs.yaml", "version: 1\njobs:\n"+jobs)}
	profiles := []any{}
	for i, name := range names {
		profiles = append(profiles, write(fmt.Sprintf("%d.yaml", i), strings.ReplaceAll(profileOfTest, "NAME", name)))
	}
	if len(names) > 0 {
		config["profiles"] = profiles
	}
	w, err := coretest.Component(NewJobs(), config, nil).Load(context.Background())
	if err != nil {
		err = fmt.Errorf("%s", strings.ReplaceAll(err.Error(), folder+string(filepath.Separator), ""))
	}
	return w, err
}

func TestJobsGoByProfiles(t *testing.T) {
	w, err := jobsWithProfiles(t, `
  - {name: whole, command: [x], application: paced, max_replicas: 4}
  - {name: short, command: [x], application: paced, iterations: 500, batch: {requested: 64, initial: 32, max: 128, min_per_device: 16, max_per_device: 64}}
  - {name: other, command: [x], application: unknown, seconds: 7}
  - {name: nothing, command: [x], seconds: 8}
`, "paced", "idle")
	if err != nil {
		t.Fatal(err)
	}
	type job struct {
		Work, Seconds    float64 // on a device
		Reports, Elastic bool
		Batch            core.BatchSpec
	}
	got := map[string]job{}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		seconds := 0.0
		for p := range j.Model.Phases() {
			work := j.Model.PhaseEnd(p)
			if p > 0 {
				work -= j.Model.PhaseEnd(p - 1)
			}
			seconds += work / j.Model.Rate(p, Running{Shape: []int{1}, Replicas: 1})
		}
		_, elastic := j.Model.(Measurer)
		got[j.Spec.Name] = job{j.Spec.TotalWork, seconds, j.Process.Reports, elastic && j.Spec.Truth != nil && j.Spec.StepTimes != nil, j.Spec.Batch}
	}
	// A step of 64 samples is two passes of 42 ms, and gains 1.5 iterations.
	want := map[string]job{
		"whole":   {1000, 42, true, true, core.BatchSpec{Requested: 32, Initial: 32, Max: 256, MinPerDevice: 8, MaxPerDevice: 128}},
		"short":   {500, 500 / 1.5 * 0.084, true, true, core.BatchSpec{Requested: 64, Initial: 32, Max: 128, MinPerDevice: 16, MaxPerDevice: 64}},
		"other":   {Work: 7, Seconds: 7},
		"nothing": {Work: 8, Seconds: 8},
	}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if len(w.Inputs) != 3 {
		t.Errorf("inputs are %v, want the job file and two profiles", w.Inputs)
	}
}

func TestJobsThatDoNotFitTheirProfile(t *testing.T) {
	cases := map[string]struct {
		job      string
		profiles []string
		want     string
	}{
		"seconds":         {`{name: a, command: [x], application: paced, seconds: 5}`, []string{"paced"}, `jobs.yaml:3:6: job "a" declares seconds, and goes by the profile of "paced"`},
		"initial batch":   {`{name: a, command: [x], application: paced, batch: {requested: 64}}`, []string{"paced"}, `job "a" has an initial batch of 64, and the profile of "paced" one of 32`},
		"largest batch":   {`{name: a, command: [x], application: paced, batch: {requested: 32, max: 512, min_per_device: 8, max_per_device: 64}}`, []string{"paced"}, `beyond those of the profile of "paced": from 32 to 256, 8 to 128 on a device`},
		"least of device": {`{name: a, command: [x], application: paced, batch: {requested: 32, max: 64, max_per_device: 64}}`, []string{"paced"}, `beyond those of the profile`},
		"below initial":   {`{name: a, command: [x], application: paced, batch: {requested: 16, initial: 32, max: 64, min_per_device: 8, max_per_device: 64}}`, []string{"paced"}, `beyond those of the profile`},
		"twice":           {`{name: a, command: [x]}`, []string{"paced", "paced"}, `1.yaml: is a second profile of "paced"`},
		"no profile":      {`{name: a, command: [x]}`, []string{"Paced"}, `0.yaml:`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := jobsWithProfiles(t, "  - "+tc.job+"\n", tc.profiles...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestProfilesThatAreNotThere(t *testing.T) {
	err := JobsConfig{Path: "x", Profiles: []string{"a", ""}}.Validate()
	if err == nil || !strings.Contains(err.Error(), "profiles[1]: is empty") {
		t.Errorf("got %v", err)
	}
}
