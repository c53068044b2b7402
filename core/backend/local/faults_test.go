package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/workload"
)

// abandon ends a scheduler as a kill does: what runs goes on.
func abandon(t *testing.T, b *Backend) {
	t.Helper()
	if _, err := b.Leave(); err != nil {
		t.Fatal(err)
	}
}

// recordedRounds reads what is recorded by now of a run that began without jobs.
func recordedRounds(b *Backend) ([]journal.Round, error) {
	l := journal.Open(b.store, "", "")
	_, err := l.Recall(0)
	return l.History(), err
}

// collected waits until the scheduler has collected what makes a condition true.
func collected(t *testing.T, b *Backend, what func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for !what() {
		select {
		case <-limit:
			t.Fatal("waited in vain")
		case <-time.After(time.Millisecond):
			b.listen(b.elapsed())
		}
	}
}

func shell(name, script string) workload.Job { return command(name, "sh", "-c", script) }

func TestCrashesAreToldApart(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		script string
		want   keeper.Exit
	}{
		"a code":             {"exit 7", keeper.Exit{Outcome: keeper.Failed, Reason: "replica 0 exited with 7", Codes: []int{7}, Failed: []int{0}}},
		"a fault":            {"kill -SEGV $$", keeper.Exit{Outcome: keeper.Failed, Reason: "replica 0 exited with 139 (SIGSEGV)", Codes: []int{139}, Failed: []int{0}}},
		"a core":             {"kill -ABRT $$", keeper.Exit{Outcome: keeper.Failed, Reason: "replica 0 exited with 134 (SIGABRT)", Codes: []int{134}, Failed: []int{0}}},
		"killed by somebody": {"kill -KILL $$", keeper.Exit{Outcome: keeper.Failed, Reason: "replica 0 exited with 137 (SIGKILL)", Codes: []int{137}, Failed: []int{0}, Killed: true}},
		"stopped by nobody":  {"exit 143", keeper.Exit{Outcome: keeper.Failed, Reason: "replica 0 exited with 143 (SIGTERM)", Codes: []int{143}, Failed: []int{0}}},
		"says it was told":   {"exit 75", keeper.Exit{Outcome: keeper.Failed, Reason: "replica 0 exited with 75", Codes: []int{75}, Failed: []int{0}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := opened(t, t.TempDir(), realClock{}, commands(shell("j", tc.script)))
			seen(t, b)
			apply(t, b, on(0, 1))
			if diff := cmp.Diff([]string{"job_failed j"}, seen(t, b)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			got, _ := b.finalReport(b.jobs[0])
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("final report (-want +got):\n%s", diff)
			}
		})
	}
}

