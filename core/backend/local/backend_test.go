package local

import (
	stdcmp "cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
)

// jumpingClock is at the moment that is waited for as soon as it is waited for.
type jumpingClock struct{ now time.Time }

func (c *jumpingClock) Now() time.Time { return c.now }

func (c *jumpingClock) After(d time.Duration) <-chan time.Time {
	c.now = c.now.Add(d)
	rung := make(chan time.Time, 1)
	rung <- c.now
	return rung
}

var discard = slog.New(slog.DiscardHandler)

// commands are jobs that are submitted at once, on one replica.
func commands(list ...workload.Job) *workload.Workload {
	w := &workload.Workload{Jobs: list}
	for i := range list {
		s := &list[i].Spec
		s.ID, s.Weight = core.JobID(i), 1
		s.Requested = max(s.Requested, 1)
		s.MinReplicas, s.MaxReplicas = stdcmp.Or(s.MinReplicas, s.Requested), stdcmp.Or(s.MaxReplicas, s.Requested)
	}
	return w
}

func command(name string, args ...string) workload.Job {
	return workload.Job{Spec: core.JobSpec{Name: name, Command: args}}
}

// opened is a backend whose jobs are stopped when the test ends.
func opened(t *testing.T, dir string, clock Clock, w *workload.Workload) *Backend {
	t.Helper()
	b, err := tryOpen(dir, "test", false, clock, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() }) // it may be closed already
	return b
}

func tryOpen(dir, identity string, fresh bool, clock Clock, w *workload.Workload) (*Backend, error) {
	return openWithin(lockWait, dir, identity, fresh, clock, w)
}

// openWithin is tryOpen that waits so long for what another instance holds.
func openWithin(wait time.Duration, dir, identity string, fresh bool, clock Clock, w *workload.Workload) (*Backend, error) {
	o := coretest.Component(New(clock), map[string]any{"grace": "200ms", "retry_delay": "0s"}, discard).(*Opener)
	o.lockWait = wait
	o.For(Run{Dir: dir, Identity: identity, Fresh: fresh})
	b, err := o.Open(context.Background(), machine(), w)
	if err != nil {
		return nil, err
	}
	return b.(*Backend), nil
}

var onEvents = core.Wake{BySeconds: math.Inf(1), OnEvents: true}

// waitLimit is how long a test waits for what must come, on a busy machine too.
const waitLimit = 2 * time.Minute

// seen waits for the next round and lists its events as "kind job".
func seen(t *testing.T, b *Backend) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	o, err := b.Next(ctx, onEvents)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range o.Events {
		if e.Kind != core.JobProgressed {
			list = append(list, e.Kind.String()+" "+b.jobs[e.Job].Spec.Name)
		}
	}
	return list
}

func apply(t *testing.T, b *Backend, changes ...core.Change) {
	t.Helper()
	if err := b.Apply(context.Background(), changes); err != nil {
		t.Fatal(err)
	}
}

// on gives a job the lowest devices of the first node.
func on(id core.JobID, devices int) core.Change {
	return core.Change{Action: core.Start, Job: id, Seats: []core.Seat{{Node: 0, Devices: core.FirstDevices(devices)}}}
}

func logOf(t *testing.T, dir, job, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "jobs", job, "logs", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		job  func(t *testing.T, ledger string) workload.Job
		want string
		runs int
	}{
		"exits with 0": {func(t *testing.T, l string) workload.Job { return worker(t, l, "plain", 1) }, "job_finished j", 1},
		"fails":        {func(*testing.T, string) workload.Job { return command("j", "false") }, "job_failed j", 1},
		"fails and has retries": {func(t *testing.T, l string) workload.Job {
			j := worker(t, l, "fail once", 1)
			j.Process.Retries = 1
			return j
		}, "job_interrupted j", 1},
		"one replica fails": {func(t *testing.T, l string) workload.Job { return worker(t, l, "fail once", 2) }, "job_failed j", 1},
		"leaves a child of its own session": {func(t *testing.T, l string) workload.Job {
			return worker(t, l, "fork", 1)
		}, "job_finished j", 1},
		"no such program": {func(*testing.T, string) workload.Job { return command("j", "no-such-program") }, "job_failed j", 0},
		"no such folder": {func(*testing.T, string) workload.Job {
			j := command("j", "true")
			j.Process.Dir = "/no-such-folder"
			return j
		}, "job_failed j", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := opened(t, dir, realClock{}, commands(tc.job(t, t.TempDir())))
			if diff := cmp.Diff([]string{"job_submitted j"}, seen(t, b)); diff != "" {
				t.Fatalf("first round (-want +got):\n%s", diff)
			}
			apply(t, b, on(0, b.jobs[0].Spec.Requested))
			if diff := cmp.Diff([]string{tc.want}, seen(t, b)); diff != "" {
				t.Errorf("second round (-want +got):\n%s", diff)
			}
			if got := b.jobs[0].run.Number; got != tc.runs {
				t.Errorf("%d runs, want %d", got, tc.runs)
			}
			if left := strays(dir); left != 0 {
				t.Errorf("%d processes are left", left)
			}
			if _, err := b.Next(context.Background(), onEvents); !errors.Is(err, io.EOF) {
				t.Errorf("after the last job: %v, want the end", err)
			}
		})
	}
}

