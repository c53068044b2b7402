package core_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// chooser has others take over after some rounds.
type chooser struct {
	after map[int]*core.Composition
	asked []int
	was   string // what it was given back
	err   error
	lost  error // why it cannot take that up
}

func (c *chooser) Choose(_ context.Context, p *core.Pipeline) (*core.Composition, error) {
	round := p.View().Round
	c.asked = append(c.asked, round)
	return c.after[round], c.err
}

func (c *chooser) Snapshot() ([]byte, error) { return []byte("chosen"), nil }

func (c *chooser) Restore(learned []byte) error {
	c.was = string(learned)
	return c.lost
}

// times are rounds with nothing but time.
func times(first core.Observation, at ...float64) []core.Observation {
	list := []core.Observation{first}
	for _, seconds := range at {
		list = append(list, core.Observation{NowSeconds: seconds})
	}
	return list
}

func TestOthersAreChosen(t *testing.T) {
	first := core.Observation{Events: []core.Event{submit(0, 0, 2)}}
	for name, memory := range map[string]*memory{"remembering nothing": nil, "with a memory": {}} {
		t.Run(name, func(t *testing.T) {
			before, after := new(learner), new(learner)
			begun := 0
			c := &chooser{after: map[int]*core.Composition{2: {
				Stages: after.stages(), Options: core.RoundOptions{IntervalSeconds: 30}, Identity: "other", Why: "it is better",
				Begun: func(rounds int, _ *core.Resumed) { begun = rounds },
			}}}
			told, b := new(story), &script{observations: times(first, 60, 60, 90)}
			o := core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{told}, Chooser: c}
			if memory != nil {
				o.Memory = memory
			}
			p := core.NewPipeline(twoNodes(), before.stages(), o)
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]int{0, 1, 2, 3, 4}, c.asked); diff != "" {
				t.Errorf("asked after rounds (-want +got):\n%s", diff)
			}
			if begun != 2 || before.asked != 2 || after.asked != 2+before.asked {
				t.Errorf("begun after %d rounds; those before were asked %d times, those after %d times more", begun, before.asked, after.asked-before.asked)
			}
			if got := told.rounds[2]; !strings.Contains(got, "; resumed: it is better, restored [allocation/fake]") {
				t.Errorf("the third round: %s", got)
			}
			if at := b.wakes[2].BySeconds; at != 60 {
				t.Errorf("the round after the choice is due by %v s, want at once", at)
			}
			if at := b.wakes[3].BySeconds; at != 90 {
				t.Errorf("the next is due by %v s, want by the interval of those that took over", at)
			}
			if memory != nil {
				want := []string{`3 "other" [{allocation/fake 2} {synthesizer chosen}]`}
				if diff := cmp.Diff(want, memory.begun); diff != "" {
					t.Errorf("begun (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Nobody chooses while rounds are repeated. Then the chooser is given back what it knew, and those that it chooses go on from what those before them had learned, though the stages
// that the pipeline began with never were asked about these rounds.
func TestTheChooserGoesOn(t *testing.T) {
	after := new(learner)
	c := &chooser{after: map[int]*core.Composition{2: {Stages: after.stages(), Options: core.RoundOptions{IntervalSeconds: 60}, Identity: "other"}}}
	b := &script{observations: []core.Observation{
		{Events: []core.Event{submit(0, 0, 2)}, Decided: recorded(false, started(0, 0, 3))}, {NowSeconds: 60, Decided: recorded(false)}, {NowSeconds: 120},
	}}
	m := &memory{replay: b, learned: []core.Learned{{Component: "allocation/fake", Data: []byte("50")}, {Component: "synthesizer", Data: []byte("other")}}}
	before := new(learner)
	p := core.NewPipeline(twoNodes(), before.stages(), core.PipelineOptions{
		Rounds:    core.RoundOptions{IntervalSeconds: 60},
		Chooser:   c,
		Memory:    m,
		NewStages: func(context.Context) (core.Stages, error) { return core.Stages{}, errors.New("made again") },
	})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{2, 3}, c.asked); diff != "" {
		t.Errorf("asked after rounds (-want +got):\n%s", diff)
	}
	if c.was != "other" || before.asked != 0 || after.asked != 51 {
		t.Errorf("given back %q; asked before %d, after %d", c.was, before.asked, after.asked)
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("3 %q %s", "other", m.learned)}, m.begun); diff != "" {
		t.Errorf("begun (-want +got):\n%s", diff)
	}
}

// A chooser that cannot take up what it knew is asked all the same.
func TestAChooserBeginsAnew(t *testing.T) {
	c := &chooser{lost: errors.New("not to be read")}
	b := &script{observations: times(core.Observation{Events: []core.Event{submit(0, 0, 2)}}, 60)}
	p := core.NewPipeline(twoNodes(), new(learner).stages(), core.PipelineOptions{
		Rounds:  core.RoundOptions{IntervalSeconds: 60},
		Chooser: c,
		Memory:  &memory{learned: []core.Learned{{Component: "synthesizer", Data: []byte("other")}}},
	})
	if err := p.Run(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if c.was != "other" || len(c.asked) != 3 {
		t.Errorf("given back %q, asked after rounds %v", c.was, c.asked)
	}
}

func TestAChooserFails(t *testing.T) {
	p := core.NewPipeline(twoNodes(), fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Chooser: &chooser{err: errors.New("no idea")}})
	err := p.Run(t.Context(), &script{})
	if want := `wait for round 1: component "synthesizer": choose: no idea`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
