package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/placement"
)

// watcher notes what a pipeline is told and decides, as "submitted job", "start job" and so on.
type watcher struct{ lines chan string }

func (w *watcher) ObserveRound(r *core.Report) error {
	for _, e := range r.Events {
		switch e.Kind {
		case core.NodeChanged:
			w.lines <- e.Kind.String() + " " + r.View.Cluster.Nodes[e.Node].Name + " " + e.Health.String()
		case core.JobProgressed:
		default:
			w.lines <- e.Kind.String() + " " + jobName(e.Job)
		}
	}
	for _, c := range r.Changes {
		w.lines <- c.Action.String() + " " + jobName(c.Job)
	}
	return nil
}

func jobName(id core.JobID) string { return string(rune('a' + id)) } // as these tests name them

// expect waits for lines, whatever else is said between them.
func (w *watcher) expect(t *testing.T, want ...string) {
	t.Helper()
	limit := time.After(30 * time.Second)
	var said []string
	for _, line := range want {
		for {
			select {
			case got := <-w.lines:
				said = append(said, got)
				if got != line {
					continue
				}
			case <-limit:
				t.Fatalf("waited for %q in vain; said: %q", line, said)
			}
			break
		}
	}
}

func composition() core.Stages {
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission", Policy: coretest.Component(admission.NewAcceptAll(), nil, discard)}},
		Allocation: core.Component[core.Allocator]{ID: "allocation", Policy: coretest.Component(allocation.NewFIFO(), nil, discard)},
		Placement:  core.Component[core.Placer]{ID: "placement", Policy: coretest.Component(placement.NewFirstFit(), nil, discard)},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity", Policy: coretest.Component(elasticity.NewFixed(), nil, discard)},
	}
}

// operated runs a scheduler that jobs are submitted to, until it is told to end.
func operated(t *testing.T, dir string, settings map[string]any) (b *Backend, w *watcher, end func()) {
	t.Helper()
	return scheduled(t, dir, settings, (*Backend).Close)
}

// leaving is operated, but that the jobs run on.
func leaving(t *testing.T, dir string, settings map[string]any) (b *Backend, w *watcher, end func()) {
	t.Helper()
	return scheduled(t, dir, settings, func(b *Backend) error {
		_, err := b.Leave()
		return err
	})
}

func scheduled(t *testing.T, dir string, settings map[string]any, finish func(*Backend) error) (b *Backend, w *watcher, end func()) {
	t.Helper()
	raw := map[string]any{"grace": "200ms"}
	maps.Copy(raw, settings)
	o := coretest.Component(New(realClock{}), raw, discard).(*Opener)
	o.For(Run{Dir: dir, Identity: "test", Config: "the config"})
	cluster := machine()
	opened, err := o.Open(context.Background(), cluster, &workload.Workload{Open: true})
	if err != nil {
		t.Fatal(err)
	}
	b, w = opened.(*Backend), &watcher{lines: make(chan string, 10_000)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p := core.NewPipeline(cluster, composition(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}, Observers: []core.Observer{w}})
		if err := p.Run(ctx, b); !errors.Is(err, context.Canceled) {
			t.Errorf("the pipeline ended with %v", err)
		}
		if err := finish(b); err != nil {
			t.Error(err)
		}
	}()
	end = func() {
		cancel()
		<-ended
	}
	t.Cleanup(end)
	return b, w, end
}

func submit(b *Backend, text string) ([]string, error) {
	return b.Submit(context.Background(), backend.JobFile{Name: "jobs.yaml", Text: []byte(text), Dir: os.TempDir()})
}

