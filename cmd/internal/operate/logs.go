package operate

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/local"
)

func (a *app) logsCommand() *cobra.Command {
	f := schedulerFlags{app: a}
	var log backend.Log
	var rank uint32
	var runDir string
	c := &cobra.Command{
		Use:   "logs JOB",
		Short: "Print what a replica of a job put out",
		Long: `Prints what a replica of a job put out. With --run-dir it asks no scheduler but reads the files of a run:
one that has ended, or whose scheduler was killed.`,
		Example: "  quartet logs -f train\n  quartet logs train --rank 1 --stderr\n  quartet logs train --run-dir runs/local",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&runDir, "run-dir", "", "folder of a run, instead of a scheduler")
	for _, other := range []string{"run", "out", "socket", "server", "follow"} {
		defer c.MarkFlagsMutuallyExclusive("run-dir", other)
	}
	c.Flags().Uint32Var(&rank, "rank", 0, "which replica")
	c.Flags().BoolVar(&log.Stderr, "stderr", false, "standard error instead of standard output")
	c.Flags().BoolVarP(&log.Follow, "follow", "f", false, "follow the output until the job has ended")
	f.complete(f.operation(c, func(ctx context.Context, client cluster.Orders, args []string) error {
		log.Job, log.Rank = args[0], int(rank)
		if err := checkRank(ctx, client, log.Job, rank); err != nil {
			return err
		}
		return client.ReadLog(ctx, log, a.Stdout)
	}), 1, allJobs)
	read := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := a.RefuseOtherFormats(c, "the output as it is"); err != nil {
			return err
		}
		if runDir != "" {
			log.Job, log.Rank = args[0], int(rank)
			return local.ReadLogIn(filepath.Join(runDir, "live"), log, a.Stdout)
		}
		return read(c, args)
	}
	return c
}

// checkRank refuses a rank that no replica of a job can have.
func checkRank(ctx context.Context, client cluster.Orders, job string, rank uint32) error {
	if rank == 0 {
		return nil
	}
	d, err := client.Describe(ctx, job)
	if err != nil {
		return err
	}
	most := max(d.GetJob().GetRequested(), d.GetJob().GetMaxReplicas())
	if rank < most {
		return nil
	}
	return cli.Problem("--rank", fmt.Sprintf("%d is no rank of job %q, which has %s at most", rank, job, render.Count(int(most), "replica")), "ranks count from 0")
}
