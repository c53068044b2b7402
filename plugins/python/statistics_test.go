package python_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/internal/pythontest"
)

// follow has the tracker of quartet_torch, which needs no torch, take in the norms of steps, and tells what it makes of them.
const follow = `
import dataclasses, importlib.util, json, sys
spec = importlib.util.spec_from_file_location("statistics", sys.argv[1])
statistics = importlib.util.module_from_spec(spec)
sys.modules["statistics"] = statistics
spec.loader.exec_module(statistics)
tracker, out = statistics.Tracker(), []
for s in json.load(sys.stdin):
    tracker.take(statistics.Scatter(s["Parts"], s["Local"], s["Total"], s["Scale"]), s["Successive"])
    g = tracker.gradients()
    out.append([g.square, g.variance, g.gain(s["Scale"])])
    again = statistics.Tracker()
    again.load_state_dict(json.loads(json.dumps(tracker.state_dict())))
    tracker = again
json.dump(out, sys.stdout)
`

// PyTorch trainings make of their gradients what trainings in Go do.
func TestStatisticsAreEqual(t *testing.T) {
	type step struct {
		goodput.Scatter
		Successive bool
	}
	const steps, length = 400, 20
	r := rand.New(rand.NewPCG(7, 0))
	var all []step
	for i := range steps {
		parts := make([][]float64, 2+r.IntN(4))
		for p := range parts {
			parts[p] = make([]float64, length)
			for d := range parts[p] {
				parts[p][d] = float64(steps-i)/steps + 3*r.NormFloat64() // a training that converges
			}
		}
		all = append(all, step{goodput.ScatterOf(parts, 0.25*float64(1+r.IntN(32))), i < 50})
	}
	all[100].Total = 1e200 // which is skipped
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(pythontest.Require(t), "-c", follow, filepath.Join("quartet_torch", "_statistics.py"))
	command.Stdin = bytes.NewReader(in)
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got [][3]float64
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != steps {
		t.Fatalf("%d steps of %d", len(got), steps)
	}
	var tracker goodput.Tracker
	for i, s := range all {
		if s.Successive {
			tracker.TakeSuccessive(s.Scatter)
		} else {
			tracker.Take(s.Scatter)
		}
		g := goodput.Report(&tracker)
		for k, want := range [...]float64{g.SquaredNorm, g.Variance, goodput.Gradients(g).Gain(s.Scale)} {
			if math.Abs(got[i][k]-want) > 1e-9*math.Abs(want) {
				t.Fatalf("step %d, figure %d: %v in Python, %v in Go", i, k, got[i][k], want)
			}
		}
	}
}
