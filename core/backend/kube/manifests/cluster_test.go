//go:build linux

package manifests

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
	"go.yaml.in/yaml/v3"
)

// cluster is a control plane with its own way of asking.
type cluster struct {
	*kubecluster.Cluster
	client *http.Client
	home   string // of kubectl and Helm, which remember there what is served
}

// start starts a control plane that ends with the test.
func start(t *testing.T) *cluster {
	t.Helper()
	c := kubetest.Start(t, kubecluster.Options{Scheduler: true})
	certificate, err := os.ReadFile(filepath.Join(c.Dir, "certs", "apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	if err := c.AddNodes(t.Context(), kubecluster.Pool{Name: "node", Count: 3, Devices: 8, Labels: map[string]string{"quartet.sched/nodes": "training"}}); err != nil {
		t.Fatal(err)
	}
	ready := &cluster{c, &http.Client{Transport: transport}, t.TempDir()}
	await(t, "nodes are ready", func() error {
		for _, item := range ready.admin(t, http.MethodGet, "/api/v1/nodes", nil)["items"].([]any) {
			node := manifest(item.(map[string]any))
			if taints := node.in("spec", "taints"); taints != nil || !strings.Contains(fmt.Sprint(node.in("status", "conditions")), "type:Ready") {
				return fmt.Errorf("%v has taints %v", node.in("metadata", "name"), taints)
			}
		}
		return nil
	})
	return ready
}

// caller is who asks: the bearer of a token, or somebody whom the administrator plays.
type caller struct{ token, user string }

// answer is what the API server says.
type answer struct {
	code     int
	body     manifest
	warnings []string
}

func (a answer) String() string {
	return fmt.Sprint(a.code, " ", a.body["reason"], ": ", a.body["message"], " ", strings.Join(a.warnings, "; "))
}

const (
	typeJSON  = "application/json"
	typeApply = "application/apply-patch+yaml"
	typeMerge = "application/merge-patch+json"
)

// ask sends one request. It speaks HTTP, so that what is asked for is what is seen here.
func (c *cluster) ask(t *testing.T, who caller, method, path string, body any, contentType string) answer {
	t.Helper()
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, c.Server+path, content)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+who.token)
	request.Header.Set("Content-Type", contentType)
	if who.user != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
		request.Header.Set("Impersonate-User", who.user)
		request.Header.Set("Impersonate-Group", "system:authenticated")
	}
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	a := answer{code: response.StatusCode, warnings: response.Header.Values("Warning")}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &a.body); err != nil {
		a.body = manifest{"message": string(text)}
	}
	return a
}

// admin asks as the administrator, whom nothing is refused.
func (c *cluster) admin(t *testing.T, method, path string, body any) manifest {
	t.Helper()
	a := c.ask(t, caller{token: c.Token}, method, path, body, typeJSON)
	if a.code >= http.StatusBadRequest {
		t.Fatalf("%s %s: %v", method, path, a)
	}
	return a.body
}

// await asks until an answer is as wanted.
func await(t *testing.T, what string, ask func() error) {
	t.Helper()
	var err error
	for range 1500 {
		if err = ask(); err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// paths of the kinds that are installed.
var paths = map[string]string{
	"Namespace":                "/api/v1/namespaces",
	"ServiceAccount":           "/api/v1/namespaces/%s/serviceaccounts",
	"ConfigMap":                "/api/v1/namespaces/%s/configmaps",
	"Service":                  "/api/v1/namespaces/%s/services",
	"Deployment":               "/apis/apps/v1/namespaces/%s/deployments",
	"ClusterRole":              "/apis/rbac.authorization.k8s.io/v1/clusterroles",
	"ClusterRoleBinding":       "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
	"Role":                     "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles",
	"RoleBinding":              "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings",
	"NetworkPolicy":            "/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies",
	"PodDisruptionBudget":      "/apis/policy/v1/namespaces/%s/poddisruptionbudgets",
	"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}

func (m manifest) path(t *testing.T) string {
	t.Helper()
	path, found := paths[fmt.Sprint(m["kind"])]
	if !found {
		t.Fatalf("no path of kind %v", m["kind"])
	}
	if strings.Contains(path, "%s") {
		path = fmt.Sprintf(path, m.in("metadata", "namespace"))
	}
	return path + "/" + fmt.Sprint(m.in("metadata", "name"))
}

// apply applies an object on the server's side, strictly, and returns what became of it.
func (c *cluster) apply(t *testing.T, m manifest, dry bool) answer {
	t.Helper()
	query := url.Values{"fieldManager": {"installer"}, "fieldValidation": {"Strict"}}
	if dry {
		query.Set("dryRun", "All")
	}
	return c.ask(t, caller{token: c.Token}, http.MethodPatch, m.path(t)+"?"+query.Encode(), m, typeApply)
}

// definition is the custom resource of package trainingjob, or one in its place.
func definition(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile("../trainingjob/crd.yaml")
	if os.IsNotExist(err) {
		return []byte(standIn)
	}
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// install applies everything, first dry and then really, and then once more.
func (c *cluster) install(t *testing.T, o Options) []manifest {
	t.Helper()
	all := render(t, o)
	if made := c.apply(t, all[0], false); made.code >= http.StatusBadRequest { // without it nothing in it can be tried
		t.Fatal(made)
	}
	for _, m := range all {
		if a := c.apply(t, m, true); a.code >= http.StatusBadRequest || len(a.warnings) > 0 {
			t.Errorf("%s, dry: %v", m.id(), a)
		}
	}
	versions := map[string]any{}
	for _, m := range all {
		a := c.apply(t, m, false)
		if a.code >= http.StatusBadRequest || len(a.warnings) > 0 {
			t.Errorf("%s: %v", m.id(), a)
		}
		versions[m.id()] = a.body.in("metadata", "generation")
	}
	for _, m := range all {
		a := c.apply(t, m, false)
		if a.code != http.StatusOK || a.body.in("metadata", "generation") != versions[m.id()] {
			t.Errorf("%s, once more: %v", m.id(), a)
		}
	}
	await(t, "the custom resource is served", func() error {
		a := c.ask(t, caller{token: c.Token}, http.MethodGet, jobs("default"), nil, typeJSON)
		if a.code != http.StatusOK {
			return fmt.Errorf("%v", a)
		}
		return nil
	})
	return all
}

func jobs(namespace string) string {
	return "/apis/quartet.sched/v1alpha1/namespaces/" + namespace + "/trainingjobs"
}

// token is one of a service account.
func (c *cluster) token(t *testing.T, namespace, account string) caller {
	t.Helper()
	made := c.admin(t, http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token",
		manifest{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": manifest{"expirationSeconds": 3600}})
	return caller{token: made.in("status", "token").(string)}
}

func (c *cluster) namespace(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		c.admin(t, http.MethodPost, "/api/v1/namespaces", manifest{"apiVersion": "v1", "kind": "Namespace", "metadata": manifest{"name": name}})
		await(t, "the service account of a namespace", func() error {
			a := c.ask(t, caller{token: c.Token}, http.MethodGet, "/api/v1/namespaces/"+name+"/serviceaccounts/default", nil, typeJSON)
			if a.code != http.StatusOK {
				return fmt.Errorf("%v", a)
			}
			return nil
		})
	}
}

// yamlOf reads one object that a test writes as YAML.
func yamlOf(t *testing.T, format string, args ...any) manifest {
	t.Helper()
	var m manifest
	if err := yaml.Unmarshal(fmt.Appendf(nil, format, args...), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
