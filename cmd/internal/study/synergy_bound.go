package study

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/synergy"
)

func (a *app) synergyBoundCommand() *cobra.Command {
	var f cli.ConfigFlags
	c := &cobra.Command{
		Use:   "synergy-bound",
		Short: "How near tune comes to the best division of CPUs and memory",
		Long: `Seats the jobs of a config on its idle nodes, all there at once, in the order of submission, until no more find room, and divides CPUs and memory among those
that run: by their devices, as placement synergy does in mode tune, and as well as any division can. The bound holds for every division with no job below the
proportional share; the gap is how far the best division found may be from it. Nothing is simulated. docs/resources.md has more.`,
		Example: "  quartet synergy-bound -f compositions/cpus-and-memory.yaml",
		Args:    cli.ByFlag,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.synergyBound(c, &f)
		},
	}
	f.Register(a.App, c)
	return c
}

func (a *app) synergyBound(c *cobra.Command, f *cli.ConfigFlags) error {
	config, err := a.LoadConfig(c.Context(), configs.Options{Files: f.Files, Sets: f.Sets, Flags: f.Flags})
	if err != nil {
		return err
	}
	if !config.Cluster.CountResources {
		return cli.Problem("cluster.count_resources", "is false, so that CPUs and memory are not divided", "set it to true, and give nodes cpus and memory_gb")
	}
	for i := range config.Cluster.Nodes {
		if n := &config.Cluster.Nodes[i]; n.CPUs == 0 || n.MemoryGB == 0 {
			return cli.Problem(fmt.Sprintf("cluster.nodes[%d]", i), fmt.Sprintf("%q declares no CPUs or no memory, so that there is no bound", n.Name), "give cpus and memory_gb above 0")
		}
	}
	w, err := quartet.LoadWorkload(c.Context(), config, a.Logger())
	if err != nil {
		return err
	}
	specs := make([]*core.JobSpec, len(w.Jobs))
	for i := range w.Jobs {
		specs[i] = &w.Jobs[i].Spec
	}
	r, err := synergy.Reach(c.Context(), config.BuildCluster(), specs)
	if err != nil {
		return fmt.Errorf("bound the speeds of %d jobs: %w", len(specs), err)
	}
	if r.Running == 0 {
		a.Note("no job finds room on the nodes: there is nothing to divide")
	}
	t := render.Table{Columns: []render.Column{{Name: "jobs_running", Numeric: true}, {Name: "jobs_waiting", Numeric: true}, {Name: "devices", Numeric: true}}}
	row := []any{r.Running, r.Waiting, r.Devices}
	for _, figure := range []struct {
		name  string
		value float64
	}{
		{"fair_speeds", r.Fair},
		{"tune_speeds", r.Tune},
		{"best_speeds", r.Best.Value},
		{"bound_speeds", r.Best.Bound},
		{"tune_of_bound_percent", percentOf(r.Tune, r.Best.Bound)},
		{"gap_percent", 100 * r.Best.Gap()},
	} {
		t.Columns = append(t.Columns, render.Column{Name: figure.name, Numeric: true})
		row = append(row, digits(figure.value))
	}
	t.Rows = append(t.Rows, row)
	return t.Write(a.Stdout, a.Format)
}

// percentOf is a part of something in percent; all of nothing.
func percentOf(part, whole float64) float64 {
	if whole == 0 {
		return 100
	}
	return 100 * part / whole
}
