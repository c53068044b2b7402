package operate

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

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

// noteHealth says what becomes of a node that was drained, or is ready again.
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
