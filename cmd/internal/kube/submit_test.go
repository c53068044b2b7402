package kube

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/backend"
)

// oneJob is a file of a job.
func oneJob(devices int, template string) backend.JobFile {
	return backend.JobFile{Name: "job.yaml", Text: fmt.Appendf(nil, `apiVersion: quartet.sched/v1alpha1
kind: TrainingJob
metadata: {name: a}
spec:
  replicas: {devicesPerReplica: %d}
  template: {spec: {containers: [%s]}}
`, devices, template)}
}

// A replica that no node could hold now is told of, where nodes may be listed.
func TestSubmitTooLarge(t *testing.T) {
	const nodes = `{"kind": "NodeList", "apiVersion": "v1", "items": [
		{"metadata": {"name": "x"}, "status": {"allocatable": {"nvidia.com/gpu": "4"}}},
		{"metadata": {"name": "y"}, "status": {"allocatable": {"nvidia.com/gpu": "2"}}}]}`
	for name, tc := range map[string]struct {
		devices int
		nodes   string // empty: they may not be listed
		want    []string
	}{
		"it fits":           {4, nodes, nil},
		"it does not":       {5, nodes, []string{`a replica of job "a" has 5 devices of one node, and no node has more than 4 now`}},
		"nobody may look":   {5, "", nil},
		"no node":           {5, `{"kind": "NodeList", "apiVersion": "v1", "items": []}`, nil},
		"a job of a device": {1, nodes, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := opened(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/nodes") {
					if tc.nodes == "" {
						w.WriteHeader(http.StatusForbidden)
					}
					_, _ = io.WriteString(w, tc.nodes)
					return
				}
				_, _ = io.Copy(w, r.Body) // it was created
			}))
			var got []string
			c.options.Note = func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
			names, err := c.Submit(t.Context(), oneJob(tc.devices, `{name: main, image: "t:1"}`))
			if err != nil || len(names) != 1 {
				t.Fatalf("%q, %v", names, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What a template asks for besides what the job says is refused before it is sent.
func TestSubmitDisputed(t *testing.T) {
	const asks = `{name: main, image: "t:1", resources: {limits: {nvidia.com/gpu: 4}}}`
	c := opened(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, r.Body)
	}))
	want := "job.yaml:6:61: spec.template.spec.containers[0].resources: asks for 4 nvidia.com/gpu, and replicas.devicesPerReplica is 1; leave it out here: the scheduler says it"
	if names, err := c.Submit(t.Context(), oneJob(1, asks)); err == nil || err.Error() != want {
		t.Errorf("%q, %v, want %s", names, err, want)
	}
	if _, err := c.Submit(t.Context(), oneJob(4, asks)); err != nil {
		t.Error(err)
	}
}

// A 0 where none may be is told: it would be sent as if it were left out, and mean 1.
func TestZeros(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want []string
	}{
		"none":              {"{requested: 2, template: {}}", nil},
		"where it is right": {"{work: 0, graceSeconds: 0, template: {spec: {priority: 0}}}", nil},
		"replicas":          {"{requested: 0, replicas: {min: 0, max: 0, devicesPerReplica: 0}}", []string{"replicas.devicesPerReplica", "replicas.max", "replicas.min", "requested"}},
		"a weight":          {"{weight: 0.0}", []string{"weight"}},
		"a batch":           {"{batch: {min: 0, max: 8}}", []string{"batch.min"}},
		"no object":         {"{replicas: 0}", nil}, // the type is told
	} {
		t.Run(name, func(t *testing.T) {
			documents, problems := split(backend.JobFile{Name: "job.yaml", Text: []byte(
				"apiVersion: quartet.sched/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\nspec: " + tc.spec + "\n")})
			if len(problems) > 0 || len(documents) != 1 {
				t.Fatal(problems)
			}
			_, problems = object(documents[0])
			var got []string
			for _, p := range problems {
				if p.Summary == "is 0" {
					if p.Position.Line != 4 {
						t.Errorf("%s is in line %d", p.Path, p.Position.Line)
					}
					got = append(got, p.Path[len("spec."):])
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A job is warned of whose pods may have several replicas and the CPU of one.
func TestSubmitNotesSharedPods(t *testing.T) {
	for name, tc := range map[string]struct {
		spec, container string
		want            bool
	}{
		"several replicas with CPU":   {"replicas: {max: 4}", "resources: {requests: {cpu: 8}}", true},
		"memory by a limit":           {"requested: 2", "resources: {limits: {memory: 8Gi}}", true},
		"one replica":                 {"requested: 1", "resources: {requests: {cpu: 8}}", false},
		"one replica of four devices": {"replicas: {max: 1, devicesPerReplica: 4}", "resources: {requests: {cpu: 8}}", false},
		"nothing requested":           {"replicas: {max: 4}", "env: []", false},
		"a pod of each":               {"podPer: Replica, replicas: {max: 4}", "resources: {requests: {cpu: 8}}", false},
		"a pod of a node, on purpose": {"podPer: Node, replicas: {max: 4}", "resources: {requests: {cpu: 8}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			var notes []string
			c := opened(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.Copy(w, r.Body)
			}))
			c.options.Note = func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
			text := fmt.Sprintf("apiVersion: quartet.sched/v1alpha1\nkind: TrainingJob\nmetadata: {name: j}\nspec: {%s, template: {spec: {containers: [{name: main, image: i, %s}]}}}\n", tc.spec, tc.container)
			if _, err := c.Submit(t.Context(), backend.JobFile{Name: "job.yaml", Text: []byte(text)}); err != nil {
				t.Fatal(err)
			}
			if got := slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "podPer") }); got != tc.want {
				t.Errorf("notes %q", notes)
			}
		})
	}
}
