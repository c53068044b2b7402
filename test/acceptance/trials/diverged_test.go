package trials_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// divergingSearch is a search in which every second trial reports values that are not finite.
type divergingSearch struct {
	metric      string
	value       float64
	maxReplicas int // of a trial
}

func (s divergingSearch) Load(ctx context.Context) (*workload.Workload, error) {
	w, err := searched{1, "cifar10"}.Load(ctx)
	if err != nil {
		return nil, err
	}
	for i := range w.Jobs {
		w.Jobs[i].Spec.MaxReplicas = s.maxReplicas
		w.Jobs[i].Model = divergingTrial{doortest.TrialOf(i), s.metric, s.value, i%2 == 1}
	}
	return w, nil
}

// divergingTrial reports its loss, or as an accuracy what that is below zero, or else that it diverged.
type divergingTrial struct {
	doortest.Trial
	metric   string
	value    float64
	diverges bool
}

func (m divergingTrial) Reports(phase int) []workload.Reported {
	value := m.Loss(phase + 1)
	switch {
	case m.diverges:
		value = m.value
	case m.metric == "accuracy":
		value = -value
	}
	return []workload.Reported{{Metric: m.metric, Step: float64(phase + 1), Value: value}}
}

// A trial that diverged is never preferred to one that did not, whatever it reports, under any rule and for either direction; and nobody waits for it for ever.
func TestTrialsThatDivergeAreWorst(t *testing.T) {
	for name, tc := range stoppers {
		for _, metric := range []string{"loss", "accuracy"} {
			for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				t.Run(fmt.Sprintf("%s, %s of %v", name, metric, value), func(t *testing.T) {
					c := searching(t, divergingSearch{metric, value, 1}, 8, true, tc.policies...)
					c.Observers = append(c.Observers, doortest.ObserverFunc(func(r *core.Report) {
						for _, e := range r.Events {
							if e.Kind == core.JobReported && math.IsInf(e.Value, 0) {
								t.Errorf("policies are told of %v", e.Value)
							}
						}
						for _, j := range r.Ended {
							if s := j.Series(metric); j.ID == 0 && s != nil && s.Points[len(s.Points)-1].Step < doortest.TrialEpochs && name != "convergence and asha" {
								t.Errorf("round %d: the best trial that does not diverge was ended at step %v", r.View.Round, s.Points[len(s.Points)-1].Step)
							}
						}
					}))
					r := doortest.Simulate(t, c)
					if done := r.Summary.Jobs.Completed; done != doortest.Trials+1 || len(r.Unfinished) > 0 {
						t.Errorf("%d jobs completed, %d have not ended", done, len(r.Unfinished))
					}
				})
			}
		}
	}
}

// Devices go to trials that get better, and not to those that diverged.
func TestLossGainGivesNothingForDivergedTrials(t *testing.T) {
	spec := searchSpec("0s", 56, true)
	spec.Pipeline.Allocation = quartet.Policy{Type: "elastic_dp"}
	spec.Pipeline.Elasticity.Job = quartet.Policy{Type: "loss_gain"}
	c := doortest.Compose(t, quartet.Builtins().WithWorkload(quartet.Given[workload.Source]("searched", divergingSearch{"loss", math.NaN(), 8})), spec)
	served := map[bool]float64{} // device-seconds of the half hour that those got which diverge, and the others
	c.Observers = append(c.Observers, doortest.ObserverFunc(func(r *core.Report) {
		if r.View.NowSeconds > 1800 {
			return
		}
		clear(served)
		for _, j := range r.View.Jobs {
			if j != nil && j.Experiment != "" {
				served[j.ID%2 == 1] += j.AttainedService(r.View.NowSeconds)
			}
		}
	}))
	r := doortest.Simulate(t, c)
	if done := r.Summary.Jobs.Completed; done != doortest.Trials+1 {
		t.Errorf("%d jobs completed", done)
	}
	if served[true] > served[false]/4 {
		t.Errorf("those that diverged got %v device-seconds, and the others %v", served[true], served[false])
	}
}
