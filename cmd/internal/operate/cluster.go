package operate

import (
	"context"
	"math"
	"time"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

var _ cluster.Orders = (*control.Client)(nil)

// at words a moment: one of a run since that began, one of a cluster by the calendar.
func (a *app) at(seconds float64) string {
	if !a.ByCalendar || math.IsNaN(seconds) {
		return render.Span(seconds)
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC().Format(time.RFC3339)
}

// askClusterEvery is how often commands that wait ask an API server.
const askClusterEvery = 2 * time.Second

// jobsAnywhere lists the jobs of all namespaces, or as many of them as one may see: what is told of them is no more than a note.
func jobsAnywhere(ctx context.Context, client cluster.Orders) ([]*controlv1.Job, error) {
	on, is := client.(cluster.Cluster)
	if !is {
		jobs, _, err := client.Jobs(ctx, false)
		return jobs, err
	}
	jobs, _, err := on.Everywhere().Jobs(ctx, false)
	if err != nil {
		jobs, _, _ = client.Jobs(ctx, false)
	}
	return jobs, ctx.Err()
}

// podsTable lists the pods of a job.
func podsTable(pods []cluster.Pod) render.Table {
	t := render.Table{Columns: []render.Column{
		{Name: "pod"}, {Name: "run", Numeric: true, Drop: 2}, {Name: "node"}, {Name: "devices"}, {Name: "ranks", Drop: 1}, {Name: "phase"}, {Name: "why"},
	}}
	for _, p := range pods {
		t.Rows = append(t.Rows, []any{p.Name, p.Run, p.Node, p.Devices, p.Ranks, p.Phase, p.Why})
	}
	return t
}
