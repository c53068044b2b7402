// Package local is the backend of real processes on this machine. The nodes of the cluster are declared; a replica is a
// process that gets its device by CUDA_VISIBLE_DEVICES.
//
// Each run of a job has a keeper (package keeper), a process that outlives the scheduler and holds the replicas. Before it
// acts, the scheduler writes what it saw and decided into a store. A scheduler that was killed is therefore replaced by one
// that replays the recorded rounds through the same pipeline, finds the keepers by process id and start time, finishes what
// was half done, and goes on.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
	"github.com/quartet-sched/quartet/core/workload"
)

// KeepIfAsked ends the program as a keeper, or as the check of a store, if it was started as one. It is the first thing that
// a program with this backend does.
func KeepIfAsked() {
	checkIfAsked()
	keeper.IfAsked()
}

// Config are the settings of the backend.
type Config struct {
	// Dir is the folder of the store, the logs and the checkpoints. Empty, it is folder live of the results of the run.
	Dir string `config:"dir" doc:"folder of the store, the logs and the checkpoints; folder live of the run's results if left out"`
	// Grace is how long an agent has to stop its job before SIGTERM, and a job between SIGTERM and SIGKILL.
	Grace time.Duration `config:"grace" doc:"time that an agent has to stop its job before SIGTERM, and a job between SIGTERM and SIGKILL" min:"0s" max:"1h"`
	// Environment names the variables of the scheduler that jobs see besides the usual ones.
	Environment []string `config:"environment" doc:"variables of the scheduler's environment that jobs see, besides the usual ones"`
	// LogMB is the size in MB at which a file of output is renamed and a new one begun; 0 for none.
	LogMB int `config:"log_mb" doc:"MB that a file of output may have before it is renamed and a new one begun; 0: any" min:"0" max:"1000000"`
	// LogFiles is how many renamed files of output are kept.
	LogFiles int `config:"log_files" doc:"renamed files of output that are kept" min:"0" max:"1000"`
	// Limits says whether jobs are held to their CPUs and memory by control groups: off, try or required.
	Limits string `config:"limits" doc:"limits of jobs on processors and memory, by control groups: not set, set if possible, or else the run of the job fails" enum:"off|try|required"`
	// Declared trusts the seconds that jobs declare, and refuses jobs that declare none.
	Declared bool `config:"declared" doc:"trust the seconds that jobs declare, and refuse jobs that declare none: gives remaining_work"`
	// Devices says whether the devices of nodes are declared by the config or discovered on this machine.
	Devices string `config:"devices" doc:"declared: the devices of the nodes are numbered; discovered: they are found on this machine, which must have them" enum:"declared|discovered"`
	// StandIn is the command of jobs that have none, with placeholders for what is known of the job.
	StandIn []string `config:"stand_in" doc:"command of jobs that have none, with {name}, {application}, {profile}, {work}, {seconds}, {replicas}, {batch} and {speedup} of the job filled in; if left out, such jobs do nothing for as long as the simulator would let them"`
	// HangAfter is how long a job whose agent has spoken may be silent before its run fails; 0 for ever.
	HangAfter time.Duration `config:"hang_after" doc:"a run whose agent spoke and then says nothing for so long has failed; 0 for never" min:"0s"`
	// RetryDelay is how long a job with retries left waits after its first run that failed; it doubles with each further one, up to RetryDelayMax.
	RetryDelay time.Duration `config:"retry_delay" doc:"how long a job waits after its first run that failed, before it is repeated; doubles with each further one" min:"0s" max:"24h"`
	// RetryDelayMax is how long a job waits at most before it is repeated.
	RetryDelayMax time.Duration `config:"retry_delay_max" doc:"how long a job waits at most before it is repeated" min:"0s" max:"24h"`
	// CheckpointEvery is how often jobs that speak the agent protocol are asked for a checkpoint; 0 for never.
	CheckpointEvery time.Duration `config:"checkpoint_every" doc:"how often jobs that speak the agent protocol are asked for a checkpoint; 0 for never: they make them when they see fit, and when they are stopped" min:"0s"`
	// Speedup is how many seconds of the run pass in a second.
	Speedup float64 `config:"speedup" doc:"how many seconds of the run pass in one: a trace is replayed so much faster" min:"0.001" max:"1e6"`
	// Pools is how long nodes of pools take to come and go, in time of the run.
	Pools []Pool `config:"pools" doc:"what it takes for nodes of the cluster's pools to come and go, in time of the run; a pool that is not listed has its nodes at once"`
	// Evict lists nodes of pools that are taken away.
	Evict []Eviction `config:"evict" doc:"nodes of pools that are taken away, with the notice of their pool"`
	// StallAfter is how long no job may run, start or be submitted before the run ends, in time of the run.
	StallAfter time.Duration `config:"stall_after" doc:"end the run when no job ran, started or was submitted for so long" min:"1s"`
}

// Deciding are the settings that decisions depend on. A run goes on when others are changed.
func (c *Config) Deciding() any {
	return &Config{Devices: c.Devices, Declared: c.Declared, Speedup: c.Speedup, StandIn: c.StandIn}
}

