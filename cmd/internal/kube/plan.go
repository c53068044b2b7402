package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube"
)

// The ConfigMap in which an installation keeps the composition of its scheduler, in a namespace of its own.
const (
	home             = "quartet"
	compositionName  = "quartet"
	compositionEntry = "config.yaml"
)

// Composition is the config of the scheduler that is installed in the cluster, in the namespace that was asked for, or else in the
// usual one.
func (c *Cluster) Composition(ctx context.Context) (string, error) {
	namespace := cmp.Or(c.Home(), home)
	m, err := c.api.CoreV1().ConfigMaps(namespace).Get(ctx, compositionName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", c.words("read the composition of the scheduler", err)
	}
	if err != nil || m.Data[compositionEntry] == "" {
		return "", problem("--context", fmt.Sprintf("no composition of a scheduler is in namespace %q", namespace),
			"name the config that it was started with by -f, and with --namespace where it is installed")
	}
	return m.Data[compositionEntry], nil
}

// Home is the namespace that was asked for; empty for none.
func (c *Cluster) Home() string {
	if c.given {
		return c.namespace
	}
	return ""
}

// Reads words what of the cluster could not be read.
func (c *Cluster) Reads(err error) error {
	if failed, ok := errors.AsType[*kube.ReadError](err); ok {
		return c.words(failed.What, failed.Err)
	}
	return err
}
