package core_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// asked stands in for stages that a test writes as functions; one that is nil does the simplest thing.
type asked struct {
	fakes
	admit    func(v *core.View, waiting []*core.Job) []core.Verdict
	allocate func(v *core.View, candidates []core.Candidate) []core.Grant
	place    func(grants []core.Grant) core.Seating
	respond  func(v *core.View, jobs []*core.Job)
	tune     func(v *core.View) []core.Tuning
	scale    func(plan *core.Plan)
	ended    func(jobs []*core.Job)
	recover  func(error) bool
}

func (a *asked) Admit(_ context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	if a.admit == nil {
		return nil, nil
	}
	return a.admit(v, waiting), nil
}

func (a *asked) Allocate(ctx context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	if a.allocate == nil {
		return a.grant.Allocate(ctx, v, candidates)
	}
	return a.allocate(v, candidates), nil
}

func (a *asked) Place(ctx context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	if a.place == nil {
		return a.seat.Place(ctx, v, grants)
	}
	return a.place(grants), nil
}

func (a *asked) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	if a.respond != nil {
		a.respond(v, jobs)
	}
	return a.fixed.Respond(ctx, v, jobs)
}

func (a *asked) Tune(_ context.Context, v *core.View, _ []core.Placement) ([]core.Tuning, error) {
	if a.tune == nil {
		return nil, nil
	}
	return a.tune(v), nil
}

func (a *asked) Scale(_ context.Context, _ *core.View, plan *core.Plan) (core.ClusterTarget, error) {
	if a.scale != nil {
		a.scale(plan)
	}
	return core.ClusterTarget{Nodes: 2}, nil
}

func (a *asked) Ended(_ context.Context, _ *core.View, jobs []*core.Job) error {
	if a.ended != nil {
		a.ended(jobs)
	}
	return nil
}

func (a *asked) Recover(_ context.Context, broken error) (bool, error) {
	return a.recover != nil && a.recover(broken), broken
}

func (a *asked) stages() core.Stages {
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/asked", Policy: a}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/asked", Policy: a},
		Placement:  core.Component[core.Placer]{ID: "placement/asked", Policy: a},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/asked", Policy: a},
		Scaler:     core.Component[core.ClusterScaler]{ID: "scaler/asked", Policy: a},
	}
}

// rounds holds one round a minute for each list of events, and returns the pipeline.
func rounds(t *testing.T, stages core.Stages, b *script, o core.Observer, events ...[]core.Event) *core.Pipeline {
	t.Helper()
	for i, list := range events {
		b.observations = append(b.observations, core.Observation{NowSeconds: 60 * float64(i), Events: list})
	}
	p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{o}})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return p
}

// observe is an observer as a function.
type observe func(*core.Report)

func (o observe) ObserveRound(r *core.Report) error {
	o(r)
	return nil
}

// copied keeps a copy of the jobs of a view, and tells which of them changed without an entry in the journal.
type copied struct {
	cursor int
	jobs   []string
}

func (c *copied) missed(v *core.View) (ids []core.JobID) {
	changed, next, _ := v.ChangesSince(c.cursor)
	c.cursor = next
	for id, j := range v.Jobs {
		is := ""
		if j != nil {
			is = fmt.Sprintf("%+v", *j)
		}
		if id >= len(c.jobs) {
			c.jobs = append(c.jobs, "")
		}
		if is != c.jobs[id] && !slices.Contains(changed, core.JobID(id)) {
			ids = append(ids, core.JobID(id))
		}
		c.jobs[id] = is
	}
	return ids
}

