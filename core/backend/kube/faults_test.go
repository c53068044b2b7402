//go:build linux

package kube

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

// What befalls nodes, pods and jobs is told with its cause, and the status of the job is true afterwards.
func TestFaults(t *testing.T) {
	t.Parallel()
	c := shared(t)
	for name, befall := range map[string]func(*rig){
		"a node is deleted":                    nodeDeleted,
		"a node is out of service":             outOfServiceNode,
		"a node joins":                         nodeJoins,
		"a pod is evicted":                     evicted,
		"a pod is deleted by force":            forced,
		"others take devices":                  foreignPod,
		"a job is deleted while it runs":       func(r *rig) { deleted(r, nil, metav1.DeletePropagationBackground) },
		"a job is deleted with its pods first": func(r *rig) { deleted(r, nil, metav1.DeletePropagationForeground) },
		"a job is deleted while it starts": func(r *rig) {
			deleted(r, map[string]string{"quartet.sched/start": "10m"}, metav1.DeletePropagationBackground)
		},
		"a job is suspended and resumed":              suspended,
		"a job is edited":                             edited,
		"an edit that makes no sense, and a takeover": editedAndTakenOver,
		"a template makes no sense":                   senseless,
		"a quota refuses the second pod":              quota,
		"a kubelet refuses a pod":                     kubelet,
		"an image cannot be pulled":                   slow,
		"somebody edits a status":                     meddled,
		"a name is used again":                        again,
		"calls are answered by conflicts":             func(r *rig) { troubled(r, http.StatusConflict, "Conflict") },
		"calls are too many":                          func(r *rig) { troubled(r, http.StatusTooManyRequests, "TooManyRequests") },
		"calls fail":                                  func(r *rig) { troubled(r, http.StatusInternalServerError, "InternalError") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c)
			befall(r)
		})
	}
}

// runs starts a job on both devices of node a.
func runs(r *rig, a asked) *scheduler {
	r.Helper()
	s := r.schedule(nil)
	s.hears("node_added b")
	a.replicas = max(a.replicas, 2)
	r.submit("one", a)
	s.hears("job_started one")
	s.news()
	return s
}

func nodeDeleted(r *rig) {
	s := runs(r, asked{})
	if err := r.admin.Nodes().Delete(r.Context(), r.node("a"), metav1.DeleteOptions{}); err != nil {
		r.Fatal(err)
	}
	s.hears("job_started one")
	s.wantNews("node_removed a", "job_interrupted one node_failed")
	job := r.becomes("one", trainingjob.Running)
	if d := job.Status.Decision; d.Run != 2 || d.Seats[0].Node != r.node("b") || job.Status.Progress.Preemptions != 0 {
		r.Errorf("the job runs as %+v, want on b in run 2, not preempted", job.Status)
	}
	r.await("the pod of the node that is gone is let go", func() bool {
		return !slices.ContainsFunc(r.podsOf("one"), func(p corev1.Pod) bool {
			return p.Spec.NodeName == r.node("a") && slices.Contains(p.Finalizers, gang.Finalizer)
		})
	})
}

func outOfServiceNode(r *rig) {
	s := runs(r, asked{})
	r.patchNode("a", `{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","effect":"NoExecute"}]}}`)
	s.hears("job_started one")
	s.wantNews("node_changed a down 0", "job_interrupted one node_failed")
	if job := r.becomes("one", trainingjob.Running); job.Status.Progress.Preemptions != 0 {
		r.Errorf("the job counts %d preemptions", job.Status.Progress.Preemptions)
	}
}

