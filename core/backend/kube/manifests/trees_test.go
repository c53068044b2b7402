package manifests

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// program is one of a folder that a variable names.
func program(t *testing.T, variable, how string, parts ...string) string {
	t.Helper()
	named := os.Getenv(variable)
	if named == "" {
		t.Skipf("%s is not set: %s", variable, how)
	}
	return filepath.Join(append([]string{named}, parts...)...)
}

func helm(t *testing.T) string {
	return program(t, "QUARTET_HELM", "make kube-test builds Helm and sets it")
}

func kubectl(t *testing.T) string {
	return program(t, "QUARTET_CONTROLPLANE", "make kube-test builds the programs and sets it", "kubectl")
}

// write puts files into a folder.
func write(t *testing.T, files []File) string {
	t.Helper()
	folder := t.TempDir()
	for _, f := range files {
		to := filepath.Join(folder, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, f.Content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// output of a program without a cluster, a user or a cache.
func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	out, errors, err := try(t, name, args...)
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", filepath.Base(name), args, err, out, errors)
	}
	return out
}

func try(t *testing.T, name string, args ...string) (out []byte, problems string, err error) {
	t.Helper()
	home := t.TempDir()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env = []string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none"), "PATH=/nowhere"}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err = c.Output()
	return out, stderr.String(), err
}

// same holds two installations to each other, object by object.
func same(t *testing.T, want, got []manifest) {
	t.Helper()
	wanted, have := byID(want), byID(got)
	if len(wanted) != len(want) || len(have) != len(got) {
		t.Errorf("an object is there twice: %d of %d, %d of %d", len(wanted), len(want), len(have), len(got))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(wanted)), slices.Sorted(maps.Keys(have))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	for id := range wanted {
		if diff := cmp.Diff(wanted[id], have[id]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
}

func TestChartIsWhatRenderMakes(t *testing.T) {
	program := helm(t)
	files, err := Chart("1.2.3-rc.1", []byte(standIn))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(write(t, files), "quartet")
	if out := string(output(t, program, "lint", "--strict", folder)); !strings.Contains(out, "1 chart(s) linted, 0 chart(s) failed") ||
		strings.Contains(out, "[WARNING]") || strings.Contains(out, "[ERROR]") {
		t.Errorf("helm lint:\n%s", out)
	}
	config := "# {{ braces }} and \"quotes\"\nversion: 1\n\nbackend:\n  type: kubernetes"
	configFile := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(configFile, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args    []string
		options Options
		without string // kind
	}{
		"as it is":           {nil, Options{}, "Namespace"}, // Helm makes it by --create-namespace
		"with its namespace": {[]string{"--set", "namespace=true"}, Options{}, ""},
		"everything": {
			[]string{
				"--set", "namespace=true,dra=true,scaler=true,monitoring=true,replicas=3,image=localhost:5000/q:v1", "--set-file", "config=" + configFile,
				"--namespace", "ml",
			},
			Options{Namespace: "ml", Image: "localhost:5000/q:v1", Replicas: 3, Config: []byte(config), DRA: true, Scaler: true, Monitoring: true},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.CRD = []byte(standIn)
			want := slices.DeleteFunc(render(t, tc.options), func(o manifest) bool { return o["kind"] == tc.without })
			args := append([]string{"template", "any", folder, "--include-crds", "--namespace", "quartet", "--kube-version", "1.36.3"}, tc.args...)
			same(t, want, objects(t, output(t, program, args...)))
		})
	}

	t.Run("where it runs", func(t *testing.T) {
		rendered := objects(t, output(t, program, "template", "any", folder, "--kube-version", "1.36.3", "--namespace", "quartet",
			"--set", "nodeSelector.pool=system,imagePullSecrets[0].name=key,tolerations[0].operator=Exists"))
		pod := byID(rendered)["Deployment quartet/quartet"].in("spec", "template", "spec").(manifest)
		got := map[string]any{}
		for _, key := range []string{"nodeSelector", "imagePullSecrets", "tolerations"} {
			got[key] = pod[key]
		}
		want := map[string]any{
			"nodeSelector": manifest{"pool": "system"}, "imagePullSecrets": []any{manifest{"name": "key"}}, "tolerations": []any{manifest{"operator": "Exists"}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})

	for name, set := range map[string]string{
		"no replicas":       "replicas=0",
		"a misspelt value":  "replica=3",
		"another backend":   "config=backend: {type: local}",
		"a word for a flag": "dra=often",
		"no image":          "image=",
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			_, problems, err := try(t, program, "template", "any", folder, "--kube-version", "1.36.3", "--set", set)
			if err == nil || !strings.Contains(problems, strings.Split(set, "=")[0]) {
				t.Errorf("%v: %s", err, problems)
			}
		})
	}
	t.Run("an old cluster is refused", func(t *testing.T) {
		if _, problems, err := try(t, program, "template", "any", folder, "--kube-version", "1.30.0"); err == nil || !strings.Contains(problems, "kubeVersion") {
			t.Errorf("%v: %s", err, problems)
		}
	})
}

func TestKustomizationIsWhatRenderMakes(t *testing.T) {
	program := kubectl(t)
	files, err := Kustomize([]byte(standIn))
	if err != nil {
		t.Fatal(err)
	}
	folder := write(t, files)
	overlay := func(name, text string) string {
		to := filepath.Join(folder, kustomizeRoot, "overlays", name)
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, "kustomization.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	own := overlay("own", `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: ml
resources: [../default]
images: [{name: quartet, newName: localhost:5000/q, newTag: v1}]
replicas: [{name: quartet, count: 3}]
`)
	for name, tc := range map[string]struct {
		overlay string
		options Options
	}{
		"the default": {"default", Options{}},
		"everything":  {"full", Options{DRA: true, Scaler: true, Monitoring: true}},
		"one's own":   {own, Options{Namespace: "ml", Image: "localhost:5000/q:v1", Replicas: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.options.CRD = []byte(standIn)
			same(t, render(t, tc.options), objects(t, output(t, program, "kustomize", filepath.Join(folder, kustomizeRoot, "overlays", tc.overlay))))
		})
	}
}
