package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/outcome"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/device"
	"github.com/quartet-sched/quartet/core/sim"
)

// RunConfig is the embedded config that `run` takes when no file is given.
const RunConfig = "local.yaml"

type runFlags struct {
	outcome.CompositionFlags
	serveFlags
	metricsFlags
	jobs     string
	name     string
	fresh    bool
	discover bool
	speedup  float64
	sped     bool // --speedup was given
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run",
		Short: "Run commands on this machine with the scheduler that a config composes",
		Long: `Runs real processes with the pipeline that simulate uses, and writes the same files. The nodes
of the config are shares of this machine. The backend of a config for the simulator is replaced;
policies that must know how much work is left need jobs that declare it, and say so.

With jobs of its own, those of a job file or of a trace, a run ends when all jobs have ended;
without, it runs until it is stopped. Either way quartet submit gives it jobs, and jobs,
describe, explain, plan, logs, cancel, drain and undrain operate it.

The jobs of a trace have no commands: something stands in for them, and --speedup lets the time
of the run pass faster than that of the machine.

A run whose scheduler was killed resumes where it stopped when it is run again: its jobs have run on
meanwhile. SIGINT and SIGTERM stop the jobs, write the results up to then and exit 130; run again,
it resumes too. docs/run.md describes job files, folders and failures.`,
		Example: `  quartet run
  quartet run --jobs jobs.yaml
  quartet run -f my.yaml --jobs jobs.yaml -o json
  quartet run --name second --set 'cluster.nodes=[{name: n, accelerator: gpu, devices: 8}]'
  quartet run -f default.yaml --speedup 600`,
		Args: cli.ByFlag,
		RunE: func(c *cobra.Command, _ []string) error {
			f.sped = c.Flags().Changed("speedup")
			config, err := f.load(c.Context(), a)
			if err != nil {
				return err
			}
			defer f.release()
			if err := f.bind(c.Context()); err != nil {
				return err
			}
			return f.run(c.Context(), a, config, &liveRun{
				fresh: f.fresh, serve: &f.serveFlags, metrics: &f.metricsFlags, files: f.Files,
				load: func(ctx context.Context) (*configs.Config, error) { return f.load(ctx, a) },
			})
		},
	}
	f.Usual, f.note = RunConfig, a.Note
	f.CompositionFlags.Register(a.App, c)
	f.serveFlags.register(c)
	f.metricsFlags.register(c)
	a.Logs.Register(c)
	c.Flags().StringVar(&f.jobs, "jobs", "", "job file, instead of the config's workload")
	c.Flags().StringVar(&f.name, "name", "", "name of the run, instead of the config's: runs of different names run beside each other")
	c.Flags().Float64Var(&f.speedup, "speedup", 0, "seconds of the run that pass in one, instead of backend.config.speedup")
	c.Flags().StringVar(&f.Out, "out", "", "folder for the results, instead of output.dir")
	c.Flags().BoolVar(&f.Strict, "strict", false, "exit 3 when jobs were rejected, failed or did not finish; not for those that were cancelled")
	c.Flags().BoolVar(&f.fresh, "fresh", false, "stop and forget what is left of an unfinished run of the same name")
	c.Flags().BoolVar(&f.discover, "discover", false, "run on the devices of this machine, instead of the config's cluster")
	return c
}

// run runs a config on real machines, lets people watch it and give it orders, and prints what came of it.
func (f *runFlags) run(ctx context.Context, a *app, config *configs.Config, run *liveRun) error {
	c := outcome.Composition(a.App, config, func(s quartet.Session) (quartet.Attachment, error) { return a.operate(s, run) })
	c.Fresh, c.OnForecast, c.NoForecastReason = run.fresh, run.outlets.publish, run.outlets.publishNone
	c.Follow = func(ctx context.Context, t quartet.Takeover) (stop func()) {
		return (&reloading{takeover: t, load: run.load, files: followFiles(run.files), log: a.Logger()}).follow(ctx)
	}
	return f.Complete(ctx, a.App, c, c.Run)
}

// bind takes the addresses of the run, all or none.
func (f *runFlags) bind(ctx context.Context) error {
	return errors.Join(f.metricsFlags.bind(ctx), f.serveFlags.bind(ctx))
}

func (f *runFlags) release() {
	f.metricsFlags.release()
	f.serveFlags.release()
}

// load reads the config with a real backend and the jobs that the flags name.
func (f *runFlags) load(ctx context.Context, a *app) (*configs.Config, error) {
	c, err := f.loadLive(ctx, a)
	return c, hintNeeds(withoutPaths(err, "--name", "--speedup"))
}

