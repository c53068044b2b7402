package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core/backend/kube/manifests"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// `kube` prints what the package of manifests makes, with the options of its flags.
func TestKubeManifests(t *testing.T) {
	t.Chdir(t.TempDir())
	config := "version: 1\nname: mine\nworkload: {type: submitted}\nround: {interval: 5s}\npipeline: {allocation: {type: las}}\nbackend: {type: kubernetes}\n"
	for name, text := range map[string]string{"mine.yaml": config, "empty.yaml": "", "local.yaml": "version: 1\nbackend: {type: local}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		args []string
		want manifests.Options
	}{
		"as they are": {nil, manifests.Options{}},
		"all of them": {
			[]string{"--namespace", "sched", "--image", "r.example.com/q:1", "--config", "mine.yaml", "--replicas", "3", "--accelerator-resource", "amd.com/gpu", "--dra", "--scaler", "--monitoring"},
			manifests.Options{Namespace: "sched", Image: "r.example.com/q:1", Config: []byte(config), Replicas: 3, AcceleratorResource: "amd.com/gpu", DRA: true, Scaler: true, Monitoring: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.CRD = trainingjob.Definition()
			want, err := manifests.Render(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			code, stdout, stderr := invoke(t, append([]string{"kube", "manifests"}, tc.args...)...)
			if code != 0 || stdout != string(want) || stderr != "" {
				t.Errorf("exit code %d, %d bytes, want %d, %s", code, len(stdout), len(want), stderr)
			}
		})
	}
	for _, step := range []struct {
		args []string
		code int
		want string // on stderr
	}{
		{[]string{"--namespace", "kube-x", "--replicas", "10"}, 2, "--namespace: \"kube-x\" has other tenants, and would be restricted; use a namespace of its own, such as quartet\n--replicas: 10 replicas; use 1 to 9: one leads, the others stand by\n"},
		{[]string{"--replicas", "0"}, 2, "--replicas: 0 replicas; use 1 or more: one leads, the others stand by\n"},
		{[]string{"--config", "none.yaml"}, 2, "none.yaml: cannot be read: no such file or directory\n"},
		{[]string{"--config", "empty.yaml"}, 2, "empty.yaml: is empty\n"},
		{[]string{"--config", "local.yaml"}, 2, `local.yaml: backend.type: "local" schedules no cluster`},
		{[]string{"--chart", ".", "--dra"}, 2, "--chart and --dra exclude each other"},
		{[]string{"-o", "json"}, 2, "it writes YAML"},
		{[]string{"--chart", "c"}, 0, "below c\n"},
		{[]string{"--chart", "c"}, 2, filepath.Join("c", "quartet", "Chart.yaml") + ": is there already"},
		{[]string{"--kustomize", "k"}, 0, "below k\n"},
	} {
		if code, stdout, stderr := invoke(t, append([]string{"kube", "manifests"}, step.args...)...); code != step.code || stdout != "" || !strings.Contains(stderr, step.want) {
			t.Errorf("%s: exit code %d, want %d, %s, want %s", step.args, code, step.code, stderr, step.want)
		}
	}
	for _, file := range [...]string{"c/quartet/crds/trainingjob.yaml", "k/trainingjob/crd.yaml"} {
		if text, err := os.ReadFile(filepath.FromSlash(file)); err != nil || !bytes.Equal(text, trainingjob.Definition()) {
			t.Errorf("%s: %d bytes, %v", file, len(text), err)
		}
	}
	if code, stdout, stderr := invoke(t, "kube", "crd"); code != 0 || stdout != string(trainingjob.Definition()) {
		t.Errorf("exit code %d, %d bytes, %s", code, len(stdout), stderr)
	}
}

// The config that is installed is one that this program runs.
func TestInstalledConfigIsValid(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{nil, {"--accelerator-resource", "amd.com/gpu"}} {
		_, stdout, _ := invoke(t, append([]string{"kube", "manifests"}, args...)...)
		decoder := yaml.NewDecoder(strings.NewReader(stdout))
		found := 0
		for {
			var object struct {
				Kind string
				Data map[string]string
			}
			if err := decoder.Decode(&object); err != nil {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				break
			}
			config := object.Data[manifests.ConfigKey]
			if object.Kind != "ConfigMap" || config == "" {
				continue
			}
			found++
			if err := os.WriteFile("installed.yaml", []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := invoke(t, "config", "validate", "-f", "installed.yaml"); code != 0 {
				t.Errorf("%s: exit code %d, %s", args, code, stderr)
			}
		}
		if found != 1 {
			t.Errorf("%s: %d configs", args, found)
		}
	}
}
