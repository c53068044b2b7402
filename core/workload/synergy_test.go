package workload

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

func TestReadSynergy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rows string
		want []SynergyRow
		err  string // a part of it
	}{
		"in the order of the file": {
			rows: "1,gnmt,126,26435,1\n0,alexnet,0.5,23349,4\n",
			want: []SynergyRow{{ID: 1, Model: "gnmt", ArrivalSeconds: 126, Iterations: 26435, Devices: 1}, {ID: 0, Model: "alexnet", ArrivalSeconds: 0.5, Iterations: 23349, Devices: 4}},
		},
		"a job twice":          {rows: "0,a,0,1,1\n0,a,0,1,1\n", err: "2:1: job_id is \"0\"; expected a number of its own; it is on line 1 too"},
		"no iteration":         {rows: "0,a,0,0,1\n", err: "1:7: iterations is \"0\"; expected at least one iteration"},
		"no device":            {rows: "0,a,0,5,0\n", err: "1:9: gpus is \"0\""},
		"an arrival before 0":  {rows: "0,a,-1,5,1\n", err: "1:5: arrival_s is \"-1\""},
		"too few columns":      {rows: "0,a,1,5\n", err: "1:1: 4 fields; expected 5"},
		"no name":              {rows: "0,,1,5,1\n", err: "1:3: model is \"\""},
		"all problems at once": {rows: "x,a,1,5,1\n0,a,1,y,1\n", err: "2:7: iterations"},
		"nothing":              {rows: "", err: "no rows"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadSynergy(t.Context(), writeFile(t, tc.rows, t.TempDir(), "trace.csv"))
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if tc.err != "" {
				return
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(SynergyRow{}, "At")); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadSynergyModels(t *testing.T) {
	t.Parallel()
	cols, _, _ := synergyModelColumns()
	header := strings.Join(cols.required, ",") + "\n"
	none, all := strings.Repeat(",", 45), ","+strings.Join(slices.Repeat([]string{"2"}, 45), ",")
	for name, tc := range map[string]struct {
		rows   string
		speeds []int // numbers of CPUs measured, by model
		err    string
	}{
		"with speeds and without":    {rows: "3,a,1,12,62.5,62.5,512,0.6,2.94" + all + "\n3,a,2,9,62.5,62.5,512,0.6,2.33" + none + "\n", speeds: []int{9, 0}},
		"some speeds are missing":    {rows: "3,a,1,12,62.5,62.5,512,0.6,2.94" + strings.Replace(all, "2", "", 1) + "\n", err: `w_cpu1_mem20.83 is ""; expected a speed above 0`},
		"the last one is broken":     {rows: "3,a,1,12,62.5,62.5,512,0.6,2.94" + strings.TrimSuffix(all, "2") + "x\n", err: `w_cpu24_mem250 is "x"`},
		"a model twice":              {rows: strings.Repeat("3,a,1,12,62.5,62.5,512,0.6,2.94"+none+"\n", 2), err: "3:3: model is \"a\""},
		"slower with more memory":    {rows: "3,a,1,12,62.5,62.5,512,0.6,2.94" + strings.Replace(all, ",2,2,", ",2,1.9,", 1) + "\n", err: `2:35: w_cpu1_mem62.5 is "1.9"; expected at least the 2 with less memory`},
		"slower with more CPUs":      {rows: "3,a,1,12,62.5,62.5,512,0.6,2.94,3,3,3,3,3" + all[:len(all)-10] + "\n", err: `w_cpu2_mem20.83 is "2"; expected at least the 3 with fewer CPUs`},
		"one problem of a bad speed": {rows: "3,a,1,12,62.5,62.5,512,0.6,2.94" + strings.Replace(all, ",2,2,", ",2,0,", 1) + "\n", err: `w_cpu1_mem62.5 is "0"; expected a speed above 0`},
		"slower with the ideal":      {rows: "3,a,1,12,62.5,62.5,512,0.6,0.94" + none + "\n", err: `2:28: speedup_at_ideal is "0.94"; expected a number from 1 to`},
		"faster with no more":        {rows: "3,a,1,3,62.5,62.5,512,0.6,1.94" + none + "\n", err: `2:27: speedup_at_ideal is "1.94"; expected 1, as the ideal is no more than the share of a device`},
		"as fast with no more":       {rows: "3,a,1,3,62.5,62.5,512,0.6,1" + none + "\n", speeds: []int{0}},
		"an iteration takes no time": {rows: "3,a,1,12,62.5,62.5,512,0,2.94" + none + "\n", err: "2:24: iteration_s_at_proportional"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadSynergyModels(t.Context(), writeFile(t, header+tc.rows, t.TempDir(), "models.csv"))
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			for i, want := range tc.speeds {
				if len(got[i].Speeds) != want || got[i].Check() != nil {
					t.Errorf("model %d: %d rows of speeds, want %d; %v", i, len(got[i].Speeds), want, got[i].Check())
				}
			}
		})
	}
}

// Memory as the answers of Tetris have it, and the demand of two models.
func TestReadSynergyModelsOfTheReference(t *testing.T) {
	t.Parallel()
	models, err := ReadSynergyModels(t.Context(), refdata.Path(t, "data", "synergy", "models.csv"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]core.Demand{}
	for _, m := range models {
		if err := m.Check(); err != nil {
			t.Error(err)
		}
		if m.CPUsPerDevice == 3 && m.Devices == 1 {
			got[m.Model] = core.Demand{Resources: core.Resources{CPUs: m.Ideal.CPUs, MemoryGB: m.Memory(20)}, Speed: m.Speedup}
		}
	}
	demand := func(cpus, memory, speed float64) core.Demand {
		return core.Demand{Resources: core.Resources{CPUs: cpus, MemoryGB: memory}, Speed: speed}
	}
	want := map[string]core.Demand{
		"alexnet": demand(12, 125, 2.94), "shufflenet": demand(12, 125, 2.89), "m5": demand(6, 187.5, 2.5), "res18": demand(9, 62.5, 2.4),
		"mobilenet": demand(6, 62.5, 1.55), "res50": demand(4, 62.5, 1.15), "deepspeech": demand(3, 62.5, 1),
		"gnmt": demand(1, 20, 1), "transformer": demand(1, 20, 1), "lstm": demand(1, 20, 1), "bert": demand(1, 20, 1), "vae": demand(1, 20, 1),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("demands (-want +got):\n%s", diff)
	}
}

func FuzzSynergy(f *testing.F) {
	f.Add([]byte("0,alexnet,8,23349,1\n1,gnmt,126,26435,1\n"))
	f.Add([]byte("0,a,-1,0,x\n0,\"b"))
	f.Fuzz(func(t *testing.T, content []byte) {
		in, err := newInput("t.csv", content)
		if err != nil {
			positioned(t, err)
			return
		}
		rows, err := readSynergy(in)
		if problems, ok := errors.AsType[core.Diagnostics](err); err != nil && (!ok || len(problems) == 0) {
			t.Fatalf("%v is no problem with a position", err)
		}
		for _, row := range rows {
			if !(row.ArrivalSeconds >= 0) || row.Iterations < 1 || row.Devices < 1 || row.Model == "" || row.At.Line < 1 {
				t.Errorf("%+v", row)
			}
		}
	})
}
