//go:build linux

package manifests

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tool runs kubectl or Helm as somebody with the cluster's kubeconfig.
func (c *cluster) tool(t *testing.T, stdin []byte, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Env = []string{"HOME=" + c.home, "KUBECONFIG=" + c.Kubeconfig, "PATH=" + os.Getenv("PATH")}
	command.Stdin = bytes.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, out)
	}
	return string(out)
}

// left lists what an installation left.
func (c *cluster) left(t *testing.T) []string {
	t.Helper()
	var found []string
	for kind, path := range paths {
		if strings.Contains(path, "%s") { // of every namespace
			path = strings.Replace(path, "/namespaces/%s", "", 1)
		}
		for _, item := range c.admin(t, http.MethodGet, path, nil)["items"].([]any) {
			m := manifest(item.(map[string]any))
			name := fmt.Sprint(m.in("metadata", "name"))
			if m.in("metadata", "labels", "app.kubernetes.io/name") == Name || strings.HasPrefix(name, Name) || strings.HasSuffix(name, "quartet.sched") {
				found = append(found, kind+" "+name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// TestLife installs, upgrades and uninstalls, as docs/kubernetes-install.md tells it.
func TestLife(t *testing.T) {
	c := start(t)
	kubectl := kubectl(t)
	crd := definition(t)
	old := Options{CRD: crd, Image: "quartet:1"}
	first, err := Render(old)
	if err != nil {
		t.Fatal(err)
	}
	newer := Options{CRD: crd, Image: "quartet:2", Config: []byte("# another\nbackend: {type: kubernetes}\n"), Monitoring: true}
	second, err := Render(newer)
	if err != nil {
		t.Fatal(err)
	}
	image := func() string {
		return c.tool(t, nil, kubectl, "get", "deployment", "-n", "quartet", "quartet", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	}
	t.Run("kubectl", func(t *testing.T) {
		c.tool(t, first, kubectl, "apply", "-f", "-")
		if got := image(); got != "quartet:1" {
			t.Errorf("image %q", got)
		}
		c.tool(t, second, kubectl, "apply", "--server-side", "-f", "-") // the first was applied as the page said before
		c.tool(t, nil, kubectl, "rollout", "status", "-n", "quartet", "deployment/quartet", "--timeout=60s")
		if got := image(); got != "quartet:2" {
			t.Errorf("image %q after an upgrade", got)
		}
		c.tool(t, second, kubectl, "diff", "--server-side", "-f", "-") // fails where something differs
		c.tool(t, second, kubectl, "delete", "-f", "-", "--timeout=60s")
		if found := c.left(t); len(found) > 0 {
			t.Errorf("it leaves %q", found)
		}
	})
	t.Run("helm", func(t *testing.T) {
		helm := helm(t)
		files, err := Chart("0.1.0", crd)
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(write(t, files), "quartet")
		c.tool(t, nil, helm, "install", "quartet", folder, "--namespace", "quartet", "--create-namespace", "--set", "image=quartet:1")
		c.tool(t, nil, helm, "upgrade", "quartet", folder, "--namespace", "quartet", "--set", "image=quartet:2,dra=true", "--wait", "--timeout=60s")
		if got := image(); got != "quartet:2" {
			t.Errorf("image %q after an upgrade", got)
		}
		c.tool(t, nil, helm, "uninstall", "quartet", "--namespace", "quartet", "--wait", "--timeout=60s")
		want := []string{"CustomResourceDefinition trainingjobs.quartet.sched", "Namespace quartet"} // Helm deletes neither, and jobs live
		if found := c.left(t); !slices.Equal(found, want) {
			t.Errorf("it leaves %q, want %q", found, want)
		}
	})
}
