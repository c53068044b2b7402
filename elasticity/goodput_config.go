package elasticity

import (
	"time"
)

// GoodputConfig configures NewGoodput.
type GoodputConfig struct {
	// Knowledge is what is known of a job that starts.
	Knowledge string `config:"knowledge" doc:"what is known of a job that starts: learned is nothing, history what jobs of its application measured before, in earlier runs or in this one, oracle the truth, as far as the model can be fitted to it, exact the truth itself" enum:"learned|history|oracle|exact"`
	// HistoryPath is the file that history is read from and written to; empty for none.
	HistoryPath string `config:"history_path" doc:"file that history is read from, and written to at the end of a run; read only if it exists; none to learn within the run alone"`
	// HistoryFrozen does not write the history back.
	HistoryFrozen bool `config:"history_frozen" doc:"do not write the history back"`
	// Profiled says that each job was measured on one device of each accelerator type before it starts.
	Profiled bool `config:"profiled" doc:"each job was measured on one device of each accelerator type before it starts, which shows how types compare"`
	// Types says whether each accelerator type has a model of its own (each) or not (blind).
	Types string `config:"types" doc:"each accelerator type has a model of its own, or the model is blind to types" enum:"each|blind"`
	// FixedBatch are applications that keep the requested batch.
	FixedBatch []string `config:"fixed_batch" doc:"applications that keep the batch the user asked for"`
	// DeclaredWork gives the work left, as far as users declare how long a job trains.
	DeclaredWork bool `config:"declared_work" doc:"give the work left, as far as users declare how long a job trains"`
	// UnmeasuredSeconds is how long a job that has not run yet is taken to need on one device, in seconds.
	UnmeasuredSeconds float64 `config:"unmeasured_seconds" doc:"seconds that a job which has not run yet is taken to need on one device" min:"0"`
	// ScalingRule says how the learning rate grows with the batch.
	ScalingRule string `config:"scaling_rule" doc:"how the learning rate grows with the batch" enum:"adascale|square_root|linear|legew"`
	// WarmupIterations is how many iterations at the initial batch the warm-up of legew takes.
	WarmupIterations float64 `config:"warmup_iterations" doc:"iterations at the initial batch that the warm-up of legew takes" min:"0"`
	// SilentAfter is how long a job may work without reporting before it is taken to report nothing.
	SilentAfter time.Duration `config:"silent_after" doc:"a job that has worked for so long and reported nothing is taken to report nothing" min:"0s"`
	// MostReplicas is up to how many replicas curves are given.
	MostReplicas int `config:"most_replicas" doc:"replicas up to which curves are given" min:"1"`
}
