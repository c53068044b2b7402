package core_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// story writes down what observers are told of each round, a line each.
type story struct{ rounds []string }

func (s *story) ObserveRound(r *core.Report) error {
	v := r.View
	line := fmt.Sprintf("%d at %v: active %v, waiting %d, used %d", v.Round, v.NowSeconds, v.Active, v.Waiting, r.DevicesUsed)
	if r.Repeated {
		line += ", repeated"
	}
	for _, c := range r.Changes {
		line += fmt.Sprintf("; %v %d", c.Action, c.Job)
		for _, seat := range c.Seats {
			line += fmt.Sprintf(" %d[%s]", seat.Node, seat.Devices)
		}
		if c.Reason != core.NoReason {
			line += " " + c.Reason.String()
		}
		line += " by " + c.By
	}
	for _, told := range r.Verdicts {
		line += fmt.Sprintf("; %d %v %v by %s", told.Job, told.Code, told.Reason, told.By)
	}
	for _, j := range r.Ended {
		line += fmt.Sprintf("; %d %v", j.ID, j.State)
	}
	if on := r.Resumed; on != nil {
		line += fmt.Sprintf("; resumed: %s, restored %v, lost %v", on.Why, on.Restored, on.Lost)
	}
	s.rounds = append(s.rounds, line)
	return nil
}

// memory is what a backend records, as a script.
type memory struct {
	replay            *script
	learned           []core.Learned
	kept, begun       []string
	failKeep, failNow error
}

func (m *memory) Replaying() bool {
	return m.replay != nil && len(m.replay.observations) > 0 && m.replay.observations[0].Decided != nil
}

func (m *memory) Learned() []core.Learned { return m.learned }

func (m *memory) Keep(l []core.Learned) error {
	m.kept = append(m.kept, fmt.Sprintf("%s", l))
	return m.failKeep
}

func (m *memory) Begin(round int, c *core.Composition, from []core.Learned) error {
	m.begun = append(m.begun, fmt.Sprintf("%d %q %s", round, c.Identity, from))
	return m.failNow
}

// learner counts how often it is asked, and takes up counting where one before it was.
type learner struct {
	grantAll
	asked  int
	broken bool
}

func (l *learner) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	l.asked++
	return l.grantAll.Allocate(ctx, v, candidates)
}

func (l *learner) Snapshot() ([]byte, error) {
	if l.broken {
		return nil, errors.New("nothing to tell")
	}
	return fmt.Append(nil, l.asked), nil
}

func (l *learner) Restore(learned []byte) error {
	if l.broken {
		return errors.New("of no use")
	}
	_, err := fmt.Sscan(string(learned), &l.asked)
	return err
}

func (l *learner) stages() core.Stages {
	s := fakes{}.stages()
	s.Allocation.Policy = l
	return s
}

func recorded(same bool, changes ...core.Change) *core.Decided {
	return &core.Decided{Changes: changes, Same: same, Learned: []core.Learned{{Component: "allocation/fake", Data: []byte("70")}}}
}

func started(id core.JobID, node core.NodeID, devices core.DeviceSet) core.Change {
	return core.Change{Round: 1, Action: core.Start, Job: id, Seats: []core.Seat{{Node: node, Devices: devices}}, By: "placement/fake"}
}

