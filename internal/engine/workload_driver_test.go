package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/workload"
)

// account is what happens to a workload that reacts and to its world, a line each.
type account struct {
	mutex sync.Mutex
	lines []string
}

func (a *account) note(format string, args ...any) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.lines = append(a.lines, fmt.Sprintf(format, args...))
}

// reactor is a workload that answers by its script: the nth Tell by the nth entry.
type reactor struct {
	*account
	script []reaction
}

// reaction answers a Tell, in words: "submit a", "end a", "hold a".
type reaction struct {
	answers []string
	err     error
	wait    func(ctx context.Context) error // before that; nil for at once
}

func (*reactor) Metric() string { return "loss" }
func (*reactor) Close() error   { return nil }

func (r *reactor) Tell(ctx context.Context, now float64, results []workload.Result) ([]workload.Answer, error) {
	var told []string
	for _, x := range results {
		line := fmt.Sprintf("%s %s at %v", x.Job, [...]string{"reported", "finished", "ended early", "failed", "paused", "resumed"}[x.Kind], x.AtSeconds)
		if x.Kind == workload.JobReported {
			line += fmt.Sprintf(" %v=%v", x.Step, x.Value)
		}
		if x.Reason != core.NoReason {
			line += fmt.Sprintf(" for %v", x.Reason)
		}
		told = append(told, line)
	}
	r.note("told at %v: %s", now, strings.Join(told, ", "))
	if len(r.script) == 0 {
		return nil, nil
	}
	next := r.script[0]
	r.script = r.script[1:]
	if next.wait != nil {
		if err := next.wait(ctx); err != nil {
			return nil, err
		}
	}
	var answers []workload.Answer
	for _, a := range next.answers {
		what, job, _ := strings.Cut(a, " ")
		switch what {
		case "submit":
			answers = append(answers, workload.Answer{Action: workload.SubmitJob, Submit: &workload.Job{Spec: core.JobSpec{Name: job}}})
		case "end":
			answers = append(answers, workload.Answer{Action: workload.EndJob, Job: job, Reason: core.Pruned})
		default:
			answers = append(answers, workload.Answer{Action: workload.SuspendJob, Job: job})
		}
	}
	return answers, next.err
}

// stage is a world in which only what is carried out is noted.
type stage struct {
	backend.Driven
	*account
	fails error
	wait  bool // for the end of the context
}

func (s *stage) do(ctx context.Context, format string, args ...any) error {
	if s.wait {
		<-ctx.Done()
		return ctx.Err()
	}
	if s.fails == nil {
		s.note(format, args...)
	}
	return s.fails
}

func (s *stage) SubmitJobs(ctx context.Context, jobs []workload.Job) error {
	var names []string
	for i := range jobs {
		names = append(names, jobs[i].Spec.Name)
	}
	return s.do(ctx, "submit %s", strings.Join(names, ", "))
}

func (s *stage) EndEarly(ctx context.Context, job string, why core.Reason) error {
	return s.do(ctx, "end %s for %v", job, why)
}

func (s *stage) NoMore(ctx context.Context) error { return s.do(ctx, "no more") }

// round is what a round tells at a moment. Jobs are those of submissions, by their numbers.
func round(now float64, events []core.Event, changes ...core.Change) *core.Report {
	return &core.Report{View: &core.View{NowSeconds: now}, Events: events, Changes: changes}
}

func submission(id core.JobID, name string) core.Event {
	return core.Event{Kind: core.JobSubmitted, Job: id, Spec: &core.JobSpec{ID: id, Name: name}}
}

func reports(id core.JobID, at, step, value float64) core.Event {
	return core.Event{Kind: core.JobReported, Job: id, AtSeconds: at, Metric: "loss", Step: step, Value: value}
}

