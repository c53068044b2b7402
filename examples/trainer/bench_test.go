package main

import (
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core/agent"
)

// BenchmarkScheduled compares the steps of a training that talks to a scheduler, in this process, with those of one that
// has none. They take turns, so that both see the same machine.
func BenchmarkScheduled(b *testing.B) {
	for _, model := range []string{modelSoftmax, modelMLP} {
		for name, every := range map[string]string{"ReportASecond": "1s", "ReportAStep": "0"} {
			b.Run(model+"/"+name, func(b *testing.B) {
				args := []string{"-model", model, "-checkpoint-every", "0", "-iterations", "1e9", "-rate", "1e-9", "-report-every", every}
				path := filepath.Join(meeting(b), "agent.sock")
				s, err := agent.Listen(path)
				if err != nil {
					b.Fatal(err)
				}
				go drain(s)
				s.Expect("train")
				with, endWith := lone(b, args, agent.Environment{Job: "train", Replicas: 1, Nodes: 1, Socket: path})
				without, endWithout := lone(b, args, agent.Environment{Replicas: 1, Nodes: 1})
				var times [2][]float64 // of blocks; a quick one of each counts, for others disturb many
				for b.Loop() {
					for i, r := range [...]*trainer{without, with} {
						times[i] = append(times[i], block(b, r))
					}
				}
				alone, scheduled := quick(times[0]), quick(times[1])
				b.ReportMetric(1e6*alone/blockSteps, "alone-µs/step")
				b.ReportMetric(1e6*scheduled/blockSteps, "scheduled-µs/step")
				b.ReportMetric(100*(scheduled/alone-1), "%overhead")
				endWith()
				endWithout()
				if err := s.Close(); err != nil {
					b.Error(err)
				}
			})
		}
	}
}

const blockSteps = 50

// lone is a training on one replica that is ready for its first step, and what ends it.
func lone(b *testing.B, args []string, env agent.Environment) (r *trainer, end func()) {
	b.Helper()
	r, _, err := newTrainer(testOptions(b, args...), env, io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	if r.ring, err = joinRing(b.Context(), "", 0, 1); err != nil {
		b.Fatal(err)
	}
	r.agent = agent.Dial(env)
	follow := r.orders.follow(r.agent, func() {})
	r.window.since = time.Now()
	return r, func() {
		follow()
		r.agent.Close()
	}
}

// quick is what nine tenths exceed.
func quick(seconds []float64) float64 {
	slices.Sort(seconds)
	return seconds[len(seconds)/10]
}

// block takes some steps.
func block(b *testing.B, r *trainer) (seconds float64) {
	began := time.Now()
	for range blockSteps {
		if _, err := r.step(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := r.account(false); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began).Seconds()
}