// Jobs 0 to 4 are deferred at first. Then 0 is admitted, 1 rejected, and 2 told another reason; 3 is evicted to where it was.
func TestTheJournalTellsOfEveryChange(t *testing.T) {
	var outside, inside copied
	a := &asked{}
	round := 0
	a.admit = func(v *core.View, waiting []*core.Job) (verdicts []core.Verdict) {
		round = v.Round
		for _, j := range waiting {
			said := core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.PolicyDecision}
			switch {
			case j.ID == 0 && v.Round > 1:
				said = core.Verdict{Job: j.ID, Code: core.Admit}
			case j.ID == 1 && v.Round > 1:
				said.Code = core.Reject
			case j.ID == 2 && v.Round > 1:
				said.Reason = core.BlockedByEarlier
			case j.ID == 3:
				continue
			}
			verdicts = append(verdicts, said)
		}
		return verdicts
	}
	a.allocate = func(v *core.View, candidates []core.Candidate) (grants []core.Grant) {
		if ids := inside.missed(v); len(ids) > 0 {
			t.Errorf("round %d: the allocator is not told of changes of jobs %v", v.Round, ids)
		}
		for _, c := range candidates {
			grants = append(grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: 2})
			if c.ID == 0 && c.WaitingReason != core.NoReason && c.State == core.Waiting && v.Round == 2 {
				t.Errorf("an admitted job waits for %v, want no reason yet", c.WaitingReason)
			}
		}
		return grants
	}
	a.seat.change = func(s core.Seating) core.Seating {
		for i := range s.Placed {
			s.Placed[i].Evicted = s.Placed[i].Job == 3 && round == 4
			if s.Placed[i].Job == 3 {
				s.Placed[i].Seats = []core.Seat{{Node: 1, Devices: 3}}
			} else {
				s.Placed[i].Seats = []core.Seat{{Node: 0, Devices: 3}}
			}
		}
		return s
	}
	first := []core.Event{submit(0, 0, 2), submit(1, 0, 2), submit(2, 0, 2), submit(3, 0, 2)}
	preempted := 0
	p := rounds(t, a.stages(), &script{}, observe(func(r *core.Report) {
		if ids := outside.missed(r.View); len(ids) > 0 {
			t.Errorf("round %d: nobody is told of changes of jobs %v", r.View.Round, ids)
		}
		preempted = r.View.Job(3).Preemptions
	}), first, nil, nil, []core.Event{submit(4, 180, 2)}, nil)
	if j := p.Unfinished()[0]; j.ID != 0 || j.State != core.Running {
		t.Errorf("job %d is %v, want job 0 admitted and running", j.ID, j.State)
	}
	if preempted != 1 || len(p.Unfinished()) != 4 {
		t.Errorf("%d preemptions and %d jobs, want 1 and 4", preempted, len(p.Unfinished()))
	}
}

// What a stage said that broke a rule is forgotten before it is asked again.
func TestAnAnswerThatDidNotHoldIsForgotten(t *testing.T) {
	t.Run("tunings", func(t *testing.T) {
		a, calls, b := &asked{}, 0, &script{}
		a.recover = func(error) bool { return calls == 1 }
		a.tune = func(*core.View) []core.Tuning {
			if calls++; calls == 1 {
				return []core.Tuning{{Job: 0}, {Job: 0}}
			}
			return []core.Tuning{{Job: 0, BatchPerDevice: 3}}
		}
		rounds(t, a.stages(), b, observe(func(*core.Report) {}), []core.Event{submit(0, 0, 2)})
		if len(b.applied) != 1 || b.applied[0].Tuning.BatchPerDevice != 3 {
			t.Errorf("applied %+v, want the second tuning", b.applied)
		}
	})
	t.Run("a refusal that blocked", func(t *testing.T) {
		a, calls := &asked{}, 0
		var told recorder
		a.recover = func(error) bool { return calls == 1 }
		a.allocate = func(*core.View, []core.Candidate) []core.Grant {
			return []core.Grant{{Job: 0, Accelerator: core.AnyAccelerator, Replicas: 2, Blocking: true}}
		}
		a.place = func([]core.Grant) core.Seating {
			seating := core.Seating{Placed: []core.Placement{{Job: 0, Seats: []core.Seat{{Node: 0, Devices: 3}}}}}
			if calls++; calls == 1 {
				refused := core.Verdict{Job: 0, Code: core.Defer, Reason: core.Fragmented}
				return core.Seating{Unseated: []core.Verdict{refused, refused}}
			}
			return seating
		}
		rounds(t, a.stages(), &script{}, &told, []core.Event{submit(0, 0, 2), submit(1, 0, 2)})
		want := []core.Verdict{{Job: 1, Code: core.Defer, Reason: core.WaitingForDevices, By: "pipeline"}}
		if diff := cmp.Diff(want, told.verdicts); diff != "" {
			t.Errorf("verdicts (-want +got):\n%s", diff)
		}
	})
}

