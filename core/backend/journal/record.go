package journal

import (
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// Schema names the form of a journal. It changes when a field changes its meaning or goes away.
const Schema = "quartet.state/v1"

// Meta is what a journal says of its run.
type Meta struct {
	Schema    string
	Identity  string          // of the composition that began the run
	Workload  string          `json:",omitempty"` // identity of the jobs that it began with; empty from a scheduler that did not tell it apart
	Config    string          `json:",omitempty"` // of the composition that decides now, resolved
	Files     []core.FileRead `json:",omitempty"` // that the components of the composition that began the run read; none from a scheduler that did not tell
	Nodes     []Node          `json:",omitempty"` // by NodeID, those that are gone among them; none from a scheduler whose nodes never changed
	Devices   []string        // what the devices are called, by number
	EpochUnix int64           // nanoseconds: moment 0 of the run
	Complete  bool            // nothing is left to go on with
}

// Node is a node of a run. Its id is never used again.
type Node struct {
	Name, Accelerator string
	Devices           int
	Pool              string `json:",omitempty"` // that it belongs to; empty for none
}

// Seen is what a round saw.
type Seen struct {
	NowSeconds float64
	Events     []Event `json:",omitempty"`
	Said       []Said  `json:"Heard,omitempty"`
	Sharing    string  `json:",omitempty"` // how devices were shared, as core.Sharing names it; empty from a scheduler that did not tell
}

// Said is what a job said of itself that later schedulers must know.
type Said struct {
	Job          core.JobID
	Run          int
	Checkpointed bool `json:",omitempty"`
	Checkpoint   float64
}

// Round is one recorded round.
type Round struct {
	Seen
	Changes []core.Change
}

// era is the rounds from one on that a composition decided.
type era struct {
	Round    int
	Identity string
	Learned  []core.Learned  `json:",omitempty"`
	Files    []core.FileRead `json:",omitempty"` // that its components read
}

// Event is an event as a journal keeps it: without the specification of a submission, which is kept once, and without the steps
// left, which nobody knows of real jobs.
type Event struct {
	ID          uint64 `json:",omitzero"`
	Kind        core.EventKind
	AtSeconds   float64
	Job         core.JobID
	Node        core.NodeID      `json:",omitzero"`
	Health      core.Health      `json:",omitzero"`
	Progress    float64          `json:",omitzero"`
	Rate        float64          `json:",omitzero"`
	FromSeconds float64          `json:",omitzero"`
	Message     string           `json:",omitzero"`
	Cause       core.Cause       `json:",omitzero"`
	Early       core.Reason      `json:",omitzero"`
	Measurement core.Measurement `json:",omitzero"`
	Gradients   core.Gradients   `json:",omitzero"`
	Metric      string           `json:",omitzero"`
	Step        float64          `json:",omitzero"`
	Value       float64          `json:",omitzero"`
	Unusable    core.DeviceSet   `json:",omitzero"`
	Seats       []core.Seat      `json:",omitempty"`
	Added       *core.AddedNode  `json:",omitempty"`
	Held        *core.Held       `json:",omitempty"`
	Changed     *core.JobSpec    `json:",omitempty"` // of a job that was edited
	// Checkpointing is absent from a scheduler that did not tell.
	Checkpointing core.Checkpointing `json:",omitzero"`
}

// Events are events as a journal keeps them.
func Events(events []core.Event) []Event {
	list := make([]Event, len(events))
	for i := range events {
		e := &events[i]
		list[i] = Event{
			ID: e.ID, Kind: e.Kind, AtSeconds: e.AtSeconds, Job: e.Job, Node: e.Node, Health: e.Health,
			Progress: e.Progress, Rate: e.Rate, FromSeconds: e.FromSeconds, Message: e.Message, Cause: e.Cause, Early: e.Early,
			Measurement: e.Measurement, Gradients: e.Gradients, Metric: e.Metric, Step: e.Step, Value: e.Value, Unusable: e.Unusable, Seats: e.Seats, Added: e.Added, Held: e.Held,
			Checkpointing: e.Checkpointing,
		}
		if e.Kind == core.JobChanged {
			list[i].Changed = e.Spec
		}
	}
	return list
}

// of is the event as the pipeline is told it.
func (e *Event) of(spec func(core.JobID) *core.JobSpec) core.Event {
	t := core.Event{
		ID: e.ID, Kind: e.Kind, AtSeconds: e.AtSeconds, Job: e.Job, Node: e.Node, Health: e.Health,
		Progress: e.Progress, Rate: e.Rate, FromSeconds: e.FromSeconds, Message: e.Message, Cause: e.Cause, Early: e.Early, StepsLeft: math.NaN(),
		Measurement: e.Measurement, Gradients: e.Gradients, Metric: e.Metric, Step: e.Step, Value: e.Value, Unusable: e.Unusable, Seats: e.Seats, Added: e.Added, Held: e.Held,
		Spec: e.Changed, Checkpointing: e.Checkpointing,
	}
	if e.Kind == core.JobSubmitted {
		t.Spec = spec(e.Job)
	}
	return t
}

// change is a core.Change as a journal keeps it.
type change struct {
	Round  int
	Action core.Action
	Job    core.JobID
	Seats  []core.Seat `json:",omitzero"`
	Slices []uint8     `json:",omitzero"`
	Tuning core.Tuning `json:",omitzero"`
	// Resources are the CPUs and the memory of each replica, where they are not what the job asks for.
	Resources *core.Resources `json:",omitempty"`
	Reason    core.Reason     `json:",omitzero"`
	By        string
}

func recorded(changes []core.Change) []change {
	list := make([]change, len(changes))
	for i, c := range changes {
		list[i] = change(c)
	}
	return list
}

// submission is a job that was submitted to a running scheduler.
type submission struct {
	Spec    core.JobSpec
	Process workload.Process
}
