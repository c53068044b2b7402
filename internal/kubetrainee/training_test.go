//go:build linux

package kubetrainee

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/goodput"
)

// heard is what a scheduler would hear.
type heard struct {
	reports     []agent.Report
	checkpoints []float64
}

func (h *heard) Report(r agent.Report) error {
	h.reports = append(h.reports, r)
	return (&agent.FromJob{Report: &r}).Validate()
}

func (h *heard) Checkpointed(progress float64) error {
	h.checkpoints = append(h.checkpoints, progress)
	return nil
}

func TestPlan(t *testing.T) {
	absent := plan{work: 60, efficiency: 1, reportSeconds: 1, checkpointSeconds: 5, batch: 1, worlds: true}
	cases := map[string]struct {
		annotations map[string]string
		want        plan
		wantOK      bool
		wantErr     string
	}{
		"nothing to play": {map[string]string{"a": "b"}, plan{}, false, ""},
		"work only":       {map[string]string{workAnnotation: "60"}, absent, true, ""},
		"all": {map[string]string{
			workAnnotation: "1e3", efficiencyAnnotation: "0.5", reportAnnotation: "0.1", checkpointAnnotation: "2", batchAnnotation: "32", worldsAnnotation: "false",
			noiseAnnotation: "7",
		}, plan{work: 1000, efficiency: 0.5, reportSeconds: 0.1, checkpointSeconds: 2, batch: 32, noise: 7}, true, ""},
		"no profile":     {map[string]string{profileAnnotation: "name: x"}, plan{}, false, "annotation trainee.quartet.sched/profile: "},
		"no such batch":  {map[string]string{profileAnnotation: string(simple().YAML()), totalAnnotation: "81"}, plan{}, false, "from 10 to 80, not 81"},
		"no number":      {map[string]string{workAnnotation: "much"}, plan{}, false, `annotation trainee.quartet.sched/work: "much" is not a number from 0 to 1e+09`},
		"less than none": {map[string]string{workAnnotation: "-1"}, plan{}, false, "not a number from 0"},
		"perhaps":        {map[string]string{workAnnotation: "1", worldsAnnotation: "perhaps"}, plan{}, false, `"perhaps" is neither true nor false`},
		"NaN":            {map[string]string{workAnnotation: "NaN"}, plan{}, false, "not a number"},
		"without pause":  {map[string]string{workAnnotation: "1", reportAnnotation: "0"}, plan{}, false, "report_seconds"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok, err := readPlan(tc.annotations)
			if ok != tc.wantOK || (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("ok %v, %v; want %v, %q", ok, err, tc.wantOK, tc.wantErr)
			}
			if ok && got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
}

// All begin together, the first speaks for all, and what is done is what their number allows.
func TestTrainingTogether(t *testing.T) {
	var first, second heard
	tr := newTraining(plan{work: 100, efficiency: 0.5, reportSeconds: 1, checkpointSeconds: 2, batch: 8}, 10)
	tr.members["a"] = &member{size: 3, rank: 0, replicas: 4, nodes: 2, speaker: &first}
	if tr.step(5); tr.progress != 10 {
		t.Errorf("it trained up to %v before all were there", tr.progress)
	}
	tr.members["b"] = &member{size: 1, rank: 3, replicas: 4, nodes: 2, speaker: &second}
	for range 4 {
		tr.step(0.5)
	}
	want := []agent.Report{
		{Replicas: 4, Nodes: 2, BatchPerDevice: 8, PassSeconds: 0.1, StepSeconds: 0.2, Progress: 12},
		{Replicas: 4, Nodes: 2, BatchPerDevice: 8, PassSeconds: 0.1, StepSeconds: 0.2, Progress: 14},
	}
	if d := cmp.Diff(want, first.reports); d != "" || len(second.reports) > 0 {
		t.Errorf("reports (-want +got), and %d of the second member:\n%s", len(second.reports), d)
	}
	if d := cmp.Diff([]float64{14}, first.checkpoints); d != "" {
		t.Errorf("checkpoints (-want +got):\n%s", d)
	}
	if !tr.step(1000) || tr.progress != 100 || tr.saved != 100 {
		t.Errorf("progress %v, saved %v; want all 100", tr.progress, tr.saved)
	}
}

// A world changes how many train, and loses nothing: those that were not told wait to be, those that left are not waited for.
func TestWorldChanges(t *testing.T) {
	tr := newTraining(plan{work: 1000, efficiency: 1, reportSeconds: 1, checkpointSeconds: 1, batch: 1}, 0)
	old, young := &member{size: 1, replicas: 1, nodes: 1}, &member{size: 1, rank: 1, replicas: 2, nodes: 2}
	tr.members["old"] = old
	step := func(what string, want float64) {
		t.Helper()
		before := tr.progress
		if tr.step(1); tr.progress-before != want {
			t.Errorf("%s: %v done in a second, want %v", what, tr.progress-before, want)
		}
	}
	step("alone", 1)
	tr.members["young"] = young
	step("with another that is not of the world yet", 1)
	tr.send(old, agent.World{Generation: 1, Replicas: 2, Nodes: 2})
	step("half of the world knows of it", 0)
	tr.send(young, agent.World{Generation: 1, Rank: 1, Replicas: 2, Nodes: 2})
	step("both", 2)
	tr.send(old, agent.World{Generation: 0, Replicas: 5, Nodes: 1})
	step("told of a world that is past", 2)
	delete(tr.members, "old")
	step("the other is gone", 0)
	tr.send(young, agent.World{Generation: 2, Rank: 0, Replicas: 1, Nodes: 1})
	step("alone again", 1)
}

// Whatever comes: progress never falls, never passes the work, and a checkpoint never says more than was done.
func TestProgressNeverFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &heard{}
		work := rapid.Float64Range(0, 50).Draw(t, "work")
		tr := newTraining(plan{work: work, efficiency: 0.9, reportSeconds: 1, checkpointSeconds: 2, batch: 1}, 0)
		names := []string{"a", "b", "c"}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "name")
				tr.members[name] = &member{size: 1, replicas: rapid.IntRange(1, 3).Draw(t, "replicas"), nodes: 1, speaker: h}
			},
			"leave": func(t *rapid.T) { delete(tr.members, rapid.SampledFrom(names).Draw(t, "name")) },
			"tell": func(t *rapid.T) {
				if m := tr.members[rapid.SampledFrom(names).Draw(t, "name")]; m != nil {
					n := rapid.IntRange(1, 3).Draw(t, "replicas")
					tr.send(m, agent.World{Generation: rapid.Int64Range(0, 9).Draw(t, "generation"), Replicas: n, Nodes: 1})
				}
			},
			"step": func(t *rapid.T) {
				before, generation := tr.progress, tr.world.Generation
				done := tr.step(rapid.Float64Range(0, 5).Draw(t, "seconds"))
				if tr.progress < before || tr.progress > work || done && tr.progress != work || tr.world.Generation < generation {
					t.Fatalf("progress %v after %v, of %v, done %v; generation %d after %d", tr.progress, before, work, done, tr.world.Generation, generation)
				}
			},
			"": func(t *rapid.T) {
				if tr.saved > tr.progress || math.IsNaN(tr.progress) {
					t.Fatalf("saved %v of %v", tr.saved, tr.progress)
				}
				for _, r := range h.reports {
					if err := (&agent.FromJob{Report: &r}).Validate(); err != nil {
						t.Fatal(err)
					}
				}
				h.reports = nil
			},
		})
	})
}

