package workload

import "github.com/quartet-sched/quartet/core"

// Process is how a job runs on real machines, beside its command.
type Process struct {
	Dir         string     // working folder; empty for that of the scheduler
	Environment []Variable // besides what the scheduler hands down
	Retries     int        // runs that its own exit ended which are repeated
	// LostRetries is how often it is started again after it lost a node, a device or its keeper; nil for as often as that happens.
	LostRetries *int `json:",omitempty"`
	// StartRetries is how many starts are repeated that failed; nil for as many as Retries, and none where its program or folder is not there.
	StartRetries *int `json:",omitempty"`
	Checkpoints  bool // a run goes on where the one before stopped
	Reports      bool // its declared work is in the unit that it reports its progress in, not in seconds
}

// Checkpointing is what a job file says of a job. What stands in for one without a command keeps what it did.
func (j *Job) Checkpointing() core.Checkpointing {
	switch {
	case len(j.Spec.Command) == 0:
		return core.CheckpointingUnknown
	case j.Process.Checkpoints:
		return core.KeepsProgress
	}
	return core.BeginsAnew
}

// Variable is a variable of the environment.
type Variable struct {
	// Name: name of the variable.
	Name string `config:"name" doc:"name of the variable" required:"true"`
	// Value: its value.
	Value string `config:"value" doc:"its value"`
}