// A job without an agent may be silent for as long as it likes: it holds its devices until it is cancelled.
func TestASilentJobHoldsUntilItIsCancelled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, w, _ := operated(t, t.TempDir(), map[string]any{"hang_after": "1ms"})
	if _, err := submit(b, `{version: 1, jobs: [{name: a, command: [sleep, "60"]}]}`); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "start a")
	if err := b.wanted.Give(ctx, func() error {
		if by := b.hangsAt(b.jobs[0]); !math.IsInf(by, 1) {
			t.Errorf("taken to hang at %v s, though it never spoke", by)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Cancel(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "job_cancelled a")
}

// A checkpoint that a job reported counts for the scheduler after the one it was reported to, whatever becomes of the job.
func TestACheckpointOutlivesTheScheduler(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := commands(command("j", "sleep", "60"), command("later", "true"))
	b := opened(t, dir, realClock{}, w)
	seen(t, b)
	apply(t, b, on(0, 1))
	c := agent.Dial(agent.Environment{Job: "j", Replicas: 1, Socket: filepath.Join(dir, agentSocket)})
	if err := c.Checkpointed(30); err != nil {
		t.Fatal(err)
	}
	collected(t, b, func() bool { return b.jobs[0].reported.checkpointed })
	b.events = append(b.events, core.Event{Kind: core.NodeChanged, AtSeconds: b.elapsed()}) // calls for a round
	seen(t, b)
	apply(t, b)
	id := b.jobs[0].run.Keeper
	abandon(t, b)
	c.Close()
	id.Kill()
	id.Wait()

	b = opened(t, dir, realClock{}, w)
	for range 2 {
		seen(t, b)
		if b.journal.Rounds() == 1 {
			apply(t, b, on(0, 1))
		} else {
			apply(t, b)
		}
	}
	if diff := cmp.Diff([]string{"job_interrupted j"}, seen(t, b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := b.jobs[0].progress; got != 30 {
		t.Errorf("progress %v, want that of the checkpoint, 30", got)
	}
}

// A job that spoke to a scheduler and never does to the next is not waited for without end.
func TestAJobHangsAcrossSchedulers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, w, end := operated(t, dir, map[string]any{"hang_after": "1h"})
	if _, err := submit(b, `{version: 1, jobs: [{name: a, command: [sleep, "60"]}]}`); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "start a")
	speak(t, b, "a").Close()
	order := func() error {
		if !b.jobs[0].spoke {
			return errors.New("not yet")
		}
		return nil
	}
	for b.wanted.Give(context.Background(), order) != nil {
		time.Sleep(time.Millisecond)
	}
	if err := b.SetHealth(context.Background(), "b", core.Draining); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "node_changed b draining") // a round records what was collected
	_ = end
	if err := b.wanted.Give(context.Background(), func() error {
		history, err := recordedRounds(b)
		if err != nil {
			return err
		}
		last := history[len(history)-1].Said
		if diff := cmp.Diff([]journal.Said{{Run: 1}}, last); diff != "" {
			t.Errorf("collected (-want +got):\n%s", diff)
		}
		next := newBackend(&Opener{config: b.config, log: discard, clock: realClock{}}, b.cluster, &workload.Workload{})
		next.jobs = []*job{{Job: b.jobs[0].Job, seats: b.jobs[0].seats, decided: b.jobs[0].decided, run: b.jobs[0].run}}
		next.recollect(last)
		next.jobs[0].watched = true
		next.expectSilence(next.jobs[0])
		if by := next.hangsAt(next.jobs[0]); math.IsInf(by, 1) {
			t.Error("is waited for without end")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestASecondScheduler(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := commands(command("j", "sleep", "60"))
	b := opened(t, dir, realClock{}, w)
	seen(t, b)
	apply(t, b, on(0, 1))
	abandon(t, b)
	first := opened(t, dir, realClock{}, w) // has a round to repeat, and did not yet
	for _, fresh := range []bool{false, true} {
		_, err := openWithin(0, dir, "test", fresh, realClock{}, w)
		if _, refused := errors.AsType[core.Diagnostics](err); !refused || !strings.Contains(err.Error(), "another scheduler runs on this store") {
			t.Errorf("fresh %v: error %v, want a refusal", fresh, err)
		}
	}
	seen(t, first)
	apply(t, first, on(0, 1))
	collected(t, first, func() bool { return first.jobs[0].live() && first.jobs[0].run.Keeper.Alive() }) // it may have been about to start
	if got := first.jobs[0].run.Number; got != 1 {
		t.Errorf("the job is in its run %d, want 1: the second scheduler did something to the jobs of the first", got)
	}
}

func TestAgentGarbage(t *testing.T) {
	t.Parallel()
	const many = 2000
	dir := t.TempDir()
	b, w, _ := operated(t, dir, nil)
	if _, err := submit(b, `{version: 1, jobs: [{name: a, command: [sleep, "60"]}, {name: b, command: [sleep, "60"]}]}`); err != nil {
		t.Fatal(err)
	}
	w.expect(t, "start a", "start b")
	socket := filepath.Join(dir, agentSocket)
	hello := func(job string) string { return `{"hello": {"protocol": 1, "job": "` + job + `", "rank": 0}}` + "\n" }
	cases := map[string]struct {
		say  string
		want string // what is answered, before the connection ends
	}{
		"no JSON":             {"garbage\n", "refused"},
		"JSON of no kind":     {"[1, 2]\n", "refused"},
		"no hello":            {`{"done": {}}` + "\n", "the first line has no hello"},
		"a huge line":         {strings.Repeat("x", 1<<20), "refused"},
		"deep JSON":           {strings.Repeat("[", 60_000) + "\n", "refused"},
		"an unknown job":      {hello("nobody"), `job \"nobody\" is not expected`},
		"a path for a job":    {hello("../a"), "refused"},
		"another job's hello": {hello("a") + hello("b"), `hello of job \"b\"`},
		"numbers of no sense": {hello("a") + `{"report": {"replicas": -1, "progress": 1e999}}` + "\n", "refused"},
		"a negative one":      {hello("a") + `{"checkpointed": {"progress": -5}}` + "\n", "refused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go func() { _, _ = io.WriteString(conn, tc.say) }() // it may be cut off
			if err := conn.SetReadDeadline(realClock{}.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			said, err := io.ReadAll(conn)
			if errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(said), tc.want) {
				t.Errorf("answered %q, %v, want %q", said, err, tc.want)
			}
		})
	}

	var half sync.WaitGroup // lines that never end, and connections that say nothing
	for i := range many {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			half.Go(func() { _, _ = io.WriteString(conn, `{"hello": {"protocol": 1,`) })
		}
	}
	half.Wait()
	c := speak(t, b, "b") // is served all the same
	if err := c.Done(); err != nil {
		t.Fatal(err)
	}
	limit := time.After(20 * time.Second)
	for done := false; !done; {
		if err := b.wanted.Give(context.Background(), func() error { done = b.jobs[1].done; return nil }); err != nil {
			t.Fatal(err)
		}
		select {
		case <-limit:
			t.Fatalf("job b is not served among %d connections: %v", many, c.Err())
		case <-time.After(time.Millisecond):
		}
	}
	if err := b.wanted.Give(context.Background(), func() error {
		if j := b.jobs[0]; j.done || j.reported.checkpointed || !j.live() {
			return fmt.Errorf("garbage had an effect on job a: %+v", j.watch)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// wrongClock is a clock that is set: its moments have no monotonic part.
type wrongClock struct {
	mutex sync.Mutex
	by    time.Duration
}

func (c *wrongClock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return realClock{}.Now().Round(0).Add(c.by)
}

func (c *wrongClock) After(d time.Duration) <-chan time.Time {
	return time.After(min(d, 10*time.Millisecond))
}

func (c *wrongClock) jump(by time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.by += by
}

// The clock is set by hours while jobs run, and between two schedulers: no job is lost, ends twice or is taken to hang, and time
// never goes back.
func TestTheClockJumps(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": 5 * time.Hour, "back": -5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			dir, folder, clock := t.TempDir(), t.TempDir(), &wrongClock{}
			mkfifo(t, filepath.Join(folder, "fifo"))
			jobs := commands(command("a", "cat", "fifo"), command("b", "true"), command("c", "true"))
			jobs.Jobs[0].Process.Dir = folder
			b := opened(t, dir, clock, jobs)
			if diff := cmp.Diff([]string{"job_submitted a", "job_submitted b", "job_submitted c"}, seen(t, b)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			clock.jump(by)
			apply(t, b, on(0, 1))
			started := core.Change{Action: core.Start, Job: 1, Seats: []core.Seat{{Node: 1, Devices: 0b1}}}
			before := b.now
			b.events = append(b.events, core.Event{Kind: core.NodeChanged, AtSeconds: b.elapsed()})
			seen(t, b)
			apply(t, b, started)
			if diff := cmp.Diff([]string{"job_finished b"}, seen(t, b)); diff != "" {
				t.Errorf("while jobs run (-want +got):\n%s", diff)
			}
			apply(t, b)
			if b.now < before {
				t.Errorf("time went back from %v to %v s", before, b.now)
			}
			before = b.now
			abandon(t, b)

			clock.jump(by)
			b = opened(t, dir, clock, jobs)
			for _, changes := range [][]core.Change{{on(0, 1)}, {started}, nil} {
				seen(t, b)
				apply(t, b, changes...)
			}
			if !b.jobs[0].live() {
				t.Error("the running job was lost")
			}
			if err := os.WriteFile(filepath.Join(folder, "fifo"), nil, 0o600); err != nil { // its reader ends
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"job_finished a"}, seen(t, b)); diff != "" {
				t.Errorf("after a restart (-want +got):\n%s", diff)
			}
			if b.now < before {
				t.Errorf("time went back from %v to %v s", before, b.now)
			}
		})
	}
}

// lateClock says what time it was before something happened, once.
type lateClock struct {
	late    atomic.Int64 // nanoseconds
	happens atomic.Pointer[func()]
}

func (c *lateClock) Now() time.Time {
	was := realClock{}.Now().Add(time.Duration(c.late.Load()))
	if happens := c.happens.Swap(nil); happens != nil {
		(*happens)()
	}
	return was
}

func (c *lateClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// A job that ends in the very moment in which the scheduler looks has not ended after the round that reports it.
func TestAnEndIsNotAfterItsRound(t *testing.T) {
	dir, clock := t.TempDir(), &lateClock{}
	let := filepath.Join(dir, "let")
	b := opened(t, dir, clock, commands(command("j", "sh", "-c", "until [ -e "+let+" ]; do sleep 0.01; done")))
	seen(t, b)
	apply(t, b, on(0, 1))
	ends := func() {
		clock.late.Store(int64(time.Second))
		if err := os.WriteFile(let, nil, 0o600); err != nil {
			t.Error(err)
		}
		for range 1000 {
			if len(b.jobs[0].gone) > 0 {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Error("the job does not end")
	}
	for {
		if b.jobs[0].gone != nil && !b.jobs[0].exited {
			clock.happens.CompareAndSwap(nil, &ends)
		}
		o, err := b.Next(t.Context(), core.Wake{OnEvents: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range o.Events {
			if e.AtSeconds > o.NowSeconds {
				t.Errorf("%v at %v s is reported at %v s", e.Kind, e.AtSeconds, o.NowSeconds)
			}
			if e.Kind == core.JobFinished {
				return
			}
		}
	}
}
