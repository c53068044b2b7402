//go:build linux

package kubecluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// start starts a control plane that ends with the test.
func start(t *testing.T, o Options) *Cluster {
	t.Helper()
	if o.Bin = os.Getenv("QUARTET_CONTROLPLANE"); o.Bin == "" {
		t.Skip("QUARTET_CONTROLPLANE is not set: make kube-test builds the programs and sets it")
	}
	o.Dir, o.Tied = filepath.Join(t.TempDir(), "kube"), true
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// await asks until an answer is as wanted.
func await(t *testing.T, what string, ask func() error) {
	t.Helper()
	var err error
	for range 3000 {
		if err = ask(); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}

// phases waits until the pods of a list are in these phases, by name.
func phases(t *testing.T, c *Cluster, want map[string]string) {
	t.Helper()
	await(t, "pods", func() error {
		answer, err := c.Do(t.Context(), "GET", "/api/v1/namespaces/default/pods", nil)
		if err != nil {
			return err
		}
		var list struct {
			Items []struct {
				Metadata struct{ Name string }
				Status   struct{ Phase string }
			}
		}
		if err := json.Unmarshal(answer, &list); err != nil {
			return err
		}
		is := map[string]string{}
		for _, p := range list.Items {
			is[p.Metadata.Name] = p.Status.Phase
		}
		if fmt.Sprint(is) != fmt.Sprint(want) {
			return fmt.Errorf("%v, want %v", is, want)
		}
		return nil
	})
}

func (c *Cluster) pod(t *testing.T, name, node string, annotations map[string]string) {
	t.Helper()
	if _, err := c.Do(t.Context(), "POST", "/api/v1/namespaces/default/pods", map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "annotations": annotations},
		"spec": map[string]any{
			"nodeName": node, "restartPolicy": "Never", "automountServiceAccountToken": false,
			"containers": []any{map[string]any{
				"name": "main", "image": "none", "resources": map[string]any{"limits": map[string]string{DeviceResource: "4"}},
			}},
		},
	}); err != nil {
		t.Fatal(err)
	}
}

// Pods that are bound run for as long as they say, end as they say, and are gone once they stopped; the programs can be killed,
// started again, paused and resumed.
func TestControlPlane(t *testing.T) {
	c := start(t, Options{})
	if err := c.AddNodes(t.Context(), Pool{Name: "node", Count: 3, Devices: 8, Accelerator: "a100"}); err != nil {
		t.Fatal(err)
	}
	await(t, "nodes are ready", func() error {
		answer, err := c.Do(t.Context(), "GET", "/api/v1/nodes", nil)
		if ready := strings.Count(string(answer), `"type":"Ready"`); err == nil && ready != 3 {
			err = fmt.Errorf("%d of 3 are", ready)
		}
		return err
	})
	await(t, "there is a service account", func() error {
		_, err := c.Do(t.Context(), "GET", "/api/v1/namespaces/default/serviceaccounts/default", nil)
		return err
	})
	c.pod(t, "runs", "node-0", map[string]string{"quartet.sched/run": "300ms"})
	c.pod(t, "fails", "node-1", map[string]string{"quartet.sched/fail": "300ms"})
	c.pod(t, "stays", "node-2", nil)
	phases(t, c, map[string]string{"runs": "Succeeded", "fails": "Failed", "stays": "Running"})

	if err := c.Kill(apiServer); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), "GET", "/readyz", nil); err == nil {
		t.Error("an API server that was killed answers")
	}
	if err := errors.Join(c.Restart(apiServer), c.WaitReady(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := c.Pause(nodes); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), "DELETE", "/api/v1/namespaces/default/pods/stays", nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	phases(t, c, map[string]string{"runs": "Succeeded", "fails": "Failed", "stays": "Running"})
	if err := c.Resume(nodes); err != nil {
		t.Fatal(err)
	}
	phases(t, c, map[string]string{"runs": "Succeeded", "fails": "Failed"})

	again, err := Open(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, p := range c.Processes {
		if p.alive() {
			t.Errorf("%s runs on", name)
		}
	}
}
