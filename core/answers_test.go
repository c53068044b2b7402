package core_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// wantsNodes asks for so many nodes.
type wantsNodes int

func (w wantsNodes) Scale(context.Context, *core.View, *core.Plan) (core.ClusterTarget, error) {
	return core.ClusterTarget{Nodes: int(w)}, nil
}

// wrongAmounts are no rate, no time and no amount of work.
var wrongAmounts = map[string]float64{"NaN": math.NaN(), "Inf": math.Inf(1), "-Inf": math.Inf(-1), "negative": -0.001}

// wrongAnswers break one rule each, on a cluster of two nodes with four devices, each of another type.
func wrongAnswers() map[string]struct {
	stages          core.Stages
	component, rule string
} {
	all := map[string]struct {
		stages          core.Stages
		component, rule string
	}{}
	add := func(name string, stages core.Stages, component, rule string) {
		all[name] = struct {
			stages          core.Stages
			component, rule string
		}{stages, component, rule}
	}
	respond := func(name, rule string, change func(*core.Response)) {
		f := fakes{fixed: rigid{respond: func(r []core.Response) []core.Response { change(&r[1]); return r }}}
		add(name, f.stages(), "elasticity/fake", rule)
	}
	for name, wrong := range wrongAmounts {
		respond("a rate on one node: "+name, core.RuleResponseSane, func(r *core.Response) {
			r.Curves = []core.Curve{{OneNode: []float64{1, wrong}}}
		})
		respond("a rate across nodes: "+name, core.RuleResponseSane, func(r *core.Response) {
			r.Curves = []core.Curve{{}, {ManyNodes: []float64{0, 0, wrong}}}
		})
		respond("a rate alone: "+name, core.RuleResponseSane, func(r *core.Response) {
			r.MixedTypes = &core.MixedTypeRates{SingleDeviceRates: []float64{1, wrong}}
		})
		respond("a time of synchronisation: "+name, core.RuleResponseSane, func(r *core.Response) {
			r.MixedTypes = &core.MixedTypeRates{SyncSeconds: []float64{wrong}}
		})
		if name != "NaN" { // which is unknown
			respond("remaining work: "+name, core.RuleResponseSane, func(r *core.Response) { r.RemainingWork = wrong })
		}
		f := fakes{fixed: rigid{tunings: []core.Tuning{{Job: 1, LearningRateFactor: wrong}}}}
		add("a learning rate: "+name, f.stages(), "elasticity/fake", core.RuleTuningSane)
		if name != "NaN" {
			add("a gap: "+name, fakes{grant: grantAll{gap: wrong}}.stages(), "allocation/fake", core.RuleGapSane)
		}
		if name != "negative" {
			verdict := core.Verdict{Job: 1, Code: core.Defer, Reason: core.PolicyDecision, Wanted: wrong}
			add("evidence: "+name, fakes{admit: admitAll{[]core.Verdict{verdict}}}.stages(), "admission/fake", core.RuleVerdictAllowed)
			verdict.Wanted, verdict.Available = 0, wrong
			add("counter-evidence: "+name, fakes{admit: admitAll{[]core.Verdict{verdict}}}.stages(), "admission/fake", core.RuleVerdictAllowed)
		}
	}
	respond("a range beyond the cluster", core.RuleReplicasInRange, func(r *core.Response) { r.MaxReplicas = 9 })
	for name, seats := range map[string][]core.Seat{
		"on an unknown node":        {{Node: 2, Devices: 3}},
		"on a node below all":       {{Node: -1, Devices: 3}},
		"on an unknown device":      {{Node: 0, Devices: 1 | 1<<4}},
		"on no device":              {{Node: 0, Devices: 3}, {Node: 1}},
		"on too few devices":        {{Node: 0, Devices: 1}},
		"on too many devices":       {{Node: 0, Devices: 7}},
		"on one device twice":       {{Node: 0, Devices: 1}, {Node: 0, Devices: 1}},
		"on one twice, others amid": {{Node: 1, Devices: 1}, {Node: 0, Devices: 1}, {Node: 1, Devices: 1}},
	} {
		f := fakes{grant: grantAll{change: func(g []core.Grant) []core.Grant {
			g[1].Proposed = seats
			return g
		}}}
		if strings.HasSuffix(name, "amid") {
			f.fixed.respond = func(r []core.Response) []core.Response { r[1].MinReplicas, r[1].MaxReplicas = 3, 3; return r }
		}
		add("a proposal "+name, f.stages(), "allocation/fake", core.RuleProposalSane)
	}
	for name, told := range map[string]core.Standing{
		"until no number":                   {UntilSeconds: math.NaN()},
		"if more grants run than there are": {UntilSeconds: 500, IfSeated: 3},
		"if less than none run":             {UntilSeconds: 500, IfSeated: -1},
	} {
		add("an allocation that stands "+name, steady(told), "allocation/fake", core.RuleStandingSane)
		s := steady(forEver)
		s.Admission[0].Policy = steadyAdmit{told: told}
		add("an admission that stands "+name, s, "admission/fake", core.RuleStandingSane)
		s = steady(forEver)
		s.Placement.Policy = steadySeat{told: told}
		add("a placement that stands "+name, s, "placement/fake", core.RuleStandingSane)
		s = steady(forEver)
		s.Elasticity.Policy = steadyRigid{told: told}
		add("an elasticity that stands "+name, s, "elasticity/fake", core.RuleStandingSane)
	}
	s := fakes{}.stages()
	s.Scaler = core.Component[core.ClusterScaler]{ID: "scaler/fake", Policy: wantsNodes(-1)}
	add("a negative target", s, "scaler/fake", core.RuleTargetSane)
	return all
}

