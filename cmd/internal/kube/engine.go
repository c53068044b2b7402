package kube

import (
	"context"
	"time"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/core/backend/kube"
)

// Engine is what links a program with Kubernetes.
func Engine() cluster.Engine {
	return cluster.Engine{Backend: kube.New(cli.WallClock{}), Open: open, Start: start, Contexts: Contexts}
}

func accessOf(a cluster.Access) Access {
	return Access{Kubeconfig: a.Kubeconfig, Context: a.Context, Namespace: a.Namespace}
}

// open finds a cluster, and asks nobody yet.
func open(a cluster.Access, note func(format string, args ...any)) (cluster.Cluster, error) {
	c, err := Open(accessOf(a), Options{Now: time.Now, After: time.After, Note: note, Image: a.Image})
	if err != nil {
		return nil, err
	}
	return asked{c}, nil
}

// start has a cluster run the shards of a study.
func start(ctx context.Context, a cluster.Access, note func(format string, args ...any), manifest []byte) (string, error) {
	c, err := Open(accessOf(a), Options{Note: note})
	if err != nil {
		return "", err
	}
	return c.Start(ctx, manifest)
}

// asked is a cluster as the commands of every engine ask it.
type asked struct{ *Cluster }

func (c asked) Everywhere() cluster.Cluster { return asked{c.Cluster.Everywhere()} }

func (c asked) Pods(ctx context.Context, job string) ([]cluster.Pod, error) {
	list, err := c.Cluster.Pods(ctx, job)
	var pods []cluster.Pod
	for _, p := range list {
		pods = append(pods, cluster.Pod{Name: p.Name, Run: p.Run, Node: p.Node, Devices: p.Devices, Ranks: p.Ranks, Phase: p.Phase, Why: p.Why})
	}
	return pods, err
}