// A node that takes no new work keeps the jobs that run there, and gets no other; from one that is to be left they are moved, and
// their condition, an Event and the TrainingJob of their Job say why.
func TestClosedNodes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ patch, undo, moved string }{
		"cordoned":        {`{"spec":{"unschedulable":true}}`, `{"spec":{"unschedulable":null}}`, ""},
		"tainted":         {`{"spec":{"taints":[{"key":"x","effect":"NoSchedule"}]}}`, `{"spec":{"taints":null}}`, ""},
		"short of memory": {`{"spec":{"taints":[{"key":"node.kubernetes.io/memory-pressure","effect":"NoSchedule"}]}}`, `{"spec":{"taints":null}}`, ""},
		"tainted at once": {`{"spec":{"taints":[{"key":"x","value":"y","effect":"NoExecute"}]}}`, `{"spec":{"taints":null}}`, "has the taint x=y:NoExecute"},
		"drained": {
			`{"spec":{"unschedulable":true},"metadata":{"annotations":{"quartet.sched/drain":"true"}}}`, `{"spec":{"unschedulable":null}}`, "is being drained",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "short of memory" && kubetest.Real() {
				t.Skip("its node lifecycle controller takes a taint away that no condition says")
			}
			r := newRig(t, sharedOrStandIn(t))
			r.witness()
			s := r.schedule(nil)
			s.hears("node_added b")
			one := r.submit("one", asked{replicas: 1})
			s.hears("job_started one")
			before := r.podsOf("one")[0]
			at := strings.TrimSuffix(before.Spec.NodeName, "-"+r.namespace+"-0")
			r.patchNode(at, tc.patch)
			if tc.moved != "" {
				r.await("it runs elsewhere", func() bool {
					j := r.job("one")
					return j.Status.State == trainingjob.Running && j.Status.Decision.Run == 2
				})
				j := r.job("one")
				c := j.Status.Condition(trainingjob.ConditionInterrupted)
				if c == nil || !strings.Contains(c.Message, tc.moved) && c.Reason != "DeletionByTaintManager" { // Kubernetes may be faster
					t.Errorf("it was interrupted by %+v, want a node that %s", c, tc.moved)
				}
				if said := r.hearsOf(one.UID, c.Reason); said != c.Message {
					t.Errorf("the Event says %q, want %q", said, c.Message)
				}
				return
			}
			s.hears("node_changed " + at + " ready 1") // the device that no job has
			r.submit("two", asked{replicas: 3})
			if name == "cordoned" {
				r.becomes("two", trainingjob.Waiting)
			} else {
				r.await("no node fits it", func() bool { // of one that does not tolerate the taint
					c := r.job("two").Status.Condition(trainingjob.ConditionRunning)
					return c != nil && c.Status == metav1.ConditionFalse && c.Reason == noNodeFits
				})
			}
			r.patchNode(at, tc.undo)
			s.hears("job_started two")
			if pods := r.podsOf("one"); len(pods) != 1 || pods[0].UID != before.UID || r.job("one").Status.Condition(trainingjob.ConditionInterrupted) != nil {
				t.Errorf("the job did not stay: %+v", r.job("one").Status)
			}
		})
	}
}

func nodeJoins(r *rig) {
	s := r.schedule(nil)
	r.submit("large", asked{replicas: 6})
	waits := r.becomes("large", trainingjob.Pending)
	r.condition(waits, trainingjob.ConditionRunning, metav1.ConditionFalse, "AwaitingNodes")
	r.addNode("c", 2)
	s.hears("job_started large")
	runs := r.becomes("large", trainingjob.Running)
	r.condition(runs, trainingjob.ConditionRunning, metav1.ConditionTrue, "Running")
	r.condition(runs, trainingjob.ConditionAdmitted, metav1.ConditionTrue, "Admitted")
}

func evicted(r *rig) {
	s := runs(r, asked{})
	p := r.podsOf("one")[0]
	r.evict(p.Name)
	s.hears("job_started one")
	s.wantNews("job_interrupted one evicted")
}

func forced(r *rig) {
	s := runs(r, asked{replicas: 4})
	r.witness()
	none := int64(0)
	if err := r.admin.Pods(r.namespace).Delete(r.Context(), r.podsOf("one")[0].Name, metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		r.Fatal(err)
	}
	s.hears("job_started one")
	s.wantNews("job_interrupted one killed")
}

func foreignPod(r *rig) {
	s := r.schedule(nil)
	s.hears("node_added b")
	s.news()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "foreign", Namespace: r.namespace},
		Spec: corev1.PodSpec{NodeName: r.node("b"), Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
		}}}},
	}
	if _, err := r.admin.Pods(r.namespace).Create(r.Context(), pod, metav1.CreateOptions{}); err != nil {
		r.Fatal(err)
	}
	s.hears("node_changed b ready 1")
	r.submit("all", asked{replicas: 4})
	r.becomes("all", trainingjob.Waiting)
	none := int64(0)
	if err := r.admin.Pods(r.namespace).Delete(r.Context(), "foreign", metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		r.Fatal(err)
	}
	s.hears("job_started all")
	s.wantNews("node_changed b ready 1", "job_submitted all", "node_changed b ready 0")
}

