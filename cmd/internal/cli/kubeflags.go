package cli

import (
	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
)

// KubeFlags say which cluster is meant.
type KubeFlags struct {
	cluster.Access
	Everywhere bool // the jobs of every namespace are meant
}

// OpenCluster finds the cluster that flags name, and asks nobody yet.
func (a *App) OpenCluster(f *KubeFlags) (cluster.Cluster, error) {
	return a.Engine.Open(f.Access, a.Note)
}

// CompleteContexts completes --context to those of the kubeconfig.
func (f *KubeFlags) CompleteContexts(a *App, c *cobra.Command) {
	MustCompleteFunc(c, "context", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if a.Engine.Contexts == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.Engine.Contexts(f.Kubeconfig), cobra.ShellCompDirectiveNoFileComp
	})
}

// Register adds the flags to a command.
func (f *KubeFlags) Register(a *App, c *cobra.Command) {
	c.Flags().StringVar(&f.Context, "context", "", "ask the Kubernetes cluster of this context of the kubeconfig, instead of a run")
	c.Flags().StringVar(&f.Kubeconfig, "kubeconfig", "", "ask the Kubernetes cluster of this kubeconfig, instead of a run")
	c.Flags().StringVarP(&f.Namespace, "namespace", "n", "", "namespace of the jobs (default: that of the context)")
	f.CompleteContexts(a, c)
	for _, mine := range [...]string{"context", "kubeconfig", "namespace"} {
		for _, other := range [...]string{"run", "out", "socket", "server", "wait"} {
			c.MarkFlagsMutuallyExclusive(mine, other)
		}
	}
}

// Meant reports whether a cluster is asked.
func (f *KubeFlags) Meant() bool { return f.Context != "" || f.Kubeconfig != "" }

// Check refuses flags for a cluster where none is named.
func (f *KubeFlags) Check() error {
	for _, one := range [...]struct{ flag, value string }{{"--namespace", f.Namespace}, {"--image", f.Image}} {
		if one.value != "" && !f.Meant() {
			return Problem(one.flag, "is for a Kubernetes cluster", "name one with --context or --kubeconfig")
		}
	}
	if f.Everywhere && !f.Meant() {
		return Problem("--all-namespaces", "is for a Kubernetes cluster", "name one with --context or --kubeconfig")
	}
	return nil
}