// worker is a job that works for 50 ms.
func worker(t *testing.T, ledger, kind string, replicas int) workload.Job {
	j := command("j", testProgram(t), "work", ledger, kind, "50")
	j.Spec.Requested = replicas
	return j
}

func strays(dir string) int { return len(keeper.Find(dir)) }

func TestReplicasSeeWhatIsMeantForThem(t *testing.T) {
	t.Setenv("SECRET", "not for jobs")
	t.Setenv("TZ", "UTC")
	dir := t.TempDir()
	j := command("j", "env")
	j.Spec.Requested = 3
	j.Process.Environment = []workload.Variable{{Name: "OWN", Value: "a b"}}
	b := opened(t, dir, realClock{}, commands(j))
	seen(t, b)
	apply(t, b, core.Change{Action: core.Start, Seats: []core.Seat{{Node: 0, Devices: 0b10}, {Node: 1, Devices: 0b11}}})
	seen(t, b)
	for rank, device := range []string{"1", "2", "3"} {
		text := logOf(t, dir, "j", string(rune('0'+rank))+".out")
		for _, want := range []string{
			"OWN=a b\n", "TZ=UTC\n", "QUARTET_JOB=j\n", "QUARTET_RANK=" + string(rune('0'+rank)) + "\n", "QUARTET_REPLICAS=3\n",
			"QUARTET_NODES=2\n", "CUDA_VISIBLE_DEVICES=" + device + "\n", "QUARTET_AGENT=" + filepath.Join(dir, "agent.sock") + "\n",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("rank %d does not see %q:\n%s", rank, want, text)
			}
		}
		if strings.Contains(text, "SECRET") || strings.Contains(text, keeper.Variable) {
			t.Errorf("rank %d sees what is not for it:\n%s", rank, text)
		}
	}
}

func TestStopKillsAJobThatDoesNotListen(t *testing.T) {
	t.Parallel()
	dir, ledger := t.TempDir(), t.TempDir()
	b := opened(t, dir, realClock{}, commands(command("j", testProgram(t), "work", ledger, "deaf", "60000")))
	seen(t, b)
	apply(t, b, on(0, 1))
	for len(lines(t, ledger, "begun")) == 0 {
		time.Sleep(time.Millisecond)
	}
	started := b.elapsed()
	apply(t, b, core.Change{Action: core.Stop})
	settled(t, b)
	if took := b.elapsed() - started; took < 0.2 {
		t.Errorf("stopped after %v s, before the grace was over", took)
	}
	if left := strays(dir); left != 0 {
		t.Errorf("%d processes are left", left)
	}
}

