package workload

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// What a CSV tells of sensitivity is read, written and read again the same.
func TestCSVSensitivity(t *testing.T) {
	t.Parallel()
	const header = "name,submit_s,duration_s,replicas,ideal_cpus,ideal_memory_gb,ideal_speedup,base_cpus,base_memory_gb\n"
	w := mustLoad(t, NewCSV(), map[string]any{"path": writeFile(t, header+"a,0,10,1,6,125,2.5,3,62.5\nb,1,10,2,,,,,\n", t.TempDir(), "jobs.csv")})
	want := &core.Sensitivity{Ideal: core.Resources{CPUs: 6, MemoryGB: 125}, Speedup: 2.5, Base: core.Resources{CPUs: 3, MemoryGB: 62.5}}
	if diff := cmp.Diff(want, w.Jobs[0].Spec.Sensitivity); diff != "" || w.Jobs[1].Spec.Sensitivity != nil {
		t.Errorf("of b %v, of a (-want +got):\n%s", w.Jobs[1].Spec.Sensitivity, diff)
	}
	var text bytes.Buffer
	if err := WriteCSV(&text, w); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); got != header+"a,0,10,1,6,125,2.5,3,62.5\nb,1,10,2,,,,,\n" {
		t.Errorf("written is\n%s", got)
	}
	for row, want := range map[string]string{
		"a,0,10,1,6,125,2.5,3,\n":  "a value in each of ideal_cpus",
		"a,0,10,1,,125,,,\n":       "a value in each of ideal_cpus",
		"a,0,10,1,6,125,2.5,0,1\n": "base_cpus",
		"a,0,10,1,6,x,2.5,3,1\n":   "ideal_memory_gb",
		"a,0,10,1,6,9,0.9,3,1\n":   `jobs.csv:2:14: ideal_speedup is "0.9"; expected a number from 1 to 1048576`,
		"a,0,10,1,6,9,-1,3,1\n":    `jobs.csv:2:14: ideal_speedup is "-1"; expected a number from 1 to 1048576`,
		"a,0,10,1,6,9,NaN,3,1\n":   `jobs.csv:2:14: ideal_speedup is "NaN"; expected a number from 1 to 1048576`,
		"a,0,10,1,3,9,1.5,3,9\n":   `jobs.csv:2:14: ideal_speedup is "1.5"; expected 1, as the ideal is no more than the base`,
	} {
		if _, err := loadFrom(t, NewCSV(), map[string]any{"path": writeFile(t, header+row, t.TempDir(), "jobs.csv")}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", row, err, want)
		}
	}
}

// An ideal with which a job is as fast as with the base may be no more than that, or less.
func TestCSVSensitivityOfThoseWhoNeedLess(t *testing.T) {
	t.Parallel()
	const header = "name,submit_s,duration_s,replicas,ideal_cpus,ideal_memory_gb,ideal_speedup,base_cpus,base_memory_gb\n"
	for _, row := range []string{"a,0,10,1,3,9,1,3,9\n", "a,0,10,1,1,9,1,3,9\n", "a,0,10,1,1,10,1.5,3,9\n", "a,0,10,1,4,1,1.5,3,9\n"} {
		if _, err := loadFrom(t, NewCSV(), map[string]any{"path": writeFile(t, header+row, t.TempDir(), "jobs.csv")}); err != nil {
			t.Errorf("%q is refused: %v", row, err)
		}
	}
}

// With the mix about half of the jobs gain by CPUs, and whatever else is drawn is drawn with and without.
func TestGeneratedSensitivity(t *testing.T) {
	t.Parallel()
	gaining := 0
	for _, j := range generate(t, map[string]any{"jobs": 2000, "sensitivity": "mix"}).Jobs {
		if err := j.Spec.Sensitivity.Check(); err != nil {
			t.Error(err)
		}
		if j.Spec.Sensitivity.Speedup > 1 {
			gaining++
		}
	}
	if gaining < 900 || gaining > 1100 {
		t.Errorf("%d of 2000 jobs gain", gaining)
	}
	for _, j := range generate(t, nil).Jobs {
		if j.Spec.Sensitivity != nil {
			t.Fatal("a job is sensitive without being asked to")
		}
	}
}