// withoutPaths leaves the place in the config out of problems with flags whose name says it.
func withoutPaths(err error, flags ...string) error {
	found, ok := errors.AsType[core.Diagnostics](err)
	if !ok {
		return err
	}
	for i := range found {
		if slices.Contains(flags, found[i].Position.File) {
			found[i].Path = ""
		}
	}
	return found
}

// loadLive reads the config; one for the simulator gets the local backend.
func (f *runFlags) loadLive(ctx context.Context, a *app) (*configs.Config, error) {
	if err := f.ConfigFlags.Discover(a.App); err != nil { // once: a run stays with the files that it began with
		return nil, err
	}
	flags := cli.ConfigFlags{Files: f.Files, Sets: f.Sets, Usual: f.Usual}
	if err := f.replaceJobsAndName(&flags); err != nil {
		return nil, err
	}
	if f.discover {
		cluster, err := discoveredCluster(ctx)
		if err != nil {
			return nil, err
		}
		flags.Flags = append(flags.Flags, cluster...)
	}
	c, err := flags.Load(ctx, a.App, f.Out)
	if err != nil {
		return nil, err
	}
	opener, err := c.Backend.New(c.Seed, nil)
	if err != nil {
		return nil, err
	}
	live := backend.OpenerAbilitiesOf(opener).Durable != nil
	if live && !f.discover && !f.sped {
		return c, nil
	}
	if !live {
		if err := f.replaceBackend(&flags, c); err != nil {
			return nil, err
		}
	}
	if f.discover {
		flags.Flags = append(flags.Flags, discovered)
	}
	if f.sped {
		setBy(&flags, "--speedup", fmt.Sprintf("backend.config.speedup=%v", f.speedup))
	}
	return flags.Load(ctx, a.App, f.Out)
}

// setBy adds an assignment that a flag of the command stands for.
func setBy(flags *cli.ConfigFlags, flag, assignment string) {
	flags.Flags = append(flags.Flags, configs.Flag{Name: flag, Set: assignment})
}

// replaceJobsAndName puts the job file of --jobs in the place of the workload, and sets --name.
func (f *runFlags) replaceJobsAndName(flags *cli.ConfigFlags) error {
	if f.jobs != "" {
		path, err := json.Marshal(f.jobs)
		if err != nil {
			return err
		}
		setBy(flags, "--jobs", "workload=null")
		setBy(flags, "--jobs", fmt.Sprintf("workload={type: jobs, config: {path: %s}}", path))
		setBy(flags, "--jobs", "sample.window={first_job: 0, jobs: 0, from: 0s, span: 0s, quiet: 0s}") // of the workload that the jobs take the place of
	}
	if f.name != "" {
		name, err := json.Marshal(f.name)
		if err != nil {
			return err
		}
		setBy(flags, "--name", fmt.Sprintf("name=%s", name))
	}
	return nil
}

// discoveredCluster is the cluster of --discover: this machine with its devices.
func discoveredCluster(ctx context.Context) ([]configs.Flag, error) {
	found, err := device.Discover(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := nodesOf(found)
	if err != nil {
		return nil, err
	}
	return clusterFlags(nodes)
}

// replaceBackend puts the local backend in the place of the simulator of a config, with the pools that it simulates.
func (f *runFlags) replaceBackend(flags *cli.ConfigFlags, c *configs.Config) error {
	setBy(flags, "run", "backend=null")
	setBy(flags, "run", fmt.Sprintf("backend={type: local, config: {declared: %t}}", f.jobs == "" && isTrace(c)))
	if simulated, is := c.Backend.Config.(*sim.Config); is && len(simulated.Pools) > 0 && !f.discover {
		pools, err := poolSettings(simulated.Pools)
		if err != nil {
			return err
		}
		setBy(flags, "run", "backend.config.pools="+pools)
	}
	return nil
}

// poolSettings is how nodes of pools come and go, as a config has it.
func poolSettings(pools []backend.Pool) (string, error) {
	list := make([]map[string]any, len(pools))
	for i := range pools {
		p := &pools[i]
		list[i] = map[string]any{
			"pool": p.Pool, "provisioning": p.Provisioning.String(), "provisioning_spread": p.Spread.String(), "fails": p.Fails,
			"drain_timeout": p.DrainTimeout.String(), "evictions": p.Evictions.String(), "notice": p.Notice.String(),
		}
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// isTrace reports whether the jobs of a config come from a trace, which says how much work they are.
func isTrace(c *configs.Config) bool {
	return !slices.Contains([]string{"workload/jobs", "workload/submitted", "workload/tuning"}, c.Workload.ID)
}

// liveRun says how a live run begins, and what serves it.
type liveRun struct {
	fresh   bool
	serve   *serveFlags
	metrics *metricsFlags
	outlets forecastOutlets
	files   []string                                       // of the config
	load    func(context.Context) (*configs.Config, error) // it as it is now
}
