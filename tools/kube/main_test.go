//go:build linux

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

// TestMain lets the copy of this program that up starts be what it is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == play {
		main()
		return
	}
	os.Exit(m.Run())
}

// A cluster is up with somebody who plays the processes of its pods, and down without a trace.
func TestUpAndDown(t *testing.T) {
	bin := kubetest.Programs(t)
	dir := filepath.Join(t.TempDir(), "kube")
	args := []string{"-bin", bin, "-module", filepath.Join("..", "controlplane"), "-dir", dir}
	t.Cleanup(func() {
		if err := run(t.Context(), append([]string{"down"}, args...)); err != nil { // again, or where the test ended early
			t.Error(err)
		}
	})
	if err := run(t.Context(), append([]string{"up", "-nodes", "1"}, args...)); err != nil {
		t.Fatal(err)
	}
	c, err := kubecluster.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "agent", "tls.crt"), filepath.Join(dir, "agent", "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(dir, "agent", "ca.crt"))
	trusted := x509.NewCertPool()
	if err != nil || !trusted.AppendCertsFromPEM(authority) {
		t.Fatal("the authority of the certificate is not one: ", err)
	}
	for _, host := range []string{"127.0.0.1", "localhost"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: trusted}); err != nil {
			t.Error(err)
		}
	}
	ask := func(what string, ask func() error) {
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
	const pods = "/api/v1/namespaces/default/pods"
	ask("a pod is taken", func() error {
		_, err := c.Do(t.Context(), "POST", pods, map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
				"name": "train", "labels": map[string]string{"quartet.sched/job": "train"},
				"annotations": map[string]string{"trainee.quartet.sched/work": "0.3"},
			},
			"spec": map[string]any{
				"nodeName": "node-0", "restartPolicy": "Never", "containers": []any{map[string]string{"name": "main", "image": "none"}},
			},
		})
		return err
	})
	ask("its training ends", func() error {
		answer, err := c.Do(t.Context(), "GET", pods+"/train", nil)
		if err != nil {
			return err
		}
		var p struct{ Status struct{ Phase string } }
		if err := json.Unmarshal(answer, &p); err != nil {
			return err
		}
		if p.Status.Phase != "Succeeded" {
			return errors.New("the pod is " + p.Status.Phase)
		}
		return nil
	})
	if err := run(t.Context(), append([]string{"down"}, args...)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
	for name, p := range c.Processes {
		if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(p.PID), "exe")); err == nil {
			t.Errorf("%s runs on", name)
		}
	}
}
