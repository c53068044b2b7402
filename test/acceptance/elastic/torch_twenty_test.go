package elastic_test

import (
	"path/filepath"
	"testing"

	"github.com/quartet-sched/quartet"
)

// The twenty trainings that `make torch-twenty` runs end in a simulation too, where their profile stands for them; and with Pollux,
// which resizes them, they wait less.
func TestTwentyTrainings(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", "..")) // which the paths of the config begin at
	mean := func(sets ...string) float64 {
		r, err := quartet.Simulate(t.Context(), quartet.Builtins(), quartet.Options{Files: []string{filepath.Join("examples", "torch", "twenty.yaml")}, Sets: sets})
		if err != nil {
			t.Fatal(err)
		}
		if r.Summary.Jobs.Completed != 20 || r.Summary.Jobs.Submitted != 20 {
			t.Errorf("%v: %d of %d jobs completed", sets, r.Summary.Jobs.Completed, r.Summary.Jobs.Submitted)
		}
		return float64(r.Summary.JCTSeconds.Mean)
	}
	fifo := mean()
	mean("pipeline.allocation={type: tiresias, config: {thresholds: [30]}}")
	pollux := mean("pipeline.allocation={type: pollux, config: {weights: none, restart_overhead: 5s}}", "pipeline.placement.type=proposed",
		"pipeline.elasticity.job={type: goodput, config: {declared_work: false}}")
	if !(pollux < fifo) {
		t.Errorf("mean JCT %v under Pollux, %v under FIFO", pollux, fifo)
	}
}
