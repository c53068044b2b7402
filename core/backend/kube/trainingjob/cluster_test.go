//go:build linux

package trainingjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

const jobsOf = "/apis/quartet.sched/v1alpha1/namespaces/default/trainingjobs"

// served starts an API server that knows the resource.
func served(t *testing.T) (*kubecluster.Cluster, *Client) {
	t.Helper()
	c := kubetest.Start(t, kubecluster.Options{})
	definition, err := yaml.YAMLToJSON(Definition())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(t.Context(), "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", json.RawMessage(definition)); err != nil {
		t.Fatal(err)
	}
	await(t, "the resource is served", func() error {
		_, err := c.Do(t.Context(), "GET", jobsOf, nil)
		return err
	})
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c, client
}

// await asks until an answer is as wanted.
func await(t *testing.T, what string, ask func() error) {
	t.Helper()
	var err error
	for range 1500 {
		if err = ask(); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s: %v", what, err)
}

func named(name string, change func(*Spec)) *TrainingJob {
	j := job(change)
	j.Name, j.Namespace = name, "default"
	return j
}

// One control plane serves all of them: it takes seconds to start.
func TestServed(t *testing.T) {
	c, client := served(t)
	jobs := client.Of("default")
	t.Run("rules", func(t *testing.T) { testRules(t, jobs) })
	t.Run("changes", func(t *testing.T) { testChanges(t, jobs) })
	t.Run("what takes another job", func(t *testing.T) { testFixed(t, jobs) })
	t.Run("objects from before", func(t *testing.T) { testBefore(t, c, client) })
	t.Run("unknown fields", func(t *testing.T) { testUnknown(t, c) })
	t.Run("status", func(t *testing.T) { testStatus(t, c, client) })
	t.Run("stale", func(t *testing.T) { testStale(t, client) })
	t.Run("columns", func(t *testing.T) { testColumns(t, c, client) })
	t.Run("sizes", func(t *testing.T) { testSizes(t, c, client) })
	t.Run("fields", func(t *testing.T) { testFields(t, client) })
	t.Run("a template that is none", func(t *testing.T) { testInformer(t, client) })
}

// refused wants a request to be refused as invalid, with a sentence of its own.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// Every rule has its own sentence, and what a rule refuses JobSpec refuses too.
func testRules(t *testing.T, jobs *Objects) {
	seconds := func(n int64) *int64 { return &n }
	cases := map[string]struct {
		name   string
		change func(*Spec)
		want   string
	}{
		"long name":          {strings.Repeat("x", 46), nil, "the name of a job has at most 45 characters"},
		"a name with a dot":  {"a.b", nil, `the name of a job is lower-case letters, digits and "-"`},
		"least over most":    {"", func(s *Spec) { s.Replicas = Replicas{Min: 4, Max: 2} }, "spec.replicas: Invalid value: replicas.min must be at most replicas.max"},
		"requested too few":  {"", func(s *Spec) { s.Requested, s.Replicas.Min = 1, 2 }, "replicas.min must be at most requested"},
		"requested too many": {"", func(s *Spec) { s.Requested, s.Replicas.Max = 3, 2 }, "requested must be at most replicas.max"},
		"devices of a replica": {
			"", func(s *Spec) { s.Replicas.DevicesPerReplica = -1 }, "replicas.devicesPerReplica must be at least 1",
		},
		"too many of a replica": {"", func(s *Spec) { s.Replicas.DevicesPerReplica = 65 }, "spec.replicas.devicesPerReplica"},
		"batches":               {"", func(s *Spec) { s.Batch = Batch{Requested: 8, Min: 8, Max: 4} }, "batch.min must be at most batch.max"},
		"batches of a device": {
			"", func(s *Spec) { s.Batch = Batch{Requested: 8, MinPerDevice: 8, MaxPerDevice: 4} }, "batch.minPerDevice must be at most batch.maxPerDevice",
		},
		"weight":           {"", func(s *Spec) { s.Weight = -1 }, "spec.weight"},
		"deadline":         {"", func(s *Spec) { s.DeadlineSeconds = -1 }, "spec.deadlineSeconds"},
		"tier":             {"", func(s *Spec) { s.Tier = "gold" }, "spec.tier"},
		"work":             {"", func(s *Spec) { s.Work = -1 }, "spec.work"},
		"replicas":         {"", func(s *Spec) { s.Requested = 1_000_001 }, "spec.requested"},
		"accelerators":     {"", func(s *Spec) { s.Accelerators = []string{"a", "a"} }, "spec.accelerators[1]: Duplicate value"},
		"an empty type":    {"", func(s *Spec) { s.Accelerators = []string{""} }, "spec.accelerators[0]"},
		"grace":            {"", func(s *Spec) { s.GraceSeconds = seconds(-1) }, "spec.graceSeconds"},
		"no time to start": {"", func(s *Spec) { s.StartTimeoutSeconds = seconds(0) }, "spec.startTimeoutSeconds"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := named("refused", tc.change)
			if tc.name != "" {
				j.Name = tc.name
			}
			_, err := jobs.Create(t.Context(), j, metav1.CreateOptions{})
			refused(t, err, tc.want)
			if _, problems := j.JobSpec(0, 0); len(problems) == 0 {
				t.Error("the API server refuses what JobSpec takes")
			}
		})
	}
	t.Run("everything", func(t *testing.T) {
		j := named(strings.Repeat("x", 45), func(s *Spec) {
			template := s.Template
			*s = Spec{
				Queue: "research", Weight: 0.5, Work: 1e6, Replicas: Replicas{Min: 1, Max: 64, DevicesPerReplica: 2}, Requested: 8, Pinned: true, DeadlineSeconds: 900.5, BestEffort: true, Tier: "premium",
				Accelerators: []string{"a100", "h100"}, Application: "resnet50", GraceSeconds: seconds(30), StartTimeoutSeconds: seconds(600),
				Batch: Batch{Requested: 512, Initial: 256, Min: 128, Max: 4096, MinPerDevice: 16, MaxPerDevice: 256}, Template: template,
			}
		})
		if _, problems := j.JobSpec(0, 0); problems.Err() != nil {
			t.Fatal(problems)
		}
		got, err := jobs.Create(t.Context(), j, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			t.Fatal(err)
		}
		var want, is any
		if err := errors.Join(json.Unmarshal(j.Spec.Template.Raw, &want), json.Unmarshal(got.Spec.Template.Raw, &is)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("the template (-want +got):\n%s", diff)
		}
		got.Spec.Template = j.Spec.Template
		if diff := cmp.Diff(j.Spec, got.Spec); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func merge(t *testing.T, jobs *Objects, name, patch string, subresources ...string) (*TrainingJob, error) {
	t.Helper()
	return jobs.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
}

// The queue never changes, not even to or from none; bounds may.
func testChanges(t *testing.T, jobs *Objects) {
	for name, queue := range map[string]string{"in-none": "", "in-one": "research"} {
		if _, err := jobs.Create(t.Context(), named(name, func(s *Spec) { s.Queue = queue; s.Replicas.Max = 4 }), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, patch := range []string{`{"spec": {"queue": "other"}}`, `{"spec": {"queue": null}}`} {
			_, err := merge(t, jobs, name, patch)
			if queue == "" && strings.Contains(patch, "null") {
				if err != nil {
					t.Errorf("nothing changed: %v", err)
				}
				continue
			}
			refused(t, err, "the queue of a job never changes; cancel it and submit it to the other queue")
		}
		got, err := merge(t, jobs, name, `{"spec": {"replicas": {"max": 8}, "weight": 2}}`)
		if err != nil || got.Generation != 2 || got.Spec.Replicas.Max != 8 {
			t.Errorf("bounds: %v, %+v", err, got)
		}
	}
	mirror := named("mirror", func(s *Spec) { s.Adopts = &Adopts{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "u"} })
	if _, err := jobs.Create(t.Context(), mirror, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatal(err)
	}
	for name, patch := range map[string]string{
		"mirror": `{"spec": {"adopts": {"uid": "v"}}}`, "in-one": `{"spec": {"adopts": {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"}}}`,
	} {
		_, err := merge(t, jobs, name, patch)
		refused(t, err, "whose pods a job has never changes")
	}
	_, gone := merge(t, jobs, "mirror", `{"spec": {"adopts": null}}`)
	refused(t, gone, "whose pods a job has never changes")
	for _, id := range []string{`0`, `0`} {
		if _, err := merge(t, jobs, "in-one", `{"status": {"id": `+id+`}}`, "status"); err != nil {
			t.Error(err)
		}
	}
	for _, patch := range []string{`{"status": {"id": 1}}`, `{"status": {"id": null}}`, `{"status": null}`} {
		_, err := merge(t, jobs, "in-one", patch, "status")
		refused(t, err, "the id of a job never changes")
	}
	_, err := merge(t, jobs, "in-one", `{"status": {"state": "asleep"}}`, "status")
	refused(t, err, `Unsupported value: "asleep"`)
}

func testUnknown(t *testing.T, c *kubecluster.Cluster) {
	body := func(name string) map[string]any {
		return map[string]any{
			"apiVersion": "quartet.sched/v1alpha1", "kind": "TrainingJob", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"gpus": 4, "template": map[string]any{"kept": map[string]any{"as": "it is"}}},
		}
	}
	_, err := c.Do(t.Context(), "POST", jobsOf+"?fieldValidation=Strict", body("unknown"))
	if err == nil || !strings.Contains(err.Error(), `unknown field \"spec.gpus\"`) {
		t.Errorf("strict: %v", err)
	}
	answer, err := c.Do(t.Context(), "POST", jobsOf, body("pruned"))
	if err != nil || strings.Contains(string(answer), `"gpus":4`) || !strings.Contains(string(answer), `"template":{"kept":{"as":"it is"}}`) {
		t.Errorf("otherwise: %s, %v", answer, err)
	}
}

// People own the spec and the scheduler the status: neither takes what is the other's.
func testStatus(t *testing.T, c *kubecluster.Cluster, client *Client) {
	jobs := client.Of("default")
	j := named("status", func(s *Spec) { s.Replicas = Replicas{Min: 1, Max: 4} })
	j.Status = Status{State: Running}
	j, err := jobs.Create(t.Context(), j, metav1.CreateOptions{FieldManager: "somebody"})
	if err != nil || j.Status.State != "" {
		t.Fatalf("a status in the main resource: %v, %+v", err, j.Status)
	}
	if j, err = merge(t, jobs, "status", `{"status": {"state": "running"}}`); err != nil || j.Status.State != "" {
		t.Fatalf("a status patched in the main resource: %v, %+v", err, j.Status)
	}
	// Somebody with the right to do so wrote a status: it gives way.
	if j, err = merge(t, jobs, "status", `{"status": {"state": "failed", "id": 3}}`, "status"); err != nil {
		t.Fatal(err)
	}
	id := int32(3)
	status := &Status{ID: &id, State: Running, Replicas: 4, Decision: decision(2, 8)}
	status.SetCondition(ConditionRunning, metav1.ConditionTrue, "Running", "all 4 run", j.Generation, time.Unix(1_800_000_000, 0))
	applied, err := client.ReplaceStatus(t.Context(), j, status)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*status, applied.Status); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(j.Spec, applied.Spec); diff != "" || applied.Generation != j.Generation {
		t.Errorf("the spec after an apply, generation %d after %d (-want +got):\n%s", applied.Generation, j.Generation, diff)
	}
	for _, m := range applied.ManagedFields {
		owned := m.FieldsV1.GetRawString()
		if m.Manager == FieldManager && (m.Subresource != "status" || strings.Contains(owned, "f:spec")) {
			t.Errorf("the scheduler owns %s", owned)
		}
		if m.Manager == "somebody" && !strings.Contains(owned, "f:replicas") {
			t.Errorf("somebody owns %s", owned)
		}
	}
	// A user applies the spec without force, and meets no conflict.
	_, err = jobs.Patch(t.Context(), "status", types.ApplyPatchType,
		[]byte(`{"apiVersion": "quartet.sched/v1alpha1", "kind": "TrainingJob", "spec": {"replicas": {"max": 4}, "template": {}}}`),
		metav1.PatchOptions{FieldManager: "another"})
	if err != nil {
		t.Errorf("a user's apply: %v", err)
	}
	// What the next apply leaves out is taken away, and one that changes nothing writes nothing.
	if applied, err = jobs.Get(t.Context(), "status", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	status.Decision, status.Replicas = nil, 0
	again, err := client.ReplaceStatus(t.Context(), applied, status)
	if err != nil || again.Status.Decision != nil || again.Status.Replicas != 0 || again.Status.ID == nil {
		t.Errorf("applied without a decision: %v, %+v", err, again.Status)
	}
	same, err := client.ReplaceStatus(t.Context(), again, status)
	if err != nil || same.ResourceVersion != again.ResourceVersion {
		t.Errorf("the same applied again: %v, version %s after %s", err, same.ResourceVersion, again.ResourceVersion)
	}
	if answer, err := c.Do(t.Context(), "GET", jobsOf+"/status/status", nil); err != nil || !strings.Contains(string(answer), `"id":3`) {
		t.Errorf("%s, %v", answer, err)
	}
}

// decision gives all devices of nodes.
func decision(seats, devices int) *Decision {
	d := &Decision{Epoch: 3, Round: 1234, Run: 5, AtSeconds: 86400.5, By: "allocation/pollux", Tuning: &Tuning{BatchPerDevice: 128, AccumulationSteps: 1, LearningRateFactor: 2.5}}
	for i := range seats {
		d.Seats = append(d.Seats, Seat{Node: fmt.Sprintf("node-%d.gpu.cluster.example", i), Devices: fmt.Sprintf("0-%d", devices-1)})
	}
	return d
}

// A write that rests on an old version is refused, whatever the kind of write, and so is one to a namesake.
func testStale(t *testing.T, client *Client) {
	jobs := client.Of("default")
	old, err := jobs.Create(t.Context(), named("stale", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := client.ReplaceStatus(t.Context(), old, &Status{State: Pending})
	if err != nil {
		t.Fatal(err)
	}
	stale := map[string]func(context.Context) error{
		"apply": func(ctx context.Context) error {
			_, err := client.ReplaceStatus(ctx, old, &Status{State: Waiting})
			return err
		},
		"update of the status": func(ctx context.Context) error {
			_, err := jobs.UpdateStatus(ctx, old, metav1.UpdateOptions{})
			return err
		},
		"update": func(ctx context.Context) error {
			_, err := jobs.Update(ctx, old, metav1.UpdateOptions{})
			return err
		},
		"patch": func(context.Context) error {
			_, err := merge(t, jobs, "stale", `{"metadata": {"resourceVersion": "`+old.ResourceVersion+`"}, "status": {"state": "running"}}`, "status")
			return err
		},
	}
	for name, write := range stale {
		if err := write(t.Context()); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	if got, err := jobs.Get(t.Context(), "stale", metav1.GetOptions{}); err != nil || got.ResourceVersion != fresh.ResourceVersion {
		t.Errorf("%v, version %s, want %s", err, got.ResourceVersion, fresh.ResourceVersion)
	}
	unread := fresh.DeepCopy()
	unread.ResourceVersion = ""
	if _, err := client.ReplaceStatus(t.Context(), unread, &Status{}); err == nil || !strings.Contains(err.Error(), "default/stale: the job was not read") {
		t.Errorf("an apply to whichever job has the name: %v", err)
	}
	// An apply to a job that is gone makes none, and does not reach its namesake.
	if err := jobs.Delete(t.Context(), "stale", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ReplaceStatus(t.Context(), fresh, &Status{State: Waiting}); !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		t.Errorf("an apply to a job that is gone: %v", err)
	}
	if _, err := jobs.Get(t.Context(), "stale", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a job that is gone is there after an apply: %v", err)
	}
	if _, err := jobs.Create(t.Context(), named("stale", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ReplaceStatus(t.Context(), fresh, &Status{State: Waiting}); !apierrors.IsConflict(err) {
		t.Errorf("an apply to a namesake: %v", err)
	}
}

// What kubectl get shows.
func testColumns(t *testing.T, c *kubecluster.Cluster, client *Client) {
	j, err := client.Of("default").Create(t.Context(), named("columns", func(s *Spec) { s.Queue = "research" }), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status := &Status{State: Starting, Replicas: 16}
	status.SetCondition(ConditionAdmitted, metav1.ConditionTrue, "Admitted", "", 1, time.Unix(0, 0))
	status.SetCondition(ConditionRunning, metav1.ConditionFalse, "Pulling", "", 1, time.Unix(0, 0))
	if _, err := client.ReplaceStatus(t.Context(), j, status); err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: c.Server, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(c.Dir, "certs", "apiserver.crt")}}
	asked, err := NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := asked.rest.Get().Namespace("default").Resource("tj").Name("columns").Do(t.Context()).Raw()
	if err == nil {
		t.Errorf("a short name is for kubectl only, and served: %s", answer)
	}
	answer, err = asked.rest.Get().Namespace("default").Resource(Resource).Name("columns").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	var table metav1.Table
	if err := errors.Join(err, json.Unmarshal(answer, &table)); err != nil {
		t.Fatal(err)
	}
	var heads []string
	for _, column := range table.ColumnDefinitions {
		heads = append(heads, fmt.Sprintf("%s/%d", column.Name, column.Priority))
	}
	if diff := cmp.Diff([]string{"Name/0", "State/0", "Replicas/0", "Reason/0", "Queue/1", "Age/0"}, heads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"columns", "starting", 16.0, "Pulling", "research"}, table.Rows[0].Cells[:5]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The status of any real job is far below what etcd takes, and a member of a gang costs few bytes.
func testSizes(t *testing.T, c *kubecluster.Cluster, client *Client) {
	jobs := client.Of("default")
	for _, tc := range []struct{ seats, limit int }{{8, 4_000}, {64, 8_000}, {1000, 80_000}} {
		name := fmt.Sprintf("size-%d", tc.seats)
		j, err := jobs.Create(t.Context(), named(name, nil), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		id, first := int32(7), 12.5
		status := &Status{
			ID: &id, State: Running, Replicas: 8 * tc.seats, Decision: decision(tc.seats, 8),
			Progress: &Progress{Done: 12345.5, Rate: 3.25, FromSeconds: 86000.5, Checkpoint: 12000, ExecutedSeconds: 7200.5, AttainedSeconds: 460832, FirstStartSeconds: &first, Restarts: 4, Preemptions: 1},
		}
		for _, kind := range []string{ConditionAdmitted, ConditionRunning} {
			status.SetCondition(kind, metav1.ConditionTrue, "Running", "all replicas run", 1, time.Unix(1_800_000_000, 0))
		}
		if _, err := client.ReplaceStatus(t.Context(), j, status); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := c.Do(t.Context(), "GET", jobsOf+"/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d seats: the status has %d bytes, the object %d", tc.seats, len(text), len(whole))
		if len(whole) > tc.limit {
			t.Errorf("%d seats: the object has %d bytes, want at most %d", tc.seats, len(whole), tc.limit)
		}
	}
}

// Jobs are selected by their queue, and every set of devices is a seat.
func testFields(t *testing.T, client *Client) {
	jobs := client.Of("default")
	j, err := jobs.Create(t.Context(), named("selected", func(s *Spec) { s.Queue = "selected-queue" }), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Of("").List(t.Context(), metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.queue", "selected-queue").String()})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "selected" {
		t.Errorf("%v, %+v", err, list)
	}
	random, d := rand.New(rand.NewPCG(1, 2)), decision(0, 0)
	for range 200 {
		d.Seats = append(d.Seats, Seat{Node: "n", Devices: FormatDevices(1 | 0x5555_5555_5555_5555&core.DeviceSet(random.Uint64()))})
	}
	d.Seats = append(d.Seats, Seat{Node: "n", Devices: FormatDevices(0x5555_5555_5555_5555)})
	if j, err = client.ReplaceStatus(t.Context(), j, &Status{Decision: d}); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"", "a", "1-", "0,,1", "-1", "100"} {
		d.Seats = []Seat{{Node: "n", Devices: wrong}}
		_, err := client.ReplaceStatus(t.Context(), j, &Status{Decision: d})
		refused(t, err, "status.decision.seats[0].devices")
	}
}

// A job whose template is no pod template does not keep the others from being seen, and says what is wrong.
func testInformer(t *testing.T, client *Client) {
	jobs := client.Of("default")
	bad := named("no-template", func(s *Spec) { s.Template = runtime.RawExtension{Raw: []byte(`{"spec": {"containers": "main"}}`)} })
	for _, j := range []*TrainingJob{bad, named("with-template", nil)} {
		if _, err := jobs.Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	informer := NewInformer(client, "")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	defer func() { cancel(); <-ended }()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the cache is not filled")
	}
	seen := func(name string) *TrainingJob {
		o, _, _ := informer.GetStore().GetByKey("default/" + name)
		j, _ := o.(*TrainingJob)
		return j
	}
	if seen("with-template") == nil || seen("no-template") == nil {
		t.Fatal("a job is not seen")
	}
	_, problems := seen("no-template").JobSpec(0, 0)
	if want := "spec.template.spec.containers: cannot be a string"; len(problems) != 1 || problems[0].String() != want {
		t.Errorf("%v, want %s", problems, want)
	}
	if _, err := merge(t, jobs, "with-template", `{"spec": {"suspend": true}}`); err != nil {
		t.Fatal(err)
	}
	await(t, "a change is seen", func() error {
		if !seen("with-template").Spec.Suspend {
			return errors.New("it is not")
		}
		return nil
	})
}
