package local

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/core/workload"
)

// traced is a job of a trace: it has no command, and runs for so many seconds on two replicas.
func traced(name string, seconds float64) workload.Job {
	return workload.Job{
		Spec:  core.JobSpec{Name: name, Requested: 2, TotalWork: seconds},
		Model: workload.NewDurationModel(seconds, 2),
	}
}

// training is a job of a trace that goes by a profile.
type training struct{ workload.Model }

func (training) Profile() *goodput.Profile { return &goodput.Profile{Version: 1, Name: "net"} }

// Measure tells twice the batch as the seconds of a step.
func (training) Measure(_ int, c workload.Running) (core.Measurement, core.Gradients, bool) {
	b := c.Tuning.BatchPerDevice
	return core.Measurement{Nodes: len(c.Shape), Replicas: c.Replicas, PerDevice: b, PassSeconds: float64(b), StepSeconds: float64(2 * b)},
		core.Gradients{SquaredNorm: 1, Variance: 3}, true
}

// fast is a backend whose time passes a hundred times as fast.
func fast(t *testing.T, dir string, settings map[string]any, w *workload.Workload) (*Backend, error) {
	t.Helper()
	raw := map[string]any{"grace": "5s", "speedup": 100.0}
	maps.Copy(raw, settings)
	o := coretest.Component(New(realClock{}), raw, discard).(*Opener)
	o.For(Run{Dir: dir, Identity: "test"})
	opened, err := o.Open(context.Background(), machine(), w)
	if err != nil {
		return nil, err
	}
	b := opened.(*Backend)
	t.Cleanup(func() { _ = b.Close() }) // it may be closed already
	return b, nil
}

func mustFast(t *testing.T, dir string, settings map[string]any, w *workload.Workload) *Backend {
	t.Helper()
	b, err := fast(t, dir, settings, w)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// until waits for an event of a job.
func until(t *testing.T, b *Backend, kind core.EventKind) core.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		o, err := b.Next(ctx, core.Wake{BySeconds: b.elapsed() + 1, OnEvents: true})
		if err != nil {
			t.Fatalf("waiting for %v: %v", kind, err)
		}
		for _, e := range o.Events {
			if e.Kind == kind {
				return e
			}
		}
	}
}

func TestAStandInTakesItsTime(t *testing.T) {
	dir := t.TempDir()
	b := mustFast(t, dir, nil, commands(traced("j", 60)))
	submitted := until(t, b, core.JobSubmitted)
	apply(t, b, on(0, 2))
	finished := until(t, b, core.JobFinished)
	if took := finished.AtSeconds - submitted.AtSeconds; took < 60 {
		t.Errorf("60 s of work were done in %v s", took)
	}
	if left := strays(dir); left != 0 {
		t.Errorf("%d processes are left", left)
	}
}

