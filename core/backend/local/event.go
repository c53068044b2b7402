package local

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// event is an event as the store keeps it: without the specification, which the workload holds, and without the steps
// left, which nobody knows.
type event struct {
	Kind        core.EventKind
	AtSeconds   float64
	Job         core.JobID
	Node        core.NodeID
	Health      core.Health
	Progress    float64
	Rate        float64
	FromSeconds float64
	Message     string `json:",omitempty"`
	Measurement core.Measurement
	Gradients   core.Gradients
}

func recorded(events []core.Event) []event {
	list := make([]event, len(events))
	for i, e := range events {
		list[i] = event{
			e.Kind, e.AtSeconds, e.Job, e.Node, e.Health, e.Progress, e.Rate, e.FromSeconds, e.Message, e.Measurement, e.Gradients,
		}
	}
	return list
}

// told is the event as the pipeline is told it.
func (e *event) told(jobs []*job) core.Event {
	t := core.Event{
		Kind: e.Kind, AtSeconds: e.AtSeconds, Job: e.Job, Node: e.Node, Health: e.Health,
		Progress: e.Progress, Rate: e.Rate, FromSeconds: e.FromSeconds, Message: e.Message, StepsLeft: math.NaN(),
		Measurement: e.Measurement, Gradients: e.Gradients,
	}
	if e.Kind == core.JobSubmitted {
		t.Spec = &jobs[e.Job].Spec
	}
	return t
}