func deleted(r *rig, annotations map[string]string, how metav1.DeletionPropagation) {
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("one", asked{replicas: 4, annotations: annotations})
	if annotations == nil {
		s.hears("job_started one")
	} else {
		s.hears("job_starting one")
	}
	s.news()
	if err := r.admin.jobs.Of(r.namespace).Delete(r.Context(), "one", metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
		r.Fatal(err)
	}
	r.await("the pods are gone", func() bool { return len(r.pods()) == 0 })
	s.hears("job_cancelled one")
	r.submit("next", asked{replicas: 4, run: time.Second})
	s.hears("job_finished next")
	s.wantNews("job_cancelled one", "job_submitted next", "job_finished next")
}

func suspended(r *rig) {
	s := runs(r, asked{})
	r.edit("one", `{"spec":{"suspend":true}}`)
	job := r.becomes("one", trainingjob.Suspended)
	r.condition(job, trainingjob.ConditionRunning, metav1.ConditionFalse, "Suspended")
	r.quiet()
	r.edit("one", `{"spec":{"suspend":false}}`)
	s.hears("job_started one")
	s.wantNews("job_changed one", "job_changed one")
	r.becomes("one", trainingjob.Running)
}

func edited(r *rig) {
	s := runs(r, asked{})
	r.edit("one", `{"spec":{"weight": 2}}`)
	s.hears("job_changed one")
	uid := r.podsOf("one")[0].UID
	r.edit("one", `{"spec":{"template":{"spec":{"nodeName":"x"}}}}`)
	r.await("it is told that the edit makes no sense", func() bool {
		c := r.job("one").Status.Condition(trainingjob.ConditionDegraded)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == "Invalid"
	})
	r.edit("one", `{"spec":{"template":{"spec":{"nodeName":null}}}}`)
	r.await("it is told that it does again", func() bool {
		return r.job("one").Status.Condition(trainingjob.ConditionDegraded).Status == metav1.ConditionFalse
	})
	if pods := r.podsOf("one"); len(pods) != 1 || pods[0].UID != uid {
		r.Error("the pod of an edited job is another one")
	}
	s.wantNews("job_changed one")
}

// An edit that makes no sense ends nothing, whoever leads: only what needs pods by it does.
func editedAndTakenOver(r *rig) {
	s := runs(r, asked{})
	uid := r.podsOf("one")[0].UID
	_ = s.stop()
	r.edit("one", `{"spec":{"template":{"spec":{"nodeName":"x"}}}}`)
	next := r.schedule(nil)
	next.hears("job_submitted one held")
	r.await("it is told that the edit makes no sense", func() bool {
		c := r.job("one").Status.Condition(trainingjob.ConditionDegraded)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == "Invalid" && strings.Contains(c.Message, "nodeName")
	})
	if pods := r.podsOf("one"); len(pods) != 1 || pods[0].UID != uid || pods[0].DeletionTimestamp != nil {
		r.Error("the pod of an edited job is another one")
	}
	r.becomes("one", trainingjob.Running)
	r.edit("one", `{"spec":{"suspend":true}}`)
	r.becomes("one", trainingjob.Suspended)
	r.edit("one", `{"spec":{"suspend":false}}`)
	r.becomes("one", trainingjob.Failed)
}

func senseless(r *rig) {
	s := r.schedule(nil)
	r.submit("bad", asked{edit: func(j *trainingjob.TrainingJob) {
		j.Spec.Template.Raw = []byte(`{"spec":{"containers":[{"name":"main","image":"x"}],"nodeName":"x"}}`)
	}})
	job := r.becomes("bad", trainingjob.Rejected)
	r.condition(job, trainingjob.ConditionFinished, metav1.ConditionTrue, "Invalid")
	s.wantNews()
}

func quota(r *rig) {
	r.settings.RetryRefused = time.Second
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "few", Namespace: r.namespace},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}},
	}
	quotas := "/api/v1/namespaces/" + r.namespace + "/resourcequotas"
	r.ask("POST", quotas, quota, nil)
	r.await("the quota counts", func() bool {
		var q corev1.ResourceQuota
		r.ask("GET", quotas+"/few", nil, &q)
		return len(q.Status.Hard) > 0
	})
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("one", asked{replicas: 4})
	s.hears("job_interrupted one refused")
	r.await("its status says why", func() bool {
		job := r.job("one")
		c := job.Status.Condition(trainingjob.ConditionRunning)
		return job.Status.State == trainingjob.Waiting && c != nil && c.Reason == "Forbidden" && strings.Contains(c.Message, "quota")
	})
	for _, p := range r.pods() {
		if p.Spec.NodeName != "" {
			r.Errorf("pod %s of a gang that is not whole is bound", p.Name)
		}
	}
	r.ask("DELETE", quotas+"/few", nil, nil)
	s.hears("job_started one")
}

