package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quartet-sched/quartet/core"
)

// said is what the API server says of whom it refuses.
var said = regexp.MustCompile(`User "([^"]+)" cannot (\S+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)"| at the cluster scope)?`)

// words says what was attempted, and why the API server did not do it.
func (c *Cluster) words(attempt string, err error) error {
	var unreachable *url.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %s", attempt, forbidden(err))
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the cluster of context %q rejected your credentials: they are wrong or have expired", attempt, c.context)
	case apierrors.IsNotFound(err) && nothingNamed(err):
		return core.Diagnostics{{
			Summary: fmt.Sprintf("the cluster of context %q has no training jobs: Quartet is not installed there", c.context),
			Hint:    `an administrator installs it: "quartet kube manifests | kubectl apply -f -"`,
		}}
	case errors.As(err, &unreachable):
		return fmt.Errorf("%s: the API server of context %q, %s, does not answer: %w", attempt, c.context, c.server, unreachable.Err)
	}
	return fmt.Errorf("%s: %w", attempt, err)
}

// forbidden words a lack of rights, and what gives them. What a quota or a webhook says is left as it is.
func forbidden(err error) string {
	match := said.FindStringSubmatch(err.Error())
	if match == nil {
		return err.Error()
	}
	user, verb, resource, group, namespace := match[1], match[2], match[3], match[4], match[5]
	where := "in the whole cluster"
	grant := fmt.Sprintf("a cluster role with %s of %s", verb, resource)
	if namespace != "" {
		where = fmt.Sprintf("in namespace %q", namespace)
		if group == "quartet.sched" {
			role := "quartet-trainingjobs-edit"
			if verb == "get" || verb == "list" || verb == "watch" {
				role = "quartet-trainingjobs-view"
			}
			grant = fmt.Sprintf(`"kubectl --namespace %s create rolebinding NAME --clusterrole=%s --user=%s"`, namespace, role, user)
		} else {
			grant = fmt.Sprintf("a role with %s of %s there", verb, resource)
		}
	}
	return fmt.Sprintf("user %q may not %s %s %s; an administrator grants it: %s", user, verb, resource, where, grant)
}

// nothingNamed reports whether it is the resource that is not there, and no object of it.
func nothingNamed(err error) bool {
	return strings.Contains(err.Error(), "the server could not find the requested resource")
}
