package configs

import (
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// File is the form of a config: what may be written in it. DefaultFile holds the defaults of what is left out.
type File struct {
	// Version: version of the config format, 1.
	Version int `config:"version" doc:"version of the config format, 1" required:"true"`
	// Name: name of the run, a plain file name.
	Name string `config:"name" doc:"name of the run, a plain file name; the base name of the file if left out"`
	// Seed: seed of all randomness.
	Seed uint64 `config:"seed" doc:"seed of all randomness"`
	// Plugins: where policies come from that are not built in.
	Plugins Plugins `config:"plugins" doc:"where policies come from that are not built in"`
	// Cluster: the machines.
	Cluster Cluster `config:"cluster" doc:"the machines"`
	// Workload: where the jobs come from.
	Workload Part `config:"workload" doc:"where the jobs come from"`
	// Sample: which of the workload's jobs take part, and how dense.
	Sample workload.Sample `config:"sample" doc:"which of the workload's jobs take part, and how dense"`
	// Estimate: what policies know about the work of a job.
	Estimate workload.Estimate `config:"estimate" doc:"what policies know about the work of a job"`
	// Round: when decisions are taken.
	Round Round `config:"round" doc:"when decisions are taken"`
	// Restart: what a restart costs a job: the backend charges it and the policies count on it, each unless its own settings say otherwise.
	Restart Restart `config:"restart" doc:"what a restart costs a job: the backend charges it and the policies count on it, each unless its own settings say otherwise"`
	// Measure: which jobs the summary covers.
	Measure Measure `config:"measure" doc:"which jobs the summary covers"`
	// Pipeline: the stages.
	Pipeline Pipeline `config:"pipeline" doc:"the stages"`
	// Backend: the world the scheduler acts on.
	Backend Part `config:"backend" doc:"the world the scheduler acts on"`

	// Synthesizer: a choice between compositions while the run is in progress.
	Synthesizer Synthesizer `config:"synthesizer" doc:"a choice between compositions while the run is in progress; none without candidates"`

	// Output: what a run leaves behind.
	Output Output `config:"output" doc:"what a run leaves behind"`
}

// Pipeline names the policy of each stage.
type Pipeline struct {
	// Admission: admitters.
	Admission []Policy `config:"admission" doc:"admitters; each of them must admit"`
	// Allocation: decides how many devices each job gets.
	Allocation Policy `config:"allocation" doc:"decides how many devices each job gets"`
	// Placement: decides which devices.
	Placement Policy `config:"placement" doc:"decides which devices"`
	// Elasticity: what jobs and the cluster do with devices.
	Elasticity Elasticity `config:"elasticity" doc:"what jobs and the cluster do with devices"`
}

// Elasticity names the policies of elasticity.
type Elasticity struct {
	// Job: what a job does with devices.
	Job Policy `config:"job" doc:"what a job does with devices"`
	// Cluster: how many nodes the cluster should have.
	Cluster Policy `config:"cluster" doc:"how many nodes the cluster should have"`
}

// Policy names a component of a stage, which may live in another process.
type Policy struct {
	// Type: type of the component.
	Type string `config:"type" doc:"type of the component" required:"true"`
	// Config: its settings.
	Config map[string]any `config:"config" doc:"its settings"`
	// Isolate: run a built-in in a process of its own.
	Isolate bool `config:"isolate" doc:"run a built-in in a process of its own"`
	// Plugin: how a policy in another process is kept.
	Plugin map[string]any `config:"plugin" doc:"how a policy in another process is kept"`
}

// Part names a workload or a backend.
type Part struct {
	// Type: type of the component.
	Type string `config:"type" doc:"type of the component" required:"true"`
	// Config: its settings.
	Config map[string]any `config:"config" doc:"its settings"`
}

// formatVersion is the version of the config format that this package reads and writes.
const formatVersion = 1

// DefaultFile is a config in which only what has no default is missing: a cluster, a workload and an allocation.
func DefaultFile() File {
	f := defaultFile()
	f.Version = formatVersion
	return f
}

// defaultFile holds the defaults of what may be left out.
func defaultFile() File {
	return File{
		Seed:     1,
		Cluster:  Cluster{Sharing: core.Exclusive.String(), MaxOwners: defaultMaxOwners},
		Sample:   workload.DefaultSample(),
		Estimate: workload.DefaultEstimate(),
		Round:    Round{Interval: time.Minute, Settle: Settle{Passes: 3, MakeRoom: true, ReserveAfter: time.Hour}},
		Measure:  Measure{LastJob: -1},
		Pipeline: Pipeline{
			Admission:  []Policy{{Type: "accept_all"}},
			Placement:  Policy{Type: "consolidated"},
			Elasticity: Elasticity{Job: Policy{Type: "fixed"}, Cluster: Policy{Type: "none"}},
		},
		Backend: Part{Type: "simulator"},

		Synthesizer: DefaultSynthesizer(),

		Output: Output{Dir: "runs", Write: []string{"jobs", "rounds", "decisions"}},
	}
}