// Jobs that are stopped with their scheduler have not failed, however late their keepers are told: they go on.
func TestWhatIsStoppedWithTheSchedulerDoesNotFail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := commands(traced("a", 1e6), traced("b", 1e6), traced("c", 1e6), traced("d", 1e6))
	b := mustFast(t, dir, nil, w)
	until(t, b, core.JobSubmitted)
	var starts []core.Change
	for id := range 4 {
		starts = append(starts, core.Change{Round: 1, Action: core.Start, Job: core.JobID(id), Seats: []core.Seat{
			{Node: core.NodeID(id / 2), Devices: core.FirstDevices(id%2+1) &^ core.FirstDevices(id%2)},
		}})
	}
	apply(t, b, starts...)
	for _, j := range b.jobs {
		for !j.spoke {
			b.listen(b.elapsed())
			time.Sleep(time.Millisecond)
		}
	}
	signal := func(s syscall.Signal) {
		for _, j := range b.jobs {
			if err := syscall.Kill(j.run.Keeper.PID, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	signal(syscall.SIGSTOP)
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	replica := func(p keeper.Found) bool { return !p.Keeper }
	for slices.ContainsFunc(keeper.Find(dir), replica) { // they do as they are asked
		time.Sleep(time.Millisecond)
	}
	signal(syscall.SIGCONT)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	b = mustFast(t, dir, nil, w)
	b.wakeUp()
	for _, j := range b.jobs {
		e, _, err := keeper.FinalReport(b.runFolder(j, j.run.Number))
		if diff := cmp.Diff(keeper.Exit{Outcome: keeper.Stopped, Codes: []int{standInStopped}}, e); diff != "" || err != nil {
			t.Errorf("job %q: error %v, final report (-want +got):\n%s", j.Spec.Name, err, diff)
		}
	}
}

func TestAStandInGoesOnWhereItWasStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := mustFast(t, dir, nil, commands(traced("j", 1e6)))
	until(t, b, core.JobSubmitted)
	apply(t, b, on(0, 2))
	done := func() (done float64) {
		if err := keeper.ReadFile(filepath.Join(dir, "jobs", "j", "checkpoint", progressFile), &done); err != nil {
			t.Fatal(err)
		}
		return done
	}
	for b.jobs[0].progress == 0 {
		until(t, b, core.JobProgressed)
	}
	apply(t, b, core.Change{Action: core.Stop})
	settled(t, b)
	first := done()
	if first < 1 || b.jobs[0].progress != first {
		t.Errorf("progress %v, the checkpoint holds %v", b.jobs[0].progress, first)
	}
	apply(t, b, on(0, 1))
	for b.jobs[0].progress <= first {
		until(t, b, core.JobProgressed)
	}
	apply(t, b, core.Change{Action: core.Stop})
	settled(t, b)
	if second := done(); second <= first {
		t.Errorf("%v was done, and then %v", first, second)
	}
	if text := logOf(t, dir, "j", "0.err"); text != "" {
		t.Errorf("it complains: %s", text)
	}
}

func TestAStandInReceivesTunings(t *testing.T) {
	t.Parallel()
	j := traced("j", 1e6)
	j.Model = training{j.Model}
	b := mustFast(t, t.TempDir(), nil, commands(j))
	until(t, b, core.JobSubmitted)
	start := on(0, 2)
	for _, batch := range []int{16, 64} {
		start.Tuning = core.Tuning{BatchPerDevice: batch}
		apply(t, b, start)
		start.Action = core.Tune
		want := core.Measurement{Nodes: 1, Replicas: 2, PerDevice: batch, PassSeconds: float64(batch), StepSeconds: float64(2 * batch)}
		e := until(t, b, core.JobMeasured)
		for e.Measurement.PerDevice != batch && batch > 16 {
			e = until(t, b, core.JobMeasured) // of what it ran on before it was told
		}
		if diff := cmp.Diff(want, e.Measurement); diff != "" {
			t.Errorf("measured (-want +got):\n%s", diff)
		}
		if want := (core.Gradients{SquaredNorm: 1, Variance: 3}); e.Gradients != want {
			t.Errorf("gradients %v, want %v", e.Gradients, want)
		}
	}
}

func TestCommandsStandIn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := traced("net-1", 90.5)
	j.Spec.Application, j.Spec.Batch.Requested = "net", 64
	j.Model = training{j.Model}
	other := traced("other", 90.5)
	b := mustFast(t, dir, map[string]any{
		"stand_in": []any{"echo", "{name}:{application}", "{profile}", "{work} {replicas} {batch} {speedup} {} {X}"},
	}, commands(j))
	until(t, b, core.JobSubmitted)
	apply(t, b, on(0, 2))
	until(t, b, core.JobFinished)
	profile := filepath.Join(dir, "jobs", "net-1", "profile.yaml")
	if got, want := logOf(t, dir, "net-1", "1.out"), "net-1:net "+profile+" 90.5 2 64 100 {} {X}\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `name: "net"`) {
		t.Errorf("profile:\n%s", text)
	}
	b = mustFast(t, t.TempDir(), map[string]any{"stand_in": []any{"echo", "{seconds}"}}, commands(other))
	until(t, b, core.JobSubmitted)
	apply(t, b, on(0, 1))
	until(t, b, core.JobFinished)
	if got := logOf(t, b.dir, "other", "0.out"); got != "90.5\n" {
		t.Errorf("said %q", got)
	}
}

func TestWhatAJobHasNotCannotBeFilledIn(t *testing.T) {
	j, command := traced("j", 90), command("own", "true")
	_, err := fast(t, t.TempDir(), map[string]any{
		"stand_in": []any{"echo", "{application}{profile}", "{batch}", "{batch}{seconds}"},
	}, commands(j, command))
	want := `job "j" has no {application}; backend.config.stand_in asks for it
job "j" has no {profile}; backend.config.stand_in asks for it
job "j" has no {batch}; backend.config.stand_in asks for it`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestStandInsAreChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		command []string
		want    string
	}{
		"a placeholder mistyped": {[]string{"echo", "{applications}"}, `stand_in: nothing is known as {applications}; did you mean "application"? valid placeholders: name, application, profile, work, seconds, replicas, batch, speedup`},
		"no program":             {[]string{"", "{name}"}, "stand_in: names no program"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := (Config{StandIn: tc.command}).Validate(); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestPaceIsThatOfTheModel(t *testing.T) {
	got := paceOf(training{workload.NewDurationModel(100, 4)}, workload.Running{
		Shape: []int{1, 1}, Replicas: 2, Tuning: core.Tuning{BatchPerDevice: 10},
	}, 5)
	want := &pace{Speedup: 5, Phases: []phase{{End: 100, Rate: 0.5, Report: agent.Report{
		Replicas: 2, Nodes: 2, BatchPerDevice: 10, PassSeconds: 2, StepSeconds: 4, GradientSquare: 1, GradientVariance: 3,
	}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := json.Marshal(paceOf(workload.NewDurationModel(100, 4), workload.Running{}, 1)); err != nil {
		t.Errorf("a job that cannot run: %v", err)
	}
	stuck := pacer{pace: pace{Speedup: 1, Phases: []phase{{End: 1}}}}
	if at := stuck.ends(stuck.phase()); at.Sub(stuck.asOf) < time.Hour || math.IsInf(at.Sub(stuck.asOf).Seconds(), 0) {
		t.Errorf("a job that does not go on ends at %v", at)
	}
}
