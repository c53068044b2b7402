package core_test

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// A fork of a pipeline whose stages are yet to take over from others takes up what those learned, also when it is forked again; any other what its own stages learned.
func TestAForkTakesUpWhatWasLearned(t *testing.T) {
	submissions := []core.Event{submit(0, 0, 2), submit(1, 0, 2)}
	alike := []core.Change{started(0, 0, 3), started(1, 0, 12)}
	for name, tc := range map[string]struct {
		round   *core.Observation // that is held before; nil for none
		learned []core.Learned
		want    int // asked, after one more round
	}{
		"another scheduler led before": {learned: []core.Learned{{Component: "allocation/fake", Data: []byte("50")}}, want: 51},
		"nobody did":                   {want: 1},
		"another composition decided": {
			round:   &core.Observation{Events: submissions, Decided: recorded(false, alike...)},
			learned: []core.Learned{{Component: "allocation/fake", Data: []byte("50")}}, want: 51,
		},
		"its own stages decided": {
			round:   &core.Observation{Events: submissions, Decided: recorded(true, alike...)},
			learned: []core.Learned{{Component: "allocation/fake", Data: []byte("50")}}, want: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, o := &script{}, core.RoundOptions{IntervalSeconds: 60}
			p := core.NewPipeline(twoNodes(), new(learner).stages(), core.PipelineOptions{Rounds: o, Memory: &memory{learned: tc.learned}})
			seen := core.Observation{NowSeconds: 60, Events: submissions}
			if tc.round != nil {
				seen.Events = nil
				if err := p.Round(t.Context(), *tc.round, b); err != nil {
					t.Fatal(err)
				}
			}
			f, second := p.Fork().Fork(), new(learner)
			if err := f.Decide(t.Context(), second.stages(), true, core.PipelineOptions{Rounds: o}); err != nil {
				t.Fatal(err)
			}
			if err := f.Round(t.Context(), seen, b); err != nil {
				t.Fatal(err)
			}
			if second.asked != tc.want {
				t.Errorf("asked %d times, want %d", second.asked, tc.want)
			}
		})
	}
}
