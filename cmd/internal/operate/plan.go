package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

func (a *app) planCommand() *cobra.Command {
	s := schedulerFlags{app: a}
	w := whatIfFlags{twinFlags: twinFlags{schedulerFlags: &s}}
	f := &w.runFlags
	c := &cobra.Command{
		Use:   "plan",
		Short: "Show what the next round would do, without doing it",
		Long: `Asks the running scheduler for all that it knows, repeats its rounds in this process, and holds
one more: what that decides is shown, and the scheduler does not act on it. With -f or --jobs it shows the first
round of a run or a simulation that has not begun.

The files that the config of the run names must be where they were: plan is for the folder in
which the scheduler was started.

With --context it reads a Kubernetes cluster, as you may, and shows what a scheduler decides that
takes over there now: by the composition that is installed, or that of -f, changed by --set.
--namespace is then that of the scheduler.

With --drain, --add, --policy or --submit it shows what would change: of which jobs the next round
would decide otherwise, and two futures side by side, without and with the change, simulated several
times from the present state on. Each pair has the same work left, failures and arrivals. --at has
it begin in the course of a simulation.`,
		Example: `  quartet plan
  quartet plan --run train -o json
  quartet plan -f my.yaml --jobs jobs.yaml
  quartet plan --context prod
  quartet plan --context prod --set pipeline.allocation.type=las
  quartet plan --drain node-3 --for 6h
  quartet plan --policy las.yaml --submit jobs.yaml --horizon 24h
  quartet plan -f my.yaml --at 6h --add big=4`,
		Args: cli.ByFlag,
		RunE: func(c *cobra.Command, _ []string) error {
			if asked, err := w.asked(c); asked || err != nil {
				if err != nil {
					return err
				}
				return a.whatIf(c, &w)
			}
			if s.Meant() {
				return s.with(c.Context(), func(client cluster.Orders) error { return a.planCluster(c.Context(), client, &s.KubeFlags, f) })
			}
			if len(f.Files) > 0 || f.jobs != "" {
				load := f.load
				if f.jobs == "" { // the first round of a simulation, if it is one
					load = func(ctx context.Context, a *app) (*configs.Config, error) { return f.ConfigFlags.Load(ctx, a.App, "") }
				}
				config, err := load(c.Context(), a)
				if err != nil {
					return err
				}
				return a.plan(c.Context(), config, "")
			}
			if len(f.Sets) > 0 {
				return cli.Problem("--set", "changes a config, only with -f, --jobs or --context", "the running scheduler has its own")
			}
			return s.with(c.Context(), func(client cluster.Orders) error { return a.planSnapshot(c.Context(), client) })
		},
	}
	f.Usual = RunConfig
	f.CompositionFlags.Register(a.App, c)
	c.Flags().StringVar(&f.jobs, "jobs", "", "job file, instead of the config's workload")
	w.register(a, c)
	s.register(c)
	return c
}

// planSnapshot plans on what a running scheduler knows.
func (a *app) planSnapshot(ctx context.Context, client cluster.Orders) error {
	return a.withSnapshot(ctx, client, func(config *configs.Config, path string) error { return a.plan(ctx, config, path) })
}

// withSnapshot has something done with what a running scheduler knows: the config of the run, and a file that is there meanwhile.
func (a *app) withSnapshot(ctx context.Context, client cluster.Orders, do func(config *configs.Config, path string) error) error {
	folder, err := os.MkdirTemp("", "quartet-plan-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "state.db")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(client.WriteSnapshot(ctx, f), f.Close()); err != nil {
		return err
	}
	text, err := local.SnapshotConfig(path)
	if err != nil {
		return err
	}
	config, err := configs.Parse(a.Catalog(), "the running config", []byte(text), configs.Options{Outside: a.Outside(ctx)})
	if err != nil {
		return err
	}
	return do(config, path)
}

// planCluster plans on what there is in a cluster.
func (a *app) planCluster(ctx context.Context, client cluster.Orders, k *cli.KubeFlags, f *runFlags) error {
	on, is := client.(cluster.Cluster)
	if !is {
		return errors.New("this is no cluster")
	}
	if f.jobs != "" {
		return cli.Problem("--jobs", "is for a run that has not begun", "the jobs of a cluster are those that were submitted")
	}
	config, err := a.clusterConfig(ctx, on, k, f)
	if err != nil {
		return err
	}
	return on.Reads(a.plan(ctx, config, ""))
}

// onKubernetes is the type of the backend whose cluster is planned for.
const onKubernetes = "backend/kubernetes"

