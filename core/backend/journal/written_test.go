package journal

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// What is written of a job is what is not at its default.
func TestWritten(t *testing.T) {
	cases := map[string]struct {
		text string
		want string
	}{
		"a command":          {`{name: j, command: [a]}`, `{"Command":["a"]}`},
		"defaults":           {`{name: j, command: [a], weight: 1, replicas: 1, min_replicas: 1, max_replicas: 1, accelerators: [], pinned: false}`, `{"Command":["a"]}`},
		"replicas":           {`{name: j, command: [a], replicas: 4, min_replicas: 4, max_replicas: 8}`, `{"Command":["a"],"MaxReplicas":8,"Requested":4}`},
		"a batch":            {`{name: j, command: [a], batch: {requested: 64}}`, `{"Batch.Requested":64,"Command":["a"]}`},
		"its defaults":       {`{name: j, command: [a], batch: {requested: 64, initial: 64, max: 64, min_per_device: 1, max_per_device: 64}}`, `{"Batch.Requested":64,"Command":["a"]}`},
		"no device":          {`{name: j, command: [a], share_milli: 0}`, `{"Command":["a"],"Share":{}}`},
		"half a device":      {`{name: j, command: [a], share_milli: 500}`, `{"Command":["a"],"Share":{},"Share.Milli":500}`},
		"seconds":            {`{name: j, command: [a], seconds: 10}`, `{"Command":["a"],"TotalWork":10}`},
		"iterations instead": {`{name: j, command: [a], iterations: 10}`, `{"Command":["a"],"Reports":true,"TotalWork":10}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			jobs, err := workload.DecodeJobs("jobs.yaml", []byte("version: 1\njobs: ["+tc.text+"]\n"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(WrittenBy(jobs)[0].Fields)
			if err != nil || string(got) != tc.want {
				t.Errorf("%s, error %v, want %s", got, err, tc.want)
			}
		})
	}
}

// A field that a version brings, or a default that it changes, is nothing that an owner wrote; a number that is not finite is compared all the same.
func TestWrittenByOtherVersions(t *testing.T) {
	spec := core.JobSpec{Name: "j", Weight: 1, Requested: 1, MinReplicas: 1, MaxReplicas: 1, TotalWork: math.Inf(1)}
	began := WrittenBy([]workload.Job{{Spec: spec}})
	if found := Differences(began, []workload.Job{{Spec: spec}}); len(found) > 0 {
		t.Errorf("the same job differs: %v", found)
	}
	spec.TotalWork, spec.Weight = 5, 0
	want := `job "j" is not as when the run began: seconds is 5, and was "+Inf"; weight is null, and was left out`
	if found := Differences(began, []workload.Job{{Spec: spec}}); len(found) != 1 || found[0].Summary != want {
		t.Errorf("%v, want %s", found, want)
	}
}

// Versions are found before anything else of a journal is read.
func TestOtherVersions(t *testing.T) {
	cases := map[string]struct{ record, want string }{
		"none":             {"", ""},
		"this one":         {`{"Schema":"quartet.state/v1","Identity":"x"}`, ""},
		"a later one":      {`....{"Schema":"quartet.state/v2","Program":"v2, commit x","Nodes":"of another form"}`, `is of version "quartet.state/v2" and was written by quartet v2, commit x, and this program reads "quartet.state/v1"`},
		"of another kind":  {`{"Schema":"x"}`, `is of version "x", and this program reads "quartet.state/v1"`},
		"in a config only": {`{"Config":"{\"Schema\":\"quartet.state/v2\"}"}`, ""},
		"garbage":          {"\x00\xff", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			m := NewMemory()
			if tc.record != "" {
				_ = m.Update(func(w Writable) error { return w.Put(metaBucket, runKey, []byte(tc.record)) })
			}
			if err := CheckVersion([]byte(tc.record)); err != nil {
				got = err.Error()
				if _, read := Open(m, "", "").Meta(); read == nil || read.Error() != got {
					t.Errorf("reading says %v, want %s", read, got)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The squared norm of a gradient had another name in journals of earlier versions.
func TestGradientsOfEarlierVersions(t *testing.T) {
	for text, want := range map[string]core.Gradients{
		`{"Kind":1,"Gradients":{"Square":2,"Variance":3}}`:                                            {SquaredNorm: 2, Variance: 3},
		`{"Kind":1,"Gradients":{"SquaredNorm":2,"Variance":3}}`:                                       {SquaredNorm: 2, Variance: 3},
		`{"Kind":1,"Message":"\"Square\":","Gradients":{"SquaredNorm":0,"Variance":3}}`:               {Variance: 3},
		`{"Kind":1,"Gradients":{"Square":7,"SquaredNorm":2,"Variance":3},"Message":"of two authors"}`: {SquaredNorm: 2, Variance: 3},
	} {
		var e Event
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Gradients != want {
			t.Errorf("%s reads %+v, error %v, want %+v", text, e.Gradients, err, want)
		}
	}
}