func TestWrongAnswersAreRefused(t *testing.T) {
	for name, tc := range wrongAnswers() {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}}}}
			err := core.NewPipeline(twoNodes(), tc.stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(context.Background(), b)
			broken, ok := errors.AsType[*core.InvariantError](err)
			if !ok {
				t.Fatalf("error %v, want a broken invariant", err)
			}
			if broken.Component != tc.component || broken.Rule != tc.rule {
				t.Errorf("blames %q for %q, want %q for %q", broken.Component, broken.Rule, tc.component, tc.rule)
			}
			if len(b.applied) > 0 {
				t.Errorf("applied %v after a broken invariant", b.applied)
			}
		})
	}
}

func TestUncommonAnswersAreTaken(t *testing.T) {
	change := func(r *core.Response) {
		*r = core.Response{Job: r.Job, MinReplicas: 2, MaxReplicas: 8, RemainingWork: math.NaN()}
	}
	for name, f := range map[string]fakes{
		"all the devices there are": {fixed: rigid{respond: func(r []core.Response) []core.Response {
			change(&r[0])
			r[0].Curves = []core.Curve{{OneNode: make([]float64, 8)}, {ManyNodes: []float64{0, math.MaxFloat64}}}
			r[0].MixedTypes = &core.MixedTypeRates{SingleDeviceRates: make([]float64, 2), SyncSeconds: make([]float64, 8)}
			return r
		}}},
		"curves longer than the cluster is wide, which jobs share": {fixed: rigid{respond: func(r []core.Response) []core.Response {
			change(&r[0])
			r[0].Curves = []core.Curve{{OneNode: make([]float64, 9), ManyNodes: make([]float64, 64)}}
			r[0].MixedTypes = &core.MixedTypeRates{SyncSeconds: make([]float64, 9)}
			return r
		}}},
		"an unknown gap": {grant: grantAll{gap: math.NaN()}},
		"a proposal over nodes in any order": {grant: grantAll{change: func(g []core.Grant) []core.Grant {
			g[0].Proposed = []core.Seat{{Node: 1, Devices: 1}, {Node: 0, Devices: 8}}
			g[1].Proposed = []core.Seat{{Node: 1, Devices: 1}, {Node: 1, Devices: 2}}
			return g
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}}}}
			if err := core.NewPipeline(twoNodes(), f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(context.Background(), b); err != nil {
				t.Error(err)
			}
		})
	}
}

// repents tells a wrong standing, or wants a wrong number of nodes, until it is told so.
type repents struct {
	seatFirst
	told *int
}

func (r repents) Standing() core.Standing {
	if *r.told == 0 {
		return core.Standing{UntilSeconds: math.NaN()}
	}
	return forEver
}

