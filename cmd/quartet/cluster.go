package main

import (
	"context"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/core/workload"
)

// orders is whom the commands of people ask: the process of a run, or the API server of a Kubernetes cluster.
type orders interface {
	Submit(ctx context.Context, f backend.JobFile) (jobs []string, err error)
	Cancel(ctx context.Context, job string) error
	SetHealth(ctx context.Context, node string, h core.Health) error
	Jobs(ctx context.Context, ended bool) (jobs []*controlv1.Job, nowSeconds float64, err error)
	Nodes(ctx context.Context) ([]*controlv1.Node, error)
	Describe(ctx context.Context, job string) (*controlv1.DescribeResponse, error)
	ReadLog(ctx context.Context, l backend.Log, to io.Writer) error
	WriteSnapshot(ctx context.Context, to io.Writer) error
	Close() error
}

var _ orders = (*control.Client)(nil)

// clusterPod is a pod of a job.
type clusterPod struct{ name, run, node, devices, ranks, phase, why string }

// cluster is a scheduler on Kubernetes.
type cluster interface {
	orders
	Everywhere() cluster
	Pods(ctx context.Context, job string) ([]clusterPod, error)
	Composition(ctx context.Context) (string, error) // of the scheduler that is installed
	Home() string                                    // namespace in which it is, if that was said
	Reads(err error) error                           // words what could not be read
	Foreseen(f backend.JobFile) ([]workload.Job, error)
}

// kubeFlags say which cluster is meant.
type kubeFlags struct {
	kubeconfig, context, namespace, image string
	everywhere                            bool
}

func (f *kubeFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.context, "context", "", "ask the Kubernetes cluster of this context of the kubeconfig, instead of a run")
	c.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "ask the Kubernetes cluster of this kubeconfig, instead of a run")
	c.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the jobs (default: that of the context)")
	mustCompleteFunc(c, "context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return contextNames(f.kubeconfig), cobra.ShellCompDirectiveNoFileComp
	})
	for _, mine := range [...]string{"context", "kubeconfig", "namespace"} {
		for _, other := range [...]string{"run", "out", "socket", "server", "wait"} {
			c.MarkFlagsMutuallyExclusive(mine, other)
		}
	}
}

// meant reports whether a cluster is asked.
func (f *kubeFlags) meant() bool { return f.context != "" || f.kubeconfig != "" }

func (f *kubeFlags) check() error {
	for _, one := range [...]struct{ flag, value string }{{"--namespace", f.namespace}, {"--image", f.image}} {
		if one.value != "" && !f.meant() {
			return problem(one.flag, "is for a Kubernetes cluster", "name one with --context or --kubeconfig")
		}
	}
	if f.everywhere && !f.meant() {
		return problem("--all-namespaces", "is for a Kubernetes cluster", "name one with --context or --kubeconfig")
	}
	return nil
}

// at words a moment: one of a run since that began, one of a cluster by the calendar.
func (a *app) at(seconds float64) string {
	if !a.byCalendar || math.IsNaN(seconds) {
		return render.Span(seconds)
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC().Format(time.RFC3339)
}

// askClusterEvery is how often commands that wait ask an API server.
const askClusterEvery = 2 * time.Second

// jobsAnywhere lists the jobs of all namespaces, or as many of them as one may see: what is told of them is no more than a note.
func jobsAnywhere(ctx context.Context, client orders) ([]*controlv1.Job, error) {
	on, is := client.(cluster)
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
func podsTable(pods []clusterPod) render.Table {
	t := render.Table{Columns: []render.Column{
		{Name: "pod"}, {Name: "run", Numeric: true, Drop: 2}, {Name: "node"}, {Name: "devices"}, {Name: "ranks", Drop: 1}, {Name: "phase"}, {Name: "why"},
	}}
	for _, p := range pods {
		t.Rows = append(t.Rows, []any{p.name, p.run, p.node, p.devices, p.ranks, p.phase, p.why})
	}
	return t
}
