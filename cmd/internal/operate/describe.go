package operate

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
)

func (a *app) describeCommand() *cobra.Command {
	f := schedulerFlags{app: a}
	return f.complete(f.operation(&cobra.Command{
		Use:   "describe JOB",
		Short: "Show everything that is known about a job, with the last decisions about it",
		Args:  cobra.ExactArgs(1),
	}, func(ctx context.Context, client cluster.Orders, args []string) error {
		d, err := client.Describe(ctx, args[0])
		if err != nil {
			return err
		}
		if on, is := client.(cluster.Cluster); is {
			pods, err := on.Pods(ctx, args[0])
			if err != nil {
				return err
			}
			return a.writeDescription(d, pods)
		}
		return a.writeDescription(d, nil)
	}), 1, allJobs)
}
