package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// submittedState is the state of a job that no round has seen.
const submittedState = "submitted"

// jobStates lists the states that jobs are listed in, those that are final last.
var jobStates = []string{
	submittedState, core.Pending.String(), core.Waiting.String(), core.Running.String(),
	core.Completed.String(), core.Rejected.String(), core.Failed.String(), core.Cancelled.String(),
}

// The states that only jobs on Kubernetes are told of.
const (
	startingState  = "starting"
	stoppingState  = "stopping"
	suspendedState = "suspended"
)

var clusterStates = []string{startingState, stoppingState, suspendedState}

// jobFilter chooses jobs.
type jobFilter struct {
	all                          bool
	states, tenants, experiments []string
}

func (f *jobFilter) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.all, "all", false, "list the jobs that have ended, too")
	c.Flags().StringSliceVar(&f.states, "state", nil, "list the jobs in these states only: "+strings.Join(jobStates, ", ")+"; on Kubernetes also "+strings.Join(clusterStates, ", "))
	c.Flags().StringSliceVar(&f.tenants, "tenant", nil, "list the jobs of these tenants only")
	c.Flags().StringSliceVar(&f.experiments, "experiment", nil, "list the trials of these experiments only")
	cli.MustComplete(c, "state", slices.Concat(jobStates, clusterStates))
}

// check refuses states that there are not. To ask for a final state is to ask for jobs that have ended.
func (f *jobFilter) check() error {
	var found core.Diagnostics
	for _, state := range f.states {
		if !slices.Contains(jobStates, state) && !slices.Contains(clusterStates, state) {
			found = append(found, core.Diagnostic{
				Position: core.Position{File: "--state"}, Summary: fmt.Sprintf("there is no state %q", state),
				Hint: core.SuggestHint(state, "states", jobStates),
			})
		}
		f.all = f.all || outcomeKnown(state)
	}
	return found.Err()
}

// of lists the jobs that the filter lets through, and the moment.
func (f *jobFilter) of(ctx context.Context, client cluster.Orders) ([]*controlv1.Job, float64, error) {
	jobs, now, err := client.Jobs(ctx, f.all)
	return slices.DeleteFunc(jobs, func(j *controlv1.Job) bool {
		return len(f.states) > 0 && !slices.Contains(f.states, j.GetState()) || len(f.tenants) > 0 && !slices.Contains(f.tenants, j.GetTenant()) ||
			len(f.experiments) > 0 && !slices.Contains(f.experiments, j.GetExperiment())
	}), now, err
}

func (a *app) jobsCommand() *cobra.Command {
	f := schedulerFlags{app: a}
	var chosen jobFilter
	var watch bool
	c := &cobra.Command{
		Use:   "jobs",
		Short: "List the jobs of the running scheduler",
		Long: `Lists the jobs that have not ended, by id, which is their rank in order of submission. With --all
also those that have ended, of which the scheduler keeps the last 10,000; jobs.csv holds them all.
With --watch it runs until it is interrupted (exit 130), and prints a job again whenever its state,
its devices or why it waits have changed.`,
		Example: "  quartet jobs --state waiting,running --tenant vision\n  quartet jobs -w -o wide",
		Args:    cobra.NoArgs,
	}
	chosen.register(c)
	c.Flags().BoolVarP(&watch, "watch", "w", false, "keep running, and print the jobs that change")
	c.Flags().BoolVarP(&f.Everywhere, "all-namespaces", "A", false, "of a Kubernetes cluster, list the jobs of every namespace")
	defer c.MarkFlagsMutuallyExclusive("all-namespaces", "namespace")
	f.operation(c, func(ctx context.Context, client cluster.Orders, _ []string) error {
		if on, is := client.(cluster.Cluster); is && f.Everywhere {
			client = on.Everywhere()
		}
		if watch {
			return a.watchJobs(ctx, client, &chosen)
		}
		jobs, now, err := chosen.of(ctx, client)
		if err != nil {
			return err
		}
		return a.writeJobs(jobs, now)
	})
	list := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := chosen.check(); err != nil {
			return err
		}
		if watch && a.Format != render.Text && a.Format != render.Wide {
			return cli.Problem("--watch", fmt.Sprintf("prints tables, and no %s", a.Format), "leave one of them out")
		}
		return list(c, args)
	}
	return c
}

// watchJobs prints the jobs that a filter chooses, and then those of them that change, until the context ends.
func (a *app) watchJobs(ctx context.Context, client cluster.Orders, chosen *jobFilter) error {
	everything := jobFilter{all: true, tenants: chosen.tenants, experiments: chosen.experiments}
	w := jobWatch{chosen: chosen, last: make(map[string]jobLook)}
	for first := true; ; first = false {
		jobs, now, err := everything.of(ctx, client)
		if err != nil {
			return err
		}
		if changed := w.changed(jobs, first); first || len(changed) > 0 {
			if err := a.writeJobs(changed, now); err != nil {
				return err
			}
		}
		if err := a.pause(ctx); err != nil {
			return err
		}
	}
}

// jobWatch remembers what jobs looked like when they were listed last.
type jobWatch struct {
	chosen *jobFilter         // states of the jobs to print
	last   map[string]jobLook // by name
}

// jobLook is a job as it was listed last.
type jobLook struct {
	is      string // state, reason and devices
	printed bool   // in a state that is watched
}

// changed returns the jobs to print: those in a watched state that look different than before, and those that have just left such a state.
func (w *jobWatch) changed(jobs []*controlv1.Job, first bool) (list []*controlv1.Job) {
	for _, j := range jobs {
		is := strings.Join([]string{j.GetState(), j.GetReason(), seats(j.GetSeats())}, "|")
		was, known := w.last[j.GetName()]
		if known && was.is == is {
			continue
		}
		watched := len(w.chosen.states) == 0 || slices.Contains(w.chosen.states, j.GetState())
		endedBefore := first && !w.chosen.all && outcomeKnown(j.GetState())
		if watched && !endedBefore || was.printed { // a job that leaves a watched state is printed once more
			list = append(list, j)
			w.last[j.GetName()] = jobLook{is, watched}
		} else {
			w.last[j.GetName()] = jobLook{is, false}
		}
	}
	return list
}
