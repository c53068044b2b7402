package coretest

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Option changes what a suite runs or asks for.
type Option func(*options)

type options struct {
	config    map[string]any
	evicts    bool
	elsewhere bool
	pins      bool
	deadlines bool
	tiers     bool
	pools     bool
	sharing   bool
	reporting bool
}

// WithConfig creates the policy with these settings in place of its defaults, as they stand in a config file.
func WithConfig(raw map[string]any) Option { return func(o *options) { o.config = raw } }

// Evicting allows a placer to take devices from a running job whose grant is unchanged, and to seat it elsewhere.
func Evicting() Option { return func(o *options) { o.evicts = true } }

// Pinning lets some jobs of the random worlds be pinned, as every policy must bear it. The suites of all built-in
// allocators and placements ask for it.
func Pinning() Option { return func(o *options) { o.pins = true } }

// Deadlines gives some jobs of the random worlds deadlines, and has some be best effort.
func Deadlines() Option { return func(o *options) { o.deadlines = true } }

// Tiers gives some jobs of the random worlds tiers.
func Tiers() Option { return func(o *options) { o.tiers = true } }

// Sharing has jobs of the random worlds share what nodes have: devices, in each of the ways that the policy may meet, and in some worlds CPUs and memory, of which
// jobs ask for some, or are sensitive to them, or neither. A placer meets the ways that it says it seats, and CPUs and memory if it says that it counts them; an allocator that
// says which sharing it needs meets that. All others meet each way.
func Sharing() Option { return func(o *options) { o.sharing = true } }

// Pools gives some of the random worlds pools, whose nodes are provisioned, drain and go. The suite of scalers asks for it.
func Pools() Option { return func(o *options) { o.pools = true } }

// Reporting has jobs of the random worlds be trials of experiments, most of them, and report metrics, steps that they reported before included. Some of those that report, an admission ends or holds
// back, other than the policy itself. The suites of reviewers ask for it.
func Reporting() Option { return func(o *options) { o.reporting = true } }

// slot is what a suite knows of one stage.
type slot[S any] struct {
	id string // stage and type, as in a run
	// install puts a policy into its place in a composition.
	install func(*core.Stages, core.Component[S])
	// wrap returns a stage that passes each call to the trial's policies and judges the answer.
	wrap func(*trial[S]) S
	// ask calls a policy directly.
	ask func(context.Context, S, question) error
}

// check is one test of a suite.
type check struct {
	name    string
	run     func(TB)
	inWorld func(*T) // instead of run: it must hold in every random world
}

func runChecks(t *testing.T, checks []check) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if c.inWorld != nil {
				inWorlds(t, c.inWorld)
				return
			}
			c.run(t)
		})
	}
}

// checks lists the tests of a policy. They share the process's heap and goroutines, so no test runs in parallel.
func checks[S any](s slot[S], f core.Factory[S], opts []Option) []check {
	subject := subject[S]{slot: s, factory: f}
	for _, opt := range opts {
		opt(&subject.options)
	}
	all := []check{
		{name: "config", run: func(t TB) {
			if err := CheckConfig(f, subject.options.config); err != nil {
				t.Errorf("%v", err)
			}
		}},
		{name: "rounds", inWorld: subject.holdRounds},
		{name: "nothing to decide", run: subject.decideNothing},
		{name: "cancelled context", run: subject.cancel},
	}
	if !subject.options.elsewhere {
		all = append(all, check{name: "ended jobs are forgotten", run: subject.forget}, check{name: "no goroutine is left", run: subject.leaveNoGoroutine})
	}
	return all
}

// subject is the policy that a suite tests.
type subject[S any] struct {
	slot    slot[S]
	factory core.Factory[S]
	options options
}

func (s *subject[S]) create(t TB) (policy S, needs []core.Capability) {
	t.Helper()
	config, problems := s.factory.Decode(s.options.config)
	if err := problems.Err(); err != nil {
		t.Fatalf("decode config: %v", err)
	}
	policy, err := s.factory.New(config, core.Settings{
		ID: s.slot.id, Rand: core.NewRand(1, s.slot.id), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return policy, s.factory.Needs(config)
}

// stages is every stage at once.
type stages interface {
	core.Admitter
	core.Allocator
	core.Placer
	core.Elasticity
}

// compose fills each slot but the scaler's with one value.
func compose(all stages) core.Stages {
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "coretest/admission", Policy: all}},
		Allocation: core.Component[core.Allocator]{ID: "coretest/allocation", Policy: all},
		Placement:  core.Component[core.Placer]{ID: "coretest/placement", Policy: all},
		Elasticity: core.Component[core.Elasticity]{ID: "coretest/elasticity", Policy: all},
	}
}

