package workload

import (
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// toySia writes the profiles of two applications: `toy`, trained with batches 10 and 20 and measured on machines of two
// slow and of four fast devices, and `slow`, measured on the slow ones only. It returns the folder.
func toySia(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	for _, application := range []string{"toy", "slow"} {
		to := filepath.Join(folder, application)
		writeFile(t, "placement,local_bsz,step_time,sync_time\n1,2,0.5,0\n1,10,2.5,0\n2,2,0.75,0.25\n2,10,1.5,0.5\n12,2,2,1\n12,10,4,1\n", to, "placements-old.csv")
		writeFile(t, "num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,4,2,4,2\n4,8,2,8,2\n4,4,8,6,2\n4,8,8,10,2\n2,4,2,3,1\n2,4,8,4,1\n2,2,2,1,0\n2,2,8,2,0\n", to, "scalability-old.csv")
		writeFile(t, "progress,iteration,metric,grad_sqr,grad_var\n100,100,0.5,1,10\n200,200,0.75,2,30\n", to, "validation-10.csv")
		writeFile(t, "progress,iteration,metric,grad_sqr,grad_var\n99,60,0.5,3,30\n201,110,0.75,2,10\n", to, "validation-20.csv")
	}
	to := filepath.Join(folder, "toy")
	writeFile(t, "local_bsz,step_time,sync_time,placement\n2,0.25,0,1\n20,1,0,1\n2,0.25,0.05,4\n20,1.5,0.05,4\n", to, "placements-new.csv")
	writeFile(t, "local_bsz,step_time,sync_time,num_nodes,num_replicas\n2,0.25,0,1,1\n20,1,0,1,1\n", to, "scalability-new.csv")
	return folder
}

var toyTypes = []SiaAccelerator{{Name: "t4", Profile: "old"}, {Name: "a100", Profile: "new"}}

const siaHeader = "name,time,application,num_replicas,batch_size,category\n"

func loadToySia(t testing.TB, rows string, more map[string]any) (*Workload, error) {
	t.Helper()
	config := map[string]any{
		"path": writeFile(t, siaHeader+rows, t.TempDir(), "workload.csv"), "profiles": toySia(t),
		"accelerators": []any{map[string]any{"name": "t4", "profile": "old"}, map[string]any{"name": "a100", "profile": "new"}},
	}
	maps.Copy(config, more)
	return loadFrom(t, NewSia(), config)
}

func on(accelerator string, shape ...int) Running {
	c := Running{Shape: shape, Replicas: 0}
	for _, n := range shape {
		c.Replicas += n
		c.Accelerators = append(c.Accelerators, accelerator)
	}
	return c
}

func TestSiaJob(t *testing.T) {
	w, err := loadToySia(t, "toy-0,60,toy,1,10,\ntoy-1,70,toy,2,20,strong_scaling\ntoy-2,80,toy,2,20,rigid\nslow-3,90,slow,1,10,elastic\n",
		map[string]any{"slowdown": []any{map[string]any{"application": "slow", "factor": 2}}})
	if err != nil {
		t.Fatal(err)
	}
	type facts struct {
		Min, Max     int
		Batch        core.BatchSpec
		ByType       []core.TypeBatch
		Accelerators []string
		Work         float64
	}
	both := []core.TypeBatch{{Accelerator: "t4", MinPerDevice: 2, MaxPerDevice: 8}, {Accelerator: "a100", MinPerDevice: 2, MaxPerDevice: 20}}
	want := map[string]facts{
		"toy-0":  {1, 10, core.BatchSpec{Requested: 10, Initial: 10, Max: 20, MinPerDevice: 2, MaxPerDevice: 20}, both, []string{"t4", "a100"}, 200},
		"toy-1":  {1, 10, core.BatchSpec{Requested: 20, Initial: 20, Max: 20, MinPerDevice: 2, MaxPerDevice: 20}, both, []string{"t4", "a100"}, 110},
		"toy-2":  {2, 2, core.BatchSpec{Requested: 20, Initial: 20, Max: 20, MinPerDevice: 2, MaxPerDevice: 20}, both, []string{"t4", "a100"}, 110},
		"slow-3": {1, 10, core.BatchSpec{Requested: 10, Initial: 10, Max: 20, MinPerDevice: 2, MaxPerDevice: 8}, both[:1], []string{"t4"}, 200},
	}
	for i := range w.Jobs {
		s := &w.Jobs[i].Spec
		got := facts{s.MinReplicas, s.MaxReplicas, s.Batch, s.BatchByType, s.Accelerators, s.TotalWork}
		if diff := cmp.Diff(want[s.Name], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.Name, diff)
		}
	}
	if w.Jobs[1].Model != w.Jobs[2].Model {
		t.Error("jobs of one application and batch have models of their own")
	}
	times := w.Jobs[0].Spec.StepTimes.Types
	if len(times) != 2 || len(times[0].OneNode) != 2 || len(times[1].OneNode) != 4 || times[0].ManyNodes[2] == 0 {
		t.Errorf("step times %+v", times)
	}
}