// usual are the variables that every job sees.
var usual = []string{"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Validate reports variables that cannot be handed down, and stand-ins that nobody knows how to start.
func (c Config) Validate() error {
	problems := append(c.checkStandIn(), c.checkPools()...)
	for i, name := range c.Environment {
		if !variableName.MatchString(name) || strings.HasPrefix(name, "QUARTET_") || name == visibleDevices {
			problems = append(problems, fmt.Errorf("environment[%d]: %q cannot be handed down", i, name))
		}
	}
	return errors.Join(problems...)
}

// Clock is where time comes from. Now has a monotonic reading where there is one.
type Clock interface {
	// Now is the present moment.
	Now() time.Time
	// After returns a channel that gets the moment once a duration has passed.
	After(d time.Duration) <-chan time.Time
}

// New is the factory of the local backend.
func New(clock Clock) core.Factory[backend.Opener] {
	return core.NewFactory(core.Info{
		Type:    "local",
		Summary: "real processes on this machine, which survive the scheduler",
		Description: "The nodes of the config are declared shares of this machine; devices are numbered through over all of them. " +
			"It needs Linux, and jobs with commands.",
	}, Config{
		Grace: 10 * time.Second, LogMB: 64, LogFiles: 3, Limits: keeper.LimitsTry, Devices: declaredDevices, Speedup: 1, StallAfter: time.Hour, RetryDelay: 10 * time.Second, RetryDelayMax: 5 * time.Minute,
	}, func(c Config, s core.Settings) (backend.Opener, error) {
		return &Opener{config: c, log: s.Log, clock: clock, lockWait: lockWait, seed: s.Seed, id: s.ID}, nil
	})
}

// Opener opens the backend.
type Opener struct {
	config   Config
	log      *slog.Logger
	clock    Clock
	lockWait time.Duration // how long what another instance holds is waited for
	identity string
	resolved string
	files    []core.FileRead
	program  string
	differs  func(config string) ([]string, error)
	fresh    bool
	seed     uint64
	id       string // of the component
}

// Run says what a backend is opened for.
type Run = backend.Run

// For sets what the backend is opened for.
func (o *Opener) For(r Run) {
	if o.config.Dir == "" {
		o.config.Dir = r.Dir
	}
	o.identity, o.resolved, o.files, o.fresh = r.Identity, r.Config, r.Files, r.Fresh
	o.program, o.differs = r.Program, r.Differs
}

var (
	_ backend.Durable = (*Opener)(nil)
	_ backend.Planner = (*Opener)(nil)
)

// Dir is the folder of the backend.
func (o *Opener) Dir() string { return o.config.Dir }

// Capabilities are that pools grow and shrink, that jobs share devices, and what the jobs declare, when that is trusted.
func (o *Opener) Capabilities() []core.Capability {
	list := []core.Capability{core.CapabilityScaleCluster, core.CapabilityShares}
	if o.config.Declared {
		list = append(list, core.CapabilityRemainingWork)
	}
	return list
}

// Check refuses systems that lack what the backend is made of, and pools that there are not.
func (o *Opener) Check(c *core.Cluster, _ core.RoundOptions) core.Diagnostics {
	ds := o.config.checkPoolNames(c)
	if runtime.GOOS != "linux" {
		ds = append(ds, core.Diagnostic{Summary: "runs on Linux only, not on " + runtime.GOOS})
	}
	return ds
}

// checkJobs refuses jobs that are no processes.
func (c *Config) checkJobs(jobs []workload.Job) core.Diagnostics {
	var found core.Diagnostics
	for i := range jobs {
		job := &jobs[i]
		refuse := func(summary, hint string) {
			found = append(found, core.Diagnostic{Position: job.At, Summary: fmt.Sprintf("job %q %s", job.Spec.Name, summary), Hint: hint})
		}
		switch {
		case len(job.Spec.Command) > 0:
		case job.Model == nil && len(c.StandIn) == 0:
			refuse("has no command", "name one, or a stand-in with backend.config.stand_in")
		default:
			for _, name := range c.unfilled(job) {
				refuse(fmt.Sprintf("has no {%s}", name), "backend.config.stand_in asks for it")
			}
		}
		if !workload.PlainName(job.Spec.Name) {
			refuse("has a name that is no plain file name", "logs and checkpoints are named after it")
		}
		if c.Declared && job.Spec.TotalWork <= 0 {
			refuse("does not declare its seconds", "backend.config.declared asks for them")
		}
	}
	return found
}

// Open opens the store, replaces a scheduler that was killed, and starts the clock.
func (o *Opener) Open(ctx context.Context, c *core.Cluster, w *workload.Workload) (core.Backend, error) {
	if err := append(o.Check(c, core.RoundOptions{}), o.config.checkJobs(w.Foreseen().Jobs)...).Err(); err != nil {
		return nil, err
	}
	if o.config.Dir == "" {
		return nil, core.Diagnostics{{Path: "backend.config.dir", Summary: "required but missing"}}
	}
	return open(ctx, o, c, w)
}
