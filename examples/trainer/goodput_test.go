package main

import (
	"flag"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/goodput"
)

// figures makes the tests of this file measure all that docs/results tells.
var figures = flag.Bool("figures", false, "measure every profile, and this machine")

// scheduled is a training of several processes under a scheduler, and its job as the pipeline knows it.
type scheduled struct {
	t       *testing.T
	server  *agent.Server
	process *process
	job     *core.Job
	cluster *core.Cluster
}

func startScheduled(t *testing.T, nodes, replicas int, batch core.BatchSpec, args ...string) *scheduled {
	t.Helper()
	server, path := schedule(t)
	s := &scheduled{t: t, server: server, process: command(t, append(args, "-replicas", strconv.Itoa(replicas))...)}
	env := agent.Environment{Job: "train", Replicas: replicas, Nodes: nodes, Rendezvous: "its own", Socket: path}
	for _, variable := range env.Variables() {
		if variable != agent.RankVariable+"=0" { // the replicas have ranks, not who starts them
			s.process.Env = append(s.process.Env, variable)
		}
	}
	s.process.Cancel = func() error { return s.process.Process.Signal(syscall.SIGTERM) }
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	s.job = coretest.MakeJob("train").Elastic(1, replicas, replicas).Batch(batch).Work(1e6).Obj()
	s.cluster = coretest.MakeCluster().Nodes(nodes, "cpu", replicas/nodes).Obj()
	return s
}

// report waits for the next report and takes it in as the local backend and the pipeline do: the first time that a
// configuration is measured counts, and the statistics are the latest.
func (s *scheduled) report() (agent.Report, core.Measurement) {
	s.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case e := <-s.server.Events():
			if e.Gone || e.Err != nil {
				s.t.Fatalf("the training went: %v\n%s", e.Err, &s.process.out)
			}
			if e.Report == nil {
				continue
			}
			r := *e.Report
			m := core.Measurement{
				Nodes: r.Nodes, Replicas: r.Replicas, PerDevice: r.BatchPerDevice, PassSeconds: r.PassSeconds, StepSeconds: r.StepSeconds,
			}
			s.job.Gradients = core.Gradients{SquaredNorm: r.GradientSquare, Variance: r.GradientVariance}
			s.job.Progress = r.Progress
			known := func(k core.Measurement) bool { return k.Replicas == m.Replicas && k.PerDevice == m.PerDevice }
			if !slices.ContainsFunc(s.job.Measured, known) {
				s.job.Measured = append(s.job.Measured, m)
			}
			return r, m
		case <-limit:
			s.t.Fatalf("no report within %v", patience)
		}
	}
}

func (s *scheduled) send(m agent.ToJob) {
	s.t.Helper()
	if _, err := s.server.Send("train", m); err != nil {
		s.t.Fatal(err)
	}
}

// measure lets the training run with a batch until it reports of it.
func (s *scheduled) measure(perDevice int) core.Measurement {
	s.send(agent.ToJob{Tuning: &agent.Tuning{BatchPerDevice: perDevice, LearningRateFactor: 1}})
	for {
		if r, m := s.report(); r.BatchPerDevice == perDevice {
			return m
		}
	}
}

func (s *scheduled) stop() {
	s.t.Helper()
	s.send(agent.ToJob{Stop: &agent.Stop{GraceSeconds: killDelay.Seconds()}})
	go drain(s.server)
	s.process.wantExit(s.t, s.process.Wait(), exitStopped)
}

// scale is where a training runs, and its batches per device.
type scale struct {
	nodes, replicas int
	perDevice       []int
}

func measureAll(t *testing.T, batch core.BatchSpec, args []string, scales []scale) []core.Measurement {
	var all []core.Measurement
	for _, at := range scales {
		func() {
			s := startScheduled(t, at.nodes, at.replicas, batch, args...)
			defer s.stop()
			for _, b := range at.perDevice {
				all = append(all, s.measure(b))
			}
		}()
	}
	return all
}

