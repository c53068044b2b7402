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
	// Submit takes in the jobs of a file, all or none, and returns their names.
	Submit(ctx context.Context, f backend.JobFile) (jobs []string, err error)
	// Cancel ends a job by its name.
	Cancel(ctx context.Context, job string) error
	// SetHealth drains a node, or makes it ready again.
	SetHealth(ctx context.Context, node string, h core.Health) error
	// Jobs lists the jobs, those that have ended only if ended is set, and tells the moment in seconds of the run.
	Jobs(ctx context.Context, ended bool) (jobs []*controlv1.Job, nowSeconds float64, err error)
	// Nodes lists the nodes of the cluster.
	Nodes(ctx context.Context) ([]*controlv1.Node, error)
	// Describe returns all that is known of a job, by its name.
	Describe(ctx context.Context, job string) (*controlv1.DescribeResponse, error)
	// ReadLog writes what a replica of a job put out.
	ReadLog(ctx context.Context, l backend.Log, to io.Writer) error
	// WriteSnapshot writes what the scheduler knows, from which a plan or a forecast begins.
	WriteSnapshot(ctx context.Context, to io.Writer) error
	// Close ends the connection.
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
	// Everywhere is the cluster with the jobs of all namespaces, whose names then begin with that of their namespace.
	Everywhere() Cluster
	// Pods lists the pods of a job, by its name.
	Pods(ctx context.Context, job string) ([]Pod, error)
	Composition(ctx context.Context) (string, error) // of the scheduler that is installed
	Home() string                                    // namespace in which it is, if that was said
	Reads(err error) error                           // words what could not be read
	// JobsIn are the jobs of a file, as Submit takes it, as the scheduler would be told of them. It asks nobody.
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
