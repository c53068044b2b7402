package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/klog/v2"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube/lead"
	"github.com/quartet-sched/quartet/core/workload"
)

// Config are the settings of the backend.
type Config struct {
	// Kubeconfig is the file that says how to reach the cluster; empty for the usual one.
	Kubeconfig string `config:"kubeconfig" doc:"file that says how to reach the cluster; if left out KUBECONFIG, the usual one, or the service account of the pod"`
	// Context is the context of that file; empty for the one in use.
	Context string `config:"context" doc:"context of that file, instead of the one in use"`
	// Namespace is the scheduler's own: of its lease and its state.
	Namespace string `config:"namespace" doc:"namespace of the scheduler itself: of its lease and its state; if left out POD_NAMESPACE, or else quartet"`
	// Watch is the namespace of the jobs; empty for all.
	Watch string `config:"watch" doc:"namespace of the jobs; all if left out"`
	// Nodes selects the nodes to schedule on by their labels; empty for all that have devices.
	Nodes string `config:"nodes" doc:"label selector of the nodes to schedule on; all that have devices if left out"`
	// Tolerate are keys of taints of nodes that do not keep jobs away.
	Tolerate []string `config:"tolerate" doc:"keys of taints of nodes that are no reason to leave them alone, beside quartet.sched/nodes; the pods of jobs tolerate them"`
	// Resource is the extended resource by which nodes offer devices.
	Resource string `config:"resource" doc:"extended resource by which nodes offer devices"`
	// DeviceClass is the class of devices that claims give; empty for extended resources.
	DeviceClass string `config:"device_class" doc:"DeviceClass of the devices, each of which jobs then get by a claim (DRA); extended resources if left out"`
	// Accelerator is the label of nodes that names the type of their devices.
	Accelerator string `config:"accelerator_label" doc:"label of nodes that names the type of their devices, where the devices do not"`
	// SilentAfter is after which time a node that is not ready is down.
	SilentAfter time.Duration `config:"silent_after" doc:"a node that is not ready for so long is down" min:"0s" max:"24h"`
	// StartTimeout is how long a start may take until all pods run; 0 for ever.
	StartTimeout time.Duration `config:"start_timeout" doc:"until all pods of a start have to run, of jobs that do not say; 0 for ever" min:"0s" max:"24h"`
	// RetryRefused is after which time a job whose pods were refused is tried again; it doubles up to an hour.
	RetryRefused time.Duration `config:"retry_refused" doc:"after which a job is tried again whose pods were refused, as by a quota; doubles up to an hour" min:"1s" max:"1h"`
	// Workers is how many jobs are written about, or have their pods driven, at the same time.
	Workers int `config:"workers" doc:"how many jobs are written about, or have their pods driven, at the same time" min:"1" max:"256"`
	// QPS is the limit of requests, in requests per second.
	QPS int `config:"qps" doc:"requests a second" min:"1" max:"100000"`
	// Burst is how many requests may go beyond that at once.
	Burst int `config:"burst" doc:"requests at once beyond that" min:"1" max:"100000"`
	// AgentAddress is the host:port at which agents of jobs reach the scheduler.
	AgentAddress string `config:"agent_address" doc:"host:port at which the agents of jobs reach the scheduler; if left out the service quartet-agent of its namespace, port 9443"`
	// AgentListen is the address that the channel of agents listens at.
	AgentListen string `config:"agent_listen" doc:"address that the agents' channel listens at"`
	// AgentTLS is the folder of the certificate, key and authority of that channel.
	AgentTLS string `config:"agent_tls" doc:"folder with tls.crt, tls.key and ca.crt of that channel; without ca.crt there is none, and jobs report nothing"`
	// Lease is after which time another scheduler takes over from one that is silent.
	Lease time.Duration `config:"lease" doc:"after which another scheduler takes over from one that is silent, in whole seconds" min:"3s" max:"10m"`
}

// Deciding are the settings that decisions depend on.
func (c *Config) Deciding() any {
	return &Config{Watch: c.Watch, Nodes: c.Nodes, Accelerator: c.Accelerator, Resource: c.Resource, DeviceClass: c.DeviceClass}
}

