package configs

import "time"

// file is the form of a config: what may be written in it, and the defaults of what is left out.
type file struct {
	Version  int       `config:"version" doc:"version of the config format, 1" required:"true"`
	Name     string    `config:"name" doc:"name of the run, a plain file name; the base name of the file if left out"`
	Seed     uint64    `config:"seed" doc:"seed of all randomness"`
	Plugins  Plugins   `config:"plugins" doc:"where policies come from that are not built in"`
	Cluster  Cluster   `config:"cluster" doc:"the machines"`
	Workload component `config:"workload" doc:"where the jobs come from"`
	Round    Round     `config:"round" doc:"when decisions are taken"`
	Measure  Measure   `config:"measure" doc:"which jobs the summary covers"`
	Pipeline pipeline  `config:"pipeline" doc:"the stages"`
	Backend  component `config:"backend" doc:"the world the scheduler acts on"`
	Output   Output    `config:"output" doc:"what a run leaves behind"`
}

type pipeline struct {
	Admission  []policy   `config:"admission" doc:"admitters; each of them must admit"`
	Allocation policy     `config:"allocation" doc:"decides how many devices each job gets"`
	Placement  policy     `config:"placement" doc:"decides which devices"`
	Elasticity elasticity `config:"elasticity" doc:"what jobs and the cluster do with devices"`
}

type elasticity struct {
	Job     policy `config:"job" doc:"what a job does with devices"`
	Cluster policy `config:"cluster" doc:"how many nodes the cluster should have"`
}

// policy is a component of a stage, which may live in another process.
type policy struct {
	Type    string         `config:"type" doc:"type of the component" required:"true"`
	Config  map[string]any `config:"config" doc:"its settings"`
	Isolate bool           `config:"isolate" doc:"run a built-in in a process of its own"`
	Plugin  map[string]any `config:"plugin" doc:"how a policy in another process is kept"`
}

type component struct {
	Type   string         `config:"type" doc:"type of the component" required:"true"`
	Config map[string]any `config:"config" doc:"its settings"`
}

// formatVersion is the version of the config format that this package reads and writes.
const formatVersion = 1

func defaultFile() file {
	return file{
		Seed:    1,
		Round:   Round{Interval: time.Minute},
		Measure: Measure{LastJob: -1},
		Pipeline: pipeline{
			Admission:  []policy{{Type: "accept_all"}},
			Placement:  policy{Type: "consolidated"},
			Elasticity: elasticity{Job: policy{Type: "fixed"}, Cluster: policy{Type: "none"}},
		},
		Backend: component{Type: "simulator"},
		Output:  Output{Dir: "runs", Write: []string{"jobs", "rounds", "decisions"}},
	}
}