// settled waits until what runs is what is decided.
func settled(t *testing.T, b *Backend) {
	t.Helper()
	unsettled := func(j *job) bool { return j.live() && !j.wanted() || j.due(b.journal.Rounds()) }
	for slices.ContainsFunc(b.jobs, unsettled) {
		if err := b.look(b.elapsed()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestADeviceIsNotTakenBeforeItIsLeft(t *testing.T) {
	t.Parallel()
	ledger := t.TempDir()
	b := opened(t, t.TempDir(), realClock{}, commands(
		command("deaf", testProgram(t), "work", ledger, "deaf", "60000"), command("next", testProgram(t), "work", ledger, "plain", "0"),
	))
	seen(t, b)
	apply(t, b, on(0, 1))
	for len(lines(t, ledger, "begun")) == 0 {
		time.Sleep(time.Millisecond)
	}
	apply(t, b, core.Change{Action: core.Stop, Job: 0}, on(1, 1))
	if b.jobs[1].live() {
		t.Error("started on a device that is taken")
	}
	if diff := cmp.Diff([]string{"job_finished next"}, seen(t, b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if wrong := lines(t, ledger, "violations"); len(wrong) > 0 {
		t.Errorf("run twice at once: %q", wrong)
	}
}

func TestApplyingTwiceHasTheEffectOfOnce(t *testing.T) {
	ledger := t.TempDir()
	b := opened(t, t.TempDir(), realClock{}, commands(command("j", testProgram(t), "work", ledger, "plain", "60000")))
	seen(t, b)
	apply(t, b, on(0, 1))
	apply(t, b, on(0, 1))
	if got := b.jobs[0].run.Number; got != 1 {
		t.Errorf("%d runs, want 1", got)
	}
	if err := b.Apply(context.Background(), []core.Change{{Action: core.Start, Job: 7}}); err == nil {
		t.Error("an unknown job is started")
	}
}

func TestKeeperIsKilled(t *testing.T) {
	t.Parallel()
	dir, ledger := t.TempDir(), t.TempDir()
	b := opened(t, dir, realClock{}, commands(worker(t, ledger, "fork openly", 2)))
	b.jobs[0].Spec.Command[4] = "60000"
	seen(t, b)
	apply(t, b, on(0, 2))
	for len(lines(t, ledger, "begun")) < 4 { // two replicas and a child of each
		time.Sleep(time.Millisecond)
	}
	b.jobs[0].run.Keeper.Kill()
	if diff := cmp.Diff([]string{"job_interrupted j"}, seen(t, b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left := strays(dir); left != 0 {
		t.Errorf("%d processes are left", left)
	}
}

func TestRoundsAreOnTheGrid(t *testing.T) {
	w := commands(command("a", "true"), command("b", "true"))
	w.Jobs[0].Spec.SubmitSeconds, w.Jobs[1].Spec.SubmitSeconds = 5, 130
	cases := map[string]struct {
		wake core.Wake
		want []float64
	}{
		"interval":            {core.Wake{BySeconds: math.Inf(1), IntervalSeconds: 60}, []float64{60, 180}},
		"events":              {core.Wake{BySeconds: math.Inf(1), IntervalSeconds: 60, OnEvents: true}, []float64{5, 130}},
		"earlier than events": {core.Wake{BySeconds: 3, IntervalSeconds: 2}, []float64{4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := opened(t, t.TempDir(), &jumpingClock{now: time.Unix(1e9, 0)}, w)
			for _, want := range tc.want {
				o, err := b.Next(context.Background(), tc.wake)
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(o.NowSeconds-want) > 0.01 || o.NowSeconds < want {
					t.Errorf("a round at %v s, want %v s", o.NowSeconds, want)
				}
				apply(t, b)
			}
		})
	}
}

// The last job's end waits for the grid like any other event, and the run for it.
func TestTheLastEndIsTold(t *testing.T) {
	b := opened(t, t.TempDir(), realClock{}, commands(command("j", "true")))
	wake := core.Wake{BySeconds: math.Inf(1), IntervalSeconds: 0.3}
	for _, want := range []core.EventKind{core.JobSubmitted, core.JobFinished} {
		o, err := b.Next(context.Background(), wake)
		if err != nil {
			t.Fatal(err)
		}
		if last := o.Events[len(o.Events)-1]; last.Kind != want {
			t.Fatalf("got %v, want %v", last.Kind, want)
		}
		apply(t, b, on(0, 1))
	}
	if _, err := b.Next(context.Background(), wake); !errors.Is(err, io.EOF) {
		t.Errorf("after the last job: %v, want the end", err)
	}
}

func TestClockIsSetBack(t *testing.T) {
	dir, clock := t.TempDir(), &jumpingClock{now: time.Unix(1e9, 0)}
	w := commands(command("a", "true"), command("b", "true"))
	w.Jobs[0].Spec.SubmitSeconds, w.Jobs[1].Spec.SubmitSeconds = 100, 200
	b := opened(t, dir, clock, w)
	seen(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	clock.now = time.Unix(1e9-5000, 0)
	b = opened(t, dir, clock, w)
	for _, want := range []string{"job_submitted a", "job_submitted b"} {
		before := b.now
		if diff := cmp.Diff([]string{want}, seen(t, b)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if b.now < before {
			t.Errorf("time went back from %v to %v s", before, b.now)
		}
		apply(t, b)
	}
}

func TestReportsReachThePipeline(t *testing.T) {
	t.Parallel()
	j := command("j", "sleep", "60")
	j.Spec.TotalWork = 100
	b := opened(t, t.TempDir(), realClock{}, commands(j))
	seen(t, b)
	apply(t, b, on(0, 2))
	c := agent.Dial(agent.Environment{Job: "j", Replicas: 2, Socket: filepath.Join(b.dir, "agent.sock")})
	defer c.Close()
	if err := c.Report(agent.Report{
		Replicas: 2, Nodes: 1, BatchPerDevice: 8, PassSeconds: 0.1, StepSeconds: 0.2, GradientSquare: 3, GradientVariance: 4, Progress: 20,
	}); err != nil {
		t.Fatal(err)
	}
	o, err := b.Next(context.Background(), onEvents)
	if err != nil {
		t.Fatal(err)
	}
	var progress float64
	var measured []core.Event
	for _, e := range o.Events {
		switch e.Kind {
		case core.JobProgressed:
			progress = e.Progress
		case core.JobMeasured:
			measured = append(measured, e)
		}
	}
	if progress != 20 {
		t.Errorf("progress %v, want 20", progress)
	}
	want := core.Measurement{Nodes: 1, Replicas: 2, PerDevice: 8, PassSeconds: 0.1, StepSeconds: 0.2}
	if len(measured) != 1 || measured[0].Measurement != want || measured[0].Gradients != (core.Gradients{SquaredNorm: 3, Variance: 4}) {
		t.Errorf("measured %+v, want %+v once", measured, want)
	}
	for step, value := range []float64{1, math.NaN(), math.Inf(-1)} {
		if err := c.Metric("loss", float64(step), value); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Checkpointed(30); err != nil {
		t.Fatal(err)
	}
	for !b.jobs[0].reported.checkpointed {
		b.listen(b.elapsed())
		time.Sleep(time.Millisecond)
	}
	var losses []float64
	for i := range b.events {
		if e := &b.events[i]; e.Kind == core.JobReported && e.Metric == "loss" {
			losses = append(losses, e.Value)
		}
	}
	if diff := cmp.Diff([]float64{1, math.NaN(), math.NaN()}, losses, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("reported losses (-want +got):\n%s", diff)
	}
	apply(t, b, core.Change{Action: core.Stop})
	if got := b.jobs[0].progress; got != 30 {
		t.Errorf("progress after the stop %v, want that of the checkpoint, 30", got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	jobs := func() *workload.Workload { return commands(command("j", "sleep", "60")) }
	cases := map[string]struct {
		prepare func(t *testing.T, dir string)
		w       *workload.Workload
		want    string
	}{
		"no command":     {nil, commands(command("j")), `job "j" has no command`},
		"path traversal": {nil, commands(command("../j", "true")), `job "../j" has a name that is no plain file name`},
		"another scheduler": {
			func(t *testing.T, dir string) { opened(t, dir, realClock{}, jobs()) }, jobs(),
			"another scheduler runs on this store",
		},
		"another run": {func(t *testing.T, dir string) {
			b, err := tryOpen(dir, "test", false, realClock{}, commands(command("other", "sleep", "60")))
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}, jobs(), `job "other" is missing, with which the run began`},
		"a store cut short": {func(t *testing.T, dir string) {
			b := opened(t, dir, realClock{}, jobs())
			seen(t, b)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "state.db")
			if err := os.Truncate(path, 9000); err != nil {
				t.Fatal(err)
			}
		}, jobs(), "the store is damaged"},
		"no store at all": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "state.db"), []byte(strings.Repeat("garbage ", 4096)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, jobs(), "the store is damaged"},
		"too long a path": {func(*testing.T, string) {}, jobs(), "too long a path for a socket"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if strings.Contains(name, "too long") {
				dir = filepath.Join(dir, strings.Repeat("x", longestSocket))
			}
			if tc.prepare != nil {
				tc.prepare(t, dir)
			}
			_, err := openWithin(0, dir, "test", false, realClock{}, tc.w)
			if _, refused := errors.AsType[core.Diagnostics](err); !refused || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want diagnostics with %q", err, tc.want)
			}
			if !strings.Contains(tc.want, "damaged") && !strings.Contains(tc.want, "the run began") {
				return
			}
			b, err := tryOpen(dir, "test", true, realClock{}, tc.w)
			if err != nil {
				t.Fatalf("a fresh run is refused too: %v", err)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What was decided is told again, and stands: whether a policy repeats itself is the pipeline's to see.
func TestADecisionIsToldAgain(t *testing.T) {
	for name, same := range map[string]bool{"test": true, "other": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := commands(command("j", "sleep", "60"))
			b := opened(t, dir, realClock{}, w)
			seen(t, b)
			apply(t, b, on(0, 1))
			abandon(t, b)
			b, err := tryOpen(dir, name, false, realClock{}, w)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			o, err := b.Next(t.Context(), core.Wake{BySeconds: math.Inf(1)})
			if err != nil || o.Decided == nil {
				t.Fatalf("got %+v, error %v, want what was decided", o, err)
			}
			if diff := cmp.Diff([]core.Change{on(0, 1)}, o.Decided.Changes); diff != "" || o.Decided.Same != same {
				t.Errorf("by the same composition: %v, want %v; changes (-want +got):\n%s", o.Decided.Same, same, diff)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	_, problems := New(realClock{}).Decode(map[string]any{"environment": []any{"QUARTET_JOB", "a b", "FINE"}})
	var got []string
	for _, p := range problems {
		got = append(got, p.String())
	}
	want := []string{
		`environment[0]: "QUARTET_JOB" cannot be handed down`, `environment[1]: "a b" cannot be handed down`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