// Stages are asked only when there is something to ask, and admitters once for each round.
func TestNobodyIsAskedAboutNothing(t *testing.T) {
	var calls []string
	a := &asked{}
	a.ended = func(jobs []*core.Job) { calls = append(calls, fmt.Sprint("ended ", len(jobs))) }
	a.respond = func(_ *core.View, jobs []*core.Job) {
		for _, j := range jobs {
			calls = append(calls, fmt.Sprint("respond ", j.ID))
		}
	}
	a.admit = func(_ *core.View, waiting []*core.Job) (verdicts []core.Verdict) {
		for _, j := range waiting {
			calls = append(calls, fmt.Sprint("admit ", j.ID))
			if j.ID == 2 {
				verdicts = append(verdicts, core.Verdict{Job: 2, Code: core.Defer, Reason: core.PolicyDecision})
			}
		}
		return verdicts
	}
	a.tune = func(v *core.View) []core.Tuning {
		calls = append(calls, "tune")
		return []core.Tuning{{Job: v.Active[0], BatchPerDevice: 4}}
	}
	a.scale = func(plan *core.Plan) {
		calls = append(calls, fmt.Sprintf("scale %d %+v", len(plan.Tunings), plan.Cluster))
	}
	stages := a.stages()
	stages.Admission = append([]core.Component[core.Admitter]{{ID: "admission/first", Policy: admitAll{}}}, stages.Admission...)
	end := func(kind core.EventKind, id core.JobID, at float64) core.Event {
		return core.Event{Kind: kind, Job: id, AtSeconds: at}
	}
	rounds(t, stages, &script{}, observe(func(r *core.Report) {
		if !slices.IsSorted(r.View.Changed) {
			t.Errorf("round %d: changed %v, want them in order", r.View.Round, r.View.Changed)
		}
		calls = append(calls, "-")
	}),
		[]core.Event{submit(2, 0, 2), submit(0, 0, 2)},
		nil,
		[]core.Event{{Kind: core.JobProgressed, Job: 0, AtSeconds: 110}, end(core.JobCancelled, 2, 115), end(core.JobFinished, 0, 120)})
	want := []string{
		"respond 0", "respond 2", "admit 0", "admit 2", "tune", "scale 1 {Nodes:0 Pools:[]}", "-",
		"admit 2", "tune", "scale 1 {Nodes:0 Pools:[]}", "-",
		"ended 2", "scale 0 {Nodes:0 Pools:[]}", "-",
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestWhatAnEndedJobHasDone(t *testing.T) {
	for name, tc := range map[string]struct {
		kind           core.EventKind
		total, of      float64
		want           float64
		wantsEventKind core.JobState
	}{
		"all of its work":             {core.JobFinished, 10, 9.99, 10, core.Completed},
		"what it told, of unknown":    {core.JobFinished, 0, 7, 7, core.Completed},
		"what it told, when it fails": {core.JobFailed, 10, 4, 4, core.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			e := submit(0, 0, 2)
			e.Spec.TotalWork = tc.total
			var told recorder
			rounds(t, fakes{}.stages(), &script{}, &told, []core.Event{e}, []core.Event{{Kind: tc.kind, AtSeconds: 50, Progress: tc.of}})
			if len(told.ended) != 1 || told.ended[0].Progress != tc.want || told.ended[0].State != tc.wantsEventKind {
				t.Errorf("ended %+v, want one with %v done", told.ended, tc.want)
			}
		})
	}
}

// Only a job that mixes types is refused on behalf of an allocator that does not.
func TestWhoRefusesALargeJob(t *testing.T) {
	for name, tc := range map[string]struct {
		mixes, oneType bool
		replicas       int
		by             string
	}{
		"it does not mix types":      {false, true, 6, "pipeline"},
		"the allocator mixes them":   {true, false, 9, "pipeline"},
		"the allocator mixes none":   {true, true, 6, "allocation/fake"},
		"it is larger than them all": {true, true, 9, "allocation/fake"},
	} {
		t.Run(name, func(t *testing.T) {
			e := submit(0, 0, tc.replicas)
			e.Spec.MixesTypes = tc.mixes
			stages := fakes{}.stages()
			stages.Allocation.OneType = tc.oneType
			var told recorder
			rounds(t, stages, &script{}, &told, []core.Event{e})
			if len(told.verdicts) != 1 || told.verdicts[0].By != tc.by || (told.verdicts[0].Message != "") != (tc.by != "pipeline") {
				t.Errorf("got %+v, want a verdict by %s", told.verdicts, tc.by)
			}
		})
	}
}

// What is applied does not change when a stage uses its buffer again.
func TestASplitIsCopied(t *testing.T) {
	a, b, split := &asked{}, &script{}, []int{5, 5}
	a.tune = func(v *core.View) []core.Tuning {
		copy(split, [][]int{{5, 5}, {7, 3}, {1, 9}}[v.Round-1])
		return []core.Tuning{{BatchByReplica: split}}
	}
	rounds(t, a.stages(), b, observe(func(*core.Report) {}), []core.Event{submit(0, 0, 2)}, nil, nil)
	var got [][]int
	for _, c := range b.applied {
		got = append(got, c.Tuning.BatchByReplica)
	}
	if diff := cmp.Diff([][]int{{5, 5}, {7, 3}, {1, 9}}, got); diff != "" {
		t.Errorf("splits (-want +got):\n%s", diff)
	}
}

// A job that could run on one device and was granted four waits for four.
func TestAGrantSaysHowManyDevicesAreMissing(t *testing.T) {
	e := submit(0, 0, 4)
	f := fakes{
		fixed: rigid{respond: func(r []core.Response) []core.Response { r[0].MinReplicas = 1; return r }},
		grant: grantAll{change: func(g []core.Grant) []core.Grant { g[0].Replicas = 4; return g }},
	}
	f.seat.change = func(core.Seating) core.Seating {
		return core.Seating{Unseated: []core.Verdict{{Code: core.Defer, Reason: core.WaitingForDevices}}}
	}
	var told recorder
	down := []core.Event{{Kind: core.NodeChanged, Node: 0, Health: core.Down}, {Kind: core.NodeChanged, Node: 1, Health: core.Down}, e}
	rounds(t, f.stages(), &script{}, &told, down)
	if len(told.verdicts) != 1 || told.verdicts[0].Wanted != 4 {
		t.Errorf("got %+v, want 4 devices missing", told.verdicts)
	}
}

// Without an interval nothing is due; with one, a round is while anybody runs or waits, and not for a restless scaler alone.
func TestWhenARoundIsDue(t *testing.T) {
	deferred := fakes{admit: admitAll{[]core.Verdict{{Job: 1, Code: core.Defer, Reason: core.PolicyDecision}}}}
	scaled := (&asked{}).stages()
	for name, tc := range map[string]struct {
		stages   core.Stages
		interval float64
		events   []core.Event
		want     float64
	}{
		"without an interval":          {fakes{}.stages(), 0, []core.Event{submit(0, 0, 2)}, math.Inf(1)},
		"one job runs and one waits":   {deferred.stages(), 60, []core.Event{submit(0, 0, 2), submit(1, 0, 2)}, 60},
		"nobody runs, and none waits":  {scaled, 60, nil, math.Inf(1)},
		"a job runs beside the scaler": {scaled, 60, []core.Event{submit(0, 0, 2)}, 60},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: tc.events}}}
			if err := core.NewPipeline(twoNodes(), tc.stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: tc.interval}}).Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if got := b.wakes[1].BySeconds; got != tc.want {
				t.Errorf("the second round is due by %v s, want %v s", got, tc.want)
			}
		})
	}
}

