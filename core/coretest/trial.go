package coretest

import (
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// trial is one life of a policy in a random world.
type trial[S any] struct {
	t       *T
	options options
	needs   []core.Capability

	policy S // sees the pipeline's own view
	twin   S // sees a copy that is destroyed after each call, and must agree
	blind  S // sees a copy without what the policy does not declare, and must agree
}

// holdRounds runs a policy through random rounds, and through quiet ones while it says that nothing will change.
func (s *subject[S]) holdRounds(t *T) {
	tr := &trial[S]{t: t, options: s.options}
	tr.policy, tr.needs = s.create(t)
	tr.twin, _ = s.create(t)
	tr.blind, _ = s.create(t)

	w, rest := drawWorld(t), &chaos{t: t}
	w.pins, w.deadlines, w.tiers, w.divides = s.options.pins, s.options.deadlines, s.options.tiers, s.factory.Divides
	w.reports = s.options.reporting
	if s.options.pools {
		w.drawPools()
	}
	s.drawSharing(w, tr.needs)
	rest.free.beside = isOf[core.Allocator, S]() && len(s.factory.Sharing) == 0
	interval := sampledFrom([]float64{0, 60}).Draw(t, "interval")
	options := core.RoundOptions{IntervalSeconds: interval, OnEvents: interval == 0}
	p := core.NewPipeline(cloneCluster(w.cluster), s.compose(s.slot.wrap(tr), rest), core.PipelineOptions{Rounds: options, Observers: []core.Observer{w}})
	for range intRange(1, 12).Draw(t, "rounds") {
		rest.quiet = false
		hold(t, p, w.step(), w)
		rest.quiet = true
		tr.checkQuiet(p, w)
	}
}

// hold is one round that must not fail.
func hold(t TB, p *core.Pipeline, seen core.Observation, b core.Backend) {
	if err := p.Round(context.Background(), seen, b); err != nil {
		t.Fatalf("%v", err)
	}
}

// Standing lets the policy speak for the stage that wraps it.
func (tr *trial[S]) Standing() core.Standing { return standing(tr.policy) }

// standing is what a policy tells of its last answer; of one that cannot tell, that it no longer stands.
func standing(policy any) core.Standing {
	if s := core.AbilitiesOf(policy).Steady; s != nil {
		return s.Standing()
	}
	return core.Standing{UntilSeconds: math.Inf(-1)}
}

// GapRatio lets the policy speak for the stage that wraps it.
func (tr *trial[S]) GapRatio() float64 { return gapOf(tr.policy) }

// gapOf is what a policy certifies of its last answer; NaN for nothing.
func gapOf(policy any) float64 {
	if c := core.AbilitiesOf(policy).Certifier; c != nil {
		return c.GapRatio()
	}
	return math.NaN()
}

// checkQuiet holds rounds without events before the moment up to which nothing changes. All the other stages stand for
// ever, so that it is the policy's.
func (tr *trial[S]) checkQuiet(p *core.Pipeline, w *world) {
	until := p.StandsUntil()
	from, span := w.now, min(until-w.now, 1e7)
	if span <= 0 || !anyBool().Draw(tr.t, "quiet") {
		return
	}
	for _, fraction := range [...]float64{0.001, 0.5, 0.999} {
		active := slices.Clone(w.view.Active)
		hold(tr.t, p, w.pass(from+fraction*span), w)
		if w.changes > 0 || !slices.Equal(active, w.view.Active) {
			tr.t.Fatalf("said at %v s that nothing changes before %v s, and changed its answer at %v s", from, until, w.now)
		}
	}
}

// ask puts one question to the policy and its twins, and returns the policy's answer once they agree.
func ask[S, A any](tr *trial[S], q question, call func(S, question) (A, error)) A {
	pristine, copied, hidden := q.clone(), q.clone(), q.clone()
	answer, err := call(tr.policy, q)
	if err != nil {
		tr.t.Fatalf("returned an error: %v", err)
	}
	if !same(q, pristine) {
		tr.t.Fatalf("changed what it was given (-before +after):\n%s", diff(pristine, q))
	}
	copied.shareStepTimes(q)
	agree(tr, "answers differ between two instances that saw the same rounds: the policy is not deterministic, or it kept a reference into the View",
		answer, copied, tr.twin, call)
	copied.scribble()
	hidden.shareStepTimes(q)
	hidden.hide(tr.needs)
	agree(tr, "answers depend on TotalWork, Progress, StepTimes or StepsLeft without declaring the capability",
		answer, hidden, tr.blind, call)
	grants, _ := any(answer).([]core.Grant)
	tr.judgeStanding(len(grants))
	tr.judgeGap()
	return answer
}

// judgeStanding checks what is told of an answer that the twins agree on, once the twin's copy of the question is gone.
func (tr *trial[S]) judgeStanding(grants int) {
	told, twin, blind := tr.Standing(), standing(tr.twin), standing(tr.blind)
	switch {
	case math.IsNaN(told.UntilSeconds):
		tr.t.Fatalf("the answer stands until NaN")
	case told.IfSeated < 0 || told.IfSeated > grants:
		tr.t.Fatalf("the answer stands if the first %d of its %d grants are seated", told.IfSeated, grants)
	case told != twin || told != blind:
		tr.t.Fatalf("equal answers stand differently: %+v, with a copy of the View %+v, without what is not declared %+v", told, twin, blind)
	}
}

// judgeGap checks that twins certify equal answers alike. The pipeline checks what they certify.
func (tr *trial[S]) judgeGap() {
	told, twin, blind := tr.GapRatio(), gapOf(tr.twin), gapOf(tr.blind)
	alike := func(other float64) bool { return told == other || math.IsNaN(told) && math.IsNaN(other) }
	if !alike(twin) || !alike(blind) {
		tr.t.Fatalf("equal answers are certified differently: a gap of %v, with a copy of the View %v, without what is not declared %v", told, twin, blind)
	}
}

func agree[S, A any](tr *trial[S], fault string, answer A, q question, other S, call func(S, question) (A, error)) {
	got, err := call(other, q)
	if err != nil {
		tr.t.Fatalf("%s: one returned an error: %v", fault, err)
	}
	if !same(answer, got) {
		tr.t.Fatalf("%s (-one +other):\n%s", fault, diff(answer, got))
	}
}
