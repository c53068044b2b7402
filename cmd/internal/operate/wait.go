package operate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// askEvery is how often the commands that wait for something ask the scheduler for it.
const askEvery = 250 * time.Millisecond

// outcomes are the exit codes of "wait" by how a job ended.
var outcomes = map[string]int{
	core.Completed.String(): cli.ExitOK, core.Failed.String(): cli.ExitIncomplete, core.Rejected.String(): cli.ExitRejected, core.Cancelled.String(): cli.ExitCancelled,
}

func (a *app) waitCommand() *cobra.Command {
	f := schedulerFlags{app: a}
	var limit time.Duration
	c := &cobra.Command{
		Use:   "wait JOB...",
		Short: "Wait until jobs have ended",
		Long: `Waits until every one of the jobs has ended, and prints each with its outcome as it ends. Exit codes: 0 when
all have completed, 3 when one failed, otherwise 4 when one was rejected and 5 when one was cancelled; 124 when
--timeout passed first. A failed run that is repeated is no end.`,
		Example: "  quartet wait train\n  quartet wait --timeout 2h $(quartet submit jobs.yaml)",
		Args:    cobra.MinimumNArgs(1),
	}
	c.Flags().DurationVar(&limit, "timeout", 0, "how long to wait at most, 0s to look once (default: as long as it takes)")
	return f.complete(f.operation(c, func(ctx context.Context, client cluster.Orders, args []string) error {
		once := c.Flags().Changed("timeout") && limit == 0
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, limit, errTimeout)
			defer cancel()
		}
		err := a.waitFor(ctx, client, unique(args), once)
		switch {
		case errors.Is(err, errTimeout):
			return &cli.ExitError{Code: cli.ExitTimeout, Err: errors.New("not every job has ended")}
		case errors.Is(context.Cause(ctx), errTimeout), limit > 0 && errors.Is(err, context.DeadlineExceeded): // the scheduler may notice first
			return &cli.ExitError{Code: cli.ExitTimeout, Err: fmt.Errorf("not every job has ended within %v", limit)}
		}
		return err
	}), math.MaxInt, liveJobs)
}

var errTimeout = errors.New("timeout")

// waitFor prints each job when it has ended, and comes to the exit code of the worst. It may look once, and is then out of time.
func (a *app) waitFor(ctx context.Context, client cluster.Orders, names []string, once bool) error {
	left := names
	ended := make(map[string]int) // jobs by state
	for first := true; ; first = false {
		var running []string
		for _, name := range left {
			d, err := client.Describe(ctx, name)
			if err != nil {
				return err
			}
			j := d.GetJob()
			if !outcomeKnown(j.GetState()) {
				running = append(running, name)
				continue
			}
			ended[j.GetState()]++
			if err := a.writeOutcome(j); err != nil {
				return err
			}
		}
		if left = running; len(left) == 0 {
			return exitOf(ended)
		}
		if once {
			return errTimeout
		}
		if first {
			a.Note("waiting for %s", render.Count(len(left), "job"))
		}
		if err := a.pause(ctx); err != nil {
			return err
		}
	}
}

// outcomeKnown reports whether a job in this state has ended.
func outcomeKnown(state string) bool {
	_, ended := outcomes[state]
	return ended
}

// writeOutcome prints a job that has ended.
func (a *app) writeOutcome(j *controlv1.Job) error {
	t := render.Table{Columns: []render.Column{{Name: "job"}, {Name: "state"}, {Name: "message"}}, Rows: [][]any{{j.GetName(), j.GetState(), failure(j)}}}
	if a.Format != render.Text && a.Format != render.Wide {
		return t.Write(a.Stdout, a.Format)
	}
	text := j.GetName() + " " + j.GetState()
	if why := failure(j); why != "" {
		text += ": " + why
	}
	_, err := fmt.Fprintln(a.Stdout, text)
	return err
}

// exitOf is the error with which jobs that have ended so end the program; nil when all completed.
func exitOf(ended map[string]int) error {
	for _, state := range []core.JobState{core.Failed, core.Rejected, core.Cancelled} {
		if n := ended[state.String()]; n > 0 {
			return &cli.ExitError{Code: outcomes[state.String()], Err: fmt.Errorf("%s %s", render.Count(n, "job"), state)}
		}
	}
	return nil
}

// pause waits until it is time to ask again.
func (a *app) pause(ctx context.Context) error {
	every := askEvery
	if a.ByCalendar {
		every = askClusterEvery
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(every):
		return nil
	}
}