// simple is an application with round figures: a pass over b samples takes 1 + b/10 s, synchronisation 1 s on one node and 4 s across
// nodes, without overlap. The gradient noise scale is 30 samples in the first epoch and 90 in the second, of 100 iterations each.
func simple() *goodput.Profile {
	return &goodput.Profile{
		Version: 1, Name: "simple", MaxReplicas: 8, Epochs: 2, IterationsPerEpoch: 100,
		Batch:       goodput.BatchLimits{Initial: 10, Max: 80, MinPerDevice: 5, MaxPerDevice: 20},
		Performance: goodput.Performance{AlphaGrad: 1, BetaGrad: 0.1, AlphaNode: 4, BetaNode: 1e-8, AlphaLocal: 1, BetaLocal: 1e-8, Gamma: 1},
		Noise:       []goodput.NoisePoint{{Progress: 0.25, Samples: 30}, {Progress: 0.75, Samples: 90}},
	}
}

// A training with a profile does what the profile says of its replicas, nodes and batch, and tells it. A step of 40 samples gains
// 4/(30/10/4+1) iterations in the first epoch: (30/10+1)/(30/10/4+1).
func TestTrainingByAProfile(t *testing.T) {
	p, ok, err := readPlan(map[string]string{profileAnnotation: string(simple().YAML()), totalAnnotation: "40"})
	if !ok || err != nil || p.work != 200 {
		t.Fatalf("%+v, %v, %v", p, ok, err)
	}
	const gain = 4 / 1.75
	about := cmpopts.EquateApprox(1e-6, 0)
	var h heard
	tr := newTraining(p, 0)
	one := &member{size: 2, replicas: 2, nodes: 1, speaker: &h}
	tr.members["one"] = one
	tr.step(4) // 20 samples on each: 3 s and 1 s
	tr.told = &agent.Tuning{BatchPerDevice: 10}
	tr.step(3) // 2 s and 1 s for 20 samples, which gain 4/(3/2+1)
	tr.told = &agent.Tuning{BatchPerDevice: 3, AccumulationSteps: 1}
	tr.step(3) // less than a device takes: it goes on as before
	two := &member{size: 1, rank: 2, replicas: 3, nodes: 2}
	tr.members["two"] = two
	tr.send(one, agent.World{Generation: 1, Replicas: 3, Nodes: 2})
	tr.send(two, agent.World{Generation: 1, Rank: 2, Replicas: 3, Nodes: 2})
	tr.told = &agent.Tuning{BatchPerDevice: 10, AccumulationSteps: 1}
	tr.step(8) // 2 s, and 2 s and 4 s for 60 samples
	sixty := 4 / (3/6.0 + 1)
	noise := core.Gradients{SquaredNorm: 1, Variance: 3}
	want := []agent.Report{
		{Replicas: 2, Nodes: 1, BatchPerDevice: 20, PassSeconds: 3, StepSeconds: 4, Progress: gain},
		{Replicas: 2, Nodes: 1, BatchPerDevice: 10, PassSeconds: 2, StepSeconds: 3, Progress: gain + 1.6},
		{Replicas: 2, Nodes: 1, BatchPerDevice: 10, PassSeconds: 2, StepSeconds: 3, Progress: gain + 3.2},
		{Replicas: 3, Nodes: 2, BatchPerDevice: 10, PassSeconds: 2, StepSeconds: 6, Progress: gain + 3.2 + sixty},
	}
	for i := range want {
		want[i].GradientSquare, want[i].GradientVariance = noise.SquaredNorm, noise.Variance
	}
	if d := cmp.Diff(want, h.reports, about); d != "" {
		t.Errorf("reports (-want +got):\n%s", d)
	}
	// What is left of the first epoch, and then of the second, in which a step of 60 samples gains 10/(9/6+1).
	left := (100-tr.progress)/sixty*8 + 100/(10/2.5)*8
	if done := tr.step(left - 0.01); done {
		t.Errorf("all is done after %v", tr.progress)
	}
	if done := tr.step(0.02); !done || tr.progress != 200 {
		t.Errorf("done %v: %v of 200", done, tr.progress)
	}
}

