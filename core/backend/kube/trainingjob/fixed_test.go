//go:build linux

package trainingjob

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/internal/kubecluster"
)

// What the pipeline is told of a job once never changes. What is left out is what it stands for.
func testFixed(t *testing.T, jobs *Objects) {
	cases := map[string]struct {
		spec  func(*Spec)
		patch string
		want  string // empty: it may be written so
	}{
		"another type":            {func(s *Spec) { s.Accelerators = []string{"a100"} }, `{"accelerators": ["h100"]}`, "accelerators never change; cancel the job"},
		"a first type":            {nil, `{"accelerators": ["h100"]}`, "accelerators never change"},
		"no type":                 {func(s *Spec) { s.Accelerators = []string{"a100"} }, `{"accelerators": null}`, "accelerators never change"},
		"types in another order":  {func(s *Spec) { s.Accelerators = []string{"a", "b"} }, `{"accelerators": ["b", "a"]}`, ""},
		"an empty list of types":  {nil, `{"accelerators": []}`, ""},
		"other work":              {func(s *Spec) { s.Work = 5 }, `{"work": 6}`, "the work of a job never changes; cancel it"},
		"no work":                 {func(s *Spec) { s.Work = 5 }, `{"work": null}`, "the work of a job never changes"},
		"work of none":            {nil, `{"work": 0}`, ""},
		"pinned later":            {nil, `{"pinned": true}`, "whether a job is pinned never changes; cancel it"},
		"pinned no more":          {func(s *Spec) { s.Pinned = true }, `{"pinned": null}`, "whether a job is pinned never changes"},
		"a deadline later":        {nil, `{"deadlineSeconds": 60}`, "the deadline of a job never changes; cancel it"},
		"another deadline":        {func(s *Spec) { s.DeadlineSeconds = 90 }, `{"deadlineSeconds": 60}`, "the deadline of a job never changes"},
		"no deadline":             {nil, `{"deadlineSeconds": 0}`, ""},
		"best effort later":       {nil, `{"bestEffort": true}`, "whether a job is best effort never changes"},
		"not best effort":         {nil, `{"bestEffort": false}`, ""},
		"another tier":            {func(s *Spec) { s.Tier = "basic" }, `{"tier": "premium"}`, "the tier of a job never changes"},
		"no tier":                 {nil, `{"tier": ""}`, ""},
		"not pinned":              {nil, `{"pinned": false}`, ""},
		"another application":     {func(s *Spec) { s.Application = "bert" }, `{"application": "gpt"}`, "the application of a job never changes; cancel it"},
		"an application of none":  {nil, `{"application": ""}`, ""},
		"another experiment":      {func(s *Spec) { s.Experiment = "sweep" }, `{"experiment": "other"}`, "the experiment of a job never changes; cancel it"},
		"an experiment of none":   {nil, `{"experiment": ""}`, ""},
		"a pod of each replica":   {nil, `{"podPer": "Replica"}`, "podPer never changes; cancel the job"},
		"a pod of each node":      {nil, `{"podPer": "Node"}`, ""},
		"more devices":            {nil, `{"replicas": {"devicesPerReplica": 2}}`, "replicas.devicesPerReplica never changes; cancel the job"},
		"fewer devices":           {func(s *Spec) { s.Replicas.DevicesPerReplica = 2 }, `{"replicas": null}`, "replicas.devicesPerReplica never changes"},
		"one device":              {nil, `{"replicas": {"devicesPerReplica": 1}}`, ""},
		"one device left out":     {func(s *Spec) { s.Replicas.DevicesPerReplica = 1 }, `{"replicas": null}`, ""},
		"a first batch":           {nil, `{"batch": {"requested": 8}}`, "the batch of a job never changes; cancel it"},
		"no batch":                {func(s *Spec) { s.Batch.Requested = 8 }, `{"batch": null}`, "the batch of a job never changes"},
		"another batch":           {func(s *Spec) { s.Batch.Requested = 8 }, `{"batch": {"requested": 9, "initial": 8}}`, "the batch of a job never changes"},
		"a least batch":           {func(s *Spec) { s.Batch.Requested = 8 }, `{"batch": {"min": 4}}`, "the batch of a job never changes"},
		"a larger batch":          {func(s *Spec) { s.Batch.Requested = 8 }, `{"batch": {"max": 16}}`, "the batch of a job never changes"},
		"a batch of a device":     {func(s *Spec) { s.Batch.Requested = 8 }, `{"batch": {"minPerDevice": 2}}`, "the batch of a job never changes"},
		"less for a device":       {func(s *Spec) { s.Batch.Requested = 8 }, `{"batch": {"maxPerDevice": 4}}`, "the batch of a job never changes"},
		"an empty batch":          {nil, `{"batch": {}}`, ""},
		"all that a batch is":     {func(s *Spec) { s.Batch.Requested = 8 }, `{"batch": {"initial": 8, "max": 8, "minPerDevice": 1, "maxPerDevice": 8}}`, ""},
		"a batch by its other":    {func(s *Spec) { s.Batch.Requested = 8 }, `{"batch": {"requested": null, "initial": 8}}`, ""},
		"bounds, and that it may": {nil, `{"replicas": {"max": 3}, "requested": 2, "weight": 2, "suspend": true, "graceSeconds": 5}`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := "fixed-" + strings.Trim(strings.Map(func(r rune) rune {
				if r == ' ' || r == ',' {
					return '-'
				}
				return r
			}, name), "-")
			if _, err := jobs.Create(t.Context(), named(of, tc.spec), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			_, err := merge(t, jobs, of, `{"spec": `+tc.patch+`}`)
			if tc.want != "" {
				refused(t, err, tc.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// A job that an earlier definition let in, and one whose status an earlier scheduler wrote, goes on: people apply the file that it
// came of, and the scheduler writes its status.
func testBefore(t *testing.T, c *kubecluster.Cluster, client *Client) {
	jobs := client.Of("default")
	file := `{"apiVersion": "quartet.sched/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "before"}, "spec": {"accelerators": ["b", "a"], ` +
		`"batch": {"requested": 64, "max": 128}, "work": 10.5, "replicas": {"max": 2, "devicesPerReplica": 2}, "template": {"spec": {"containers": []}}}}`
	for range 2 {
		j, err := jobs.Patch(t.Context(), "before", types.ApplyPatchType, []byte(file), metav1.PatchOptions{FieldManager: "kubectl"})
		if err != nil || j.Generation != 1 {
			t.Fatalf("applied: %v, generation %d", err, j.Generation)
		}
		if j, err = client.ReplaceStatus(t.Context(), j, &Status{State: Running, Replicas: 2, Decision: decision(2, 2)}); err != nil || j.Status.State != Running {
			t.Fatalf("the status: %v, %+v", err, j.Status)
		}
	}
	// The scheduler of before wrote what the definition had then.
	define(t, c, true)
	await(t, "the definition of before", func() error {
		j, err := jobs.Patch(t.Context(), "before", types.MergePatchType,
			[]byte(`{"status": {"id": 3, "told": {"state": "running", "run": 2, "event": 7}, "learned": "much"}}`), metav1.PatchOptions{}, "status")
		if err != nil || j.Status.ID == nil || *j.Status.ID != 3 {
			return fmt.Errorf("%w, %+v", err, j)
		}
		answer, err := c.Do(t.Context(), "GET", jobsOf+"/before", nil)
		if err != nil || !strings.Contains(string(answer), `"learned":"much"`) {
			return fmt.Errorf("%w: %s", err, answer)
		}
		return nil
	})
	define(t, c, false)
	await(t, "the definition of now", func() error {
		answer, err := c.Do(t.Context(), "GET", jobsOf+"/before", nil)
		if err != nil || strings.Contains(string(answer), `"learned":"much"`) {
			return fmt.Errorf("%w: %s", err, answer)
		}
		return nil
	})
	j, err := jobs.Get(t.Context(), "before", metav1.GetOptions{})
	if err != nil || j.Status.ID == nil || *j.Status.ID != 3 || j.Status.Decision == nil {
		t.Fatalf("a status of before: %v, %+v", err, j.Status)
	}
	status := j.Status.DeepCopy()
	status.State = Waiting
	if j, err = client.ReplaceStatus(t.Context(), j, status); err != nil || j.Status.State != Waiting {
		t.Errorf("written: %v, %+v", err, j.Status)
	}
	if j, err = jobs.Patch(t.Context(), "before", types.ApplyPatchType, []byte(file), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil || j.Generation != 1 {
		t.Errorf("applied again: %v, generation %d", err, j.Generation)
	}
	var told Status // a cluster keeps the definition of before until somebody applies another
	if err := json.Unmarshal([]byte(`{"id": 3, "told": {"state": "running", "run": 2}, "learned": "much", "replicas": 2}`), &told); err != nil || *told.ID != 3 || told.Replicas != 2 {
		t.Errorf("%v, %+v", err, told)
	}
}

// define has the definition of now served, or one with the fields of before.
func define(t *testing.T, c *kubecluster.Cluster, before bool) {
	t.Helper()
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + Resource + "." + Group
	answer, err := c.Do(t.Context(), "GET", path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var definition map[string]any
	if err := json.Unmarshal(answer, &definition); err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(definition, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	version := versions[0].(map[string]any) //nolint:forcetypeassert // the API server wrote it
	at := []string{"schema", "openAPIV3Schema", "properties", "status", "properties"}
	status, _, err := unstructured.NestedMap(version, at...)
	if err != nil {
		t.Fatal(err)
	}
	if delete(status, "told"); before {
		status["told"] = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	if delete(status, "learned"); before {
		status["learned"] = map[string]any{"type": "string"}
	}
	if err := errors.Join(unstructured.SetNestedMap(version, status, at...), unstructured.SetNestedSlice(definition, versions, "spec", "versions")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), "PUT", path, definition); err != nil {
		t.Fatal(err)
	}
}