// waitUntilGone waits until a job has ended and nothing of it runs.
func waitUntilGone(t *testing.T, b *Backend, name string) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		gone, err := b.hasEnded(context.Background(), name)
		if err != nil {
			t.Fatalf("job %q: %v", name, err)
		}
		if gone {
			return
		}
		select {
		case <-limit:
			t.Fatalf("job %q does not end", name)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestJobsAreSubmittedAndCancelled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	b, w, end := operated(t, dir, nil)
	names, err := submit(b, `{version: 1, jobs: [{name: a, command: [sleep, "60"]}, {name: b, command: [pwd]}, {name: c, command: [sleep, "60"], submit: 1h}]}`)
	if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" || err != nil {
		t.Fatalf("error %v, names (-want +got):\n%s", err, diff)
	}
	w.expect(t, "job_submitted b", "start a", "start b", "job_finished b")
	if got, want := logOf(t, dir, "b", "0.out"), os.TempDir(); strings.TrimSpace(got) != filepath.Clean(want) {
		t.Errorf("ran in %q, want the submitter's folder %q", got, want)
	}

	if _, err := submit(b, `{version: 1, jobs: [{name: d, command: ["true"]}, {name: a, command: ["true"]}]}`); err == nil || !strings.Contains(err.Error(), `there is a job "a" already`) {
		t.Errorf("error %v, want one about the name", err)
	}
	for job, want := range map[string]string{"a": "", "b": "", "aa": `there is no job "aa"; did you mean "a"?`} {
		err := b.Cancel(ctx, job)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("cancel %q: %v, want %q", job, err, want)
		}
	}
	w.expect(t, "job_cancelled a")
	waitUntilGone(t, b, "a")
	if left := strays(dir); left != 0 {
		t.Errorf("%d processes are left", left)
	}

	// What is submitted and cancelled outlives the scheduler.
	if err := b.Cancel(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	end()
	if err := b.Cancel(ctx, "c"); !errors.Is(err, journal.ErrEnded) {
		t.Errorf("after the end: %v, want %v", err, journal.ErrEnded)
	}
	b, w, _ = operated(t, dir, nil)
	if _, err := submit(b, `{version: 1, jobs: [{name: d, command: ["true"]}]}`); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "job_finished d") // jobName(3): the names of the first scheduler's jobs are known
	if b.jobs[2].Spec.Name != "c" || !b.jobs[2].cancelled || !b.jobs[0].ended {
		t.Error("an order was forgotten")
	}
}

func TestNodesAreDrained(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	b, w, end := operated(t, dir, nil)
	if err := b.SetHealth(ctx, "a", core.Draining); err != nil { // before there is any job
		t.Fatal(err)
	}
	w.expect(t, "node_changed a draining")
	end()

	b, w, end = operated(t, dir, nil)
	if err := b.SetHealth(ctx, "a", core.Ready); err != nil {
		t.Fatal(err)
	}
	if _, err := submit(b, `{version: 1, jobs: [{name: a, command: [sleep, "60"], replicas: 3}]}`); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "start a")
	for _, node := range []string{"b", "b", "c"} {
		if err := b.SetHealth(ctx, node, core.Draining); (err != nil) != (node == "c") {
			t.Errorf("drain %q: %v", node, err)
		}
	}
	w.expect(t, "node_changed b draining", "stop a")
	end()

	b, w, _ = operated(t, dir, nil)
	w.expect(t, "node_changed b draining") // recorded
	if err := b.SetHealth(ctx, "b", core.Ready); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "node_changed b ready", "start a")
}

