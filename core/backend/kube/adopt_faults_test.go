//go:build linux

package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/manifests"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

// A scheduler is killed at each write about Jobs and pods of others, before it took effect or after that, and so is the one that
// takes over from it. All end as they were to, no pod of a Job fails by that, and no device is held twice.
func TestAdoptersAreKilled(t *testing.T) {
	c := shared(t)
	for i := range 12 {
		writes, after := 1+i/2, i%2 == 1
		t.Run(fmt.Sprintf("write %d, after %v", writes, after), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c)
			r.witness()
			none := int32(0)
			strict := func(j *batchv1.Job) { j.Spec.BackoffLimit = &none }
			jobs := map[*batchv1.Job]batchv1.JobConditionType{
				r.submitBatch("one", batch{pods: 3, run: 300 * time.Millisecond, edit: strict}):  batchv1.JobComplete,
				r.submitBatch("two", batch{pods: 2, run: 300 * time.Millisecond, edit: strict}):  batchv1.JobComplete,
				r.submitBatch("bad", batch{pods: 1, fail: 300 * time.Millisecond, edit: strict}): batchv1.JobFailed,
				r.submitBatch("all", batch{pods: 4, run: 300 * time.Millisecond, edit: strict}):  batchv1.JobComplete,
			}
			pod := r.submitPods(300*time.Millisecond, nil, "alone")[0]
			r.killed(writes, after, func(rt http.RoundTripper) http.RoundTripper { return rt })
			for job, want := range jobs {
				state := map[batchv1.JobConditionType]trainingjob.State{batchv1.JobComplete: trainingjob.Completed, batchv1.JobFailed: trainingjob.Failed}[want]
				mirror := r.becomes(r.mirrorOf(job.UID), state)
				if !mirror.Status.Decision.Stop || mirror.Status.Replicas != 0 {
					t.Errorf("Job %s has ended, and holds %+v", job.Name, mirror.Status.Decision)
				}
				if c := finished(r.batch(job.Name)); c == nil || c.Type != want {
					t.Errorf("Job %s is %+v, want %s", job.Name, c, want)
				}
			}
			r.becomes(r.mirrorOf(pod.UID), trainingjob.Completed)
			r.quiet()
			list, err := r.admin.jobs.Of(r.namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != len(jobs)+1 {
				t.Errorf("%d TrainingJobs, %v, want one for each Job and pod", len(list.Items), err)
			}
		})
	}
}

// Calls about Jobs and pods of others fail, and are made again.
func TestAdoptTroubled(t *testing.T) {
	c := shared(t)
	for code, reason := range map[int]string{
		http.StatusConflict: "Conflict", http.StatusTooManyRequests: "TooManyRequests", http.StatusInternalServerError: "InternalError",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c)
			s := r.scheduleAmid(code, reason)
			for _, name := range []string{"one", "two", "three"} {
				s.hears("job_finished " + r.mirrorOf(r.submitBatch(name, batch{pods: 3, run: 300 * time.Millisecond}).UID))
			}
			r.quiet()
		})
	}
}

// patchless fails all patches of pods.
type patchless struct{ http.RoundTripper }

func (p patchless) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/pods/") {
		return nil, errCut
	}
	return p.RoundTripper.RoundTrip(r)
}

// A gang that lost a pod between its decision and its start, which nobody makes again, gives its devices back.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	r := newRig(t, shared(t))
	r.settings.StartTimeout = time.Second
	s := r.schedule(func(rt http.RoundTripper) http.RoundTripper { return patchless{rt} })
	pods := r.submitPods(0, func(p *corev1.Pod) {
		p.Labels = map[string]string{gang.GroupLabel: "two"}
		p.Annotations[gang.GroupSizeAnnotation] = "2"
	}, "x", "y")
	mirror := r.mirrorOf(pods[0].UID)
	r.await("it is decided", func() bool { return r.job(mirror).Status.Replicas == 2 })
	if err := r.admin.Pods(r.namespace).Delete(t.Context(), "y", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.hears("job_interrupted " + mirror + " start_timeout")
	r.submit("next", asked{replicas: 4})
	s.hears("job_started next")
}