// Each run begins with two jobs of two devices each and is told of recorded rounds; the last round is new.
func TestRecordedRounds(t *testing.T) {
	alike := []core.Change{started(0, 0, 3), started(1, 0, 12)}
	swapped := []core.Change{started(0, 1, 3), started(1, 0, 3)}
	discarded := core.Change{Round: 1, Action: core.Discard, Job: 1, Reason: core.PolicyDecision, By: "admission/old"}
	moves := "; move 0 0[0,1] by placement/fake; move 1 0[2,3] by placement/fake"
	for name, tc := range map[string]struct {
		decided []*core.Decided
		admit   admitAll
		broken  bool
		want    []string
		begun   []string
		asked   int       // in the end, with what was restored
		wakes   []float64 // by when each round is due, after the first
	}{
		"the same composition decides alike": {
			decided: []*core.Decided{recorded(true, alike...)},
			want: []string{
				"1 at 0: active [0 1], waiting 0, used 4, repeated; start 0 0[0,1] by placement/fake; start 1 0[2,3] by placement/fake",
				"2 at 60: active [0 1], waiting 0, used 4",
			},
			asked: 2, wakes: []float64{60, 120},
		},
		"it decides otherwise": {
			decided: []*core.Decided{recorded(true, swapped...)},
			want: []string{
				"1 at 0: active [0 1], waiting 0, used 4, repeated; start 0 1[0,1] by placement/fake; start 1 0[0,1] by placement/fake",
				"2 at 60: active [0 1], waiting 0, used 4" + moves + "; resumed: round 1 was decided otherwise before, restored [allocation/fake], lost []",
			},
			begun: []string{`2 "" [{allocation/fake 50}]`}, asked: 51, wakes: []float64{0, 120},
		},
		"it rejects who was started": {
			decided: []*core.Decided{recorded(true, alike...)}, admit: admitAll{[]core.Verdict{{Job: 1, Code: core.Reject, Reason: core.PolicyDecision}}},
			want: []string{
				"1 at 0: active [0 1], waiting 0, used 4, repeated; start 0 0[0,1] by placement/fake; start 1 0[2,3] by placement/fake",
				"2 at 60: active [0 1], waiting 0, used 4; resumed: round 1 was decided otherwise before, restored [allocation/fake], lost []",
			},
			begun: []string{`2 "" [{allocation/fake 50}]`}, asked: 51, wakes: []float64{0, 120},
		},
		"it rejects who was left waiting": {
			decided: []*core.Decided{recorded(true, alike[0])}, admit: admitAll{[]core.Verdict{{Job: 1, Code: core.Reject, Reason: core.PolicyDecision}}},
			want: []string{
				"1 at 0: active [0], waiting 0, used 2, repeated; start 0 0[0,1] by placement/fake",
				"2 at 60: active [0 1], waiting 0, used 4; start 1 0[2,3] by placement/fake; resumed: round 1 was decided otherwise before, restored [allocation/fake], lost []",
			},
			begun: []string{`2 "" [{allocation/fake 50}]`}, asked: 51, wakes: []float64{0, 120},
		},
		"another composition decided": {
			decided: []*core.Decided{recorded(false, swapped...)},
			want: []string{
				"1 at 0: active [0 1], waiting 0, used 4, repeated; start 0 1[0,1] by placement/fake; start 1 0[0,1] by placement/fake",
				"2 at 60: active [0 1], waiting 0, used 4" + moves + "; resumed: the run was begun by another composition, restored [allocation/fake], lost []",
			},
			begun: []string{`2 "" [{allocation/fake 50}]`}, asked: 51, wakes: []float64{0, 120},
		},
		"another composition rejected a job": {
			decided: []*core.Decided{recorded(false, started(0, 1, 3), discarded)},
			want: []string{
				"1 at 0: active [0], waiting 0, used 2, repeated; start 0 1[0,1] by placement/fake; discard 1 policy_decision by admission/old; 1 reject policy_decision by admission/old; 1 rejected",
				"2 at 60: active [0], waiting 0, used 2; move 0 0[0,1] by placement/fake; resumed: the run was begun by another composition, restored [allocation/fake], lost []",
			},
			begun: []string{`2 "" [{allocation/fake 50}]`}, asked: 51, wakes: []float64{0, 120},
		},
		"another composition left a job waiting": {
			decided: []*core.Decided{recorded(false, started(1, 0, 3))},
			want: []string{
				"1 at 0: active [1], waiting 0, used 2, repeated; start 1 0[0,1] by placement/fake",
				"2 at 60: active [0 1], waiting 0, used 4; start 0 0[0,1] by placement/fake; move 1 0[2,3] by placement/fake; resumed: the run was begun by another composition, restored [allocation/fake], lost []",
			},
			begun: []string{`2 "" [{allocation/fake 50}]`}, asked: 51, wakes: []float64{0, 120},
		},
		"another composition, and then this one": {
			decided: []*core.Decided{recorded(false, alike...), recorded(true)},
			want: []string{
				"1 at 0: active [0 1], waiting 0, used 4, repeated; start 0 0[0,1] by placement/fake; start 1 0[2,3] by placement/fake",
				"2 at 60: active [0 1], waiting 0, used 4, repeated; resumed: the run was begun by another composition, restored [allocation/fake], lost []",
				"3 at 120: active [0 1], waiting 0, used 4",
			},
			asked: 72, wakes: []float64{0, 120, 180},
		},
		"of what was learned nothing is of use": {
			decided: []*core.Decided{recorded(false, alike...)}, broken: true,
			want: []string{
				"1 at 0: active [0 1], waiting 0, used 4, repeated; start 0 0[0,1] by placement/fake; start 1 0[2,3] by placement/fake",
				"2 at 60: active [0 1], waiting 0, used 4; resumed: the run was begun by another composition, restored [], lost [allocation/fake: of no use]",
			},
			begun: []string{`2 "" [{allocation/fake 50}]`}, asked: 1, wakes: []float64{0, 120},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{}
			for i, d := range append(tc.decided, nil) {
				seen := core.Observation{NowSeconds: 60 * float64(i), Decided: d}
				if i == 0 {
					seen.Events = []core.Event{submit(0, 0, 2), submit(1, 0, 2)}
				}
				b.observations = append(b.observations, seen)
			}
			var told story
			current := &learner{broken: tc.broken}
			stages := current.stages()
			stages.Admission[0].Policy = tc.admit
			m := &memory{replay: b, learned: []core.Learned{{Component: "allocation/none", Data: []byte("8")}, {Component: "allocation/fake", Data: []byte("50")}}}
			m.learned = m.learned[1:]
			p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{
				Rounds:    core.RoundOptions{IntervalSeconds: 60},
				Observers: []core.Observer{&told},
				Memory:    m,
				NewStages: func(context.Context) (core.Stages, error) {
					current = &learner{broken: tc.broken}
					return current.stages(), nil
				},
			})
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			for i := range told.rounds {
				if _, why, found := strings.Cut(told.rounds[i], "decided otherwise before: "); found {
					_, rest, _ := strings.Cut(why, ", restored")
					told.rounds[i] = strings.Replace(told.rounds[i], ": "+strings.TrimSuffix(why, ", restored"+rest), "", 1)
				}
			}
			if diff := cmp.Diff(tc.want, told.rounds); diff != "" {
				t.Errorf("rounds (-want +got):\n%s", diff)
			}
			for _, j := range p.Unfinished() {
				if j.State.Ended() {
					t.Errorf("job %d is %v and still there", j.ID, j.State)
				}
			}
			if diff := cmp.Diff(tc.begun, m.begun); diff != "" {
				t.Errorf("begun (-want +got):\n%s", diff)
			}
			if current.asked != tc.asked {
				t.Errorf("asked %d times, want %d", current.asked, tc.asked)
			}
			var wakes []float64
			for _, w := range b.wakes[1:] {
				wakes = append(wakes, w.BySeconds)
			}
			if diff := cmp.Diff(tc.wakes, wakes); diff != "" {
				t.Errorf("wakes (-want +got):\n%s", diff)
			}
			if kept := fmt.Sprintf("[[{allocation/fake %d}]]", tc.asked); !tc.broken && fmt.Sprint(m.kept) != kept {
				t.Errorf("kept %v, want %v", m.kept, kept)
			}
		})
	}
}