// kubelet refuses a pod as it does one for which its own view has no room.
func kubelet(r *rig) {
	r.settings.RetryRefused = time.Second
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("one", asked{annotations: map[string]string{"quartet.sched/start": "10m"}})
	r.await("its pod is bound", func() bool { return len(r.podsOf("one")) == 1 && r.podsOf("one")[0].Spec.NodeName != "" })
	r.patch(&r.podsOf("one")[0], `{"status":{"phase":"Failed","reason":"OutOfnvidia.com/gpu","message":"Node didn't have enough resource"}}`, "status")
	s.hears("job_interrupted one refused")
	r.await("its status says why", func() bool {
		c := r.job("one").Status.Condition(trainingjob.ConditionRunning)
		return c != nil && c.Reason == "OutOfnvidiaComGpu" && strings.Contains(c.Message, "enough resource")
	})
	r.await("it is tried again", func() bool { return r.job("one").Status.Decision.Run == 2 })
}

func slow(r *rig) {
	s := r.schedule(nil)
	s.hears("node_added b")
	soon := int64(1)
	r.submit("one", asked{annotations: map[string]string{"quartet.sched/start": "10m"}, edit: func(j *trainingjob.TrainingJob) { j.Spec.StartTimeoutSeconds = &soon }})
	r.await("its pod is bound", func() bool { return len(r.podsOf("one")) > 0 && r.podsOf("one")[0].Spec.NodeName != "" })
	s.hears("job_interrupted one start_timeout")
}

// meddled: what others write into a status gives way, and the job runs on.
func meddled(r *rig) {
	s := runs(r, asked{})
	uid := r.podsOf("one")[0].UID
	if _, err := r.admin.jobs.Of(r.namespace).Patch(r.Context(), "one", "application/merge-patch+json",
		[]byte(`{"status":{"state":"completed","decision":{"seats":null,"stop":true},"progress":null}}`), metav1.PatchOptions{}, "status"); err != nil {
		r.Fatal(err)
	}
	r.await("the status is true again", func() bool {
		d := r.job("one").Status
		return d.State == trainingjob.Running && d.Progress != nil && len(d.Decision.Seats) == 1 && !d.Decision.Stop
	})
	if pods := r.podsOf("one"); len(pods) != 1 || pods[0].UID != uid {
		r.Error("the pod of the job is another one")
	}
	s.wantNews()
}

// again: a job is deleted while its scheduler is not looking, and another one has its name.
func again(r *rig) {
	s := runs(r, asked{})
	first := r.job("one").UID
	for range 3 {
		if err := r.admin.jobs.Of(r.namespace).Delete(r.Context(), "one", metav1.DeleteOptions{}); err != nil {
			r.Fatal(err)
		}
		r.submit("one", asked{replicas: 4, run: time.Second})
	}
	s.hears("job_finished one")
	if job := r.becomes("one", trainingjob.Completed); job.UID == first {
		r.Error("the job is the first one")
	}
	r.quiet()
}

// answers answers each third write about jobs and pods itself.
type answers struct {
	http.RoundTripper
	code   int
	reason string
	count  atomic.Int64
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if !isWrite(r) || a.count.Add(1)%3 != 0 {
		return a.RoundTripper.RoundTrip(r)
	}
	return answer(r, a.code, a.reason), nil
}

// answer is what an API server answers that does not do what a request asks for.
func answer(r *http.Request, code int, reason string) *http.Response {
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"a test says so","reason":"` + reason + `","code":` + strconv.Itoa(code) + `}`
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(body))),
	}
}

// scheduleAmid opens a scheduler of which every third write is answered so.
func (r *rig) scheduleAmid(code int, reason string) *scheduler {
	r.Helper()
	r.witness()
	a := &answers{code: code, reason: reason}
	return r.schedule(func(rt http.RoundTripper) http.RoundTripper {
		a.RoundTripper = rt
		return a
	})
}

func troubled(r *rig, code int, reason string) {
	s := r.scheduleAmid(code, reason)
	for _, name := range []string{"one", "two", "three"} {
		r.submit(name, asked{replicas: 3, run: 300 * time.Millisecond})
	}
	for _, name := range []string{"one", "two", "three"} {
		s.hears("job_finished " + name)
		r.becomes(name, trainingjob.Completed)
	}
	s.wantNews("job_submitted one", "job_submitted two", "job_submitted three", "job_finished one", "job_finished two", "job_finished three")
	r.quiet()
}
