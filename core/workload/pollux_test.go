package workload

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// toyProfile writes the profile of an application `toy` that was trained with batches 10 and 20, on 1 to 4 nodes and,
// by its triangulation, on 4 to 8. It returns the folder.
func toyProfile(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	traces := filepath.Join(folder, "traces", "toy")
	writeFile(t, "placement,local_bsz,step_time,sync_time\n"+
		"1,2,0.5,0\n1,20,2.5,0\n2,2,0.75,0.25\n2,10,1.5,0.5\n12,2,2,1\n", traces, "placements.csv")
	writeFile(t, "progress,iteration,metric,grad_sqr,grad_var\n100,100,0.5,1,10\n200,200,0.75,2,30\n", traces, "validation-10.csv")
	writeFile(t, "progress,iteration,metric,grad_sqr,grad_var\n99,60,0.5,3,30\n201,110,0.75,2,10\n300,150,0.75,2,10\n", traces, "validation-20.csv")
	points, division := kuhnBox(vector{4, 4, 1}, vector{8, 16, 9}, func(p vector) stepTime {
		return stepTime{step: float64(p[0]) + float64(p[2]), sync: float64(p[1]) / 16}
	})
	writeFile(t, points, folder, "delaunay", "toy-points.csv")
	writeFile(t, division, folder, "delaunay", "toy-simplices.csv")
	return folder
}

// kuhnBox divides a box into six tetrahedra around its diagonal, and writes them as the two files of a triangulation.
func kuhnBox(low, high vector, time func(vector) stepTime) (points, division string) {
	var p, d strings.Builder
	p.WriteString("num_nodes,num_replicas,local_bsz,step_time,sync_time\n")
	for corner := range 8 {
		at := low
		for axis := range at {
			if corner&(1<<axis) != 0 {
				at[axis] = high[axis]
			}
		}
		measured := time(at)
		fmt.Fprintf(&p, "%d.0,%d.0,%d.0,%v,%v\n", at[0], at[1], at[2], measured.step, measured.sync)
	}
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		first := 1 << order[0]
		fmt.Fprintf(&d, "0,%d,%d,7\n", first, first|1<<order[1])
	}
	d.WriteString("0,1,2,3\n") // flat, to be left out
	return p.String(), d.String()
}

const polluxHeader = "name,time,application,num_replicas,batch_size\n"

func loadToy(t testing.TB, rows, remaining string) (*Workload, error) {
	t.Helper()
	path := writeFile(t, polluxHeader+rows, t.TempDir(), "workload.csv")
	return loadFrom(t, NewPollux(), map[string]any{"path": path, "profiles": toyProfile(t), "remaining": remaining})
}

// checkTruth holds the truth of the toy application against its look-ups.
func checkTruth(t *testing.T, truth *core.Truth) {
	t.Helper()
	if truth == nil || len(truth.Measurements) == 0 || truth.Gradients != (core.Gradients{SquaredNorm: 1, Variance: 10}) {
		t.Fatalf("truth %+v, want measurements, and the gradients of the first epoch", truth)
	}
	first := truth.Measurements[0]
	if want := (core.Measurement{Nodes: 1, Replicas: 1, PerDevice: 2, PassSeconds: 0.5, StepSeconds: 0.5}); first != want {
		t.Errorf("first measurement %+v, want %+v", first, want)
	}
}

