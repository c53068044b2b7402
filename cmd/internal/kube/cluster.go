package kube

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/kubeclient"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// Access says which cluster is meant, and as whom.
type Access struct {
	Kubeconfig string // file; empty for KUBECONFIG or the usual one
	Context    string // of that file; empty for the one in use
	Namespace  string // empty for that of the context, or else default
}

// Options are what a cluster is opened with besides.
type Options struct {
	Now   func() time.Time                     // clock that tells the present moment
	After func(time.Duration) <-chan time.Time // timer of that clock
	Note  func(format string, args ...any)     // informs the user; nil for nobody
	Image string                               // that the jobs of job files run; empty for none
}

// Cluster is a cluster as one person may use it.
type Cluster struct {
	api       *kubeclient.Client
	jobs      *trainingjob.Client
	context   string
	server    string
	namespace string // empty for all
	given     bool   // the namespace was asked for, and is not that of the context
	options   Options
}

// The limits of a person's requests a second. A client-go that is not told allows 5.
const (
	requests = 50
	atOnce   = 100
)

// Open finds the cluster in the kubeconfig. It asks nobody.
func Open(a Access, o Options) (*Cluster, error) {
	rules, err := kubeclient.LoadingRules(a.Kubeconfig)
	if err != nil {
		return nil, problem("--kubeconfig", err.Error(), "")
	}
	files := strings.Join(rules.GetLoadingPrecedence(), string(os.PathListSeparator))
	config, err := rules.Load()
	if err != nil {
		return nil, problem("--kubeconfig", fmt.Sprintf("%s cannot be read: %v", files, innermost(err)), "")
	}
	name, err := contextOf(config, a, files)
	if err != nil {
		return nil, err
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: name}
	overrides.Context.Namespace = a.Namespace
	client := clientcmd.NewNonInteractiveClientConfig(*config, name, overrides, rules)
	namespace, _, err := client.Namespace()
	if err != nil {
		return nil, problem(files, fmt.Sprintf("context %q: %v", name, err), "")
	}
	access, err := client.ClientConfig()
	if err != nil {
		return nil, problem(files, fmt.Sprintf("context %q: %v", name, err), "")
	}
	access.QPS, access.Burst = requests, atOnce
	access.WarningHandler = rest.NoWarnings{}
	c := &Cluster{context: name, server: access.Host, namespace: namespace, given: a.Namespace != "", options: o}
	if c.api, err = kubeclient.New(access); err != nil {
		return nil, err
	}
	if c.jobs, err = trainingjob.NewClient(access); err != nil {
		return nil, err
	}
	return c, nil
}

// Contexts lists the contexts of a kubeconfig; none where it cannot be read.
func Contexts(kubeconfig string) []string {
	rules, err := kubeclient.LoadingRules(kubeconfig)
	if err != nil {
		return nil
	}
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// contextOf is the context that is meant.
func contextOf(config *api.Config, a Access, files string) (string, error) {
	names := slices.Sorted(maps.Keys(config.Contexts))
	place, name := "--context", a.Context
	if name == "" {
		place, name = "--kubeconfig", config.CurrentContext
	}
	switch {
	case len(names) == 0:
		return "", problem(place, "there are no contexts in "+files, "set KUBECONFIG, or name a kubeconfig with --kubeconfig")
	case name == "":
		return "", problem(place, "no context is in use in "+files, core.SuggestHint("", "contexts", names)+"; name one with --context")
	case config.Contexts[name] == nil:
		return "", problem(place, fmt.Sprintf("there is no context %q in %s", name, files), core.SuggestHint(name, "contexts", names))
	}
	return name, nil
}

// Everywhere is the cluster with the jobs of all namespaces, whose names then begin with that of their namespace.
func (c *Cluster) Everywhere() *Cluster {
	all := *c
	all.namespace = ""
	return &all
}

// Close hangs up.
func (c *Cluster) Close() error { return nil }

func (c *Cluster) note(format string, args ...any) {
	if c.options.Note != nil {
		c.options.Note(format, args...)
	}
}

// now is the moment.
func (c *Cluster) now() float64 { return seconds(c.options.Now()) }

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// where words the namespace.
func (c *Cluster) where() string {
	if c.namespace == "" {
		return "all namespaces"
	}
	return fmt.Sprintf("namespace %q", c.namespace)
}

func problem(place, summary, hint string) error {
	return core.Diagnostics{{Position: core.Position{File: place}, Summary: summary, Hint: hint}}
}

func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
