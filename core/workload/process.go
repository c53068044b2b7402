package workload

// Process is how a job runs on real machines, beside its command.
type Process struct {
	Dir         string     // working folder; empty for that of the scheduler
	Environment []Variable // besides what the scheduler hands down
	Retries     int        // failed runs that are repeated
	Checkpoints bool       // a run goes on where the one before stopped
	Reports     bool       // its declared work is in the unit that it reports its progress in, not in seconds
}

// Variable is a variable of the environment.
type Variable struct {
	Name  string `config:"name" doc:"name of the variable" required:"true"`
	Value string `config:"value" doc:"its value"`
}
