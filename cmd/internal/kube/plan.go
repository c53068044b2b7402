package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube"
	"github.com/quartet-sched/quartet/core/workload"
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
	m, err := c.api.ConfigMaps(namespace).Get(ctx, compositionName, metav1.GetOptions{})
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

// JobsIn are the jobs of a file, as Submit takes it, as the scheduler would get them. It asks nobody.
func (c *Cluster) JobsIn(f backend.JobFile) ([]workload.Job, error) {
	reads := *c
	reads.options.Image = cmp.Or(c.options.Image, "any") // it is not run
	list, problems := reads.read(f)
	var jobs []workload.Job
	for i := range list {
		d := &list[i]
		wrong := reads.place(d)
		problems = append(problems, wrong...)
		spec, faults := d.job.JobSpec(0, 0)
		for _, p := range faults {
			if p.Position = d.at(p.Path); !slices.ContainsFunc(wrong, func(o core.Diagnostic) bool { return o.Path == p.Path }) {
				problems = append(problems, p)
			}
		}
		jobs = append(jobs, workload.Job{Spec: spec})
	}
	return jobs, problems.Err()
}
