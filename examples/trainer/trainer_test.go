package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/goodput"
)

func testOptions(t testing.TB, args ...string) *options {
	t.Helper()
	o, err := readOptions(args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// meeting is a folder for sockets: that of a test may be too long a path.
func meeting(t testing.TB) string {
	folder, err := os.MkdirTemp("", "ring")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}

// trainAll runs all replicas of a training as env describes the first, and returns how each of them ended.
func trainAll(t *testing.T, ctx context.Context, o *options, env agent.Environment) []error {
	t.Helper()
	env.Job, env.Nodes, env.Rendezvous = "train", 1, meeting(t)
	ends := make([]chan error, env.Replicas)
	for rank := range ends {
		env, end := env, make(chan error, 1)
		env.Rank, ends[rank] = rank, end
		go func() { end <- train(ctx, o, env, io.Discard) }()
	}
	errs := make([]error, len(ends))
	for rank, end := range ends {
		errs[rank] = <-end
	}
	return errs
}

// trained is the state that a training to the end leaves in a folder.
func trained(t *testing.T, o *options, replicas int, folder string) *state {
	t.Helper()
	for rank, err := range trainAll(t, t.Context(), o, agent.Environment{Replicas: replicas, Checkpoint: folder}) {
		if err != nil {
			t.Errorf("replica %d: %v", rank, err)
		}
	}
	return loaded(t, o, folder)
}

func loaded(t *testing.T, o *options, folder string) *state {
	t.Helper()
	s, found, err := load(folder, &o.task, newModel(&o.task).parameters())
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	return s
}

func lossOf(o *options, s *state) float64 {
	return newModel(&o.task).meanLoss(s.Parameters, makeData(&o.task))
}

// A training takes the same steps on any number of replicas and through any resizes: its losses are equal to the last
// bit, where 1e-9 was asked for.
func TestReplicasDoNotMatter(t *testing.T) {
	for _, model := range []string{modelSoftmax, modelMLP} {
		t.Run(model, func(t *testing.T) {
			const total = "150"
			args := []string{"-model", model, "-batch", "60", "-samples", "1000"}
			o := testOptions(t, append(args, "-iterations", total)...)
			want := trained(t, o, 1, t.TempDir())
			if first, last := newModel(&o.task).meanLoss(newModel(&o.task).start(o.Seed), makeData(&o.task)), lossOf(o, want); last > 0.8*first {
				t.Errorf("loss %v after the training, %v before", last, first)
			}
			check := func(name string, got *state) {
				t.Helper()
				if !cmp.Equal(got.Parameters, want.Parameters) || lossOf(o, got) != lossOf(o, want) {
					t.Errorf("%s: loss %v, want %v", name, lossOf(o, got), lossOf(o, want))
				}
				if got.Step != want.Step || got.Samples != want.Samples || got.Progress != want.Progress {
					t.Errorf("%s: step %d, %d samples, progress %v; want %d, %d, %v", name, got.Step, got.Samples, got.Progress, want.Step, want.Samples, want.Progress)
				}
			}
			check("two replicas", trained(t, o, 2, t.TempDir()))
			check("four replicas", trained(t, o, 4, t.TempDir()))
			check("seven replicas, of unequal shares", trained(t, o, 7, t.TempDir()))
			folder := t.TempDir()
			trained(t, testOptions(t, append(args, "-iterations", "40")...), 4, folder)
			trained(t, testOptions(t, append(args, "-iterations", "95")...), 1, folder)
			check("two resizes", trained(t, o, 3, folder))
		})
	}
}

// Another split of the same batch changes nothing either, whenever the scheduler tells of it.
func TestTuningKeepsTheSteps(t *testing.T) {
	o := testOptions(t, "-batch", "60", "-samples", "1000", "-iterations", "150")
	want := trained(t, o, 1, t.TempDir())
	for name, tuning := range map[string]agent.Tuning{
		"accumulation":   {BatchPerDevice: 15, AccumulationSteps: 1, LearningRateFactor: 1},
		"unequal shares": {BatchPerDevice: 30, LearningRateFactor: 1, BatchByReplica: []int{47, 13}},
		"an idle one":    {BatchPerDevice: 30, LearningRateFactor: 1, BatchByReplica: []int{0, 60}},
		"nonsense":       {BatchByReplica: []int{0, 0}, AccumulationSteps: 5},
	} {
		t.Run(name, func(t *testing.T) {
			s, path := schedule(t)
			if _, err := s.Send("train", agent.ToJob{Tuning: &tuning}); err != nil {
				t.Fatal(err)
			}
			go drain(s)
			folder := t.TempDir()
			for _, err := range trainAll(t, t.Context(), o, agent.Environment{Replicas: 2, Checkpoint: folder, Socket: path}) {
				if err != nil {
					t.Error(err)
				}
			}
			if got := loaded(t, o, folder); !cmp.Equal(got.Parameters, want.Parameters) {
				t.Errorf("loss %v, want %v", lossOf(o, got), lossOf(o, want))
			}
		})
	}
}

func schedule(t *testing.T) (s *agent.Server, path string) {
	t.Helper()
	path = filepath.Join(meeting(t), "agent.sock")
	s, err := agent.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.Expect("train")
	return s, path
}

func drain(s *agent.Server) {
	for range s.Events() { //nolint:revive // nobody is interested
	}
}

// A training tells how it does, follows its tuning, stops when told, and goes on elsewhere until it is done.
func TestTrainingUnderAScheduler(t *testing.T) {
	const batch = 64
	o := testOptions(t, "-report-every", "0", "-checkpoint-every", "0", "-iterations", "1e9", "-batch", "64")
	s, path := schedule(t)
	folder := t.TempDir()
	ended := make(chan []error, 1)
	start := func(o *options, replicas int) {
		go func() {
			ended <- trainAll(t, t.Context(), o, agent.Environment{Replicas: replicas, Checkpoint: folder, Socket: path})
		}()
	}
	tell := func(m agent.ToJob) {
		t.Helper()
		if _, err := s.Send("train", m); err != nil {
			t.Error(err)
		}
	}
	until := func(want func(e agent.Event) bool) agent.Event {
		for e := range s.Events() {
			if e.Err != nil {
				t.Error(e.Err)
			}
			if want(e) {
				return e
			}
		}
		panic("the server was closed")
	}
	hasReport := func(e agent.Event) bool { return e.Report != nil }
	hasLoss := func(e agent.Event) bool { return len(e.Metrics) > 0 && e.Metrics[0].Name == "loss" }

	start(o, 2)
	r := until(hasReport).Report
	if r.Replicas != 2 || r.BatchPerDevice != batch/2 || !(r.PassSeconds > 0) || !(r.StepSeconds > r.PassSeconds) || !(r.Progress > 0) || !(r.GradientVariance > 0) {
		t.Errorf("report %+v", r)
	}
	early := until(hasLoss).Metrics[0]
	tell(agent.ToJob{Tuning: &agent.Tuning{BatchPerDevice: 48, AccumulationSteps: 1, LearningRateFactor: 1.7}})
	until(func(e agent.Event) bool { return e.Report != nil && e.Report.BatchPerDevice == 48 })
	tell(agent.ToJob{Checkpoint: &agent.Checkpoint{}})
	first := until(func(e agent.Event) bool { return e.Checkpointed != nil }).Checkpointed.Progress
	tell(agent.ToJob{Stop: &agent.Stop{GraceSeconds: 10}})
	last := until(func(e agent.Event) bool { return e.Checkpointed != nil && e.Checkpointed.Progress > first }).Checkpointed.Progress
	until(func(e agent.Event) bool { return e.Gone })
	for rank, err := range <-ended {
		if !errors.Is(err, errStopped) {
			t.Errorf("replica %d ended with %v", rank, err)
		}
	}
	stopped := loaded(t, o, folder)
	if stopped.Progress != last {
		t.Errorf("progress %v in the checkpoint, %v told", stopped.Progress, last)
	}

	s.Expect("train")
	more := *o
	more.Iterations = math.Ceil(last) + 20
	start(&more, 3)
	// The training is short: what it reports may come together, and no more comes after it is done.
	var report *agent.Report
	var late agent.Metric
	until(func(e agent.Event) bool {
		if report == nil {
			report = e.Report
		}
		if hasLoss(e) {
			late = e.Metrics[0]
		}
		return e.Done != nil
	})
	if report == nil || report.Replicas != 3 || report.Progress <= last || report.Progress > more.Iterations+1 {
		t.Errorf("report %+v after the resize", report)
	}
	if !(late.Step > early.Step) || !(late.Value > 0) || !(early.Value > 0) {
		t.Errorf("loss %+v at first and %+v at last", early, late)
	}
	for rank, err := range <-ended {
		if err != nil {
			t.Errorf("replica %d ended with %v", rank, err)
		}
	}
}

// paced is a profile of ten iterations, and a file of it.
func paced(t *testing.T) (profile goodput.Profile, file string) {
	t.Helper()
	profile = goodput.Profile{
		Version: 1, Name: "paced", Batch: goodput.BatchLimits{Initial: 100, Max: 400, MinPerDevice: 10, MaxPerDevice: 100},
		MaxReplicas: 4, Epochs: 2, IterationsPerEpoch: 5,
		Performance: goodput.Performance{AlphaGrad: 0.01, BetaGrad: 0.001, AlphaNode: 0.2, BetaNode: 0.1, AlphaLocal: 0.04, BetaLocal: 0.02, Gamma: 1.5},
		Noise:       []goodput.NoisePoint{{Progress: 0.5, Samples: 300}},
	}
	file = filepath.Join(t.TempDir(), "paced.yaml")
	if err := os.WriteFile(file, profile.YAML(), 0o600); err != nil {
		t.Fatal(err)
	}
	return profile, file
}

// Steps of the profile that are taken together come to the same work in no less time, and starting takes its time too.
func TestStepsTogether(t *testing.T) {
	profile, file := paced(t)
	folder := t.TempDir()
	o := testOptions(t, "-profile", file, "-speedup", "100", "-least-step", "5ms", "-start-up", "20s")
	begin := time.Now()
	got := trained(t, o, 2, folder)
	took := time.Since(begin).Seconds()
	if got.Step != 10 || got.Samples != 1000 || got.Progress != 10 {
		t.Errorf("%d steps, %d samples, progress %v; want 10, 1000, 10", got.Step, got.Samples, got.Progress)
	}
	const coarse = 0.01 // the system's clock for files ticks so often
	if least := (20+10*profile.Performance.StepTime(1, 2, 50, 0))/100 - coarse; took < least {
		t.Errorf("took %v s, the profile says %v", took, least)
	}
	p := pacer{profile: &profile, nodes: 1, replicas: 2, speedup: 100, least: 5 * time.Millisecond}
	s := initial(100, 2)
	for left, want := range map[float64]int{1000: 7, 10: 7, 2.5: 3, 0.1: 1, 0: 1} {
		if p.plan(&s, left); p.together != want {
			t.Errorf("%d steps at once with %v left, want %d", p.together, left, want)
		}
	}
}

// A paced training takes no less than the time of its profile, whose noise it reports, and does not wait it out when it
// is stopped.
func TestPaced(t *testing.T) {
	profile, file := paced(t)
	o := testOptions(t, "-profile", file, "-speedup", "4", "-report-every", "0", "-stand-in", "8")
	if o.Batch != 100 || o.Iterations != 10 {
		t.Errorf("batch %d, %v iterations, want those of the profile", o.Batch, o.Iterations)
	}
	s, path := schedule(t)
	ended := make(chan []error, 1)
	begin := time.Now()
	go func() {
		ended <- trainAll(t, t.Context(), o, agent.Environment{Replicas: 2, Socket: path})
	}()
	reports := 0
	for e := range s.Events() {
		if r := e.Report; r != nil {
			reports++
			if r.GradientSquare != 1 || r.GradientVariance != 3 {
				t.Errorf("statistics %v and %v, want those of the profile", r.GradientSquare, r.GradientVariance)
			}
		}
		if e.Done != nil {
			break
		}
	}
	if took, least := time.Since(begin).Seconds(), 10*profile.Performance.StepTime(1, 2, 50, 0)/4; took < least {
		t.Errorf("ten steps took %v s, those of the profile %v", took, least)
	}
	if reports == 0 {
		t.Error("no report")
	}
	for _, err := range <-ended {
		if err != nil {
			t.Error(err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	slow := testOptions(t, "-profile", file, "-speedup", "1e-6")
	cancelled := make(chan []error, 1)
	go func() { cancelled <- trainAll(t, ctx, slow, agent.Environment{Replicas: 2}) }()
	cancel()
	for _, err := range <-cancelled {
		if !errors.Is(err, errStopped) {
			t.Errorf("ended with %v", err)
		}
	}
}

func TestCheckpoints(t *testing.T) {
	o := testOptions(t, "-iterations", "3")
	other := testOptions(t, "-iterations", "3", "-features", "5")
	cases := map[string]struct {
		damage func(text []byte) []byte
		o      *options
		want   string
	}{
		"as it is":         {func(text []byte) []byte { return text }, o, ""},
		"cut":              {func(text []byte) []byte { return text[:len(text)/2] }, o, "is damaged"},
		"empty":            {func([]byte) []byte { return nil }, o, "is damaged"},
		"garbage":          {func([]byte) []byte { return []byte("\x00\xff") }, o, "is damaged"},
		"another training": {func(text []byte) []byte { return text }, other, "is of another training"},
		"no parameters":    {func(text []byte) []byte { return []byte(strings.Replace(string(text), `"parameters"`, `"others"`, 1)) }, o, "is of another training"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			trained(t, o, 1, folder)
			path := filepath.Join(folder, checkpointFile)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, tc.damage(text), 0o600); err != nil {
				t.Fatal(err)
			}
			err = trainAll(t, t.Context(), tc.o, agent.Environment{Replicas: 1, Checkpoint: folder})[0]
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	t.Run("a folder that is not", func(t *testing.T) {
		err := trainAll(t, t.Context(), o, agent.Environment{Replicas: 1, Checkpoint: filepath.Join(t.TempDir(), "none")})[0]
		if err == nil || !strings.Contains(err.Error(), "make a checkpoint") {
			t.Errorf("error %v", err)
		}
	})
}
