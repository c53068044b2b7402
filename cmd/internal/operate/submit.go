package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/internal/inputfile"
)

func (a *app) submitCommand() *cobra.Command {
	f := schedulerFlags{app: a}
	c := &cobra.Command{
		Use:   "submit FILE...|-",
		Short: "Hand job files to the running scheduler",
		Long: `Hands the jobs of each file to the running scheduler, all of a file or none, and prints their names.
"-" reads standard input. Jobs run in the working folder of this command, unless they say otherwise.
Their "submit" counts from now. A note lists jobs that need more devices than there are.`,
		Example: "  quartet submit jobs.yaml\n  generate-jobs | quartet submit -",
		Args:    cobra.MatchAll(cobra.MinimumNArgs(1), areFiles),
	}
	c.Flags().StringVar(&f.Image, "image", "", "image that the jobs of job files run on Kubernetes")
	return f.operation(c, func(ctx context.Context, client cluster.Orders, args []string) error {
		t := render.Table{Columns: []render.Column{{Name: "job"}}}
		var taken []backend.JobFile
		err := each(args, func(name string) error {
			file, err := readJobFile(ctx, name, c.InOrStdin())
			if err != nil {
				return err
			}
			names, err := client.Submit(ctx, file)
			for _, name := range names {
				t.Rows = append(t.Rows, []any{name})
			}
			if err == nil {
				taken = append(taken, file)
			}
			return err
		})
		if !a.Quiet && len(taken) > 0 {
			a.noteMisfits(ctx, client, taken)
		}
		if failed := a.writeNames(t); failed != nil {
			return failed
		}
		return err
	})
}

// areFiles refuses what can be no job file, before a scheduler is waited for. A file that is missing is reported beside the jobs of the
// others.
func areFiles(_ *cobra.Command, names []string) error {
	return each(names, func(name string) error {
		if err := inputfile.Regular(name); name != "-" && err != nil && !errors.Is(err, fs.ErrNotExist) {
			return cli.Problem(name, "cannot be read: "+errors.Unwrap(err).Error(), "")
		}
		return nil
	})
}

// writeNames writes names a line each for people and shells.
func (a *app) writeNames(t render.Table) error {
	if a.Format != render.Text && a.Format != render.Wide {
		return t.Write(a.Stdout, a.Format)
	}
	for _, row := range t.Rows {
		if _, err := fmt.Fprintln(a.Stdout, row[0]); err != nil {
			return err
		}
	}
	return nil
}
