package journal

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// Meta is what a journal says of its run.
type Meta struct {
	Schema    string          // of the journal; see the constant of this name
	Program   string          `json:",omitempty"` // version of the program that wrote it last; empty from one that did not record it
	Identity  string          // of the composition that began the run
	Workload  string          `json:",omitempty"` // identity of the jobs that it began with, for schedulers that know of no Began; empty from one that did not record it
	Began     []Written       `json:",omitempty"` // jobs that it began with; none from a scheduler that did not record them
	Config    string          `json:",omitempty"` // of the composition that decides now, resolved
	Files     []core.FileRead `json:",omitempty"` // that the components of the composition that began the run read; none from a scheduler that did not record them
	Nodes     []Node          `json:",omitempty"` // by NodeID, those that are gone among them; none from a scheduler whose nodes never changed
	Devices   []string        // what the devices are called, by number
	EpochUnix int64           // nanoseconds: moment 0 of the run
	Complete  bool            // nothing is left to go on with
}

// Node is a node of a run. Its id is never used again.
type Node struct {
	Name        string // unique among the nodes of a run
	Accelerator string // type of its devices
	Devices     int    // how many it has
	Pool        string `json:",omitempty"` // that it belongs to; empty for none
}

// Seen is what a round saw.
type Seen struct {
	NowSeconds float64 // moment of the round, in seconds of the run
	Events     []Event `json:",omitempty"`      // that the round got, in order
	Said       []Said  `json:"Heard,omitempty"` // what jobs said since the round before
	Sharing    string  `json:",omitempty"`      // how devices were shared, as core.Sharing names it; empty from a scheduler that did not record it
}

// Said is what a job said of itself that later schedulers must know.
type Said struct {
	Job          core.JobID // the job that said it
	Run          int        // number of its run that said it, from 1
	Checkpointed bool       `json:",omitempty"` // a checkpoint was completed
	Checkpoint   float64    // progress up to which it is kept, in the unit of the job's work
}

// Round is one recorded round.
type Round struct {
	Seen
	Changes []core.Change // that it decided, in the order in which they are applied
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
	ID          uint64           `json:",omitzero"` // number under which it may be delivered again; 0 where events are delivered once
	Kind        core.EventKind   // what happened to the job or node
	AtSeconds   float64          // when it happened, in seconds of the run
	Job         core.JobID       // that it is about; 0 also for an event of a node
	Node        core.NodeID      `json:",omitzero"`  // that it is about; 0 also for an event of a job
	Health      core.Health      `json:",omitzero"`  // that the node has now
	Progress    float64          `json:",omitzero"`  // of the job at FromSeconds, in the unit of its work
	Rate        float64          `json:",omitzero"`  // progress a second from FromSeconds on
	FromSeconds float64          `json:",omitzero"`  // moment of Progress, in seconds of the run
	Message     string           `json:",omitzero"`  // why, in a sentence for people; empty when unknown
	Cause       core.Cause       `json:",omitzero"`  // why the job was interrupted or failed
	Early       core.Reason      `json:",omitzero"`  // why the job was ended before its work was done; absent where it ended by itself
	Measurement core.Measurement `json:",omitzero"`  // that the job made of its speed
	Gradients   core.Gradients   `json:",omitzero"`  // statistics of gradients that the job reported
	Metric      string           `json:",omitzero"`  // name of the metric that the job reported
	Step        float64          `json:",omitzero"`  // of the training at which Value was computed
	Value       float64          `json:",omitzero"`  // value that was reported of Metric; absent where it is not finite
	Diverged    bool             `json:",omitzero"`  // the value of Metric is not finite
	Unusable    core.DeviceSet   `json:",omitzero"`  // devices of the node that cannot be used
	Seats       []core.Seat      `json:",omitempty"` // that a job has left, that it let go of, or on which it failed
	Added       *core.AddedNode  `json:",omitempty"` // the node that joined
	NotBefore   float64          `json:",omitzero"`  // before which the job gets no devices, or no more, in seconds of the run
	Held        *core.Held       `json:",omitempty"` // what a job had behind it when it was submitted
	Changed     *core.JobSpec    `json:",omitempty"` // of a job that was edited
	// Checkpointing is absent from a scheduler that did not record it.
	Checkpointing core.Checkpointing `json:",omitzero"`
}

// UnmarshalJSON also reads an event of a scheduler that called the squared norm of a gradient Square.
func (e *Event) UnmarshalJSON(text []byte) error {
	type plain Event
	if err := json.Unmarshal(text, (*plain)(e)); err != nil || !bytes.Contains(text, []byte(`"Square":`)) {
		return err
	}
	var before struct{ Gradients struct{ Square float64 } }
	if err := json.Unmarshal(text, &before); err != nil {
		return err
	}
	if e.Gradients.SquaredNorm == 0 {
		e.Gradients.SquaredNorm = before.Gradients.Square
	}
	return nil
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
			Checkpointing: e.Checkpointing, NotBefore: e.NotBeforeSeconds,
		}
		if e.Kind == core.JobChanged {
			list[i].Changed = e.Spec
		}
		if math.IsNaN(e.Value) {
			list[i].Value, list[i].Diverged = 0, true
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
		Spec: e.Changed, Checkpointing: e.Checkpointing, NotBeforeSeconds: e.NotBefore,
	}
	if e.Kind == core.JobSubmitted {
		t.Spec = spec(e.Job)
	}
	if e.Diverged {
		t.Value = math.NaN()
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