func (r repents) Scale(context.Context, *core.View, *core.Plan) (core.ClusterTarget, error) {
	return core.ClusterTarget{Nodes: *r.told - 1}, nil
}

func (r repents) Recover(context.Context, error) (bool, error) {
	*r.told++
	return true, nil
}

func TestAWrongStandingAndAWrongTargetAreRecoveredFrom(t *testing.T) {
	for name, change := range map[string]func(*core.Stages, repents){
		"standing": func(s *core.Stages, r repents) { s.Placement.Policy = r },
		"target": func(s *core.Stages, r repents) {
			s.Scaler = core.Component[core.ClusterScaler]{ID: "scaler/fake", Policy: r}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2)}}}}
			stages, told := fakes{}.stages(), 0
			change(&stages, repents{told: &told})
			if err := core.NewPipeline(twoNodes(), stages, core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}}).Run(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			if told != 1 || len(b.applied) != 1 {
				t.Errorf("got %d times, %d changes applied; want 1 and 1", told, len(b.applied))
			}
		})
	}
}

func TestTextsOfVerdictsAreBounded(t *testing.T) {
	b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2), submit(1, 0, 2)}}}}
	f := fakes{admit: admitAll{[]core.Verdict{
		{Job: 0, Code: core.Defer, Reason: core.PolicyDecision, Message: "\x1b[31mno\x00" + strings.Repeat("x", 1<<20), Unit: "devices\n"},
		{Job: 1, Code: core.Reject, Reason: core.PolicyDecision, Message: "not \xff"},
	}}}
	var told recorder
	if err := core.NewPipeline(twoNodes(), f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}, Observers: []core.Observer{&told}}).Run(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if len(told.verdicts) != 2 {
		t.Fatalf("%d verdicts, want 2", len(told.verdicts))
	}
	for _, v := range told.verdicts {
		if len(v.Message) > core.MaxText || core.CleanText(v.Message, core.MaxText) != v.Message || strings.ContainsAny(v.Unit, "\n\x1b") {
			t.Errorf("message %q, unit %q", v.Message, v.Unit)
		}
	}
	if !strings.HasPrefix(told.verdicts[0].Message, "no ") {
		t.Errorf("message %.20q, want its beginning", told.verdicts[0].Message)
	}
}

func TestWrongNumbersOfABackendAreRefused(t *testing.T) {
	cases := map[string]core.Event{"a negative count": {Kind: core.JobMeasured, Measurement: core.Measurement{Replicas: -1}}}
	for name, wrong := range wrongAmounts {
		cases["pass_seconds "+name] = core.Event{Kind: core.JobMeasured, Measurement: core.Measurement{PassSeconds: wrong}}
		cases["step_seconds "+name] = core.Event{Kind: core.JobMeasured, Measurement: core.Measurement{StepSeconds: wrong}}
		cases["gradient square "+name] = core.Event{Kind: core.JobMeasured, Gradients: core.Gradients{SquaredNorm: wrong}}
		cases["gradient variance "+name] = core.Event{Kind: core.JobMeasured, Gradients: core.Gradients{Variance: wrong}}
		cases["progress "+name] = core.Event{Kind: core.JobProgressed, Progress: wrong}
		cases["rate "+name] = core.Event{Kind: core.JobProgressed, Rate: wrong}
		cases["time "+name] = core.Event{Kind: core.JobProgressed, FromSeconds: wrong}
		cases["progress at an interruption "+name] = core.Event{Kind: core.JobInterrupted, Progress: wrong}
		if name != "NaN" { // which is unknown
			cases["steps left "+name] = core.Event{Kind: core.JobProgressed, StepsLeft: wrong}
		}
		if name != "negative" {
			cases["time of the end "+name] = core.Event{Kind: core.JobFinished, AtSeconds: wrong}
		}
	}
	for name, event := range cases {
		t.Run(name, func(t *testing.T) {
			b := &script{observations: []core.Observation{{Events: slices.Concat([]core.Event{submit(0, 0, 2)}, []core.Event{event})}}}
			err := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{OnEvents: true}}).Run(context.Background(), b)
			if err == nil || !strings.Contains(err.Error(), `of job "a" with `) {
				t.Errorf("error %v, want one that names the job and the value", err)
			}
		})
	}
}