// A recorded round leaves nothing behind: the next one certifies, explains and seats as any other.
func TestARecordedRoundLeavesNothingBehind(t *testing.T) {
	var told recorder
	var gaps []float64
	seats := []core.Seat{{Node: 0, Devices: 15}}
	recorded := &core.Decided{Changes: []core.Change{{Round: 1, Action: core.Start, Job: 0, Seats: seats, By: "placement/old"}}}
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 4), submit(1, 0, 4), submit(2, 0, 4)}, Decided: recorded}, {NowSeconds: 60},
	}}
	stages := fakes{grant: grantAll{gap: 0.25}}.stages()
	p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{
		Rounds: core.RoundOptions{IntervalSeconds: 60},
		Observers: []core.Observer{&told, observe(func(r *core.Report) {
			gaps = append(gaps, r.GapRatio)
			if seats[0].Devices = 1; r.View.Job(0).Seats[0].Devices != 15 {
				t.Error("the seats of a job are those of the record")
			}
		})},
	})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	want := []core.Verdict{{Job: 2, Code: core.Defer, Reason: core.WaitingForDevices, By: "placement/fake"}}
	if diff := cmp.Diff(want, told.verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	if len(gaps) != 2 || !math.IsNaN(gaps[0]) || gaps[1] != 0.25 {
		t.Errorf("gaps %v, want none of the record and 0.25", gaps)
	}
}

// The error of a stage is the reason that is told when a record cannot be followed.
func TestAStageThatFailsIsWhyARecordDiffers(t *testing.T) {
	stages := fakes{grant: grantAll{gap: 2}}.stages()
	b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2)}, Decided: recorded(true, started(0, 0, 3))}}}
	err := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(t.Context(), b)
	if err == nil || !strings.Contains(err.Error(), core.RuleGapSane) {
		t.Errorf("error %v, want one about %q", err, core.RuleGapSane)
	}
}

