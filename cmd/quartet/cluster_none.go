//go:build noengines

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

var errNoEngines = errors.New("this program was built without engines: it knows no Kubernetes")

func (a *app) openCluster(*kubeFlags) (cluster, error) { return nil, errNoEngines }

func contextNames(string) []string { return nil }

// kubeCommands say what there is in other builds.
func (a *app) kubeCommands() []*cobra.Command {
	stub := func(name, short string) *cobra.Command {
		return &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return errNoEngines }}
	}
	return []*cobra.Command{group("kube", "Install Quartet on a Kubernetes cluster",
		stub("manifests", "Print everything that installs the controller"), stub("crd", "Print the definition of training jobs"))}
}

// startShards knows of no cluster: this program was built without.
func (a *app) startShards(context.Context, *kubeFlags, []byte) (string, error) {
	_, err := a.openCluster(nil)
	return "", err
}