// compose puts a policy between the stages of rest.
func (s *subject[S]) compose(policy S, rest stages) core.Stages {
	c := compose(rest)
	if all, is := rest.(*chaos); is && s.options.reporting {
		c.Admission[0].Policy = reviewingChaos{all}
	}
	s.slot.install(&c, core.Component[S]{ID: s.slot.id, Policy: policy})
	return c
}

// decideNothing asks about no jobs on a cluster without nodes and on one with.
func (s *subject[S]) decideNothing(t TB) {
	policy, _ := s.create(t)
	forEver := core.Standing{UntilSeconds: math.Inf(1)}
	if steady := core.AbilitiesOf(policy).Steady; steady != nil && steady.Standing() != forEver {
		t.Errorf("before the first answer it stands %+v, want %+v", steady.Standing(), forEver)
	}
	for _, c := range []*core.Cluster{MakeCluster().Obj(), MakeCluster().Nodes(2, "t4", 4).Obj()} {
		q := question{View: MakeView(c).Obj()}
		q.Plan = new(core.Plan)
		if err := s.slot.ask(context.Background(), policy, q); err != nil {
			t.Errorf("asked about nothing on %d nodes: %v", len(c.Nodes), err)
		}
	}
}

// patience is how long a policy may take to notice that its context was cancelled.
const patience = 10 * time.Second

// cancel asks with a cancelled context: an answer will do, and so will the context's error.
func (s *subject[S]) cancel(t TB) {
	policy, _ := s.create(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	answered := make(chan error, 1)
	go func() { answered <- s.slot.ask(ctx, policy, smallQuestion()) }()
	select {
	case err := <-answered:
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled context: got error %q, want an answer or context.Canceled", err)
		}
	case <-time.After(patience):
		t.Errorf("cancelled context: no answer within %v", patience)
	}
}

// patienceWithGoroutines is how long those that end already may take to do so.
const patienceWithGoroutines = time.Second

// goroutines are the stacks of all that there are, by what names each.
func goroutines() map[string]string {
	stacks := make([]byte, 1<<16)
	for {
		n := runtime.Stack(stacks, true)
		if n < len(stacks) {
			stacks = stacks[:n]
			break
		}
		stacks = make([]byte, 2*len(stacks))
	}
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		name, _, _ := strings.Cut(stack, " [") // goroutine 7 [running]:
		all[name] = stack
	}
	return all
}

// leaveNoGoroutine creates a policy, asks it once and drops it.
func (s *subject[S]) leaveNoGoroutine(t TB) {
	before := goroutines()
	policy, _ := s.create(t)
	if err := s.slot.ask(context.Background(), policy, smallQuestion()); err != nil {
		t.Errorf("ask: %v", err)
	}
	for tries := patienceWithGoroutines / time.Millisecond; ; tries-- {
		left := goroutines()
		maps.DeleteFunc(left, func(id string, _ string) bool { _, was := before[id]; return was })
		if len(left) == 0 {
			return
		}
		if tries == 0 {
			t.Errorf("found unexpected goroutines:\n%s", strings.Join(slices.Sorted(maps.Values(left)), "\n\n"))
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// smallQuestion is one pending, one waiting and one running job on two nodes, with what each stage needs to know.
func smallQuestion() question {
	seats := []core.Seat{Seat(0, 0, 1)}
	v := MakeView(MakeCluster().Nodes(2, "t4", 4).Obj()).Now(60).Round(2).Jobs(
		MakeJob("pending").Submit(30).Replicas(1).Work(100),
		MakeJob("waiting").Replicas(4).Waiting().Work(100),
		MakeJob("running").Replicas(2).Running(0, seats...).Work(100),
	).Obj()
	q := question{View: v}
	q.Jobs = v.Jobs[:1]
	q.Candidates = Candidates(v, Rigid)
	q.Grants = []core.Grant{
		{Job: 2, Accelerator: core.AnyAccelerator, Replicas: 2}, {Job: 1, Accelerator: core.AnyAccelerator, Replicas: 4},
	}
	q.Placements = []core.Placement{{Job: 2, Seats: seats}, {Job: 1, Seats: []core.Seat{Seat(1, 0, 1, 2, 3)}}}
	q.Plan = &core.Plan{Grants: q.Grants, Placements: q.Placements}
	return q
}
