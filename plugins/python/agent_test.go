package python_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/agent"
)

// A training in Python and a scheduler in Go understand each other.
func TestAgent(t *testing.T) {
	folder, err := os.MkdirTemp("", "agent") // the folder of a test may be too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "agent.sock")
	s, err := agent.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Expect("train")
	tuning := agent.Tuning{BatchPerDevice: 48, AccumulationSteps: 1, LearningRateFactor: 1.5, BatchByReplica: []int{48}}
	if _, err := s.Send("train", agent.ToJob{Tuning: &tuning}); err != nil {
		t.Fatal(err)
	}

	training := exec.Command(interpreter(t), filepath.Join("tests", "training.py"))
	training.Env = append(os.Environ(), agent.Environment{Job: "train", Replicas: 1, Nodes: 1, Socket: path}.Variables()...)
	training.Stderr = os.Stderr
	if err := training.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(20*time.Second, func() { _ = training.Process.Kill() })
	defer kill.Stop()

	checkpointed := 0.0
	for e := range s.Events() {
		if e.Err != nil {
			t.Error(e.Err)
		}
		if r := e.Report; r != nil {
			want := agent.Report{
				Replicas: 1, Nodes: 1, BatchPerDevice: 48, StepSeconds: 0.001, GradientSquare: 2, GradientVariance: 3, Progress: r.Progress,
			}
			if d := cmp.Diff(want, *r); d != "" || r.Progress < 1 {
				t.Errorf("report (-want +got):\n%s", d)
			}
			if _, err := s.Send("train", agent.ToJob{Stop: &agent.Stop{GraceSeconds: 5}}); err != nil {
				t.Error(err)
			}
		}
		if e.Checkpointed != nil {
			checkpointed = e.Checkpointed.Progress
		}
		if e.Gone {
			break
		}
	}
	if checkpointed < 1 {
		t.Errorf("checkpointed at %v", checkpointed)
	}
	var exit *exec.ExitError
	if err := training.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 75 {
		t.Errorf("the training ended with %v, want exit code 75", err)
	}
}