// A file of many jobs forgets those that trained longest ago, and none that is there.
func TestStoreForgets(t *testing.T) {
	s, err := openStore(filepath.Join(t.TempDir(), progressFile))
	if err != nil {
		t.Fatal(err)
	}
	name := func(i int) string { return fmt.Sprintf("job-%04d", i) }
	for i := range 2*mostJobs + 1 {
		if s.full() {
			t.Fatalf("it is full with %d", i)
		}
		s.set(name(i), 1)
	}
	s.set(name(1), 2)
	if s.trim(map[string]bool{name(0): true}); len(s.progress) != mostJobs {
		t.Errorf("%d are left", len(s.progress))
	}
	for i, want := range map[int]float64{0: 1, 1: 2, 2: 0, mostJobs + 2: 0, mostJobs + 3: 1, 2 * mostJobs: 1} {
		if got := s.of(name(i)); got != want {
			t.Errorf("%s did %v, want %v", name(i), got, want)
		}
	}
	if len(s.latest) != len(s.progress) {
		t.Errorf("the moments of %d of %d are kept", len(s.latest), len(s.progress))
	}
}

func TestSize(t *testing.T) {
	for ranks, want := range map[string]int{"": 1, "0": 1, "0-3": 4, "0-3,6": 5, "2,4-5,9": 4, "x": 1, "3-1": 1} {
		p := pod{}
		p.Metadata.Annotations = map[string]string{ranksAnnotation: ranks}
		if got := p.size(); got != want {
			t.Errorf("ranks %q are %d replicas, want %d", ranks, got, want)
		}
	}
}

func TestTokenOfAPod(t *testing.T) {
	var p pod
	if err := json.Unmarshal([]byte(`{"spec": {
		"containers": [{"name": "main", "volumeMounts": [{"name": "other", "mountPath": "/var/run/secrets/x"}, {"name": "agent", "mountPath": "/var/run/quartet/"}]}],
		"volumes": [
			{"name": "other", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
			{"name": "agent", "projected": {"sources": [{"configMap": {"name": "ca"}}, {"serviceAccountToken": {"path": "token", "audience": "ours", "expirationSeconds": 600}}]}}
		]}}`), &p); err != nil {
		t.Fatal(err)
	}
	if got, err := p.token("/var/run/quartet/token"); err != nil || got != (tokenSource{"ours", "token", 600}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := p.token("/var/run/secrets/token"); err == nil {
		t.Errorf("%+v, want none", got)
	}
}

// What was done is found again; a name is free for another job once its work is done.
func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), progressFile)
	s, err := openStore(path)
	if err != nil {
		t.Fatal(err)
	}
	s.set("default/train", 3)
	s.set("default/other", 5)
	s.set("a-uid", 7)
	for _, job := range []string{"default/train", "default/other", "a-uid"} {
		s.forget(job, 5)
	}
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	again, err := openStore(path)
	if d := cmp.Diff(map[string]float64{"default/train": 3, "a-uid": 7}, again.progress); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStore(path); err == nil {
		t.Error("half a file is read")
	}
}
