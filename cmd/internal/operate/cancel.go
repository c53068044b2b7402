package operate

import (
	"context"
	"math"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
)

func (a *app) cancelCommand() *cobra.Command {
	f := schedulerFlags{app: a}
	return f.complete(f.operation(&cobra.Command{
		Use:   "cancel JOB...",
		Short: "Cancel jobs",
		Args:  cobra.MinimumNArgs(1),
	}, func(ctx context.Context, client cluster.Orders, args []string) error {
		return each(unique(args), func(job string) error {
			before, err := client.Describe(ctx, job)
			if err == nil {
				err = client.Cancel(ctx, job)
			}
			if err != nil {
				return err
			}
			if state := before.GetJob().GetState(); outcomeKnown(state) {
				a.Note("job %s has already ended (%s); nothing to cancel", job, state)
			} else {
				a.Note("job %q is cancelled; it was %s", job, state)
			}
			return nil
		})
	}), math.MaxInt, liveJobs)
}