// Whatever a record has otherwise is told, and ends a run that cannot go on from it.
func TestARecordThatDiffersIsTold(t *testing.T) {
	with := func(change func(*core.Change)) []core.Change {
		c := started(1, 0, 12)
		change(&c)
		return []core.Change{started(0, 0, 3), c}
	}
	const now = " is now "
	for name, tc := range map[string]struct {
		changes []core.Change
		same    bool
		want    string
	}{
		"one less":            {[]core.Change{started(0, 0, 3)}, true, "start job 1 is new"},
		"one more":            {append(with(func(*core.Change) {}), stopped(0)), true, "stop job 0 is missing"},
		"another round":       {with(func(c *core.Change) { c.Round = 2 }), true, now},
		"another action":      {with(func(c *core.Change) { c.Action = core.Move }), true, now},
		"another job":         {with(func(c *core.Change) { c.Job = 0 }), true, now},
		"another reason":      {with(func(c *core.Change) { c.Reason = core.Fragmented }), true, now},
		"another component":   {with(func(c *core.Change) { c.By = "placement/other" }), true, now},
		"other seats":         {with(func(c *core.Change) { c.Seats = []core.Seat{{Node: 1, Devices: 3}} }), true, now},
		"another tuning":      {with(func(c *core.Change) { c.Tuning.BatchPerDevice = 8 }), true, now},
		"a job that is not":   {[]core.Change{started(7, 0, 3)}, false, "a record has start of job 7, which is not there"},
		"a node that is not":  {[]core.Change{started(1, 2, 3)}, false, `a record has job "b" on node 2, which is not there`},
		"a node below all":    {[]core.Change{started(1, -1, 3)}, false, `a record has job "b" on node -1, which is not there`},
		"nothing of the kind": {with(func(*core.Change) {}), true, ""},
		"on the last node":    {[]core.Change{started(1, 1, 3)}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}, Decided: recorded(tc.same, tc.changes...)}}}
			err := core.NewPipeline(twoNodes(), (&learner{}).stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(t.Context(), b)
			if got := fmt.Sprint(err); (err == nil) != (tc.want == "") || !strings.Contains(got, tc.want) && err != nil || err != nil && !strings.HasPrefix(got, "round 1") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

func stopped(id core.JobID) core.Change {
	return core.Change{Round: 1, Action: core.Stop, Job: id, By: "allocation/fake"}
}

// What was learned is kept every 32 new rounds and at the end, if there is anything new.
func TestWhatIsLearnedIsKept(t *testing.T) {
	for rounds, want := range map[int][]string{
		0: nil, 1: {"1"}, 31: {"31"}, 32: {"32"}, 33: {"32", "33"}, 64: {"32", "64"}, 70: {"32", "64", "70"},
	} {
		t.Run(fmt.Sprint(rounds), func(t *testing.T) {
			b, m := &script{}, &memory{}
			for i := range rounds {
				seen := core.Observation{NowSeconds: 60 * float64(i)}
				if i == 0 {
					seen.Events = []core.Event{submit(0, 0, 2)}
				}
				b.observations = append(b.observations, seen)
			}
			p := core.NewPipeline(twoNodes(), (&learner{}).stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Memory: m})
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			for i := range want {
				want[i] = "[{allocation/fake " + want[i] + "}]"
			}
			if diff := cmp.Diff(want, m.kept); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

// A run that ends for whatever reason keeps what was learned, and tells of it when that fails.
func TestFailuresToKeep(t *testing.T) {
	full, gone := errors.New("disk full"), errors.New("gone")
	for name, tc := range map[string]struct {
		rounds int
		next   error // of the backend, after the rounds
		want   string
	}{
		"at the end":          {1, io.EOF, "round 1: keep what was learned: disk full"},
		"in between":          {32, io.EOF, "round 32: keep what was learned: disk full"},
		"the backend fails":   {1, gone, "wait for round 2: gone\nround 1: keep what was learned: disk full"},
		"before any round":    {0, gone, "wait for round 1: gone"},
		"the context is over": {1, context.Canceled, "context canceled\nround 1: keep what was learned: disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b := &failing{last: tc.next}
			for i := range tc.rounds {
				seen := core.Observation{NowSeconds: 60 * float64(i)}
				if i == 0 {
					seen.Events = []core.Event{submit(0, 0, 2)}
				}
				b.observations = append(b.observations, seen)
			}
			if errors.Is(tc.next, context.Canceled) {
				b.atEnd = cancel
			}
			p := core.NewPipeline(twoNodes(), (&learner{}).stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Memory: &memory{failKeep: full}})
			if got := strings.TrimPrefix(fmt.Sprint(p.Run(ctx, b)), "wait for round 2: context canceled\n"); got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}

// failing is a script whose end is an error, or that of the context after the last round.
type failing struct {
	script
	last  error
	atEnd func()
}

func (f *failing) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if len(f.observations) == 0 {
		return core.Observation{}, f.last
	}
	return f.script.Next(ctx, w)
}

func (f *failing) Apply(ctx context.Context, c []core.Change) error {
	if f.atEnd != nil && len(f.observations) == 0 {
		f.atEnd()
	}
	return f.script.Apply(ctx, c)
}

// asking holds a round when it is due, and otherwise waits for the context. It tells when it waits.
type asking struct {
	script
	waits chan struct{}
}

func (a *asking) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if len(a.observations) > 0 && (w.BySeconds <= 0 || len(a.wakes) == 0) {
		return a.script.Next(ctx, w)
	}
	a.waits <- struct{}{}
	<-ctx.Done()
	return core.Observation{}, ctx.Err()
}

func TestReplace(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	b := &asking{waits: make(chan struct{}, 1), script: script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2)}}, {}}}}
	var told story
	m := &memory{}
	p := core.NewPipeline(twoNodes(), (&learner{asked: 4}).stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}, Memory: m})
	other := &learner{}
	composition := &core.Composition{Stages: other.stages(), Options: core.RoundOptions{IntervalSeconds: 7, OnEvents: true}, Identity: "second"}
	if err := core.NewPipeline(twoNodes(), (&learner{}).stages(), core.PipelineOptions{}).Replace(ctx, composition); err == nil {
		t.Error("a pipeline without a memory took another composition")
	}
	ended := make(chan error)
	go func() { ended <- p.Run(ctx, b) }()
	<-b.waits
	if err := p.Replace(ctx, composition); err != nil {
		t.Fatal(err)
	}
	<-b.waits
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	want := []string{
		"1 at 0: active [0], waiting 0, used 2; start 0 0[0,1] by placement/fake",
		"2 at 0: active [0], waiting 0, used 2; resumed: the config was changed, restored [allocation/fake], lost []",
	}
	if diff := cmp.Diff(want, told.rounds); diff != "" {
		t.Errorf("rounds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`2 "second" [{allocation/fake 5}]`}, m.begun); diff != "" {
		t.Errorf("begun (-want +got):\n%s", diff)
	}
	if other.asked != 6 {
		t.Errorf("the new stages were asked %d times, want 6", other.asked)
	}
	if last := b.wakes[len(b.wakes)-1]; last.IntervalSeconds != 7 || !last.OnEvents {
		t.Errorf("the last round was waited for with %+v, want the new interval", last)
	}
}

