package core_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// What another scheduler learned is taken up in the first round, where no rounds are recorded.
func TestWhatAnotherSchedulerLearned(t *testing.T) {
	for name, tc := range map[string]struct {
		learned []core.Learned
		want    int
		begun   []string
	}{
		"something": {[]core.Learned{{Component: "allocation/fake", Data: []byte("70")}}, 72, []string{`1 "" [{allocation/fake 70}]`}},
		"nothing":   {nil, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, l := &memory{learned: tc.learned}, new(learner)
			var why []string
			p := core.NewPipeline(twoNodes(), l.stages(), core.PipelineOptions{
				Rounds: core.RoundOptions{IntervalSeconds: 60},
				Observers: []core.Observer{observe(func(r *core.Report) {
					if r.Resumed != nil {
						why = append(why, fmt.Sprintf("%d %v", r.View.Round, r.Resumed.Restored))
					}
				})},
				Memory: m,
			})
			b := &script{observations: []core.Observation{{Events: []core.Event{submit(0, 0, 2)}}, {NowSeconds: 60, Events: []core.Event{submit(1, 60, 2)}}}}
			if err := p.Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if l.asked != tc.want {
				t.Errorf("asked %d times, want %d with those before", l.asked, tc.want)
			}
			if diff := cmp.Diff(tc.begun, m.begun); diff != "" {
				t.Errorf("begun -want +got\n%s", diff)
			}
			if (len(why) > 0) != (tc.learned != nil) || len(why) > 0 && why[0] != "1 [allocation/fake]" {
				t.Errorf("got %v", why)
			}
		})
	}
}
