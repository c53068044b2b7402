package simulate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/outcome"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/internal/interrupt"
)

type simulateFlags struct {
	outcome.CompositionFlags
	from string
}

func (a *app) simulateCommand() *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Run a composition on a workload and measure it",
		Long: `Runs the scheduler that a config composes on its workload, prints what it came to, and writes
manifest.json, summary.json, jobs.csv, rounds.csv and decisions.jsonl into a folder named after
the run; output.write in the config asks for more or fewer. docs/outputs.md defines every field.

-o json prints summary.json exactly. --from repeats a recorded run and compares its files byte
for byte; it writes files only with --out.`,
		Example: `  quartet simulate
  quartet simulate -f my.yaml --set pipeline.allocation.type=las -o json
  quartet simulate --from runs/default/manifest.json`,
		Args: cli.ByFlag,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.from != "" {
				return a.repeat(c.Context(), &f)
			}
			config, err := f.Load(c.Context(), a.App, f.Out)
			if err != nil {
				return err
			}
			r := outcome.Composition(a.App, config, nil)
			return f.Complete(c.Context(), a.App, r, r.Simulate)
		},
	}
	f.Register(a.App, c)
	c.Flags().StringVar(&f.Out, "out", "", "folder for the results, instead of output.dir")
	c.Flags().BoolVar(&f.Strict, "strict", false, "exit 3 when jobs were rejected, failed or did not finish")
	c.Flags().StringVar(&f.from, "from", "", "manifest of a run to repeat and compare with")
	c.MarkFlagsMutuallyExclusive("from", "file")
	c.MarkFlagsMutuallyExclusive("from", "set")
	return c
}

// repeat runs what a manifest records and compares the files.
func (a *app) repeat(ctx context.Context, f *simulateFlags) error {
	m, err := interrupt.Call(ctx, func() (*quartet.Manifest, error) { return quartet.ReadManifest(f.from) })
	if err != nil {
		return err
	}
	// What the environment says went into the recorded config.
	config, err := configs.Parse(a.Catalog(), f.from, []byte(m.Config), configs.Options{OutDir: f.Out, Outside: a.Outside(ctx)})
	if err != nil {
		return err
	}
	c := outcome.Composition(a.App, config, nil)
	if f.Out != "" {
		c.Dir = filepath.Join(config.Output.Dir, config.Name)
	}
	r, err := c.Simulate(ctx)
	if err != nil && (r == nil || !r.Interrupted) {
		return err
	}
	if err := outcome.Print(a.App, r, config); err != nil {
		return err
	}
	if r.Interrupted {
		return f.Verdict(a.App, r)
	}
	if differences := m.Differences(r); len(differences) > 0 {
		return &cli.ExitError{Code: cli.ExitFailed, Err: errors.New(differs(m, differences))}
	}
	a.Note("repeated %s: every file is the same, byte for byte", f.from)
	return f.Verdict(a.App, r)
}

func differs(m *quartet.Manifest, differences []string) string {
	text := "the run did not repeat:\n  " + strings.Join(differences, "\n  ")
	if b := cli.ReadBuild(); b.Version != m.Quartet || b.Commit != m.Commit || b.Go != m.Go {
		text += fmt.Sprintf("\n  recorded by quartet %s (commit %s, %s), this is %s (commit %s, %s)",
			m.Quartet, m.Commit, m.Go, b.Version, b.Commit, b.Go)
	}
	return text
}