// A profile tells its jobs' sensitivity, reads as it is written, and refuses half of one.
func TestProfileSensitivity(t *testing.T) {
	t.Parallel()
	profiles, err := Applications()
	if err != nil {
		t.Fatal(err)
	}
	p := profiles[0]
	plain := string(p.YAML())
	p.Sensitivity = goodput.Sensitivity{BaseCPUs: 3, BaseMemoryGB: 60, IdealCPUs: 6, IdealMemoryGB: 60, Speedup: 1.5}
	again, err := goodput.ReadProfile("p.yaml", p.YAML())
	if diff := cmp.Diff(p, again); err != nil || diff != "" {
		t.Errorf("error %v, read again (-want +got):\n%s", err, diff)
	}
	if strings.Contains(plain, "sensitivity") {
		t.Errorf("a profile without one tells one:\n%s", plain)
	}
	m := newModelledModel(&p, p.Batch.Initial)
	job := newTrainingJob("j", 0, 1, m)
	want := &core.Sensitivity{Base: core.Resources{CPUs: 3, MemoryGB: 60}, Ideal: core.Resources{CPUs: 6, MemoryGB: 60}, Speedup: 1.5}
	if diff := cmp.Diff(want, job.Spec.Sensitivity); diff != "" {
		t.Errorf("of a job (-want +got):\n%s", diff)
	}
	p.Sensitivity.IdealCPUs = 0
	if _, err := goodput.ReadProfile("p.yaml", p.YAML()); err == nil || !strings.Contains(err.Error(), "ideal CPUs is 0") {
		t.Errorf("half of one: %v", err)
	}
	for name, tc := range map[string]struct {
		of   goodput.Sensitivity
		want string
	}{
		"slower with the ideal": {goodput.Sensitivity{BaseCPUs: 3, BaseMemoryGB: 60, IdealCPUs: 6, IdealMemoryGB: 60, Speedup: 0.5}, "sensitivity: speed-up is 0.5, want a number of 1 or more"},
		"faster with less":      {goodput.Sensitivity{BaseCPUs: 3, BaseMemoryGB: 60, IdealCPUs: 2, IdealMemoryGB: 60, Speedup: 1.5}, "sensitivity: speed-up is 1.5, want 1, for the ideal"},
		"as fast with less":     {goodput.Sensitivity{BaseCPUs: 3, BaseMemoryGB: 60, IdealCPUs: 2, IdealMemoryGB: 60, Speedup: 1}, ""},
	} {
		p.Sensitivity = tc.of
		_, err := goodput.ReadProfile("p.yaml", p.YAML())
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "p.yaml:")) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestSynergySource(t *testing.T) {
	t.Parallel()
	cols, cpus, memory := synergyModelColumns()
	speeds := func(of func(c, m float64) string) string {
		cells := ""
		for _, c := range cpus {
			for _, m := range memory {
				cells += "," + of(c, m)
			}
		}
		return cells
	}
	header := strings.Join(cols.required, ",") + "\n"
	models := header +
		"3,image,1,12,62.5,62.5,512,0.5,2" + speeds(func(c, m float64) string {
		if c >= 12 && m >= 125 {
			return "2"
		}
		return "1"
	}) + "\n3,language,1,1,62.5,62.5,512,0.1,1" + speeds(func(float64, float64) string { return "1" }) +
		"\n6,image,1,12,62.5,62.5,512,0.4,1.5" + speeds(func(float64, float64) string { return "1" }) + "\n"
	folder := t.TempDir()
	settings := func(trace string, more map[string]any) map[string]any {
		all := map[string]any{"path": writeFile(t, trace, folder, "trace.csv"), "models_path": writeFile(t, models, folder, "models.csv")}
		maps.Copy(all, more)
		return all
	}
	w := mustLoad(t, NewSynergy(), settings("1,language,5,10,2\n0,image,0.5,100,1\n", map[string]any{"delay": "299s"}))
	if len(w.Inputs) != 2 || len(w.Jobs) != 2 {
		t.Fatalf("%d inputs, %d jobs", len(w.Inputs), len(w.Jobs))
	}
	first, second := &w.Jobs[0], &w.Jobs[1]
	if first.Spec.Name != "0" || first.Spec.SubmitSeconds != 299.5 || first.Spec.TotalWork != 100 || first.Spec.Sensitivity.IterationSeconds != 0.5 || first.Spec.CPUs != 0 {
		t.Errorf("the first job is %+v", first.Spec)
	}
	want := core.Sensitivity{Base: core.Resources{CPUs: 3, MemoryGB: 62.5}, Ideal: core.Resources{CPUs: 12, MemoryGB: 125}, Speedup: 2, IterationSeconds: 0.5}
	if diff := cmp.Diff(want, *first.Spec.Sensitivity); diff != "" {
		t.Errorf("sensitivity (-want +got):\n%s", diff)
	}
	if got := second.Spec.Sensitivity.Ideal.MemoryGB; got != 20 {
		t.Errorf("who needs no more than the least asks for %v GB, want 20", got)
	}
	if one, two := second.Model.Rate(0, Running{Replicas: 1}), second.Model.Rate(0, Running{Replicas: 2}); one != 0 || two != 1/second.Spec.Sensitivity.IterationSeconds {
		t.Errorf("rates %v and %v", one, two)
	}
	measured := mustLoad(t, NewSynergy(), settings("0,image,0,100,1\n1,language,0,1,1\n", map[string]any{"speeds": "measured", "cpus_per_device": 3}))
	if of := measured.Jobs[0].Spec.Sensitivity; len(of.Speeds) != len(cpus) || of.Speed(core.Resources{CPUs: 12, MemoryGB: 125}) != 2 {
		t.Errorf("measured: %+v", of)
	}
	if got := measured.Jobs[1].Spec.Sensitivity.Ideal.MemoryGB; got != memory[0] {
		t.Errorf("measured, who needs no more than the least asks for %v GB", got)
	}
	for name, tc := range map[string]struct {
		trace string
		more  map[string]any
		want  float64 // when job 0 is submitted
	}{
		"all in the first second":              {"0,image,0.5,1,1\n1,image,0.999,1,1\n", nil, 299.5},
		"all at once":                          {"0,image,0,1,1\n1,image,0,1,1\n", nil, 299},
		"one":                                  {"0,image,0,1,1\n", nil, 299},
		"one at the end of it":                 {"0,image,0.5,1,1\n1,image,1,1,1\n", nil, 0.5},
		"the later one first":                  {"1,image,600,1,1\n0,image,0.5,1,1\n", nil, 0.5},
		"all in the first second, not delayed": {"0,image,0.5,1,1\n", map[string]any{"delay": "0s"}, 0.5},
		"delayed by so much":                   {"0,image,0.5,1,1\n1,image,600,1,1\n", map[string]any{"delay": "1m"}, 60.5},
	} {
		if got := mustLoad(t, NewSynergy(), settings(tc.trace, tc.more)).Jobs[0].Spec; got.Name != "0" || got.SubmitSeconds != tc.want {
			t.Errorf("%s: job %s comes at %v s, want job 0 at %v s", name, got.Name, got.SubmitSeconds, tc.want)
		}
	}
	for trace, want := range map[string]string{
		"0,imag,0,100,1\n":         `model "imag" was not measured on servers with 3 CPUs for a device`,
		"0,image,0,100,0\n":        "gpus",
		"0,image,0,1,1\n0,x,0,1,1": "it is on line 1 too",
	} {
		if _, err := loadFrom(t, NewSynergy(), settings(trace, nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", trace, err, want)
		}
	}
	if _, err := loadFrom(t, NewSynergy(), settings("0,image,0,1,1\n", map[string]any{"cpus_per_device": 4})); err == nil || !strings.Contains(err.Error(), "with 4 CPUs") {
		t.Errorf("another ratio: %v", err)
	}
}
