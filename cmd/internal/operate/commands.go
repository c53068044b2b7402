package operate

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/local"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/internal/interrupt"
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
		Args:    cobra.MinimumNArgs(1),
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

func (a *app) healthCommand(name, short string, h core.Health) *cobra.Command {
	f := schedulerFlags{app: a}
	return f.complete(f.operation(&cobra.Command{
		Use:   name + " NODE...",
		Short: short,
		Args:  cobra.MinimumNArgs(1),
	}, func(ctx context.Context, client cluster.Orders, args []string) error {
		nodes, err := client.Nodes(ctx)
		if err != nil {
			return err
		}
		jobs, err := jobsAnywhere(ctx, client)
		if err != nil {
			return err
		}
		return each(unique(args), func(node string) error {
			if err := client.SetHealth(ctx, node, h); err != nil {
				return err
			}
			a.noteHealth(node, nodes, jobs, h)
			return nil
		})
	}), math.MaxInt, nodeNames)
}

// noteHealth tells what becomes of a node that was drained, or is ready again.
func (a *app) noteHealth(name string, nodes []*controlv1.Node, jobs []*controlv1.Job, h core.Health) {
	at := slices.IndexFunc(nodes, func(n *controlv1.Node) bool { return n.GetName() == name })
	if at >= 0 && nodes[at].GetHealth() == h.String() {
		a.Note("node %q is %s already", name, h)
		return
	}
	if h == core.Ready {
		a.Note("node %q is ready for jobs again", name)
		return
	}
	var on []string
	for _, j := range jobs {
		if slices.ContainsFunc(j.GetSeats(), func(s *controlv1.Seat) bool { return s.GetNode() == name }) {
			on = append(on, j.GetName())
		}
	}
	switch {
	case len(on) == 0:
		a.Note("node %q is drained; no job runs on it", name)
	case len(on) <= 5:
		a.Note("node %q is drained: the next round takes %s off it: %s", name, render.Count(len(on), "job"), strings.Join(on, ", "))
	default:
		a.Note("node %q is drained: the next round takes %d jobs off it: %s, …", name, len(on), strings.Join(on[:5], ", "))
	}
}

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
	c.Flags().BoolVarP(&log.Follow, "follow", "f", false, "go on until the job has ended")
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

func (a *app) nodesCommand() *cobra.Command {
	f := schedulerFlags{app: a}
	return f.operation(&cobra.Command{
		Use:   "nodes",
		Short: "List the nodes of the running scheduler",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, client cluster.Orders, _ []string) error {
		nodes, err := client.Nodes(ctx)
		if err != nil {
			return err
		}
		return a.writeNodes(nodes)
	})
}

// writeNodes lists nodes; where one has a pool, with the pools, and when those on their way should be ready.
func (a *app) writeNodes(nodes []*controlv1.Node) error {
	t := render.Table{Columns: []render.Column{
		{Name: "node"}, {Name: "accelerator"}, {Name: "rack", Drop: 1}, {Name: "devices", Numeric: true}, {Name: "used", Numeric: true}, {Name: "health"},
	}}
	expected := func(seconds float64) any { return render.Span(seconds) }
	pools := slices.ContainsFunc(nodes, func(n *controlv1.Node) bool { return n.GetPool() != "" })
	switch {
	case pools && (a.Format == render.JSON || a.Format == render.CSV):
		expected = func(seconds float64) any { return seconds }
		t.Columns = append(t.Columns, render.Column{Name: "pool"}, render.Column{Name: "expected_s"})
	case pools:
		t.Columns = append(t.Columns, render.Column{Name: "pool"}, render.Column{Name: "expected", Numeric: true})
	}
	more := sharedColumns(nodes, a.Format == render.JSON || a.Format == render.CSV)
	t.Columns = append(t.Columns, more.columns...)
	for _, n := range nodes {
		row := []any{n.GetName(), n.GetAccelerator(), n.GetRack(), n.GetDevices(), n.GetUsed(), n.GetHealth()}
		if pools {
			at := n.GetExpectedSeconds()
			if at == 0 {
				at = math.NaN()
			}
			row = append(row, n.GetPool(), expected(at))
		}
		t.Rows = append(t.Rows, append(row, more.cells(n)...))
	}
	return t.Write(a.Stdout, a.Format)
}

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

func (a *app) explainCommand() *cobra.Command {
	f := schedulerFlags{app: a}
	var runDir string
	c := &cobra.Command{
		Use:   "explain JOB",
		Short: "Show why a job is pending, and the decisions about it",
		Long: `Shows why a job is pending: what it needs, what is free, and the machine-readable reason in brackets. The
decisions about the job follow, the latest first. It sums up how long the job was pending for which reason,
and lists the jobs in front of a blocked one.
With --run-dir it reads the decisions.jsonl of a run or a simulation instead of asking a scheduler.`,
		Example: "  quartet explain train\n  quartet explain job-000017 --run-dir runs/default",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&runDir, "run-dir", "", "folder of a finished run or simulation, instead of a scheduler")
	for _, other := range []string{"run", "out", "socket", "server"} {
		defer c.MarkFlagsMutuallyExclusive("run-dir", other)
	}
	f.complete(f.operation(c, func(ctx context.Context, client cluster.Orders, args []string) error {
		d, err := client.Describe(ctx, args[0])
		if err != nil {
			return err
		}
		front, err := inFront(ctx, client, d.GetJob())
		if err != nil {
			return err
		}
		return a.writeExplanation(d, front, capacityNow(ctx, client, d.GetJob()))
	}), 1, allJobs)
	ask := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if runDir == "" {
			return ask(c, args)
		}
		d, err := interrupt.Call(c.Context(), func() (*controlv1.DescribeResponse, error) { return readDecisions(runDir, args[0]) })
		if err != nil {
			return err
		}
		return a.writeExplanation(d, nil, capacity{})
	}
	return c
}
