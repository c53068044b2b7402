package workload

import (
	"bytes"
	"strings"
	"testing"
)

// A trace names the search that a job is a trial of, and is written as it was read.
func TestExperimentOfATrace(t *testing.T) {
	const name = `up to 60 letters, digits, "-", "_" and ".", the first a letter, digit or "_"`
	for called, tc := range map[string]struct{ cell, want, err string }{
		"none":          {},
		"a name":        {cell: "lr_1.e-3", want: "lr_1.e-3"},
		"the longest":   {cell: strings.Repeat("a", 60), want: strings.Repeat("a", 60)},
		"too long":      {cell: strings.Repeat("a", 61), err: name},
		"a path":        {cell: "a/b", err: `jobs.csv:2:10: experiment is "a/b"; expected ` + name},
		"a hidden file": {cell: ".a", err: name},
	} {
		t.Run(called, func(t *testing.T) {
			text := "name,submit_s,duration_s,replicas,experiment\na,0,10,1," + tc.cell + "\n"
			w, err := loadFrom(t, NewCSV(), map[string]any{"path": writeFile(t, text, t.TempDir(), "jobs.csv")})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Jobs[0].Spec.Experiment; got != tc.want {
				t.Errorf("experiment %q, want %q", got, tc.want)
			}
			var again bytes.Buffer
			if err := WriteCSV(&again, w); err != nil {
				t.Fatal(err)
			}
			if has := strings.Contains(again.String(), "experiment"); has != (tc.want != "") || !strings.Contains(again.String(), tc.want) {
				t.Errorf("written is %q", again.String())
			}
		})
	}
}
