//go:build noengines

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

var errNoEngines = errors.New("this program was built without engines: it knows no Kubernetes")

func (a *app) openCluster(*kubeFlags) (cluster, error) { return nil, errNoEngines }

// kubeCommands are none.
func (a *app) kubeCommands() []*cobra.Command { return nil }