// A workload is told what became of its jobs, by time and then by job, and what it answers is carried out in its order.
func TestDrivenWorkload(t *testing.T) {
	ended := func(kind core.EventKind, id core.JobID, at float64, early core.Reason) core.Event {
		return core.Event{Kind: kind, Job: id, AtSeconds: at, Early: early}
	}
	ab := []core.Event{submission(0, "a"), submission(1, "b")}
	cases := map[string]struct {
		script []reaction
		rounds []*core.Report
		want   []string
	}{
		"nothing is proposed": {
			nil,
			[]*core.Report{round(1, nil)},
			[]string{"told at 0: ", "no more"},
		},
		"results by time, then by job": {
			[]reaction{{answers: []string{"submit a", "submit b"}}},
			[]*core.Report{
				round(0, ab),
				round(9, []core.Event{reports(1, 7, 1, 0.5), ended(core.JobFinished, 1, 8, core.NoReason), reports(0, 8, 1, 0.75), reports(0, 3, 0, 2)}),
				round(10, []core.Event{{Kind: core.JobReported, Job: 0, AtSeconds: 10, Metric: "accuracy", Step: 2, Value: 1}}),
				round(12, []core.Event{ended(core.JobFailed, 0, 11, core.NoReason)}),
			},
			[]string{
				"told at 0: ", "submit a, b",
				"told at 9: a reported at 3 0=2, b reported at 7 1=0.5, a reported at 8 1=0.75, b finished at 8",
				"told at 12: a failed at 11", "no more",
			},
		},
		"the next when one has ended": {
			[]reaction{{answers: []string{"submit a"}}, {answers: []string{"submit b"}}},
			[]*core.Report{
				round(0, ab[:1]), round(2, []core.Event{ended(core.JobCancelled, 0, 2, core.NoReason)}),
				round(3, ab[1:]), round(5, []core.Event{ended(core.JobFinished, 1, 4, core.Converged)}),
			},
			[]string{"told at 0: ", "submit a", "told at 2: a failed at 2", "submit b", "told at 5: b ended early at 4 for converged", "no more"},
		},
		"ended by the workload, and in its order": {
			[]reaction{{answers: []string{"submit a", "submit b"}}, {answers: []string{"end a", "submit c", "submit d", "end b"}}},
			[]*core.Report{round(0, ab), round(2, []core.Event{reports(0, 1, 1, 5)}), round(3, []core.Event{ended(core.JobFinished, 0, 3, core.Pruned)})},
			[]string{"told at 0: ", "submit a, b", "told at 2: a reported at 1 1=5", "end a for pruned", "submit c, d", "end b for pruned", "told at 3: a ended early at 3 for pruned"},
		},
		"ended, held back and resumed by policies": {
			[]reaction{{answers: []string{"submit a", "submit b"}}},
			[]*core.Report{
				round(1, ab, core.Change{Action: core.Start, Job: 0}, core.Change{Action: core.Start, Job: 1}),
				round(4, nil, core.Change{Action: core.Pause, Job: 0, Reason: core.AwaitingResults}, core.Change{Action: core.Stop, Job: 1}),
				round(5, nil, core.Change{Action: core.Start, Job: 1}),
				round(6, nil, core.Change{Action: core.Finish, Job: 1, Reason: core.Pruned}, core.Change{Action: core.Start, Job: 0}),
				round(7, nil, core.Change{Action: core.Move, Job: 0}),
				round(8, nil, core.Change{Action: core.Discard, Job: 0, Reason: core.ExceedsCluster}),
			},
			[]string{
				"told at 0: ", "submit a, b", "told at 4: a paused at 4 for awaiting_results",
				"told at 6: a resumed at 6, b ended early at 6 for pruned", "told at 8: a failed at 8 for exceeds_cluster", "no more",
			},
		},
		"jobs of others, and words after the end": {
			[]reaction{{answers: []string{"submit a"}}},
			[]*core.Report{
				round(0, ab), round(1, []core.Event{reports(1, 1, 1, 1)}),
				round(2, []core.Event{reports(1, 2, 2, 1), ended(core.JobFinished, 0, 2, core.NoReason)}),
				round(3, []core.Event{reports(0, 3, 2, 1), ended(core.JobFinished, 1, 3, core.NoReason)}),
			},
			[]string{"told at 0: ", "submit a", "told at 2: a finished at 2", "no more"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &account{}
				d := newWorkloadDriver(t.Context(), &reactor{a, tc.script}, &stage{account: a}, func(err error) { t.Error(err) })
				for _, r := range tc.rounds {
					synctest.Wait()
					if err := d.ObserveRound(r); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if driving, telling := d.end(); driving != nil || telling != nil {
					t.Errorf("ends with %v, %v", driving, telling)
				}
				if diff := cmp.Diff(tc.want, a.lines); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// However far behind a workload is, it is told of each round by itself: whoever takes over tells it the same.
func TestDrivenWorkloadIsBehind(t *testing.T) {
	tell := func(behind bool) []string {
		a := &account{}
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			first := reaction{answers: []string{"submit a"}, wait: func(context.Context) error { <-gate; return nil }}
			d := newWorkloadDriver(t.Context(), &reactor{a, []reaction{first, {answers: []string{"submit b"}}}}, &stage{account: a}, func(err error) { t.Error(err) })
			if !behind {
				close(gate)
				synctest.Wait()
			}
			for i, events := range [][]core.Event{{submission(0, "a")}, {reports(0, 1, 1, 1)}, {{Kind: core.JobFinished, Job: 0, AtSeconds: 2}}, {submission(1, "b")}, {{Kind: core.JobFinished, Job: 1, AtSeconds: 4}}} {
				_ = d.ObserveRound(round(float64(i), events))
				if !behind {
					synctest.Wait()
				}
			}
			if behind {
				close(gate)
			}
			synctest.Wait()
			if driving, telling := d.end(); driving != nil || telling != nil {
				t.Errorf("ends with %v, %v", driving, telling)
			}
		})
		return a.lines
	}
	want := tell(false)
	if diff := cmp.Diff(want, tell(true)); diff != "" || !slices.Contains(want, "no more") {
		t.Errorf("in time %q; -in time +behind:\n%s", want, diff)
	}
}

// What goes wrong with a workload ends the run with it. Once the run has ended by itself, nothing does.
func TestDrivenWorkloadFails(t *testing.T) {
	broken := errors.New("out of ideas")
	cases := map[string]struct {
		script reaction
		world  error
		want   string // empty: the run is not ended
	}{
		"a search":           {reaction{err: broken}, nil, "out of ideas"},
		"a submission":       {reaction{answers: []string{"submit a", "submit b"}}, errors.New("no room"), `submit "a" and what comes with it: no room`},
		"an early end":       {reaction{answers: []string{"end a"}}, errors.New("no such job"), `end job "a" early: no such job`},
		"a suspension":       {reaction{answers: []string{"hold a"}}, nil, `the workload holds back job "a" itself, which a run on real machines does not know`},
		"the last of all":    {reaction{}, errors.New("no store"), "no store"},
		"after the end":      {reaction{answers: []string{"submit a"}}, journal.ErrEnded, ""},
		"after the last end": {reaction{}, journal.ErrEnded, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, fails := &account{}, ""
				d := newWorkloadDriver(t.Context(), &reactor{a, []reaction{tc.script}}, &stage{account: a, fails: tc.world}, func(err error) { fails = err.Error() })
				synctest.Wait()
				_ = d.ObserveRound(round(1, []core.Event{submission(0, "a"), reports(0, 1, 1, 1)}))
				driving, telling := d.end()
				if fails != tc.want || telling != nil || (driving != nil) != (tc.want != "") || driving != nil && driving.Error() != tc.want {
					t.Errorf("the run is ended by %q, and ends with %v, %v; want %q", fails, driving, telling, tc.want)
				}
				if last := a.lines[len(a.lines)-1]; tc.want != "" && last != "told at 0: " {
					t.Errorf("after that: %q", last)
				}
			})
		})
	}
}