// Validate reports names that Kubernetes does not take.
func (c Config) Validate() error {
	var problems []error
	if _, err := labels.Parse(c.Nodes); err != nil {
		problems = append(problems, fmt.Errorf("nodes: %w", err))
	}
	for _, name := range [...]struct{ path, value string }{{"resource", c.Resource}, {"accelerator_label", c.Accelerator}} {
		for _, problem := range validation.IsQualifiedName(name.value) {
			problems = append(problems, fmt.Errorf("%s: %s", name.path, problem))
		}
	}
	if c.DeviceClass != "" {
		for _, problem := range validation.IsDNS1123Subdomain(c.DeviceClass) {
			problems = append(problems, fmt.Errorf("device_class: %s", problem))
		}
	}
	for _, name := range [...]struct{ path, value string }{{"agent_address", c.AgentAddress}, {"agent_listen", c.AgentListen}} {
		if _, port, err := net.SplitHostPort(name.value); name.value != "" && (err != nil || port == "") {
			problems = append(problems, fmt.Errorf("%s: %q is not host:port", name.path, name.value))
		}
	}
	if c.Lease%time.Second != 0 {
		problems = append(problems, errors.New("lease: must be whole seconds"))
	}
	return errors.Join(problems...)
}

// New is the factory of the backend.
func New(clock lead.Clock) core.Factory[backend.Opener] {
	return core.NewFactory(core.Info{
		Type:    "kubernetes",
		Summary: "pods of TrainingJobs on a Kubernetes cluster, which survive the scheduler",
		Description: "Nodes and jobs are those of the cluster, whatever the config says of them. Several schedulers may run: one leads. " +
			"docs/kubernetes.md explains how to install it.",
	}, Config{
		Resource: "nvidia.com/gpu", Accelerator: "nvidia.com/gpu.product", SilentAfter: 40 * time.Second,
		StartTimeout: 10 * time.Minute, RetryRefused: 15 * time.Second, Workers: 16, QPS: 5000, Burst: 10000, Lease: lead.DefaultLease,
		AgentListen: ":9443", AgentTLS: "/etc/quartet-agent",
	}, func(c Config, s core.Settings) (backend.Opener, error) {
		c.Namespace = cmp.Or(c.Namespace, os.Getenv("POD_NAMESPACE"), "quartet")
		return &Opener{config: c, log: s.Log, clock: clock}, nil
	})
}

// Opener opens the backend.
type Opener struct {
	config Config
	log    *slog.Logger
	clock  lead.Clock
	run    backend.Run
}

var (
	_ backend.Durable = (*Opener)(nil)
	_ backend.Growing = (*Opener)(nil)
)

// For sets what the backend is opened for.
func (o *Opener) For(r backend.Run) { o.run = r }

// Dir is a folder for sockets and logs: nothing that a later scheduler needs.
func (o *Opener) Dir() string { return o.run.Dir }

// Grows says that the nodes are found, and not declared.
func (o *Opener) Grows() {}

// Capabilities are none: what pods will do is not known.
func (o *Opener) Capabilities() []core.Capability { return nil }

// Check finds nothing: the cluster is not that of the config.
func (o *Opener) Check(*core.Cluster, core.RoundOptions) core.Diagnostics { return nil }

// Open waits until this scheduler leads.
func (o *Opener) Open(ctx context.Context, _ *core.Cluster, w *workload.Workload) (core.Backend, error) {
	if err := openWorkload(w); err != nil {
		return nil, err
	}
	klog.SetSlogLogger(o.log.With("from", "client-go")) // which has one log for a process
	config, err := restConfig(&o.config)
	if err != nil {
		return nil, err
	}
	if o.run.Dir != "" {
		if err := os.MkdirAll(o.run.Dir, 0o700); err != nil {
			return nil, err
		}
	}
	identity, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return open(ctx, o, config, identity)
}

// openWorkload refuses jobs that are not those of the cluster.
func openWorkload(w *workload.Workload) error {
	if w.Open {
		return nil
	}
	return core.Diagnostics{{
		Path: "workload", Summary: "a Kubernetes cluster has jobs of its own",
		Hint: "set workload={type: submitted}, and create TrainingJobs",
	}}
}
