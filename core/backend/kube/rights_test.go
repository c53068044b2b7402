//go:build linux

package kube

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/manifests"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// install creates the service account and the roles of an installation, and returns who has its rights and no other.
func (r *rig) install(o manifests.Options) *rest.Config {
	r.Helper()
	o.Namespace = r.namespace
	stream, err := manifests.Render(o)
	if err != nil {
		r.Fatal(err)
	}
	folders := map[string]string{
		"ServiceAccount": "/api/v1/namespaces/" + r.namespace + "/serviceaccounts", "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		"Role":               "/apis/rbac.authorization.k8s.io/v1/namespaces/" + r.namespace + "/roles",
		"RoleBinding":        "/apis/rbac.authorization.k8s.io/v1/namespaces/" + r.namespace + "/rolebindings",
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	for {
		var object map[string]any
		if err := documents.Decode(&object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			r.Fatal(err)
		}
		kind, _ := object["kind"].(string)
		folder := folders[kind]
		if folder == "" {
			continue
		}
		if _, err := r.cluster.Do(r.Context(), "POST", folder, object); err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
			r.Fatal(err)
		}
	}
	hour := int64(3600)
	config := rest.AnonymousClientConfig(r.config)
	config.QPS, config.BearerToken = -1, r.newToken(r.namespace, manifests.Name, &authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour})
	return config
}

// The rights of the manifests are all that it takes to give jobs their devices by claims, and without those for claims a
// scheduler says which are missing.
func TestClaimsWithItsOwnRights(t *testing.T) {
	t.Parallel()
	c := own(t) // roles of a cluster have one name
	r := newRigOf(t, c, true)
	r.config = r.install(manifests.Options{})
	r.await("its rights count", func() bool {
		_, err := r.tryOpen(t.Context(), nil)
		ds, is := errors.AsType[core.Diagnostics](err)
		return is && strings.Contains(ds[0].Summary, "deviceclasses") && strings.Contains(ds[0].Hint, "--dra")
	})
	r.config = r.install(manifests.Options{DRA: true})
	r.await("its rights for claims count", func() bool {
		all, err := newClients(r.config, 8)
		if err == nil {
			err = newInventory(nil).choose(t.Context(), all, r.settings.DeviceClass)
		}
		return err == nil
	})
	r.witness()
	s := r.schedule((&notary{rig: r}).through)
	r.submit("one", asked{replicas: 3})
	s.hears("job_started one")
	r.wantHeld("one", r.decided("one")...)
	if err := r.admin.jobs.Of(r.namespace).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.await("the claims are gone", func() bool { return len(r.claims()) == 0 })
	r.submit("two", asked{replicas: 4, run: unit})
	s.hears("job_finished two")
	r.becomes("two", trainingjob.Completed)
}
