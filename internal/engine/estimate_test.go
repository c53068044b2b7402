package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// listener grants like fifo, and notes what it is told of the work of jobs.
type listener struct {
	faulty
	told map[string]float64
}

func (l *listener) Allocate(ctx context.Context, v *core.View, jobs []core.Candidate) ([]core.Grant, error) {
	for i := range jobs {
		l.told[jobs[i].Name] = jobs[i].TotalWork
	}
	return l.faulty.Allocate(ctx, v, jobs)
}

// outputsOf are the contents of the files of a run but for those that hold its config.
func outputsOf(t *testing.T, s quartet.Spec) map[string]string {
	t.Helper()
	c := doortest.Compose(t, quartet.Builtins(), s)
	c.Keep = true
	files := map[string]string{}
	for _, f := range doortest.Simulate(t, c).Files {
		if f.File != quartet.ManifestFile {
			files[f.File] = string(f.Content)
		}
	}
	return files
}

var everyFile = []string{"jobs", "rounds", "decisions", "accelerators", "fairness"}

// What is left out and what changes nothing are the same, file by file.
func TestASampleOfAllIsNoSample(t *testing.T) {
	cases := map[string]func(*quartet.Spec){
		"a window of all jobs":     func(s *quartet.Spec) { s.Sample.Window.Jobs = 20 },
		"a load of 1, compressed":  func(s *quartet.Spec) { s.Sample.Load.By = "compression" },
		"a load of 1, other nodes": func(s *quartet.Spec) { s.Sample.Load.By = "nodes" },
		"estimates without error":  func(s *quartet.Spec) { s.Estimate.Source = "noisy" },
	}
	for _, policy := range []string{"fifo", "srtf"} {
		s := doortest.Small()
		s.Pipeline.Allocation.Type, s.Output.Write = policy, everyFile
		want := outputsOf(t, s)
		for name, change := range cases {
			t.Run(policy+"/"+name, func(t *testing.T) {
				same := s
				change(&same)
				if diff := cmp.Diff(want, outputsOf(t, same)); diff != "" {
					t.Errorf("files (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A policy that asks for no work decides as before, and no measure knows what others were told.
func TestEstimatesReachPoliciesAlone(t *testing.T) {
	s := doortest.Small()
	s.Output.Write = everyFile
	want := outputsOf(t, s)
	for _, source := range []string{"noisy", "none"} {
		t.Run(source, func(t *testing.T) {
			other := s
			if other.Estimate.Source = source; source == "noisy" {
				other.Estimate.Sigma = 2
			}
			if diff := cmp.Diff(want, outputsOf(t, other)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
	s.Pipeline.Allocation.Type = "srtf"
	declared := outputsOf(t, s)
	s.Estimate = quartet.Estimate{Source: "noisy", Sigma: 2}
	if noisy := outputsOf(t, s); noisy["jobs.csv"] == declared["jobs.csv"] {
		t.Error("srtf decides on estimates as on the truth")
	}
}

func TestPoliciesAreToldTheEstimate(t *testing.T) {
	told := func(estimate quartet.Estimate) map[string]float64 {
		l := &listener{faulty{until: 1 << 30}, map[string]float64{}}
		s := doortest.Small()
		s.Pipeline.Allocation.Type, s.Estimate = "listener", estimate
		doortest.Simulate(t, doortest.Compose(t, quartet.Builtins().WithAllocation(quartet.Given[core.Allocator]("listener", l)), s))
		return l.told
	}
	truth, noisy := told(quartet.Estimate{Source: "declared"}), told(quartet.Estimate{Source: "noisy", Sigma: 1})
	none := told(quartet.Estimate{Source: "none"})
	for name, work := range truth {
		if noisy[name] == work || !(noisy[name] > 0) || none[name] != 0 {
			t.Errorf("job %q of %v: %v with noise, %v without an estimate", name, work, noisy[name], none[name])
		}
	}
	if len(truth) != 20 || len(noisy) != 20 || len(none) != 20 {
		t.Errorf("told of %d, %d and %d jobs", len(truth), len(noisy), len(none))
	}
}

func TestWithoutEstimatesWorkCannotBeAskedFor(t *testing.T) {
	s := doortest.Small()
	s.Pipeline.Allocation.Type, s.Estimate.Source = "srtf", "none"
	_, err := quartet.Compose(quartet.Builtins(), s)
	if want := `"allocation/srtf" needs capability "remaining_work", which "backend/simulator with estimate.source none" does not give`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The config that the manifest holds repeats the run.
func TestASampledRunRepeats(t *testing.T) {
	cases := map[string]func(*quartet.Spec){
		"thinned, with errors": func(s *quartet.Spec) {
			s.Sample.Load.Factor, s.Estimate = 0.6, quartet.Estimate{Source: "noisy", Sigma: 1}
		},
		"a window, denser": func(s *quartet.Spec) { s.Sample.Window.FirstJob, s.Sample.Load.Factor = 5, 2.5 },
		"blocks":           func(s *quartet.Spec) { s.Sample.Blocks.Length = 10 * 60 * 1e9 },
		"more nodes":       func(s *quartet.Spec) { s.Sample.Load.Factor, s.Sample.Load.By = 0.5, "nodes" },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			s := doortest.Small()
			s.Pipeline.Allocation.Type = "srtf"
			change(&s)
			c := doortest.Compose(t, quartet.Builtins(), s)
			resolved, err := c.Resolved()
			if err != nil {
				t.Fatal(err)
			}
			again, err := quartet.Parse(quartet.Builtins(), "manifest", string(resolved), quartet.Options{})
			if err != nil {
				t.Fatalf("%v\n%s", err, resolved)
			}
			c.Keep, again.Keep = true, true
			if diff := cmp.Diff(doortest.Simulate(t, c).Files, doortest.Simulate(t, again).Files); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}