// The rate is the gain of a step over its time, on the type, the placement and the batch of the moment.
func TestSiaRate(t *testing.T) {
	w, err := loadToySia(t, "toy-0,60,toy,1,10,\ntoy-1,60,toy,1,20,rigid\nslow-2,60,slow,1,10,\n",
		map[string]any{"slowdown": []any{map[string]any{"application": "slow", "factor": 2}}})
	if err != nil {
		t.Fatal(err)
	}
	tuned := func(c Running, perDevice, accumulation int) Running {
		c.Tuning.BatchPerDevice, c.Tuning.AccumulationSteps = perDevice, accumulation
		return c
	}
	mixed := on("t4", 1, 1)
	mixed.Accelerators[1] = "a100"
	cases := map[string]struct {
		job     int
		running Running
		want    float64
	}{
		"measured":                     {0, tuned(on("t4", 1), 2, 4), 1 / (0.5 * 5)},
		"between batches":              {0, tuned(on("t4", 2), 5, 0), 1 / 1.03125},
		"by type":                      {0, tuned(on("a100", 1), 10, 0), 1 / (0.25 + 0.75*8/18)},
		"the larger batch":             {0, tuned(on("a100", 1), 20, 0), rateOf(20, 1)},
		"rotated":                      {0, tuned(on("t4", 2, 1), 2, 1), rateOf(12, 3)},
		"between replicas":             {0, tuned(on("t4", 1, 1, 2, 2), 2, 0), rateOf(12, 6)},
		"between nodes":                {0, tuned(on("t4", 2, 2, 2), 2, 0), rateOf(12, (3+8.0)/2)},
		"between replicas and batches": {0, tuned(on("t4", 2, 2), 5, 0), rateOf(20, 3.5)},
		"beyond the batch":             {0, tuned(on("t4", 1), 12, 0), rateOf(12, 3)},
		"its own batch":                {0, on("t4", 1), 1 / 2.5},
		"on two types":                 {0, mixed, 0},
		"not measured on the type":     {2, tuned(on("a100", 1), 2, 0), 0},
		"longer than the profile":      {2, tuned(on("t4", 1), 2, 4), 0.5 / (0.5 * 5)},
		"a rigid job counts its steps": {1, tuned(on("a100", 1), 20, 0), 1},
		"of one with accumulation":     {1, on("a100", 4), 1 / (0.25 + 1.25*3/18)},
		"more replicas than measured":  {0, tuned(on("t4", 4, 4, 4, 4), 2, 0), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := w.Jobs[tc.job].Model.Rate(0, tc.running); math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("rate %v, want %v", got, tc.want)
			}
		})
	}
}

// rateOf is the rate in the first epoch of a total batch from 10 to 20, at a step time.
func rateOf(batch, seconds float64) float64 {
	part := (batch - 10) / 10
	square, variance := 1+2*part, 10+20*part
	return (variance + square) / (variance/(batch/10) + square) / seconds
}

func TestSiaMeasures(t *testing.T) {
	w, err := loadToySia(t, "toy-0,60,toy,1,10,\n", map[string]any{"slowdown": []any{map[string]any{"application": "toy", "factor": 2}}})
	if err != nil {
		t.Fatal(err)
	}
	running := on("a100", 4)
	running.Tuning.BatchPerDevice = 3
	m, g, ok := w.Jobs[0].Model.(Measurer).Measure(0, running)
	step := 2 * (0.25 + 1.25/18)
	want := core.Measurement{Accelerator: "a100", Nodes: 1, Replicas: 4, PerDevice: 3, PassSeconds: step - 2*0.05, StepSeconds: step}
	if diff := cmp.Diff(want, m, cmpopts.EquateApprox(1e-12, 0)); diff != "" || !ok || math.Abs(g.SquaredNorm-1.4) > 1e-12 {
		t.Errorf("measured %v with %+v (-want +got):\n%s", ok, g, diff)
	}
	running.Tuning.BatchPerDevice = 2
	if _, _, ok := w.Jobs[0].Model.(Measurer).Measure(0, running); ok {
		t.Error("measured with a batch below those trained with")
	}
}