// remembers is a stage of any slot with something learned.
type remembers struct {
	*asked
	what string
}

func (r remembers) Snapshot() ([]byte, error) { return []byte(r.what), nil }
func (r remembers) Restore([]byte) error      { return nil }

// Rounds that were recorded teach nothing new; after a new one, every slot is kept.
func TestEverySlotIsKept(t *testing.T) {
	stages, a, m := (&asked{}).stages(), &asked{}, &memory{}
	stages.Admission[0].Policy = remembers{a, "1"}
	stages.Allocation.Policy = remembers{a, "2"}
	stages.Placement.Policy = remembers{a, "3"}
	stages.Elasticity.Policy = remembers{a, "4"}
	stages.Scaler.Policy = remembers{a, "5"}
	first := core.Change{Round: 1, Action: core.Start, Seats: []core.Seat{{Devices: 3}}, By: "placement/asked"}
	b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2)}, Decided: &core.Decided{Same: true, Changes: []core.Change{first}}}}}
	for i := range 40 {
		b.observations = append(b.observations, core.Observation{NowSeconds: 60 * float64(i+1), Decided: &core.Decided{Same: true}})
	}
	b.observations = append(b.observations, core.Observation{NowSeconds: 6000})
	m.replay = b
	p := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{
		Rounds:    core.RoundOptions{IntervalSeconds: 60},
		Memory:    m,
		NewStages: func(context.Context) (core.Stages, error) { return core.Stages{}, errors.New("not needed") },
	})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	want := []string{"[{admission/asked 1} {allocation/asked 2} {placement/asked 3} {elasticity/asked 4} {scaler/asked 5}]"}
	if diff := cmp.Diff(want, m.kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// live is a backend that is not asked for a round that nobody waits for.
type live struct {
	*script
	t *testing.T
}

func (l live) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if ctx.Err() != nil {
		l.t.Error("asked for a round that is waited for no longer")
	}
	return l.script.Next(ctx, w)
}

// Another composition waits until the recorded rounds are told.
func TestReplaceWaitsForTheRecord(t *testing.T) {
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 2)}, Decided: recorded(true, started(0, 0, 3))}, {NowSeconds: 60},
	}}
	m := &memory{replay: b}
	var intervals []float64
	var healths []int
	p := core.NewPipeline(twoNodes(), (&learner{}).stages(), core.PipelineOptions{
		Rounds: core.RoundOptions{IntervalSeconds: 60},
		Observers: []core.Observer{observe(func(r *core.Report) {
			intervals, healths = append(intervals, r.View.IntervalSeconds), append(healths, r.View.HealthChanges)
		})},
		Memory: m,
	})
	waits, done := &entered{Context: t.Context(), waits: make(chan struct{})}, make(chan error)
	go func() {
		done <- p.Replace(waits, &core.Composition{Stages: (&learner{}).stages(), Options: core.RoundOptions{IntervalSeconds: 7}, Identity: "second"})
	}()
	<-waits.waits
	if err := p.Run(t.Context(), live{b, t}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{`2 "second" [{allocation/fake 1}]`}, m.begun); diff != "" {
		t.Errorf("begun (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{60, 7}, intervals); diff != "" {
		t.Errorf("intervals (-want +got):\n%s", diff)
	}
	if len(healths) != 2 || healths[1] == healths[0] {
		t.Errorf("health changes %v, want another number for the new stages", healths)
	}
}

func TestNestedAndRequiredSettings(t *testing.T) {
	type deep struct {
		Lists   [][][][][][][][][]int    `config:"lists"`
		Object  [][][][][][][]struct{}   `config:"object"`
		Objects [][][][][][][][]struct{} `config:"objects"`
		Needed  int                      `config:"needed" required:"true"`
		Given   int                      `config:"given"`
	}
	eight := strings.Repeat("list of ", 8)
	want := map[string][2]string{
		"lists": {eight + "unsupported []int", ""}, "object": {strings.Repeat("list of ", 7) + "object", "[]"},
		"objects": {eight + "unsupported struct {}", ""}, "needed": {"int", ""}, "given": {"int", "3"},
	}
	got := map[string][2]string{}
	for _, f := range core.FieldsOf(&deep{Needed: 2, Given: 3}) {
		got[f.Name] = [2]string{f.Type, f.Default}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("types and defaults (-want +got):\n%s", diff)
	}
}