// worst compares what a model predicts with what was measured, and returns the largest error.
func worst(t *testing.T, name string, p goodput.Performance, unseen []core.Measurement) float64 {
	largest := 0.0
	for _, m := range unseen {
		predicted := p.StepTime(m.Nodes, m.Replicas, float64(m.PerDevice), 0)
		off := predicted/m.StepSeconds - 1
		largest = max(largest, math.Abs(off))
		t.Logf("%s: %d nodes, %d replicas, batch %d a device: %.2f ms measured, %.2f ms predicted (%+.1f %%)",
			name, m.Nodes, m.Replicas, m.PerDevice, 1000*m.StepSeconds, 1000*predicted, 100*off)
	}
	return largest
}

// The model that goodput elasticity learns from a training on 1, 2 and 4 replicas tells its step times on others within
// 10 %. The times are those of a profile, which the processes keep on few cores; a machine that is busy with something
// else gets three attempts.
func TestLearnedModelPredictsUnseenReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs the trainer for seconds")
	}
	cases := map[string]struct {
		speedup string
		batches [2]int // seen
		other   int    // not seen
		figures bool
	}{
		"cifar10":     {speedup: "4", batches: [2]int{64, 256}, other: 128},
		"bert":        {speedup: "20", batches: [2]int{4, 12}, other: 8, figures: true},
		"deepspeech2": {speedup: "20", batches: [2]int{10, 40}, other: 20, figures: true},
		"imagenet":    {speedup: "8", batches: [2]int{50, 200}, other: 100, figures: true},
		"yolov3":      {speedup: "15", batches: [2]int{4, 8}, other: 6, figures: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.figures && !*figures {
				t.Skip("measures for docs/results: go test ./examples/trainer -run LearnedModel -figures, on a quiet machine")
			}
			file := filepath.Join("..", "..", "core", "workload", "applications", name+".yaml")
			args := []string{
				"-profile", file, "-speedup", tc.speedup, "-stand-in", "64", "-report-every", "300ms", "-checkpoint-every", "0", "-iterations", "1e9",
			}
			seen, unseen := tc.batches[:], []int{tc.batches[0], tc.other}
			train := []scale{{1, 1, seen}, {1, 2, seen}, {1, 4, seen}}
			test := []scale{{1, 3, unseen}, {1, 6, unseen[:1]}, {1, 8, unseen}}
			if *figures {
				train = append(train, scale{2, 2, seen}, scale{2, 4, seen})
				test = append(test, scale{2, 6, unseen}, scale{2, 8, unseen}, scale{4, 16, unseen})
			}
			const limit, attempts = 0.10, 3
			for attempt := 1; ; attempt++ {
				p := goodput.Fit(measureAll(t, core.BatchSpec{}, args, train))
				off := worst(t, name, p, measureAll(t, core.BatchSpec{}, args, test))
				if off <= limit {
					return
				}
				if attempt == attempts {
					t.Fatalf("predicted %.1f %% off, want %.0f %% at most", 100*off, 100*limit)
				}
			}
		})
	}
}

// Without a profile, one machine's cores soon have other things to do: this is for information.
func TestLearnedModelOnThisMachine(t *testing.T) {
	if !*figures {
		t.Skip("measures for docs/results: go test ./examples/trainer -run LearnedModel -figures, on a quiet machine")
	}
	for _, model := range []string{modelSoftmax, modelMLP} {
		args := []string{"-model", model, "-features", "64", "-hidden", "64", "-report-every", "1s", "-checkpoint-every", "0", "-iterations", "1e9", "-rate", "1e-6"}
		one := measureAll(t, core.BatchSpec{}, args, []scale{{1, 1, []int{64, 1024}}})
		two := measureAll(t, core.BatchSpec{}, args, []scale{{1, 2, []int{64, 256, 1024}}})
		worst(t, model+", from one replica", goodput.Fit(one), two)
		worst(t, model+", from one and two", goodput.Fit(append(one, two[0], two[2])), two[1:2])
	}
}
