package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/fake"
	"github.com/quartet-sched/quartet/core/workload"
)

// recorder is a test that notes what is wrong instead of failing.
type recorder struct {
	testing.TB
	said     []string
	cleanups []func()
}

func (r *recorder) Helper()                      {}
func (r *recorder) Cleanup(f func())             { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any)            { r.said = append(r.said, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.said = append(r.said, fmt.Sprintf(f, args...)) }
func (r *recorder) Fatal(args ...any)            { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(f string, args ...any) { r.Errorf(f, args...); runtime.Goexit() }
func (r *recorder) Skip(args ...any)             { runtime.Goexit() }
func (r *recorder) record(c check, h *Harness) string {
	over := make(chan struct{})
	go func() {
		defer close(over)
		c.run(r, h)
	}()
	<-over
	for _, f := range r.cleanups {
		f()
	}
	return strings.Join(r.said, "\n")
}

// broken is a backend with one fault.
type broken struct {
	*fake.Backend
	next  func(b *broken, ctx context.Context, w core.Wake) (core.Observation, error)
	apply func(b *broken, changes []core.Change) error
	scale func(b *broken, round int, targets []core.PoolTarget) (int, []core.PoolTarget)

	calls   int
	scaled  int
	hurries bool // nodes come in half the time
	shares  bool // it says that devices are shared
	seen    core.Observation
}

func (b *broken) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	b.calls++
	if b.next == nil {
		return b.Backend.Next(ctx, w)
	}
	return b.next(b, ctx, w)
}

func (b *broken) Apply(ctx context.Context, changes []core.Change) error {
	if b.apply == nil {
		return b.Backend.Apply(ctx, changes)
	}
	return b.apply(b, changes)
}

func (b *broken) Scale(ctx context.Context, round int, targets []core.PoolTarget) error {
	if b.scale != nil {
		round, targets = b.scale(b, round, slices.Clone(targets))
	}
	return b.Backend.Scale(ctx, round, targets)
}

func (b *broken) Capabilities() []core.Capability {
	if b.shares {
		return append(b.Backend.Capabilities(), core.CapabilityShares)
	}
	if b.calls > 1 && b.next == nil && b.apply == nil {
		return nil
	}
	return b.Backend.Capabilities()
}

// observes breaks what is told.
func observes(spoil func(b *broken, o *core.Observation)) *broken {
	return &broken{next: func(b *broken, ctx context.Context, w core.Wake) (core.Observation, error) {
		o, err := b.Backend.Next(ctx, w)
		if err == nil {
			o.Events = slices.Clone(o.Events)
			spoil(b, &o)
		}
		return o, err
	}}
}

// wakes breaks when rounds are held.
func wakes(spoil func(w *core.Wake)) *broken {
	return &broken{next: func(b *broken, ctx context.Context, w core.Wake) (core.Observation, error) {
		spoil(&w)
		return b.Backend.Next(ctx, w)
	}}
}

// applies breaks what becomes of changes.
func applies(spoil func(b *broken, changes []core.Change) []core.Change) *broken {
	return &broken{apply: func(b *broken, changes []core.Change) error {
		return b.Backend.Apply(context.Background(), spoil(b, slices.Clone(changes)))
	}}
}

func harness(b *broken) *Harness {
	open := func(_ testing.TB, w World, pools []backend.Pool) core.Backend {
		jobs, scripts := &workload.Workload{Open: w.Open}, map[string]fake.Script{}
		for _, j := range w.Jobs {
			spec := core.JobSpec{Name: j.Name, SubmitSeconds: j.SubmitSeconds, Requested: j.Replicas, TotalWork: j.Seconds}
			jobs.Jobs = append(jobs.Jobs, workload.Job{Spec: spec})
			scripts[j.Name] = fake.Script{Fails: j.Fails}
		}
		for i := range pools {
			if b.hurries {
				pools[i].Provisioning /= 2
			}
		}
		b.Backend = fake.Open(w.Cluster, jobs, fake.Options{Scripts: scripts, Pools: pools})
		return b
	}
	return &Harness{UnitSeconds: 1, Exact: true, OpenPools: open, Open: func(t testing.TB, w World) core.Backend { return open(t, w, nil) }}
}

// hides takes away what is told of one kind, or changes it.
func hides(kind core.EventKind, spoil func(e *core.Event) (hide bool)) *broken {
	return observes(func(_ *broken, o *core.Observation) {
		kept := o.Events[:0]
		for _, e := range o.Events {
			if e.Kind != kind || !spoil(&e) {
				kept = append(kept, e)
			}
		}
		o.Events = kept
	})
}

func TestSuiteCatches(t *testing.T) {
	has := func(o *core.Observation, k core.EventKind) bool {
		return slices.ContainsFunc(o.Events, func(e core.Event) bool { return e.Kind == k })
	}
	cases := map[string]struct {
		check   string
		backend *broken
		want    string
	}{
		"nothing wrong": {"a pipeline runs, on events", observes(func(*broken, *core.Observation) {}), ""},
		"time goes back": {"a job runs to its end", observes(func(b *broken, o *core.Observation) {
			if b.calls > 1 {
				o.NowSeconds = -1
			}
		}), "time went back"},
		"a round that is late": {"wakes when asked to", wakes(func(w *core.Wake) { w.BySeconds++ }), "due at"},
		"a round that is early": {"wakes when asked to", wakes(func(w *core.Wake) {
			w.BySeconds = math.Min(w.BySeconds, math.Floor(w.BySeconds)-0.5)
		}), "due at"},
		"a round beside the grid": {"wakes on the grid", wakes(func(w *core.Wake) { w.IntervalSeconds, w.OnEvents = 0, true }), "due at"},
		"an event of the future": {"a job runs to its end", observes(func(_ *broken, o *core.Observation) {
			o.Events[0].AtSeconds = o.NowSeconds + 1
		}), "is reported at"},
		"an event of the past": {"a job runs to its end", observes(func(b *broken, o *core.Observation) {
			if b.calls > 1 {
				o.Events[len(o.Events)-1].AtSeconds = -1
			}
		}), "after the observation of"},
		"a job told twice, without ids": {"jobs are submitted once and in order", observes(func(_ *broken, o *core.Observation) {
			for i := range o.Events {
				o.Events[i].ID = 0
			}
			o.Events = append(o.Events, o.Events...)
		}), "is submitted as number"},
		"ids now and then": {"jobs are submitted once and in order", observes(func(b *broken, o *core.Observation) {
			if b.calls > 1 {
				o.Events[0].ID = 0
			}
		}), "all have one, or none"},
		"an event told under the id of another": {"a job runs to its end", observes(func(_ *broken, o *core.Observation) {
			if has(o, core.JobFinished) {
				o.Events[len(o.Events)-1].ID = 1
			}
		}), "next: EOF"},
		"a job without a specification": {"jobs are submitted once and in order", observes(func(_ *broken, o *core.Observation) {
			o.Events[0].Spec = nil
		}), "without a specification"},
		"jobs out of order": {"jobs are submitted once and in order", observes(func(_ *broken, o *core.Observation) {
			slices.Reverse(o.Events)
		}), "is submitted as number"},
		"a job that nobody submitted": {"a job runs to its end", observes(func(_ *broken, o *core.Observation) {
			o.Events[len(o.Events)-1].Kind, o.Events[len(o.Events)-1].Job = core.JobProgressed, 99
		}), "unknown job 99"},
		"an event after the end": {"a job runs to its end", observes(func(_ *broken, o *core.Observation) {
			if has(o, core.JobFinished) {
				again := o.Events[len(o.Events)-1]
				again.ID++
				o.Events = append(o.Events, again)
			}
		}), "after job_finished"},
		"the end that is not the last": {"the end is the end", &broken{next: func(b *broken, ctx context.Context, w core.Wake) (core.Observation, error) {
			o, err := b.Backend.Next(ctx, w)
			if errors.Is(err, io.EOF) && b.seen.NowSeconds > 0 {
				return b.seen, nil
			}
			b.seen = core.Observation{NowSeconds: o.NowSeconds}
			if errors.Is(err, io.EOF) {
				b.seen.NowSeconds = 1e9
			}
			return o, err
		}}, "want io.EOF"},
		"events lost with a context": {"a context that ends loses nothing", &broken{next: func(b *broken, ctx context.Context, w core.Wake) (core.Observation, error) {
			if ctx.Err() != nil && b.calls == 1 {
				_, _ = b.Backend.Next(context.Background(), w)
				return core.Observation{}, ctx.Err()
			}
			return b.Backend.Next(ctx, w)
		}}, "next: EOF"},
		"repetitions that are not recognised": {"a round is applied again after a later one", applies(func(_ *broken, changes []core.Change) []core.Change {
			for i := range changes {
				changes[i].Round = 0
			}
			return changes
		}), "starts jobs"},
		"a start that is ignored": {"a job runs to its end", applies(func(*broken, []core.Change) []core.Change { return nil }), "next: EOF"},
		"a stop that is ignored": {"a job is stopped and started again", applies(func(_ *broken, changes []core.Change) []core.Change {
			return slices.DeleteFunc(changes, func(c core.Change) bool { return c.Action == core.Stop })
		}), "apply"},
		"a move that is ignored": {"a job moves, and another takes its place", applies(func(_ *broken, changes []core.Change) []core.Change {
			return slices.DeleteFunc(changes, func(c core.Change) bool { return c.Action == core.Move })
		}), "apply"},
		"a discarded job that stays": {"a discarded job is over", applies(func(_ *broken, changes []core.Change) []core.Change {
			return slices.DeleteFunc(changes, func(c core.Change) bool { return c.Action == core.Discard && c.Job == 1 })
		}), "want io.EOF"},
		"a job ended early that stays": {"a job that is ended early lets go and is over", applies(func(_ *broken, changes []core.Change) []core.Change {
			return slices.DeleteFunc(changes, func(c core.Change) bool { return c.Action == core.Finish && c.Job == 1 })
		}), "want io.EOF"},
		"a job ended early that keeps its devices": {"a job that is ended early lets go and is over", applies(func(_ *broken, changes []core.Change) []core.Change {
			return slices.DeleteFunc(changes, func(c core.Change) bool { return c.Action == core.Finish && c.Job == 0 })
		}), "apply"},
		"a pause that is ignored": {"a paused job lets go, and resumes when it is started again", applies(func(_ *broken, changes []core.Change) []core.Change {
			return slices.DeleteFunc(changes, func(c core.Change) bool { return c.Action == core.Pause })
		}), "apply"},
		"unknown jobs that are ignored": {"an unknown job is an error", applies(func(_ *broken, changes []core.Change) []core.Change {
			return slices.DeleteFunc(changes, func(c core.Change) bool { return c.Job != 0 })
		}), "is no error"},
		"a job that fails and is told to finish": {"a job fails", observes(func(_ *broken, o *core.Observation) {
			for i := range o.Events {
				if o.Events[i].Kind == core.JobFailed {
					o.Events[i].Kind = core.JobFinished
				}
			}
		}), "want it failed"},
		"pools, and nothing wrong":        {"a pipeline runs on pools", observes(func(*broken, *core.Observation) {}), ""},
		"nodes that come too early":       {"nodes of a pool come after a while", &broken{hurries: true}, "node 1 is ready at 1.5 s, want 3 s"},
		"nodes that are told of too late": {"nodes of a pool do not come after all", wakes(func(w *core.Wake) { w.OnEvents, w.IntervalSeconds = false, 4 }), "due at"},
		"sizes that are taken in twice": {"nodes of a pool come after a while", &broken{scale: func(b *broken, round int, targets []core.PoolTarget) (int, []core.PoolTarget) {
			b.scaled++
			targets[0].Nodes += b.scaled - 1
			return round + b.scaled, targets
		}}, "4 nodes, want 3"},
		"sizes that are ignored": {"nodes of a pool come after a while", &broken{scale: func(_ *broken, round int, _ []core.PoolTarget) (int, []core.PoolTarget) {
			return round, nil
		}}, "is not so that node 2 is ready"},
		"nodes that come although they fail": {"nodes of a pool do not come after all", observes(func(_ *broken, o *core.Observation) {
			for i := range o.Events {
				if e := &o.Events[i]; e.Kind == core.NodeRemoved {
					e.Kind, e.Health = core.NodeChanged, core.Ready
				}
			}
		}), "is not so that node 1 is gone"},
		"an id that is used again": {"a node that comes is not wanted any more", observes(func(_ *broken, o *core.Observation) {
			for i := range o.Events {
				if e := &o.Events[i]; e.Kind == core.NodeAdded && e.Node == 2 {
					e.Node = 1
				}
			}
		}), "node 1 joins as number 2"},
		"a node that is gone is heard of": {"a node that comes is not wanted any more", observes(func(_ *broken, o *core.Observation) {
			for i := range o.Events {
				if e := &o.Events[i]; e.Kind == core.NodeChanged && e.Node == 2 {
					e.Node = 1
				}
			}
		}), "of node 1, which is gone"},
		"nobody leaves": {"a node drains and goes", &broken{scale: func(_ *broken, round int, targets []core.PoolTarget) (int, []core.PoolTarget) {
			targets[0].Remove = nil
			return round, targets
		}}, "is not so that node 1 is draining"},
		"a node goes with its job": {"a node drains and goes", observes(func(_ *broken, o *core.Observation) {
			for i := range o.Events {
				if e := &o.Events[i]; e.Kind == core.NodeChanged && e.Health == core.Draining {
					e.Kind = core.NodeRemoved
				}
			}
		}), "is not so that node 1 is draining"},
		"a job that is not told":     {"nodes are taken away with notice", hides(core.JobInterrupted, func(*core.Event) bool { return true }), "no event says that job 0 lost its devices"},
		"a job that is told less":    {"a node does not drain in time", hides(core.JobInterrupted, func(e *core.Event) bool { e.Cause = 0; return false }), "was interrupted for unknown"},
		"a notice that is not given": {"nodes are taken away with notice", hides(core.NodeChanged, func(e *core.Event) bool { return e.Health == core.Draining }), "is gone at"},
		"more nodes than the pool may have": {"a pipeline runs on pools", &broken{scale: func(_ *broken, round int, targets []core.PoolTarget) (int, []core.PoolTarget) {
			targets[0].Nodes += 2
			return round, targets
		}}, "nodes, want at most 3"},
		"shares that are none":         {"shares: jobs are on a device together", &broken{shares: true}, "is reported with the share <nil>, want &{334 }"},
		"a device that is not shared":  {"shares: jobs take turns on a device", &broken{shares: true}, "apply"},
		"the part of one that stopped": {"shares: a job takes the place of one of several", &broken{shares: true}, "apply"},
		"capabilities that change":     {"capabilities stay", &broken{}, "capabilities were"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := slices.Concat(checks, orderChecks, poolChecks, shareChecks)
			i := slices.IndexFunc(all, func(c check) bool { return c.name == tc.check })
			if i < 0 {
				t.Fatalf("no check %q", tc.check)
			}
			got := (&recorder{TB: t}).record(all[i], harness(tc.backend))
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("the check said\n%s\nwant %q in it", got, tc.want)
			}
		})
	}
}

var _ backend.Operated = (*broken)(nil)