func TestPreviewTellsTheNextRound(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, w, _ := operated(t, t.TempDir(), nil)
	if _, err := submit(b, `{version: 1, jobs: [{name: a, command: [sleep, "60"], replicas: 4}, {name: b, command: [sleep, "60"]}]}`); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "start a")
	if err := b.wanted.Give(ctx, func() error { // as if a had just ended
		b.finish(b.jobs[0], core.JobFinished, b.elapsed())
		held, err := b.journal.Hold(&journal.Seen{NowSeconds: b.elapsed(), Events: journal.Events(b.events)})
		if err != nil {
			return err
		}
		f, err := os.Create(filepath.Join(b.dir, "snapshot"))
		if err != nil {
			return err
		}
		return errors.Join(held.Write(f), f.Close())
	}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.dir, "snapshot")
	if config, err := SnapshotConfig(path); config != "the config" || err != nil {
		t.Errorf("config %q, error %v", config, err)
	}
	var streamed bytes.Buffer
	if err := b.WriteSnapshot(ctx, &streamed); err != nil || streamed.Len() == 0 {
		t.Errorf("streamed %d bytes, error %v", streamed.Len(), err)
	}
	cluster := machine()
	o := coretest.Component(New(realClock{}), nil, discard).(*Opener)
	if _, err := o.Preview(ctx, path, machine(), commands(command("z", "true"))); err == nil || !strings.Contains(err.Error(), "other jobs") {
		t.Errorf("error %v, want one about the inputs", err)
	}
	o.For(Run{Identity: "test"})
	p, err := o.Preview(ctx, path, cluster, &workload.Workload{Open: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := core.NewPipeline(cluster, composition(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}}).Run(ctx, p); err != nil {
		t.Fatal(err)
	}
	if got := p.Changes(); len(got) != 1 || got[0].Action != core.Start || got[0].Job != 1 {
		t.Errorf("the next round would do %+v, want it to start b", got)
	}
}

