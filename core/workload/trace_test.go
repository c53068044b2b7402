package workload

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// readers are the sources that read one file, with a small trace of each.
var readers = map[string]struct {
	read    func(*input) (*Workload, error)
	example string
}{
	"csv": {readCSV, "name,submit_s,duration_s,replicas,tenant,application,weight,min_replicas,max_replicas,accelerators,cpus,memory_gb,pinned,limit_s,estimate_s\n" +
		"train-10,5,60,4,vision,resnet,2.5,2,8,v100|a100,8,62.5,true,3600,45.5\n" +
		"train-9,5,1e3,1,,,,,,,,,,,\n" +
		"eval,0.25,0.5,2,speech,,1,2,2,,,0,false,1,\n"},
	"philly": {readPhilly, "timestamp,duration,num_gpus,gpu_time,cluster\n" +
		"2017-10-09 07:01:55,66.0,1,66.0,11cb48\n" +
		"2017-10-08 23:59:59,2951.0,2,5902.0,6214e9\n" +
		"2017-10-09 07:01:55,66.0,1,66.0,11cb48\n\n"},
	"tiresias": {readTiresias, "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n" +
		"0,1,0,606,vgg19,164,30\n10,8,30,133,vgg11,147,23\n9,8,30,133,vgg11,147,0\n"},
	"openb": {readOpenBWhole, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n" +
		"openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,2\n" +
		"openb-pod-0001,6000,12288,1,460,V100M16|V100M32,LS,Failed,427061,427061,427061\n" +
		"openb-pod-0005,20000,65536,0,0,,LS,Running,2759674,12902960,2759676\n" +
		"openb-pod-0061,32000,65536,8,1000,,BE,Pending,10001278,10001403,\n"},
	"shockwave": {readShockwave, shockwaveExample},
	"blox": {readBlox, "job_id,submit_time_s,num_gpus,total_iterations,iteration_time_s,blox_first_run_seen_s,blox_completion_s,jct_s,responsiveness_s\n" +
		"0,130,1,35424.3471980879,1,600,36000,35870,470\n1,396,2,1000,0.5,900,5400,5004,504\n"},
}

const shockwaveExample = "LM (batch size 10)\tpython3 main.py --data %s/wikitext2\tlanguage_modeling\t--steps\t1\t134583\t1\tgns\t1\t-1.000000\t1418\t0\n" +
	"ResNet-18 (batch size 32)\tpython3 main.py \"a b\"\timage_classification/cifar10\t--num_steps\t1\t143450\t1\taccordion\t1\t-1.000000\t3338\t55\n" +
	"ResNet-18 (batch size 256)\tpython3 main.py\timage_classification/cifar10\t--num_steps\t0\t7861.5\t4\tstatic\t5\t1e4\t1244\t55\n"

func TestReaders(t *testing.T) {
	job := func(id int, name string, submit, seconds float64, replicas int, change func(*core.JobSpec)) Job {
		j := newDurationJob(name, submit, seconds, replicas)
		j.Spec.ID = core.JobID(id)
		if change != nil {
			change(&j.Spec)
		}
		return j
	}
	asked := func(j Job, limit, estimate float64) Job {
		j.LimitSeconds, j.EstimateSeconds = limit, estimate
		return j
	}
	cases := map[string][]Job{
		"csv": {
			asked(job(0, "eval", 0.25, 0.5, 2, func(s *core.JobSpec) { s.Tenant = "speech" }), 1, 0),
			job(1, "train-9", 5, 1000, 1, nil),
			asked(job(2, "train-10", 5, 60, 4, func(s *core.JobSpec) {
				s.Tenant, s.Application, s.Weight, s.MinReplicas, s.MaxReplicas = "vision", "resnet", 2.5, 2, 8
				s.Accelerators, s.CPUs, s.MemoryGB, s.Pinned = []string{"v100", "a100"}, 8, 62.5, true
			}), 3600, 45.5),
		},
		"philly": {
			job(0, "philly-000000", 0, 2951, 2, func(s *core.JobSpec) { s.Tenant = "6214e9" }),
			job(1, "philly-000001", 25316, 66, 1, func(s *core.JobSpec) { s.Tenant = "11cb48" }),
			job(2, "philly-000002", 25316, 66, 1, func(s *core.JobSpec) { s.Tenant = "11cb48" }),
		},
		"tiresias": {
			job(0, "0", 0, 164, 1, func(s *core.JobSpec) { s.Application = "vgg19" }),
			job(1, "9", 30, 147, 8, func(s *core.JobSpec) { s.Application = "vgg11" }),
			job(2, "10", 30, 147, 8, func(s *core.JobSpec) { s.Application = "vgg11" }),
		},
		"openb": {
			job(0, "openb-pod-0000", 0, 12537494, 1, func(s *core.JobSpec) { s.Tenant, s.CPUs, s.MemoryGB = "LS", 12, 16 }),
			job(1, "openb-pod-0001", 427061, 1, 1, func(s *core.JobSpec) {
				s.Tenant, s.CPUs, s.MemoryGB, s.Accelerators = "LS", 6, 12, []string{"V100M16", "V100M32"}
			}),
			job(2, "openb-pod-0061", 10001278, 125, 8, func(s *core.JobSpec) { s.Tenant, s.CPUs, s.MemoryGB = "BE", 4, 8 }),
		},
		"shockwave": {
			job(0, "shockwave-000000", 0, 1418, 1, func(s *core.JobSpec) { s.Application = "LM (batch size 10)" }),
			job(1, "shockwave-000001", 55, 1244, 4, func(s *core.JobSpec) { s.Application, s.Weight = "ResNet-18 (batch size 256)", 5 }),
			job(2, "shockwave-000002", 55, 3338, 1, func(s *core.JobSpec) { s.Application = "ResNet-18 (batch size 32)" }),
		},
		"blox": {
			job(0, "0", 130, 35424.3471980879, 1, nil),
			job(1, "1", 396, 500, 2, nil),
		},
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := readString(readers[name].read, readers[name].example)
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffJobs(want, got.Jobs); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			for i := range got.Jobs {
				if at := got.Jobs[i].At; at.File != "t.csv" || at.Line < 1 || at.Column != 1 {
					t.Errorf("job %q is declared at %v", got.Jobs[i].Spec.Name, at)
				}
			}
		})
	}
}

