package cluster

import (
	"context"
	"io"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control/controlv1"
	"github.com/quartet-sched/quartet/core/workload"
)

// Orders is whom the commands of people ask: the process of a run, or the API server of a Kubernetes cluster.
type Orders interface {
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

// Pod is a pod of a job.
type Pod struct {
	Name    string // of the pod
	Run     string // number of the start of the job that made it
	Node    string // that it runs on
	Devices string // that it holds there, such as 0-3
	Ranks   string // of the replicas in it
	Phase   string // of its life, as Kubernetes has it
	Why     string // it is in that phase
}

// Cluster is a scheduler on Kubernetes.
type Cluster interface {
	Orders
	Everywhere() Cluster
	Pods(ctx context.Context, job string) ([]Pod, error)
	Composition(ctx context.Context) (string, error) // of the scheduler that is installed
	Home() string                                    // namespace in which it is, if that was said
	Reads(err error) error                           // words what could not be read
	JobsIn(f backend.JobFile) ([]workload.Job, error)
}

// Access says which Kubernetes cluster is meant, and as whom.
type Access struct {
	Kubeconfig string // file; empty for KUBECONFIG or the usual one
	Context    string // of that file; empty for the one in use
	Namespace  string // empty for that of the context, or else default
	Image      string // that the jobs of job files run; empty for none
}

// Engine is what reaches the schedulers of many machines: on Kubernetes.
type Engine struct {
	Backend core.Factory[backend.Opener] // runs jobs there
	// Open finds a cluster, and asks nobody yet; it informs the user through note.
	Open func(a Access, note func(format string, args ...any)) (Cluster, error)
	// Start runs the shards of a study by the manifest of a Job, and returns the name of that.
	Start func(ctx context.Context, a Access, note func(format string, args ...any), manifest []byte) (string, error)
	// Contexts lists the contexts of a kubeconfig, an empty one is the usual; nil where they are unknown.
	Contexts func(kubeconfig string) []string
	Absent   bool // the program does not include the engine: it hands commands that need it to Program
}