// speak connects to a scheduler as rank 0 of a job.
func speak(t *testing.T, b *Backend, job string) *agent.Client {
	t.Helper()
	c := agent.Dial(agent.Environment{Job: job, Replicas: 1, Socket: filepath.Join(b.dir, agentSocket)})
	t.Cleanup(c.Close)
	if err := c.Report(agent.Report{Replicas: 1, Nodes: 1}); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAJobThatSpoke(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		settings map[string]any
		done     bool
		command  []string
		want     string
	}{
		"is done":                   {nil, true, []string{"cat", "fifo"}, "job_finished a"},
		"ends before it is done":    {nil, false, []string{"cat", "fifo"}, "job_failed a"},
		"says nothing for too long": {map[string]any{"hang_after": "300ms"}, false, []string{"sleep", "60"}, "job_failed a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			fifo := filepath.Join(folder, "fifo")
			mkfifo(t, fifo)
			b, w, _ := operated(t, t.TempDir(), tc.settings)
			quoted := `["` + strings.Join(tc.command, `", "`) + `"]`
			if _, err := submit(b, `{version: 1, jobs: [{name: a, command: `+quoted+`, dir: `+folder+`}]}`); err != nil {
				t.Fatal(err)
			}
			w.expect(t, "start a")
			c := speak(t, b, "a")
			if tc.done {
				if err := c.Done(); err != nil {
					t.Fatal(err)
				}
			}
			collected := func() bool { return b.jobs[0].spoke && b.jobs[0].done == tc.done }
			for ok := false; !ok; {
				if err := b.wanted.Give(context.Background(), func() error { ok = collected(); return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if slices.Contains(tc.command, "fifo") { // its reader ends
				if err := os.WriteFile(fifo, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			w.expect(t, tc.want)
		})
	}
}

// A job that does not heed signals in any way loses nothing when its agent listens.
func TestAnAgentIsAsked(t *testing.T) {
	t.Parallel()
	ledger, dir := t.TempDir(), t.TempDir()
	b, w, _ := operated(t, dir, map[string]any{"grace": "20s", "checkpoint_every": "50ms"})
	if _, err := submit(b, fmt.Sprintf(`{version: 1, jobs: [{name: a, command: [%q, work, %q, listens, "0"]}]}`, testProgram(t), ledger)); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "start a")
	for len(lines(t, ledger, "asked")) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := b.Cancel(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	waitUntilGone(t, b, "a")
	if got := len(lines(t, ledger, "kept")); got != 1 {
		t.Errorf("it kept its work %d times, want once", got)
	}
	e, _, err := keeper.FinalReport(filepath.Join(dir, "jobs/a/run-1"))
	if err != nil || e.Outcome != keeper.Stopped {
		t.Errorf("the run ended as %q, error %v, want that it was stopped", e.Outcome, err)
	}
}

// A scheduler that takes over asks an agent that has not connected again yet, too, and lets it have its grace.
func TestAnAgentIsAskedByTheNextScheduler(t *testing.T) {
	t.Parallel()
	ledger, dir := t.TempDir(), t.TempDir()
	settings := map[string]any{"grace": "20s", "checkpoint_every": "50ms"}
	b, w, end := leaving(t, dir, settings)
	if _, err := submit(b, fmt.Sprintf(`{version: 1, jobs: [{name: a, command: [%q, work, %q, listens, "0"]}, {name: b, command: ["true"]}]}`, testProgram(t), ledger)); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "start a", "job_finished b")
	for len(lines(t, ledger, "asked")) == 0 {
		time.Sleep(time.Millisecond)
	}
	for said := false; !said; { // that a spoke is recorded with the next round
		if err := b.SetHealth(context.Background(), "b", core.Draining); err != nil {
			t.Fatal(err)
		}
		w.expect(t, "node_changed b draining")
		if err := b.wanted.Give(context.Background(), func() error { said = b.jobs[0].spoke && b.jobs[0].news == 0; return nil }); err != nil {
			t.Fatal(err)
		}
		if err := b.SetHealth(context.Background(), "b", core.Ready); err != nil {
			t.Fatal(err)
		}
		w.expect(t, "node_changed b ready")
	}
	if err := b.journal.Cancel(0); err != nil {
		t.Fatal(err)
	}
	end()
	b, _, _ = operated(t, dir, settings)
	waitUntilGone(t, b, "a")
	if got := len(lines(t, ledger, "kept")); got != 1 {
		t.Errorf("it kept its work %d times, want once", got)
	}
}

// What is acknowledged is not lost to the end of a run.
func TestNothingIsTakenAfterTheEnd(t *testing.T) {
	b := opened(t, t.TempDir(), realClock{}, commands(command("j", "true")))
	seen(t, b)
	apply(t, b, on(0, 1))
	seen(t, b)
	apply(t, b)
	late := []workload.Job{command("late", "true")}
	if err := b.intake.Submit(context.Background(), late); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"job_submitted late"}, seen(t, b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	apply(t, b, on(1, 1))
	seen(t, b)
	apply(t, b)
	if _, err := b.Next(context.Background(), onEvents); !errors.Is(err, io.EOF) {
		t.Fatalf("error %v, want the end", err)
	}
	if err := b.intake.Submit(context.Background(), []workload.Job{command("later", "true")}); !errors.Is(err, journal.ErrEnded) {
		t.Errorf("error %v, want %v", err, journal.ErrEnded)
	}
}

func TestLogsAreFollowed(t *testing.T) {
	folder := t.TempDir()
	mkfifo(t, filepath.Join(folder, "fifo"))
	b, w, _ := operated(t, t.TempDir(), nil)
	if _, err := submit(b, `{version: 1, jobs: [{name: a, command: [cat, fifo], dir: `+folder+`}]}`); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "start a")
	read := make(chan string)
	go func() {
		var text bytes.Buffer
		if err := b.ReadLog(context.Background(), backend.Log{Job: "a", Follow: true}, &text); err != nil {
			text.WriteString(err.Error())
		}
		read <- text.String()
	}()
	f, err := os.OpenFile(filepath.Join(folder, "fifo"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"one\n", "two\n"} {
		if _, err := f.WriteString(line); err != nil {
			t.Fatal(err)
		}
		time.Sleep(followEvery)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "one\ntwo\n" {
		t.Errorf("read %q", got)
	}
}

func TestLogReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.out")
	write := func(suffix, text string) {
		t.Helper()
		if err := os.WriteFile(path+suffix, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".2", "a")
	write(".1", "b")
	write("", "c")
	var got bytes.Buffer
	r := logReader{path: path, to: &got}
	defer r.close()
	if err := r.read(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	write("", "d")
	if err := r.read(); err != nil {
		t.Fatal(err)
	}
	if got.String() != "abcd" {
		t.Errorf("read %q, want %q", got.String(), "abcd")
	}
}
