package workload

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

const muriHeader = "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,resource_time_1,resource_time_2,priority\n"

func TestReadMuri(t *testing.T) {
	cases := map[string]struct {
		rows string
		want []MuriJob
		err  string // a part of it
	}{
		"rows in their order, milliseconds to seconds": {
			rows: "7,8,2500,100,vgg16,16,21400,0,214,82,75,66,0\n3,1,0,5,dqn,128,2450,2500,490,446,8,0,1\n",
			want: []MuriJob{
				{Name: "7", Model: "vgg16", Devices: 8, Batch: 16, SubmitSeconds: 2.5, Iterations: 100, IterationSeconds: .214, LengthSeconds: 21.4, StageSeconds: [3]float64{.082, .075, .066}},
				{Name: "3", Model: "dqn", Devices: 1, Batch: 128, Iterations: 5, IterationSeconds: .49, LengthSeconds: 2.45, StageSeconds: [3]float64{.446, .008, 0}, Opportunistic: true},
			},
		},
		"no iterations":        {rows: "7,8,0,0,vgg16,16,0,0,214,82,75,66,0\n", err: `t.csv:2:7: iterations is "0"; expected at least 1`},
		"a part of one":        {rows: "7,8,0,1.5,vgg16,16,0,0,214,82,75,66,0\n", err: "t.csv:2:7: iterations is \"1.5\""},
		"no devices":           {rows: "7,0,0,1,vgg16,16,0,0,214,82,75,66,0\n", err: "t.csv:2:3: num_gpu is \"0\""},
		"a stage below 0":      {rows: "7,8,0,1,vgg16,16,0,0,214,82,-75,66,0\n", err: "t.csv:2:29: resource_time_1 is \"-75\""},
		"another class":        {rows: "7,8,0,1,vgg16,16,0,0,214,82,75,66,2\n", err: "priority is \"2\""},
		"a duration in words":  {rows: "7,8,0,1,vgg16,16,long,0,214,82,75,66,0\n", err: "duration is \"long\""},
		"a job twice":          {rows: "7,8,0,1,a,16,0,0,214,82,75,66,0\n7,8,0,1,a,16,0,0,214,82,75,66,0\n", err: "t.csv:3:1: job_id is \"7\"; expected a job of its own; it is on line 2 too"},
		"all problems at once": {rows: "7,x,0,1,a,16,0,0,214,82,75,66,0\n8,1,y,1,a,16,0,0,214,82,75,66,0\n", err: "t.csv:3:5: submit_time"},
		"a short row":          {rows: "7,8,0,1\n", err: "t.csv:2:1: 4 fields; expected 13"},
		"nothing":              {err: "no rows"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, err := newInput("t.csv", []byte(muriHeader+tc.rows))
			if err != nil {
				t.Fatal(err)
			}
			got, err := readMuri(in)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(MuriJob{}, "At"), cmpopts.EquateApprox(1e-15, 0)); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			for i, job := range got {
				if want := (core.Position{File: "t.csv", Line: i + 2, Column: 1}); job.At != want {
					t.Errorf("job %q is at %v, want %v", job.Name, job.At, want)
				}
			}
		})
	}
}

func TestReadMuriOfTheReference(t *testing.T) {
	for name, want := range map[string]int{"trace1": 1494, "trace1_pr": 1494, "trace3": 992, "trace3_pr": 992, "trace4": 2638} {
		jobs, err := ReadMuri(t.Context(), refdata.Path(t, "data", "muri", name+".csv.gz"))
		if err != nil || len(jobs) != want {
			t.Errorf("%s: %d jobs, error %v, want %d", name, len(jobs), err, want)
		}
	}
}

// A job of the trace is as long as its iterations alone, and tells its stages; which class it is of tells who takes what others leave.
func TestMuriWorkload(t *testing.T) {
	in, err := newInput("t.csv", []byte(muriHeader+"7,8,2500,100,vgg16,16,0,0,214,82,75,66,0\n3,1,0,5,dqn,128,0,0,490,446,8,0,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readMuriWorkload(in, 2)
	if err != nil {
		t.Fatal(err)
	}
	spec := func(name, application string, submit, seconds float64, devices int, i core.Iteration) core.JobSpec {
		return core.JobSpec{Name: name, Application: application, Weight: 1, SubmitSeconds: submit, TotalWork: seconds, Requested: devices, MinReplicas: devices, MaxReplicas: devices, Iteration: i}
	}
	want := []core.JobSpec{
		spec("3", "dqn", 0, 4.9, 1, core.Iteration{Load: .446, Compute: .008, Measured: .98}),
		spec("7", "vgg16", 2.5, 42.8, 8, core.Iteration{Load: .082, Compute: .075, Sync: .066, Measured: .428}),
	}
	want[0].BestEffort, want[1].ID = true, 1
	for i := range got.Jobs {
		if diff := cmp.Diff(want[i], got.Jobs[i].Spec, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
			t.Errorf("job %d (-want +got):\n%s", i, diff)
		}
		if end := got.Jobs[i].Model.PhaseEnd(0); end != got.Jobs[i].Spec.TotalWork || !got.Jobs[i].CountsSeconds() {
			t.Errorf("job %d ends at %v s", i, end)
		}
	}
}

func FuzzMuri(f *testing.F) {
	row := muriHeader + "7,8,2500,100,vgg16,16,21400,0,214,82,75,66,0\n"
	f.Add([]byte(row))
	f.Add([]byte(row + "7,8,2500,1e3,vgg16,16,21400,0,214,82,75,-0,1\n"))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(row)); err != nil {
		f.Fatal(err)
	}
	if err := z.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(packed.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		in, err := newInput("t.csv", content)
		if err != nil {
			positioned(t, err)
			return
		}
		jobs, err := readMuri(in)
		if err != nil {
			positioned(t, err)
			return
		}
		for _, job := range jobs {
			if job.Name == "" || job.Devices < 1 || !(job.Iterations >= 1) || !(job.IterationSeconds > 0) || !(job.SubmitSeconds >= 0) {
				t.Errorf("job %+v", job)
			}
		}
	})
}