func TestPolluxJob(t *testing.T) {
	w, err := loadToy(t, "toy-1,60,toy,2,10\ntoy-0,60,toy,1,15\n", remainingExact)
	if err != nil {
		t.Fatal(err)
	}
	got := w.Jobs[1].Spec
	checkTruth(t, got.Truth)
	got.Truth = nil
	want := core.JobSpec{
		ID: 1, Name: "toy-1", Application: "toy", Weight: 1, SubmitSeconds: 60, Requested: 2, MinReplicas: 1, MaxReplicas: 10,
		Batch:     core.BatchSpec{Requested: 10, Initial: 10, Max: 20, MinPerDevice: 2, MaxPerDevice: 20},
		TotalWork: 200,
		StepTimes: &core.StepTimes{
			// One device takes all 10 samples, two take 5 each; 4 on one node were not measured, nor 5 on two.
			OneNode:   []float64{0.5 + 8*2.0/18, 0.75 + 3*0.75/8, 0, 0},
			ManyNodes: []float64{0, 0, 0, 0, 0},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	if w.Jobs[0].Spec.Name != "toy-0" {
		t.Errorf("first job is %q", w.Jobs[0].Spec.Name)
	}
	var files []string
	for _, in := range w.Inputs {
		files = append(files, filepath.Base(in.Path))
	}
	wantFiles := []string{"workload.csv", "toy-points.csv", "toy-simplices.csv", "placements.csv", "validation-10.csv", "validation-20.csv"}
	if diff := cmp.Diff(wantFiles, files); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
}

func TestMeasuredModel(t *testing.T) {
	w, err := loadToy(t, "toy-0,0,toy,1,15\n", remainingExact)
	if err != nil {
		t.Fatal(err)
	}
	m := w.Jobs[0].Model
	if m.Phases() != 2 || m.PhaseEnd(0) != 99 || m.PhaseEnd(1) != 200 {
		t.Errorf("%d phases, to %v and %v", m.Phases(), m.PhaseEnd(0), m.PhaseEnd(1))
	}
	tuned := func(perDevice, accumulation int) core.Tuning {
		return core.Tuning{BatchPerDevice: perDevice, AccumulationSteps: accumulation}
	}
	gain15 := (20.0 + 2) / (20/1.5 + 2) // at batch 15, halfway between the trainings
	cases := map[string]struct {
		phase   int
		running Running
		want    float64
	}{
		"initial batch gains nothing":           {0, Running{Shape: []int{2}, Replicas: 2, Tuning: tuned(5, 0)}, 1 / (0.75 + 3*0.75/8)},
		"largest batch":                         {1, Running{Shape: []int{2}, Replicas: 2, Tuning: tuned(10, 0)}, (12.0 / 7) / 1.5},
		"between batches":                       {0, Running{Shape: []int{1}, Replicas: 1, Tuning: tuned(15, 0)}, gain15 / (0.5 + 13*2.0/18)},
		"accumulation repeats all but the sync": {0, Running{Shape: []int{2}, Replicas: 2, Tuning: tuned(5, 1)}, (33.0 / 18) / (0.75 + 3*0.75/8 + 0.5 + 3*0.5/8)},
		"rotated placement":                     {0, Running{Shape: []int{2, 1}, Replicas: 3, Tuning: tuned(2, 1)}, gainAt(12) / 3},
		"untuned splits the requested batch":    {0, Running{Shape: []int{1}, Replicas: 1}, gainAt(16) / (2 * 7.0 / 6)}, // 8 samples, twice,
		"batch below what was measured":         {0, Running{Shape: []int{1}, Replicas: 1, Tuning: tuned(1, 0)}, 0},
		"batch above what was measured":         {0, Running{Shape: []int{2}, Replicas: 2, Tuning: tuned(11, 0)}, 0},
		"total batch above what was trained":    {0, Running{Shape: []int{2}, Replicas: 2, Tuning: tuned(10, 1)}, 0},
		"shape that was not measured":           {0, Running{Shape: []int{3}, Replicas: 3, Tuning: tuned(5, 0)}, 0},
		"negative accumulation":                 {0, Running{Shape: []int{1}, Replicas: 1, Tuning: tuned(10, -1)}, 0},
		"many nodes":                            {0, Running{Shape: []int{1, 1, 1, 1, 1, 1}, Replicas: 6, Tuning: tuned(2, 0)}, gainAt(12) / 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := m.Rate(tc.phase, tc.running); relativeError(got, tc.want) > 1e-12 {
				t.Errorf("rate is %v, want %v", got, tc.want)
			}
		})
	}
}

// gainAt is the gain of the toy in its first epoch.
func gainAt(batch float64) float64 {
	square, variance := 1+2*(batch-10)/10, 10+20*(batch-10)/10
	return (variance + square) / (variance*10/batch + square)
}

func TestStepsLeft(t *testing.T) {
	cases := map[string][2]float64{
		remainingExact:     {155, 75}, // 80 steps in the first epoch, 75 in the second
		remainingPublished: {75, 1},
	}
	for remaining, want := range cases {
		t.Run(remaining, func(t *testing.T) {
			w, err := loadToy(t, "toy-0,0,toy,1,15\n", remaining)
			if err != nil {
				t.Fatal(err)
			}
			for phase, steps := range want {
				if got := w.Jobs[0].Model.StepsLeft(phase); got != steps {
					t.Errorf("%v steps are left at phase %d, want %v", got, phase, steps)
				}
			}
		})
	}
}

func TestPolluxProblems(t *testing.T) {
	cases := map[string]struct {
		rows  string
		spoil map[string]string // files of the profile, by name below its folder
		want  []string
	}{
		"rows": {rows: "a,0,toys,1,10\nb,0,toy,1,9\nc,0,toy,3,10\nd,0,toy,1,21\nd,x,toy,1,10\ne,0,toy,1,15\ne,1,toy,2,10\n", want: []string{
			`workload.csv:2:5: application is "toys"; expected an application with a profile: did you mean "toy"? valid names: toy`,
			`workload.csv:3:11: batch_size is "9"; expected a batch from 10 to 20, as toy was trained with`,
			`workload.csv:4:9: num_replicas is "3"; expected as many as toy was measured with at a batch of 10, at most 2 here`,
			`workload.csv:5:11: batch_size is "21"; expected a batch from 10 to 20, as toy was trained with`,
			`workload.csv:6:3: time is "x"; expected a number of seconds from 0 to 1e11`,
			`workload.csv:8:1: job name "e" appears twice; first on line 7`,
		}},
		"missing file": {rows: "a,0,toy,1,10\n", spoil: map[string]string{"traces/toy/placements.csv": ""}, want: []string{
			`traces/toy/placements.csv: cannot be read: no such file or directory`,
		}},
		"no trainings": {rows: "a,0,toy,1,10\n", spoil: map[string]string{"traces/toy/validation-10.csv": "", "traces/toy/validation-20.csv": ""}, want: []string{
			`traces/toy: no file of a training, such as validation-128.csv`,
		}},
		"broken profile": {rows: "a,0,toy,1,10\nb,0,toy,1,10\n", spoil: map[string]string{
			"traces/toy/placements.csv":     "placement,local_bsz,step_time,sync_time\n102,2,1,0\n1,2,1,1\n1,4,1,0\n1,4,1,0\n",
			"traces/toy/validation-10.csv":  "progress,iteration,metric,grad_sqr,grad_var\n9,9,x,1,1\n9,9,1,1,-1\n10,9,1,1,1\n10,8,1,1,1\n",
			"traces/toy/validation-big.csv": "progress\n",
			"delaunay/toy-points.csv":       "num_nodes,num_replicas,local_bsz,step_time,sync_time\n1.5,1,1,1,0\n",
			"delaunay/toy-simplices.csv":    "0,0,1\n0,0,0,1\n",
		}, want: []string{
			`delaunay/toy-points.csv:2:1: num_nodes is "1.5"; expected a whole number from 0 to 1000000`,
			`delaunay/toy-simplices.csv:1:1: 3 fields; expected 4`,
			`delaunay/toy-simplices.csv:2:7: corner 4 is "1"; expected the number of a row of toy-points.csv from 0 to 0`,
			`traces/toy/placements.csv:2:1: placement is "102"; expected a digit from 1 to 9 for each node, at most 8 of them`,
			`traces/toy/placements.csv:3:7: sync_time is "1"; expected less than the whole step`,
			`traces/toy/placements.csv:5:3: local_bsz is "4"; expected more than the 4 of the row before on this placement`,
			`traces/toy/validation-10.csv:2:5: metric is "x"; expected a number from -1e300 to 1e300`,
			`traces/toy/validation-10.csv:3:9: grad_var is "-1"; expected a number from 0 to 1e300`,
			`traces/toy/validation-10.csv:5:1: progress is "10"; expected more than in the row before`,
			`traces/toy/validation-big.csv: the file name does not name the batch, as in validation-128.csv`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := toyProfile(t)
			for file, content := range tc.spoil {
				path := filepath.Join(folder, file)
				if content == "" {
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
					continue
				}
				writeFile(t, content, path)
			}
			path := writeFile(t, polluxHeader+tc.rows, folder, "workload.csv")
			_, err := loadFrom(t, NewPollux(), map[string]any{"path": path, "profiles": folder})
			if err == nil {
				t.Fatal("accepted")
			}
			positioned(t, err)
			got := strings.Split(strings.ReplaceAll(err.Error(), folder+string(filepath.Separator), ""), "\n")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPolluxNeedsItsProfiles(t *testing.T) {
	path := writeFile(t, polluxHeader+"a,0,toy,1,10\n", t.TempDir(), "w.csv")
	missing := filepath.Join(t.TempDir(), "none")
	_, err := loadFrom(t, NewPollux(), map[string]any{"path": path, "profiles": missing})
	if err == nil || err.Error() != filepath.Join(missing, "traces")+": cannot be read: no such file or directory" {
		t.Errorf("error is %v", err)
	}
}

func TestRateDoesNotAllocate(t *testing.T) {
	w, err := loadToy(t, "toy-0,0,toy,1,15\n", remainingExact)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]Running{
		"measured":     {Shape: []int{2, 1}, Replicas: 3, Tuning: core.Tuning{BatchPerDevice: 2, AccumulationSteps: 1}},
		"interpolated": {Shape: slices.Repeat([]int{1}, 6), Replicas: 6, Tuning: core.Tuning{BatchPerDevice: 2}},
	}
	for name, running := range cases {
		t.Run(name, func(t *testing.T) {
			if w.Jobs[0].Model.Rate(0, running) <= 0 {
				t.Fatal("cannot run so")
			}
			if n := testing.AllocsPerRun(100, func() { w.Jobs[0].Model.Rate(0, running) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// Runs of a sweep may share one workload.
func TestModelsServeManyRunsAtOnce(t *testing.T) {
	w, err := loadToy(t, "toy-0,0,toy,1,15\n", remainingExact)
	if err != nil {
		t.Fatal(err)
	}
	rates := make([]float64, 8)
	var running sync.WaitGroup
	for i := range rates {
		running.Go(func() {
			for perDevice := range 4 {
				rates[i] += w.Jobs[0].Model.Rate(0, Running{Shape: slices.Repeat([]int{1}, 5), Replicas: 5, Tuning: core.Tuning{BatchPerDevice: perDevice}})
			}
		})
	}
	running.Wait()
	if slices.Min(rates) != slices.Max(rates) || rates[0] == 0 {
		t.Errorf("rates differ: %v", rates)
	}
}

// secondsAlone is how long a job takes on a shape that it keeps.
func secondsAlone(m Model, c Running) float64 {
	seconds, done := 0.0, 0.0
	for phase := range m.Phases() {
		seconds += (m.PhaseEnd(phase) - done) / m.Rate(phase, c)
		done = m.PhaseEnd(phase)
	}
	return seconds
}

func TestPublishedWorkloads(t *testing.T) {
	profiles := refdata.Path(t, "data", "pollux-osdi21")
	names, err := filepath.Glob(filepath.Join(profiles, "workloads*", "*.csv"))
	if err != nil || len(names) < 9 {
		t.Fatalf("%d workloads, %v", len(names), err)
	}
	for _, path := range names {
		w := mustLoad(t, NewPollux(), map[string]any{"path": path, "profiles": profiles})
		if len(w.Jobs) != 160 && len(w.Jobs) != 80 {
			t.Errorf("%s: %d jobs", path, len(w.Jobs))
		}
		for i := range w.Jobs {
			job := &w.Jobs[i]
			shape := consolidated(job.Spec.Requested, 4)
			seconds := secondsAlone(job.Model, Running{Shape: shape, Replicas: job.Spec.Requested})
			if !(seconds > 0 && seconds < 1e5) {
				t.Errorf("%s: job %q takes %v s alone", path, job.Spec.Name, seconds)
			}
			// The publication states 45.94 s for ncf on its single device.
			if job.Spec.Application == "ncf" && math.Abs(seconds-45.94) > 0.005 {
				t.Errorf("%s: job %q takes %v s alone", path, job.Spec.Name, seconds)
			}
		}
	}
}

// TestOptimusAccumulatesOnOneDevice holds what the publication's Optimus takes a step to cost. Nobody else does: on one
// device it has two passes, although a job needs one at its initial batch.
func TestOptimusAccumulatesOnOneDevice(t *testing.T) {
	ten, five := 0.5+8*2.0/18, 0.5+3*2.0/18 // seconds of a pass with so many samples on one device
	for name, tc := range map[string]struct {
		remaining string
		batch     int
		want      float64
	}{
		"initial batch, exact":         {remainingExact, 10, ten},
		"initial batch, published":     {remainingPublished, 10, 2 * five},
		"above it, exact":              {remainingExact, 20, 2 * ten},
		"above it, published the same": {remainingPublished, 20, 2 * ten},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := loadToy(t, fmt.Sprintf("toy-0,0,toy,1,%d\n", tc.batch), tc.remaining)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.Jobs[0].Spec.StepTimes.OneNode[0]; relativeError(got, tc.want) > 1e-12 {
				t.Errorf("a step on one device takes %v s, want %v s", got, tc.want)
			}
			running := Running{Shape: []int{1}, Replicas: 1}
			if got := w.Jobs[0].Model.Rate(0, running); tc.batch == 10 && relativeError(got, 1/ten) > 1e-12 {
				t.Errorf("rate is %v, want %v: the job itself does not accumulate", got, 1/ten)
			}
		})
	}
}

// TestStatedLimitsAreThoseOfTheArtifact holds that a user's application of the same name keeps what was measured.
func TestStatedLimitsAreThoseOfTheArtifact(t *testing.T) {
	for _, name := range []string{"yolov3", "ncf"} {
		t.Run(name, func(t *testing.T) {
			folder := toyProfile(t)
			for from, to := range map[string]string{
				"traces/toy": "traces/" + name, "delaunay/toy-points.csv": "delaunay/" + name + "-points.csv",
				"delaunay/toy-simplices.csv": "delaunay/" + name + "-simplices.csv",
			} {
				if err := os.Rename(filepath.Join(folder, from), filepath.Join(folder, to)); err != nil {
					t.Fatal(err)
				}
			}
			reader := profileReader{folder: folder}
			p := reader.read(t.Context(), name)
			if p == nil {
				t.Fatal(reader.problems)
			}
			if p.batch.MaxPerDevice != 20 || p.maxReplicas != 10 {
				t.Errorf("at most %d samples a device on %d replicas, want 20 on 10", p.batch.MaxPerDevice, p.maxReplicas)
			}
		})
	}
	t.Run("the artifact's own", func(t *testing.T) {
		profiles := referenceProfiles(t)
		if got := profiles["yolov3"].batch.MaxPerDevice; got != 8 {
			t.Errorf("yolov3 runs with %d samples a device, want 8", got)
		}
		if got := profiles["ncf"].maxReplicas; got != 1 {
			t.Errorf("ncf runs on %d replicas, want 1", got)
		}
	})
}

// A job that asks for twice the epochs that it needs goes on as in the last one that was measured, and reports what it reported there.
func TestEpochsAsked(t *testing.T) {
	path := writeFile(t, polluxHeader+"toy-0,0,toy,1,15\n", t.TempDir(), "workload.csv")
	load := func(t *testing.T, asked float64) (core.JobSpec, *measuredModel) {
		t.Helper()
		w, err := loadFrom(t, NewPollux(), map[string]any{"path": path, "profiles": toyProfile(t), "epochs_asked": asked})
		if err != nil {
			t.Fatal(err)
		}
		return w.Jobs[0].Spec, w.Jobs[0].Model.(*measuredModel)
	}
	running := Running{Shape: []int{2}, Replicas: 2, Tuning: core.Tuning{BatchPerDevice: 10}}
	for name, tc := range map[string]struct {
		asked     float64
		ends      []float64 // of epochs, in iterations
		stepsLeft float64   // at the begin of the second one
		metrics   []float64
	}{
		"as many":        {1, []float64{99, 200}, 75, []float64{0.5, 0.75}},
		"twice":          {2, []float64{99, 200, 301, 402}, 225, []float64{0.5, 0.75, 0.75, 0.75}},
		"1.1: rounded":   {1.1, []float64{99, 200, 301}, 150, []float64{0.5, 0.75, 0.75}},
		"1.5 of the two": {1.5, []float64{99, 200, 301}, 150, []float64{0.5, 0.75, 0.75}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, m := load(t, tc.asked)
			var ends, metrics []float64
			for phase := range m.Phases() {
				ends = append(ends, m.PhaseEnd(phase))
				r := m.Reports(phase)
				if len(r) != 1 || r[0].Metric != accuracy || r[0].Step != float64(phase+1) {
					t.Fatalf("epoch %d reports %+v", phase, r)
				}
				metrics = append(metrics, r[0].Value)
			}
			if diff := cmp.Diff(tc.ends, ends); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.metrics, metrics); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
			if last := tc.ends[len(tc.ends)-1]; spec.TotalWork != last || m.StepsLeft(1) != tc.stepsLeft {
				t.Errorf("%v iterations, %v steps left in the second epoch, want %v and %v", spec.TotalWork, m.StepsLeft(1), last, tc.stepsLeft)
			}
			for phase := 2; phase < m.Phases(); phase++ {
				if got, want := m.Rate(phase, running), m.Rate(1, running); got != want {
					t.Errorf("rate %v in epoch %d, %v in the last one that was measured", got, phase, want)
				}
			}
		})
	}
	_, problems := NewPollux().Decode(map[string]any{"path": path, "profiles": "profiles", "epochs_asked": 0.5})
	if err := problems.Err(); err == nil || !strings.Contains(err.Error(), "epochs_asked: must be at least 1") {
		t.Errorf("half the epochs: error %v", err)
	}
}