// What is true of a job is what its profile says at the first batch: of a job that keeps another one, nothing at that batch is.
func TestSiaTruth(t *testing.T) {
	w, err := loadToySia(t, "toy-0,60,toy,1,10,\ntoy-1,60,toy,1,20,rigid\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.Jobs[0].Spec.Truth.Gradients, (core.Gradients{SquaredNorm: 1, Variance: 10}); got != want {
		t.Errorf("statistics %+v, want %+v", got, want)
	}
	running := on("t4", 1)
	running.Tuning.BatchPerDevice, running.Tuning.AccumulationSteps = 10, 1
	for i, wanted := range []float64{10, 20 * rateOf(20, 2)} {
		batch, efficiency, samples, ok := w.Jobs[i].Model.(Trainer).Training(0, running)
		if want := rateOf(20, 2); !ok || batch != 20 || math.Abs(efficiency-want) > 1e-12 || math.Abs(samples-wanted) > 1e-12 {
			t.Errorf("job %d trains at %d with %v, %v samples a unit of work (%v); want 20 with %v, %v", i, batch, efficiency, samples, ok, want, wanted)
		}
	}
}

// Batches to know of lie from the least to the most that was measured, in equal ratios.
func TestSiaBatches(t *testing.T) {
	for _, s := range []siaSpeeds{{least: 8, most: 512}, {least: 3, most: 5}, {least: 4, most: 4}} {
		got := s.batches()
		if got[0] != s.least || got[len(got)-1] != s.most || len(got) > truthBatches || !slices.IsSorted(got) {
			t.Errorf("from %d to %d: %v", s.least, s.most, got)
		}
	}
}

// A job runs on as many devices as it has a time for.
func TestSiaRunsOn(t *testing.T) {
	m := &siaModel{stepTimes: core.StepTimes{Types: []core.TypeTimes{{OneNode: []float64{1, 0}, ManyNodes: []float64{0, 0, 0, 2}}}}}
	for replicas, want := range []bool{1: true, 2: false, 3: false, 4: true, 5: false} {
		if replicas > 0 && m.runsOn(replicas) != want {
			t.Errorf("runs on %d devices: %v, want %v", replicas, !want, want)
		}
	}
}

func wantProblem(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

func TestSiaProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		rows string
		more map[string]any
		want string
	}{
		"category":    {rows: "a,0,toy,1,10,elastik\n", want: `elastik`},
		"application": {rows: "a,0,tyo,1,10,\n", want: `toy`},
		"batch":       {rows: "a,0,toy,1,30,\n", want: "from 10 to 20"},
		"replicas":    {rows: "a,0,toy,64,10,\n", want: "batch of 10"},
		"no profile": {rows: "a,0,slow,1,10,\n", more: map[string]any{
			"accelerators": []any{map[string]any{"name": "a100", "profile": "new"}},
		}, want: "placements-new.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadToySia(t, tc.rows, tc.more)
			wantProblem(t, err, tc.want)
		})
	}
	invalid := SiaConfig{Accelerators: []SiaAccelerator{{"a", "x"}, {"a", "../x"}}, Slowdown: []SiaSlowdown{{"s", 1}, {"s", 2}}}
	for _, want := range []string{"path", "profiles", "accelerators[1].name", "accelerators[1].profile", "slowdown[1]"} {
		wantProblem(t, invalid.Validate(), want)
	}
}

// Whatever lies on the lines of the grid is met exactly, and what lies between is between.
func TestSiaInterpolates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c, d := rapid.Float64Range(0.1, 10).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "nodes"),
			rapid.Float64Range(0, 1).Draw(t, "replicas"), rapid.Float64Range(0, 1).Draw(t, "batch")
		plane := func(nodes, replicas, batch int) float64 {
			return a + b*float64(nodes) + c*float64(replicas) + d*float64(batch)
		}
		var points []siaPoint
		for _, nodes := range []int{2, 4, 7} {
			for _, perNode := range []int{1, 2, 4} {
				for _, batch := range []int{2, 5, 11} {
					at := siaPoint{nodes: nodes, replicas: nodes * perNode, batch: batch}
					at.time.step = plane(at.nodes, at.replicas, at.batch)
					points = append(points, at)
				}
			}
		}
		s := siaSpeeds{placements: map[uint64]*stepCurve{}, beyond: levels(points)}
		nodes := rapid.IntRange(2, 7).Draw(t, "on nodes")
		shape := make([]int, nodes)
		replicas := 0
		for i := range shape {
			shape[i] = rapid.IntRange(1, 4).Draw(t, "on a node")
			replicas += shape[i]
		}
		batch := rapid.IntRange(2, 14).Draw(t, "of batch")
		got, ok := s.stepTime(shape, batch)
		if want := plane(nodes, replicas, batch); !ok || math.Abs(got.step-want) > 1e-9 {
			t.Fatalf("%v at %d takes %v (%v), want %v", shape, batch, got.step, ok, want)
		}
	})
}

