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
	Node        core.NodeID      `json:",omitzero"`
	Health      core.Health      `json:",omitzero"`
	Progress    float64          `json:",omitzero"`
	Rate        float64          `json:",omitzero"`
	FromSeconds float64          `json:",omitzero"`
	Message     string           `json:",omitzero"`
	Measurement core.Measurement `json:",omitzero"`
	Gradients   core.Gradients   `json:",omitzero"`
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

// change is a core.Change as the store keeps it.
type change struct {
	Round  int
	Action core.Action
	Job    core.JobID
	Seats  []core.Seat `json:",omitzero"`
	Tuning core.Tuning `json:",omitzero"`
	Reason core.Reason `json:",omitzero"`
	By     string
}

func recordedChanges(changes []core.Change) []change {
	list := make([]change, len(changes))
	for i, c := range changes {
		list[i] = change(c)
	}
	return list
}