// definedBefore has TrainingJobs served that know nothing of pods of others.
func definedBefore(t *testing.T, c *kubecluster.Cluster) {
	var definition map[string]any
	if err := yaml.Unmarshal(trainingjob.Definition(), &definition); err != nil {
		t.Fatal(err)
	}
	at := func(of any, path ...string) map[string]any {
		for _, key := range path {
			of = of.(map[string]any)[key]
		}
		return of.(map[string]any)
	}
	version := at(definition, "spec")["versions"].([]any)[0]
	spec := at(version, "schema", "openAPIV3Schema", "properties", "spec")
	delete(at(spec, "properties"), "adopts")
	rules := spec["x-kubernetes-validations"].([]any)
	spec["x-kubernetes-validations"] = rules[:len(rules)-1]
	if text, err := json.Marshal(definition); err != nil || strings.Contains(string(text), "adopts") {
		t.Fatalf("an older definition: %v", err)
	}
	if _, err := c.Do(t.Context(), "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition); err != nil {
		t.Fatal(err)
	}
}

// Where the cluster's TrainingJobs are of a version before, or the roles are, pods of others wait, which is logged once, and all
// else goes on. When both are applied they are scheduled, with the rights of the manifests and no others.
func TestAdoptOnAnOlderCluster(t *testing.T) {
	t.Parallel()
	c := kubetest.Start(t, kubecluster.Options{})
	definedBefore(t, c)
	r := newRig(t, c)
	r.await("TrainingJobs are served", func() bool {
		_, err := r.admin.jobs.Of(r.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	var warned atomic.Int64
	r.logs = func(line string) {
		if strings.Contains(line, "not scheduling pods and Jobs of others") {
			warned.Add(1)
		}
	}
	s := r.schedule(nil)
	job := r.submitBatch("waits", batch{pods: 2, run: time.Second})
	r.submitBatch("too", batch{pods: 1, run: time.Second})
	r.submit("one", asked{replicas: 2, run: time.Second})
	s.hears("job_finished one")
	r.await("it is logged", func() bool { return warned.Load() > 0 })
	if count := warned.Load(); count != 1 || r.bound("waits") > 0 {
		t.Errorf("%d warnings, want one", count)
	}
	if err := s.stop(); err != nil {
		t.Log(err)
	}
	definition, err := yaml.YAMLToJSON(trainingjob.Definition())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.cluster.Do(t.Context(), "PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainingjobs.quartet.sched", json.RawMessage(definition)); err != nil {
		t.Fatal(err)
	}
	r.config = r.install(manifests.Options{})
	r.await("its rights count", func() bool {
		all, err := newClients(r.config, 8)
		if err != nil {
			return false
		}
		_, err = all.Jobs("").List(t.Context(), metav1.ListOptions{Limit: 1})
		return err == nil
	})
	s = r.schedule(nil)
	var mirror string
	r.await("it is taken in", func() bool {
		r.editBatch("waits", fmt.Sprintf(`{"metadata":{"annotations":{"look":"%d"}}}`, realClock{}.Now().UnixNano()))
		list, err := r.admin.jobs.Of(r.namespace).List(t.Context(), metav1.ListOptions{})
		for i := range list.Items {
			if a := list.Items[i].Spec.Adopts; a != nil && a.UID == job.UID {
				mirror = list.Items[i].Name
			}
		}
		return err == nil && mirror != ""
	})
	s.hears("job_finished " + mirror)
	// What is stopped takes all rights.
	held := r.mirrorOf(r.submitBatch("held", batch{pods: 2}).UID)
	s.hears("job_started " + held)
	if err := r.admin.jobs.Of(r.namespace).Delete(t.Context(), held, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.hears("job_cancelled " + held)
	r.await("it runs again", func() bool {
		pods := r.podsOfBatch("held")
		return len(pods) == 2 && r.bound("held") == 2 && pods[0].Status.Phase == corev1.PodRunning
	})
	if failed := r.batch("held").Status.Failed; failed > 0 {
		t.Errorf("the Job counts %d failures", failed)
	}
}