// Who wants to take over when the run has ended, or ends meanwhile, is told so, and not kept waiting.
func TestReplaceAfterTheEnd(t *testing.T) {
	p := core.NewPipeline(twoNodes(), (&learner{}).stages(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}, Memory: &memory{}})
	waits, done := &entered{Context: t.Context(), waits: make(chan struct{})}, make(chan error)
	go func() { done <- p.Replace(waits, &core.Composition{Stages: (&learner{}).stages()}) }()
	<-waits.waits
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(over, &script{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	const want = "the run has ended"
	if err := <-done; err == nil || err.Error() != want {
		t.Errorf("who waited is told %v, want %q", err, want)
	}
	if err := p.Replace(t.Context(), &core.Composition{Stages: (&learner{}).stages()}); err == nil || err.Error() != want {
		t.Errorf("who came late is told %v, want %q", err, want)
	}
}

// Stages that take over are told of between two rounds, with how many were held.
func TestReplaceTellsWhenItHasBegun(t *testing.T) {
	b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2)}}}}
	p := core.NewPipeline(twoNodes(), (&learner{}).stages(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}, Memory: &memory{}})
	other := &learner{}
	begun := ""
	waits, done := &entered{Context: t.Context(), waits: make(chan struct{})}, make(chan error)
	go func() {
		done <- p.Replace(waits, &core.Composition{
			Stages: other.stages(), Options: core.RoundOptions{OnEvents: true},
			Begun: func(rounds int, taken *core.Resumed) {
				begun += fmt.Sprintf("%d rounds, asked %d times, now %s", rounds, other.asked, taken.Now.Allocation)
			},
		})
	}()
	<-waits.waits
	if err := errors.Join(p.Run(t.Context(), b), <-done); err != nil {
		t.Fatal(err)
	}
	if want := "0 rounds, asked 0 times, now allocation/fake"; begun != want {
		t.Errorf("begun %q, want %q", begun, want)
	}
}