func FuzzSia(f *testing.F) {
	folder := toySia(f)
	f.Add([]byte(siaHeader + "toy-1,60,toy,2,10,\ntoy-0,60,toy,1,15,rigid\nslow-0,60,slow,2,15,strong_scaling\n"))
	f.Add([]byte("name,time,application,num_replicas,batch_size\na,0,toys,1,10\nb,0,toy,99,9\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		in, err := newInput("t.csv", content)
		if err != nil {
			positioned(t, err)
			return
		}
		models, err := newSiaModels(&SiaConfig{Profiles: folder, Accelerators: toyTypes, Jobs: siaElastic})
		if err != nil {
			t.Fatal(err)
		}
		w, err := readSia(context.Background(), in, models)
		if err != nil {
			positioned(t, err)
			return
		}
		checkWorkload(t, w)
	})
}

// FuzzSiaProfile spoils one file of a profile at a time.
func FuzzSiaProfile(f *testing.F) {
	files := []string{"placements-old.csv", "scalability-old.csv", "validation-10.csv"}
	f.Add(uint8(0), []byte("placement,local_bsz,step_time,sync_time\n11,2,0.5,0\n99999999,2,1e-300,0\n"))
	f.Add(uint8(1), []byte("num_nodes,num_replicas,local_bsz,step_time,sync_time\n1,1,9,1,0\n"))
	f.Add(uint8(2), []byte("progress,iteration,metric,grad_sqr,grad_var\n1e-300,0,0,1e300,1e300\n"))
	folder := toySia(f)
	f.Fuzz(func(t *testing.T, which uint8, content []byte) {
		path := filepath.Join(folder, "toy", files[int(which)%len(files)])
		sound, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, string(content), path)
		defer writeFile(t, string(sound), path)
		reader := profileReader{folder: folder}
		p := reader.readSia(context.Background(), "toy", toyTypes)
		if err := reader.problems.Err(); err != nil {
			positioned(t, err)
			return
		}
		for _, fixed := range []bool{true, false} {
			m := newSiaModel(p, p.trainings[0].batch, fixed, 1)
			if m == nil {
				continue
			}
			for _, shape := range [][]int{{1}, {2}, {1, 1, 1, 1, 1}} {
				if rate := m.Rate(0, on("t4", shape...)); !(rate >= 0) {
					t.Errorf("%v runs at a rate of %v", shape, rate)
				}
			}
		}
	})
}

// The profiles of the artifact cover all that Sia's configurations need.
func TestSiaProfilesCover(t *testing.T) {
	folder := refdata.Path(t, "data", "sia", "profiles")
	reader := profileReader{folder: folder}
	types := []SiaAccelerator{{"t4", "aws"}, {"a100", "dgx-ext"}, {"rtx", "rtx"}}
	shapes := map[string][][]int{
		"t4":   {{1}, {2}, {4}, {4, 4}, {4, 4, 4}, {4, 4, 4, 4}, {4, 4, 4, 4, 4}, {4, 4, 4, 4, 4, 4}},
		"a100": {{1}, {2}, {4}, {8}, {8, 8}}, "rtx": {{1}, {2}, {4}, {8}, {8, 8}, {8, 8, 8}},
	}
	for _, name := range []string{"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"} {
		p := reader.readSia(t.Context(), name, types)
		if err := reader.problems.Err(); err != nil {
			t.Fatal(err)
		}
		if len(p.types) != 3 {
			t.Errorf("%s was measured on %d types, want 3", name, len(p.types))
		}
		for i := range p.types {
			s := &p.types[i]
			for _, shape := range shapes[s.accelerator] {
				_, replicas := spread(shape)
				largest := p.trainings[len(p.trainings)-1].batch
				for _, b := range []int{s.least, min(s.most, largest/replicas)} {
					if time, ok := s.stepTime(shape, b); b >= s.least && !(ok && time.step > time.sync && time.sync >= 0) {
						t.Errorf("%s on %s %v at %d: %+v %v", name, s.accelerator, shape, b, time, ok)
					}
				}
			}
		}
	}
	if !slices.ContainsFunc(reader.inputs, func(in Input) bool { return filepath.Base(in.Path) == "scalability-rtx.csv" }) {
		t.Error("the inputs leave out files that were read")
	}
}
