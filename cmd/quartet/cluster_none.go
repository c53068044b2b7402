//go:build noengines

package main

func (a *app) openCluster(*clusterFlags) (cluster, error) { return nil, errNoEngines }