// clusterConfig is the composition that plans for a cluster: that of -f, or else the one installed there.
func (a *app) clusterConfig(ctx context.Context, on cluster.Cluster, k *cli.KubeFlags, f *runFlags) (*configs.Config, error) {
	var flags []configs.Flag
	set := func(format string, args ...any) {
		flags = append(flags, configs.Flag{Name: "--context", Set: fmt.Sprintf(format, args...)})
	}
	reach := func() {
		set("backend.config.kubeconfig=%s", quoted(k.Kubeconfig))
		set("backend.config.context=%s", quoted(k.Context))
		if home := on.Home(); home != "" {
			set("backend.config.namespace=%s", quoted(home))
		}
	}
	if len(f.Files) == 0 {
		text, err := on.Composition(ctx)
		if err != nil {
			return nil, err
		}
		parse := func() (*configs.Config, error) {
			return configs.Parse(a.Catalog(), "the installed config", []byte(text), configs.Options{Sets: f.Sets, Flags: flags, Outside: a.Outside(ctx)})
		}
		c, err := parse()
		if err != nil {
			return nil, hintNeeds(err)
		}
		if c.Backend.ID != onKubernetes {
			return nil, cli.Problem("the installed config", fmt.Sprintf("schedules no cluster, but by %q", c.Backend.ID), "name another one by -f")
		}
		reach()
		return parse()
	}
	set("workload=null")
	set("workload={type: submitted}")
	load := func() (*configs.Config, error) {
		c := cli.ConfigFlags{Files: f.Files, Sets: f.Sets, Flags: flags}
		return c.Load(ctx, a.App, "")
	}
	c, err := load()
	if err != nil {
		return nil, hintNeeds(err)
	}
	if c.Backend.ID != onKubernetes { // nor what it says of its cluster
		settings, err := a.installedBackend(ctx, on)
		if err != nil {
			return nil, err
		}
		set("backend=null")
		set("backend={type: kubernetes, config: %s}", settings)
	}
	reach()
	c, err = load()
	return c, hintNeeds(err)
}

// installedBackend is what the installed composition says of its cluster, and nothing where there is none.
func (a *app) installedBackend(ctx context.Context, on cluster.Cluster) (settings string, err error) {
	text, err := on.Composition(ctx)
	if err != nil {
		if d := core.Diagnostics(nil); errors.As(err, &d) { // there is none
			return "{}", nil
		}
		return "", err
	}
	var installed struct {
		Backend struct{ Config map[string]any }
	}
	if err := yaml.Unmarshal([]byte(text), &installed); err != nil || installed.Backend.Config == nil {
		return "{}", nil //nolint:nilerr // its reader reports it when it decides
	}
	flow, err := json.Marshal(installed.Backend.Config)
	return string(flow), err
}

// quoted writes a text as YAML reads it.
func quoted(text string) string {
	quoted, _ := json.Marshal(text) // a text
	return string(quoted)
}

// plan shows the next round of a run, or its first when there is no snapshot.
func (a *app) plan(ctx context.Context, config *configs.Config, snapshot string) error {
	c := &quartet.Composition{Config: config, Log: a.Logger()}
	p, err := c.Plan(ctx, snapshot)
	if err != nil {
		return err
	}
	if a.ByCalendar { // who takes over counts rounds anew
		a.Note("the next round of a scheduler that takes over now")
	} else {
		a.Note("round %d, at %s", p.Round, render.Span(p.NowSeconds))
	}
	table := planTable(p)
	if len(table.Rows) == 0 {
		a.Note("the next round changes nothing, and no job is pending")
	}
	return table.Write(a.Stdout, a.Format)
}

// planTable lists what changes, then who waits and why.
func planTable(p *quartet.Plan) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "job"}, {Name: "action"}, {Name: "replicas", Numeric: true}, {Name: "on"}, {Name: "batch", Drop: 1}, {Name: "why"}, {Name: "by", Drop: 2}}}
	for _, c := range p.Changes {
		why := ""
		if c.Reason != core.NoReason {
			why = c.Reason.String()
		}
		t.Rows = append(t.Rows, []any{p.Names[c.Job], c.Action.String(), replicasOf(c.Seats), seatsText(p.Cluster, c.Seats), settingText(&c), why, c.By})
	}
	for _, j := range p.Unfinished {
		if j.State == core.Running {
			continue
		}
		v, decided := p.Verdicts[j.ID]
		why := j.WaitingReason.String()
		if decided && v.Reason == j.WaitingReason {
			why = v.Explain()
		}
		t.Rows = append(t.Rows, []any{j.Name, "wait", replicasOf(nil), "", "", why, v.By})
	}
	return t
}

// replicasOf is nothing for a change of no devices.
func replicasOf(seats []core.Seat) any {
	if len(seats) == 0 {
		return math.NaN()
	}
	return core.Replicas(seats)
}

// settingText words the batch that a change sets, and the CPUs and the memory that each replica is given where they are not what its job asks for.
func settingText(c *core.Change) string {
	text := tuningText(c)
	if c.Resources == nil {
		return text
	}
	given := fmt.Sprintf("%v CPUs, %v GB", c.Resources.CPUs, c.Resources.MemoryGB)
	if text == "" {
		return given
	}
	return text + ", " + given
}

// tuningText words the batch that a change sets.
func tuningText(c *core.Change) string {
	t := &c.Tuning
	if len(c.Seats) == 0 && c.Action != core.Tune || t.BatchPerDevice == 0 && t.AccumulationSteps == 0 && t.LearningRateFactor == 0 {
		return ""
	}
	return wordTuning(&controlv1.Tuning{
		BatchPerDevice: uint32(t.BatchPerDevice), AccumulationSteps: uint32(t.AccumulationSteps), LearningRateFactor: t.LearningRateFactor,
	})
}

// seatsText writes seats as "node:0-3 other:1".
func seatsText(c *core.Cluster, seats []core.Seat) string {
	var parts []string
	for _, seat := range seats {
		parts = append(parts, c.Nodes[seat.Node].Name+":"+seat.Devices.String())
	}
	return strings.Join(parts, " ")
}
