package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/goodput"
)

// pythonWithTorch is a Python that has PyTorch: the one that QUARTET_TORCH names, which then must serve, or that of the system.
func pythonWithTorch(t *testing.T) string {
	t.Helper()
	path, promised := os.LookupEnv("QUARTET_TORCH")
	if !promised || path == "" {
		path, promised = "/usr/bin/python3", false
	}
	if out, err := exec.Command(path, "-c", "import torch").CombinedOutput(); err != nil {
		if promised {
			t.Fatalf("QUARTET_TORCH: %s cannot import torch: %v\n%s", path, err, out)
		}
		t.Skipf("%s has no torch; QUARTET_TORCH may name a Python that has it", path)
	}
	return path
}

// torchTask is what a training in PyTorch needs to know to do the same.
type torchTask struct {
	Batch    int
	Rate     float64
	Features [][]float64
	Labels   []int
	Layers   []torchLayer
}

type torchLayer struct {
	Weights [][]float64
	Biases  []float64
}

// newTorchTask is a training of so many steps.
func newTorchTask(o *options, steps int) *torchTask {
	data, m := makeData(&o.task), newModel(&o.task)
	task, order := &torchTask{Batch: o.Batch, Rate: o.Rate}, order{data: data}
	for i := range uint64(steps * o.Batch) {
		at := order.at(i)
		task.Features, task.Labels = append(task.Features, data.features[at]), append(task.Labels, data.labels[at])
	}
	parameters := m.start(o.Seed)
	for i := range m.outputs {
		weights, biases := m.layer(i, parameters)
		layer := torchLayer{Biases: biases.Data}
		for r := range weights.Rows {
			layer.Weights = append(layer.Weights, weights.Data[r*weights.Stride:][:weights.Cols])
		}
		task.Layers = append(task.Layers, layer)
	}
	return task
}

type torchResult struct {
	Noise, Progress float64
	Parameters      []float64
}

// trainedByTorch has replicas of quartet_torch train.
func trainedByTorch(t *testing.T, python string, task *torchTask, replicas int) *torchResult {
	t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "task.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Abs("../../plugins/python")
	if err != nil {
		t.Fatal(err)
	}
	var commands []*exec.Cmd
	var out, problems bytes.Buffer
	for rank := range replicas {
		c := exec.Command(python, filepath.Join("testdata", "torch_trainer.py"), file)
		env := agent.Environment{Job: "same", Rank: rank, Replicas: replicas, Nodes: 1, Rendezvous: folder}
		c.Env = append(append(os.Environ(), env.Variables()...), "PYTHONPATH="+packages, "OMP_NUM_THREADS=1", "PYTHONDONTWRITEBYTECODE=1")
		if rank == 0 {
			c.Stdout, c.Stderr = &out, &problems
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		commands = append(commands, c)
	}
	for rank, c := range commands {
		if err := c.Wait(); err != nil {
			t.Errorf("replica %d: %v", rank, err)
		}
	}
	result := &torchResult{}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		t.Fatalf("%v\n%s\n%s", err, &out, &problems)
	}
	return result
}

// A training of the same model on the same data, by PyTorch and quartet_torch, comes to the same noise scale within 10 %, and to
// the same parameters.
func TestTorchTrainsTheSame(t *testing.T) {
	python := pythonWithTorch(t)
	const steps = 300
	for _, model := range []string{modelSoftmax, modelMLP} {
		for _, replicas := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s on %d", model, replicas), func(t *testing.T) {
				o := testOptions(t, "-model", model, "-samples", "2000", "-rate", "0.01", "-iterations", fmt.Sprint(steps))
				want := trained(t, o, replicas, t.TempDir())
				noise := noiseScale(goodput.Report(&want.Statistics), o.Batch)
				got := trainedByTorch(t, python, newTorchTask(o, steps), replicas)
				apart := 0.0
				for i, p := range want.Parameters {
					apart = max(apart, math.Abs(got.Parameters[i]-p))
				}
				t.Logf("noise scale %.4g, of the trainer in Go %.4g (%+.2g %%); parameters differ by %.2g at most", got.Noise, noise, 100*(got.Noise/noise-1), apart)
				if !(math.Abs(got.Noise/noise-1) <= 0.1) {
					t.Errorf("noise scale %v, of the trainer in Go %v", got.Noise, noise)
				}
				if !(apart < 1e-6) {
					t.Errorf("parameters differ by %v", apart)
				}
				if math.Abs(got.Progress-want.Progress) > 1e-9*steps {
					t.Errorf("progress %v, of the trainer in Go %v", got.Progress, want.Progress)
				}
			})
		}
	}
}
