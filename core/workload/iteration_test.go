package workload

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// What a trace tells of iterations is read, and written again as it was.
func TestIterationsOfATrace(t *testing.T) {
	const header = "name,submit_s,duration_s,replicas,load_s,compute_s,sync_s,iteration_s\n"
	cases := map[string]struct {
		cells string
		want  core.Iteration
		err   string
	}{
		"all of it":                {cells: "0.5,1.25,0.125,1.75", want: core.Iteration{Load: 0.5, Compute: 1.25, Sync: 0.125, Measured: 1.75}},
		"one stage":                {cells: ",2,,", want: core.Iteration{Compute: 2}},
		"stages of nothing":        {cells: "0,0,0,", want: core.Iteration{}},
		"nothing":                  {cells: ",,,"},
		"less than nothing":        {cells: "-1,,,", err: `load_s is "-1"`},
		"a whole without stages":   {cells: ",,,3", err: `iteration_s is "3"; expected none without load_s, compute_s or sync_s`},
		"a whole of empty stages":  {cells: "0,0,0,3", err: "expected none without"},
		"a whole that takes none":  {cells: "1,,,0", err: `iteration_s is "0"`},
		"words in place of a time": {cells: ",,long,", err: `sync_s is "long"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, err := newInput("t.csv", []byte(header+"a,0,10,1,"+tc.cells+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			w, err := readCSV(in)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, w.Jobs[0].Spec.Iteration); diff != "" {
				t.Errorf("iteration (-want +got):\n%s", diff)
			}
			var out bytes.Buffer
			if err := WriteCSV(&out, w); err != nil {
				t.Fatal(err)
			}
			if in, err = newInput("t.csv", out.Bytes()); err != nil {
				t.Fatal(err)
			}
			again, err := readCSV(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, again.Jobs[0].Spec.Iteration); diff != "" {
				t.Errorf("written and read again (-want +got):\n%s", diff)
			}
		})
	}
}