// A row is a job whatever its place: permuting rows changes no job and no identifier.
func TestRowOrderDoesNotMatter(t *testing.T) {
	for name, tc := range readers {
		t.Run(name, func(t *testing.T) {
			header, rows, _ := strings.Cut(tc.example, "\n")
			lines := strings.Split(strings.TrimSpace(rows), "\n")
			want, err := readString(tc.read, tc.example)
			if err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(t *rapid.T) {
				shuffled := rapid.Permutation(lines).Draw(t, "rows")
				got, err := readString(tc.read, header+"\n"+strings.Join(shuffled, "\n"))
				if err != nil {
					t.Fatal(err)
				}
				if diff := diffJobs(want.Jobs, got.Jobs); diff != "" {
					t.Errorf("jobs (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestSubmissionOrder(t *testing.T) {
	want := []string{"x", "a-0", "b-000", "a-2", "a-10", "b-10", "a-99999999999999999999"}
	rapid.Check(t, func(t *rapid.T) {
		var jobs []Job
		for _, name := range rapid.Permutation(want).Draw(t, "names") {
			jobs = append(jobs, newDurationJob(name, 0, 1, 1))
		}
		jobs[slices.IndexFunc(jobs, func(j Job) bool { return j.Spec.Name == "x" })].Spec.SubmitSeconds = -1
		w, err := assemble(jobs, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range w.Jobs {
			got = append(got, w.Jobs[i].Spec.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestDurationModel(t *testing.T) {
	m := NewDurationModel(600, 4)
	cases := map[string]struct {
		shape []int
		want  float64
	}{
		"as requested":      {[]int{4}, 1},
		"spread":            {[]int{1, 1, 1, 1}, 1},
		"half the replicas": {[]int{2}, 0.5},
		"twice as many":     {[]int{4, 4}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, replicas := spread(tc.shape)
			if got := m.Rate(0, Running{Shape: tc.shape, Replicas: replicas}); got != tc.want {
				t.Errorf("rate is %v, want %v", got, tc.want)
			}
		})
	}
	if m.Phases() != 1 || m.PhaseEnd(0) != 600 || !math.IsNaN(m.StepsLeft(0)) {
		t.Errorf("model is %d phases to %v with %v steps left", m.Phases(), m.PhaseEnd(0), m.StepsLeft(0))
	}
}

func drawJobs(t *rapid.T) []Job {
	number := rapid.Float64Range(1e-6, 1e11)
	label := rapid.StringMatching(`[ -~é世]{0,9}`)
	var jobs []Job
	for i := range rapid.IntRange(1, 8).Draw(t, "jobs") {
		replicas := rapid.IntRange(1, 100).Draw(t, "replicas")
		job := newDurationJob(label.Draw(t, "name")+strconv.Itoa(i), number.Draw(t, "submit"), number.Draw(t, "seconds"), replicas)
		s := &job.Spec
		if rapid.Bool().Draw(t, "plain") {
			jobs = append(jobs, job)
			continue
		}
		s.Tenant, s.Application = label.Draw(t, "tenant"), label.Draw(t, "application")
		s.Weight = rapid.Float64Range(1e-6, 1e6).Draw(t, "weight")
		s.MinReplicas = rapid.IntRange(1, replicas).Draw(t, "min")
		s.MaxReplicas = rapid.IntRange(replicas, 200).Draw(t, "max")
		s.Accelerators = rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]\d{1,3}`), 0, 3, rapid.ID).Draw(t, "accelerators")
		s.CPUs = rapid.Float64Range(0, 100).Draw(t, "cpus")
		s.MemoryGB = rapid.Float64Range(0, 100).Draw(t, "memory")
		s.Tier = rapid.SampledFrom(append(core.Tiers(), "")).Draw(t, "tier")
		s.Share = rapid.SampledFrom([]*core.Share{nil, {}, {Milli: 300}, {Milli: 1000}, {Milli: 1000, Profile: "2g"}, {Milli: 300, Profile: "3g"}}).Draw(t, "share")
		job.LimitSeconds = rapid.SampledFrom([]float64{0, 60, 3600.5}).Draw(t, "limit")
		job.EstimateSeconds = rapid.SampledFrom([]float64{0, 1e-3, 1e6}).Draw(t, "estimate")
		jobs = append(jobs, job)
	}
	return jobs
}

func TestWriteCSVLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, err := assemble(drawJobs(t), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteCSV(&b, want); err != nil {
			t.Fatal(err)
		}
		got, err := readString(readCSV, b.String())
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if diff := diffJobs(want.Jobs, got.Jobs); diff != "" {
			t.Errorf("jobs (-want +got):\n%s", diff)
		}
	})
}

func TestWriteCSVWritesOnlyColumnsInUse(t *testing.T) {
	job := newDurationJob("a", 0, 90, 2)
	job.Spec.MaxReplicas = 4
	var b bytes.Buffer
	if err := WriteCSV(&b, &Workload{Jobs: []Job{job}}); err != nil {
		t.Fatal(err)
	}
	if want := "name,submit_s,duration_s,replicas,max_replicas\na,0,90,2,4\n"; b.String() != want {
		t.Errorf("wrote %q, want %q", b.String(), want)
	}
}

func TestWriteCSVRefusesOtherModels(t *testing.T) {
	job := newDurationJob("a", 0, 90, 2)
	job.Model, job.At = &measuredModel{}, core.Position{File: "w.csv", Line: 2, Column: 1}
	var b bytes.Buffer
	err := WriteCSV(&b, &Workload{Jobs: []Job{newDurationJob("b", 0, 90, 2), job}})
	if err == nil || b.Len() > 0 {
		t.Fatalf("error is %v after %q", err, b.String())
	}
	positioned(t, err)
	if want := `w.csv:2:1: job "a" has no fixed duration; `; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error is %q, want %s…", err, want)
	}
}

func TestPublishedTraces(t *testing.T) {
	cases := map[string]struct {
		factory  core.Factory[Source]
		path     []string
		wantJobs int
		wantLast float64
		wantWork float64 // device-seconds
	}{
		"philly":    {NewPhilly(), []string{"data", "pollux-osdi21", "philly.csv.gz"}, 82247, 9408690, 3521082502},
		"tiresias":  {NewTiresias(), []string{"data", "tiresias", "60_job.csv"}, 60, 1779, 26624},
		"shockwave": {NewShockwave(), []string{"data", "shockwave", "tacc_120jobs.trace"}, 120, 5011, 711371},
		"blox":      {NewBlox(), []string{"reference", "blox", "ref_s1000_Las.csv"}, 1000, 432033, 62766411},
		"openb":     {NewOpenB(), []string{"data", "alibaba-openb-2023", "openb_pod_list_default.csv.gz"}, 7064, 12901761, 214769258},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := mustLoad(t, tc.factory, map[string]any{"path": refdata.Path(t, tc.path...)})
			work := 0.0
			for i := range w.Jobs {
				work += w.Jobs[i].Spec.TotalWork * float64(w.Jobs[i].Spec.Requested)
			}
			last := w.Jobs[len(w.Jobs)-1].Spec.SubmitSeconds
			if len(w.Jobs) != tc.wantJobs || last != tc.wantLast || math.Round(work) != tc.wantWork {
				t.Errorf("%d jobs up to %v s of %v device-seconds; want %d, %v, %v", len(w.Jobs), last, work, tc.wantJobs, tc.wantLast, tc.wantWork)
			}
		})
	}
}

// BenchmarkReadPhilly reads a trace as large as the published one.
func BenchmarkReadPhilly(b *testing.B) {
	var content bytes.Buffer
	out := csv.NewWriter(&content)
	_ = out.Write(phillyColumns.required) // to memory
	r := rand.New(rand.NewPCG(1, 2))
	for range 82247 {
		_ = out.Write([]string{
			fmt.Sprintf("2017-%02d-%02d %02d:%02d:%02d", 1+r.IntN(12), 1+r.IntN(28), r.IntN(24), r.IntN(60), r.IntN(60)),
			fmt.Sprintf("%d.0", 1+r.IntN(100000)), "1", "66.0", fmt.Sprintf("%06x", r.IntN(15)),
		})
	}
	out.Flush()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readString(readPhilly, content.String()); err != nil {
			b.Fatal(err)
		}
	}
}
