package kube

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// restConfig says how to reach the cluster.
func restConfig(c *Config) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
	if err != nil {
		return nil, core.Diagnostics{{
			Path: "backend.config", Summary: fmt.Sprintf("no cluster to reach: %v", err),
			Hint: "set backend.config.kubeconfig or KUBECONFIG, and backend.config.context for another context than the one in use",
		}}
	}
	config.QPS, config.Burst = float32(c.QPS), c.Burst
	return config, nil
}

// clients are the typed clients of the API, over the same connections.
type clients struct {
	kubernetes.Interface
	jobs *trainingjob.Client
}

func newClients(c *rest.Config) (*clients, error) {
	connections, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	usual := rest.CopyConfig(c)
	usual.ContentType, usual.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	all, err := kubernetes.NewForConfigAndClient(usual, connections)
	if err != nil {
		return nil, err
	}
	jobs, err := trainingjob.NewClientFor(c, connections)
	if err != nil {
		return nil, err
	}
	return &clients{all, jobs}, nil
}