// A run that is stopped tells its workload what happened, in order, and carries out nothing more. One that does not listen is waited for no longer than said.
func TestDrivenRunIsStopped(t *testing.T) {
	cases := map[string]struct {
		wait    func(ctx context.Context) error
		orders  bool // it is stopped while something is carried out
		want    []string
		telling error
		took    time.Duration
	}{
		"while a search thinks": {
			func(context.Context) error { time.Sleep(3 * time.Second); return nil }, false,
			[]string{"told at 0: ", "submit a", "told at 1: a reported at 1 1=1", "told at 2: a finished at 2"},
			nil, 3 * time.Second,
		},
		"while it waits for orders": {
			nil, true, []string{"told at 0: ", "told at 1: a reported at 1 1=1", "told at 2: a finished at 2"}, nil, 0,
		},
		"and a search says nothing": {
			func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, false,
			[]string{"told at 0: ", "submit a", "told at 1: a reported at 1 1=1"},
			context.Canceled, finalReports,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				a := &account{}
				d := newWorkloadDriver(ctx, &reactor{a, []reaction{{answers: []string{"submit a"}}, {answers: []string{"submit b"}, wait: tc.wait}}}, &stage{account: a, wait: tc.orders}, func(err error) { t.Error(err) })
				_ = d.ObserveRound(round(0, []core.Event{submission(0, "a")}))
				_ = d.ObserveRound(round(1, []core.Event{reports(0, 1, 1, 1)}))
				_ = d.ObserveRound(round(2, []core.Event{{Kind: core.JobFinished, Job: 0, AtSeconds: 2}}))
				synctest.Wait()
				began := time.Now() //nolint:forbidigo // of a bubble, in which it stands still
				stop()
				driving, telling := d.end()
				if driving != nil || !errors.Is(telling, tc.telling) {
					t.Errorf("ends with %v, %v; want %v", driving, telling, tc.telling)
				}
				if took := time.Since(began); took != tc.took { //nolint:forbidigo // as above
					t.Errorf("it takes %v, want %v", took, tc.took)
				}
				if diff := cmp.Diff(tc.want, a.lines); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		})
	}
}

// begun is a run by its name.
type begun struct {
	backend.Driven
	name string
}

func (b begun) Begun() string { return b.name }

// The record of a run is kept as long as it is gone on with, and removed by the next run; nothing else is touched.
func TestRecordsOfRuns(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"search-1.jsonl", "search-2.jsonl", "search-notes.txt", "other-1.jsonl", "search.jsonl"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := openRecord(dir, begun{name: "2"})
	if want := filepath.Join(dir, "search-2.jsonl"); err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	var left []string
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		left = append(left, f.Name())
	}
	if diff := cmp.Diff([]string{"other-1.jsonl", "search-2.jsonl", "search-notes.txt", "search.jsonl"}, left); diff != "" {
		t.Error("files (-want +got)", diff)
	}
	if _, err := openRecord(filepath.Join(dir, "nowhere"), begun{name: "2"}); err == nil {
		t.Error("no error of a folder that is not there")
	}
}
