//go:build !noengines

package main

import (
	"context"
	"time"

	"github.com/quartet-sched/quartet/cmd/internal/kube"
)

// openCluster finds a cluster, and asks nobody yet.
func (a *app) openCluster(f *kubeFlags) (cluster, error) {
	c, err := kube.Open(kube.Access{Kubeconfig: f.kubeconfig, Context: f.context, Namespace: f.namespace}, kube.Options{
		Now: time.Now, After: time.After, Note: a.note, Image: f.image,
	})
	if err != nil {
		return nil, err
	}
	return kubeCluster{c}, nil
}

// startShards has a cluster run the shards of a study, and returns the name of their Job.
func (a *app) startShards(ctx context.Context, f *kubeFlags, manifest []byte) (string, error) {
	c, err := kube.Open(kube.Access{Kubeconfig: f.kubeconfig, Context: f.context, Namespace: f.namespace}, kube.Options{Note: a.note})
	if err != nil {
		return "", err
	}
	return c.Start(ctx, manifest)
}

func contextNames(kubeconfig string) []string { return kube.Contexts(kubeconfig) }

type kubeCluster struct{ *kube.Cluster }

func (c kubeCluster) Everywhere() cluster { return kubeCluster{c.Cluster.Everywhere()} }

func (c kubeCluster) Pods(ctx context.Context, job string) ([]clusterPod, error) {
	list, err := c.Cluster.Pods(ctx, job)
	var pods []clusterPod
	for _, p := range list {
		pods = append(pods, clusterPod{p.Name, p.Run, p.Node, p.Devices, p.Ranks, p.Phase, p.Why})
	}
	return pods, err
}
