package workload

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/internal/refdata"
)

const flowHeader = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n"

func loadFlow(t testing.TB, rows, speeds string) (*Workload, error) {
	t.Helper()
	folder := t.TempDir()
	writeFile(t, "global_batch_size,1,2,4,8,16,32,64\n"+speeds, folder, "toy.csv")
	return loadFrom(t, NewElasticFlow(), map[string]any{"path": writeFile(t, flowHeader+rows, folder, "trace.csv"), "profiles": folder})
}

// Moments count from the first submission, deadlines from the job's own, and a job is as fast as was measured with so many devices.
func TestElasticFlowJobs(t *testing.T) {
	t.Parallel()
	_, err := loadFlow(t, "b,1100,500,toy,1300,64,2,100\na,1000,300,toy,1090,64,1,60\n", "64,nan,5,10,nan,nan,nan,nan\n32,1,2,3,4,5,6,7\n")
	if err == nil || !strings.Contains(err.Error(), "a number of devices that toy was measured with") {
		t.Fatalf("%v, want a row refused whose job was not measured on one device", err)
	}
	w, err := loadFlow(t, "b,1100,500,toy,1300,64,2,100\na,1000,300,toy,1090,32,1,60\n", "64,nan,5,10,nan,nan,nan,nan\n32,1,2,3,4,5,6,7\n")
	if err != nil {
		t.Fatal(err)
	}
	a, b := &w.Jobs[0], &w.Jobs[1]
	if a.Spec.Name != "a" || a.Spec.SubmitSeconds != 0 || a.Spec.DeadlineSeconds != 90 || a.Spec.TotalWork != 300 || a.Spec.Batch.Requested != 32 {
		t.Errorf("%+v", a.Spec)
	}
	if b.Spec.SubmitSeconds != 100 || b.Spec.Deadline() != 300 || b.Spec.MinReplicas != 2 || b.Spec.Requested != 2 {
		t.Errorf("%+v", b.Spec)
	}
	for replicas, want := range map[int]float64{0: 0, 1: 0, 2: 5, 3: 0, 4: 10, 8: 0, 64: 0, 65: 0} {
		if got := b.Model.Rate(0, Running{Replicas: replicas}); got != want {
			t.Errorf("%v steps a second on %d devices, want %v", got, replicas, want)
		}
	}
	if times := a.Spec.StepTimes; times.OneNode[3] != 1.0/3 || times.OneNode[2] != 0 || times.Most() != 64 {
		t.Errorf("step times %v", times.OneNode)
	}
}

func TestElasticFlowProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ rows, speeds, want string }{
		"a deadline before the job": {"a,10,5,toy,10,64,1,1\n", "64,1,1,1,1,1,1,1\n", "a moment after that of the submission"},
		"another batch":             {"a,10,5,toy,20,65,1,1\n", "64,1,1,1,1,1,1,1\n32,1,1,1,1,1,1,1\n", "a batch that toy was measured with: 32, 64"},
		"no such model":             {"a,10,5,none,20,64,1,1\n", "64,1,1,1,1,1,1,1\n", "none.csv: cannot be read"},
		"no speed":                  {"a,10,5,toy,20,64,1,1\n", "64,0,1,1,1,1,1,1\n", "steps a second, or nan"},
		"a batch twice":             {"a,10,5,toy,20,64,1,1\n", "64,1,1,1,1,1,1,1\n64,1,1,1,1,1,1,1\n", "a batch that no other row has"},
		"no iterations":             {"a,10,0,toy,20,64,1,1\n", "64,1,1,1,1,1,1,1\n", "a number of iterations"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loadFlow(t, tc.rows, tc.speeds)
			if err == nil {
				t.Fatal("accepted")
			}
			positioned(t, err)
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// The trace of Figure 8a: 195 jobs over 47.8 h.
func TestElasticFlowTrace(t *testing.T) {
	t.Parallel()
	folder := refdata.Path(t, "reference", "elasticflow-asplos23")
	w, err := loadFrom(t, NewElasticFlow(), map[string]any{"path": filepath.Join(folder, "trace.csv"), "profiles": filepath.Join(folder, "throughputs_t4")})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for i := range w.Jobs {
		counts[w.Jobs[i].Spec.Application]++
	}
	last := w.Jobs[len(w.Jobs)-1].Spec.SubmitSeconds
	if len(w.Jobs) != 195 || counts["imagenet"] != 44 || counts["ncf"] != 28 || last < 47*3600 || last > 48*3600 || len(w.Inputs) != 7 {
		t.Errorf("%d jobs until %v s of %v, from %d files", len(w.Jobs), last, counts, len(w.Inputs))
	}
}

func FuzzElasticFlow(f *testing.F) {
	f.Add("a,1000,300,toy,1090,64,1,60\n", "64,1,2,3,nan,5,6,7\n")
	f.Add("a,1,1e300,toy,1e11,1,1,1e11\n", "1,1e-300,1e300,nan,nan,nan,nan,nan\n")
	f.Fuzz(func(t *testing.T, rows, speeds string) {
		w, err := loadFlow(t, rows, speeds)
		if err != nil {
			positioned(t, err)
			return
		}
		for i := range w.Jobs {
			j := &w.Jobs[i]
			if j.Spec.DeadlineSeconds <= 0 || j.Spec.SubmitSeconds < 0 || !(j.Model.Rate(0, Running{Replicas: j.Spec.Requested}) > 0) {
				t.Errorf("%+v", j.Spec)
			}
		}
	})
}
