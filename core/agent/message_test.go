package agent

import (
	"math"
	"strings"
	"testing"
)

// Each number of a message is held to its bounds, which are taken themselves.
func TestBounds(t *testing.T) {
	type message interface{ Validate() error }
	report := func(change func(*Report)) message {
		r := Report{Replicas: 4, Nodes: 2, BatchPerDevice: 8}
		change(&r)
		return &FromJob{Report: &r}
	}
	hello := func(change func(*Hello)) message {
		h := Hello{Protocol: Protocol, Job: "train"}
		change(&h)
		return &FromJob{Hello: &h}
	}
	tuning := func(change func(*Tuning)) message {
		n := Tuning{}
		change(&n)
		return &ToJob{Tuning: &n}
	}
	world := func(change func(*World)) message {
		w := World{Replicas: 4, Nodes: 2}
		change(&w)
		return &ToJob{World: &w}
	}
	whole := func(with func(int) message) func(float64) message {
		return func(x float64) message { return with(int(x)) }
	}
	for name, tc := range map[string]struct {
		with        func(float64) message
		least, most float64
	}{
		"hello: protocol":              {whole(func(n int) message { return hello(func(h *Hello) { h.Protocol = n }) }), Protocol, Protocol},
		"hello: job":                   {whole(func(n int) message { return hello(func(h *Hello) { h.Job = strings.Repeat("x", max(n, 0)) }) }), 1, maxName},
		"hello: rank":                  {whole(func(n int) message { return hello(func(h *Hello) { h.Rank = n }) }), 0, MaxReplicas - 1},
		"report: replicas":             {whole(func(n int) message { return report(func(r *Report) { r.Replicas, r.Nodes = n, 1 }) }), 1, MaxReplicas},
		"report: nodes":                {whole(func(n int) message { return report(func(r *Report) { r.Nodes = n }) }), 1, 4},
		"report: batch_per_device":     {whole(func(n int) message { return report(func(r *Report) { r.BatchPerDevice = n }) }), 0, math.MaxInt32},
		"report: pass_seconds":         {func(x float64) message { return report(func(r *Report) { r.PassSeconds = x }) }, 0, mostAmount},
		"report: step_seconds":         {func(x float64) message { return report(func(r *Report) { r.StepSeconds = x }) }, 0, mostAmount},
		"report: gradient_square":      {func(x float64) message { return report(func(r *Report) { r.GradientSquare = x }) }, 0, mostAmount},
		"report: gradient_variance":    {func(x float64) message { return report(func(r *Report) { r.GradientVariance = x }) }, 0, mostAmount},
		"report: progress":             {func(x float64) message { return report(func(r *Report) { r.Progress = x }) }, 0, mostAmount},
		"checkpointed: progress":       {func(x float64) message { return &FromJob{Checkpointed: &Checkpointed{x}} }, 0, mostAmount},
		"tuning: batch_per_device":     {whole(func(n int) message { return tuning(func(t *Tuning) { t.BatchPerDevice = n }) }), 0, math.MaxInt32},
		"tuning: accumulation_steps":   {whole(func(n int) message { return tuning(func(t *Tuning) { t.AccumulationSteps = n }) }), 0, math.MaxInt32},
		"tuning: learning_rate_factor": {func(x float64) message { return tuning(func(t *Tuning) { t.LearningRateFactor = x }) }, 0, mostAmount},
		"tuning: batch_by_replica[1]":  {whole(func(n int) message { return tuning(func(t *Tuning) { t.BatchByReplica = []int{1, n} }) }), 0, math.MaxInt32},
		"world: replicas":              {whole(func(n int) message { return world(func(w *World) { w.Replicas, w.Nodes = n, 1 }) }), 1, MaxReplicas},
		"world: rank":                  {whole(func(n int) message { return world(func(w *World) { w.Rank = n }) }), 0, 3},
		"world: nodes":                 {whole(func(n int) message { return world(func(w *World) { w.Nodes = n }) }), 1, 4},
		"stop: grace_seconds":          {func(x float64) message { return &ToJob{Stop: &Stop{x}} }, 0, mostAmount},
	} {
		for _, x := range []float64{tc.least, tc.most} {
			if err := tc.with(x).Validate(); err != nil {
				t.Errorf("%s of %v: %v", name, x, err)
			}
		}
		for _, x := range []float64{tc.least - 1, math.Nextafter(tc.most, math.Inf(1)) + 1} {
			if err := tc.with(x).Validate(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s of %v: %v", name, x, err)
			}
		}
	}
}

// The events of a server end with it.
func TestEventsEnd(t *testing.T) {
	s := listen(t, socket(t), "train")
	must(t, s.Close())
	for e := range s.Events() {
		t.Errorf("event %+v", e)
	}
}