// entered is a context that tells when somebody waits for its end.
type entered struct {
	context.Context
	once  sync.Once
	waits chan struct{}
}

func (e *entered) Done() <-chan struct{} {
	e.once.Do(func() { close(e.waits) })
	return e.Context.Done()
}

// Before the first round nothing is due at once; and what cannot be recorded does not take over.
func TestReplaceBeforeTheFirstRound(t *testing.T) {
	for name, tc := range map[string]struct {
		memory *memory
		want   string
		by     float64
		asked  int
	}{
		"it takes over":         {&memory{}, "<nil>", math.Inf(1), 1},
		"it cannot be recorded": {&memory{failNow: io.ErrShortWrite}, "record the new composition: short write", math.Inf(1), 0},
		"nor what was learned":  {&memory{failKeep: io.ErrShortWrite}, "record the new composition: short write", math.Inf(1), 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2)}}}}
			p := core.NewPipeline(twoNodes(), (&learner{}).stages(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}, Memory: tc.memory})
			other := &learner{}
			done := make(chan error)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := p.Replace(ctx, &core.Composition{Stages: other.stages()}); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want that of the context", err)
			}
			waits := &entered{Context: t.Context(), waits: make(chan struct{})}
			go func() {
				done <- p.Replace(waits, &core.Composition{Stages: other.stages(), Options: core.RoundOptions{OnEvents: true}})
			}()
			<-waits.waits
			if err := p.Replace(t.Context(), &core.Composition{}); err == nil || err.Error() != "another composition is about to take over" {
				t.Errorf("error %v, want one that tells of the first", err)
			}
			err := p.Run(t.Context(), b)
			if tc.memory.failKeep == nil && err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(<-done); got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
			if b.wakes[0].BySeconds != tc.by {
				t.Errorf("the first round is due by %v s, want %v s", b.wakes[0].BySeconds, tc.by)
			}
			if other.asked != tc.asked {
				t.Errorf("asked %d times, want %d", other.asked, tc.asked)
			}
		})
	}
}

// While recorded rounds are told, nobody takes over; stages that cannot be created again, or be recorded, end the run.
func TestTakingOverFails(t *testing.T) {
	for name, tc := range map[string]struct {
		again   error
		failNow error
		same    bool
		want    string
	}{
		"the stages cannot be created": {again: errors.New("no such plugin"), same: true, want: "round 2: create the stages again: no such plugin"},
		"nobody can record it":         {failNow: errors.New("disk full"), want: "round 2: record the new composition: disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{
				{Events: []core.Event{submit(0, 0, 2)}, Decided: recorded(tc.same, started(0, 1, 3))}, {NowSeconds: 60},
			}}
			p := core.NewPipeline(twoNodes(), (&learner{}).stages(), core.PipelineOptions{
				Rounds:    core.RoundOptions{IntervalSeconds: 60},
				Memory:    &memory{replay: b, failNow: tc.failNow},
				NewStages: func(context.Context) (core.Stages, error) { return (&learner{}).stages(), tc.again },
			})
			if got := fmt.Sprint(p.Run(t.Context(), b)); got != tc.want {
				t.Errorf("error %q, want %q", got, tc.want)
			}
		})
	}
}
