package kube

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/quartet-sched/quartet/core"
)

// Start creates a Job of a manifest, and returns its namespace and name.
func (c *Cluster) Start(ctx context.Context, manifest []byte) (string, error) {
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(manifest, &job); err != nil {
		return "", err
	}
	name := c.namespace + "/" + job.Name
	_, err := c.api.Jobs(c.namespace).Create(ctx, &job, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if apierrors.IsAlreadyExists(err) {
		return "", core.Diagnostics{{
			Summary: fmt.Sprintf("there is a job %s on the cluster of context %q already", name, c.context),
			Hint:    fmt.Sprintf("\"kubectl --context %s --namespace %s delete job %s\", or give the study another name with --name", c.context, c.namespace, job.Name),
		}}
	}
	return name, c.words("submit the shards", err)
}
