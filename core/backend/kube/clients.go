package kube

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// restConfig says how to reach the cluster.
func restConfig(c *Config) (*rest.Config, error) {
	var config *rest.Config
	rules, err := kubeclient.LoadingRules(c.Kubeconfig)
	if err == nil {
		config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
	}
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
	*kubeclient.Client
	jobs *trainingjob.Client
}

// newClients makes clients. No more writes are under way at the same time than the config says workers: more would only wait for
// each other on the API server, and the renewal of the lease with them.
func newClients(c *rest.Config, workers int) (*clients, error) {
	c = rest.CopyConfig(c)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &throttle{next, make(chan struct{}, workers)} })
	connections, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	all, err := kubeclient.NewFor(c, connections)
	if err != nil {
		return nil, err
	}
	jobs, err := trainingjob.NewClientFor(c, connections)
	if err != nil {
		return nil, err
	}
	return &clients{all, jobs}, nil
}

// throttle lets only so many writes be under way at the same time. The lease goes before all.
type throttle struct {
	http.RoundTripper
	under chan struct{}
}

func (t *throttle) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || strings.Contains(r.URL.Path, "/leases/") {
		return t.RoundTripper.RoundTrip(r)
	}
	select {
	case t.under <- struct{}{}:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	defer func() { <-t.under }()
	return t.RoundTripper.RoundTrip(r)
}
