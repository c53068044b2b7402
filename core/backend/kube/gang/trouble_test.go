package gang_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
)

const rbacSentence = `pods is forbidden: User "system:serviceaccount:quartet:quartet" cannot create resource "pods" in API group "" in the namespace "team"`

// invalid is how an API server refuses an object that is none.
func invalid(causes ...metav1.StatusCause) *metav1.Status {
	s := failure(422, metav1.StatusReasonInvalid, `Pod "a-0" is invalid`)
	s.Details = &metav1.StatusDetails{Name: "a-0", Kind: "Pod", Causes: causes}
	return s
}

// The API server refuses a call of a start, whichever member it is for. All of the start is taken back, what ran before stays,
// and the server's sentence is told, until something else is decided.
func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		options gang.Options
		call    string // method and what the path ends in or holds
		at      int    // which of these calls; those after it are refused too
		status  *metav1.Status
		want    string // reason
	}{
		"quota, first member": {call: "POST /pods", at: 1, status: failure(403, metav1.StatusReasonForbidden, "exceeded quota: gpus"), want: "Forbidden"},
		"quota, last member":  {call: "POST /pods", at: 3, status: failure(403, metav1.StatusReasonForbidden, "exceeded quota: gpus"), want: "Forbidden"},
		"webhook, second member": {
			call: "POST /pods", at: 2, want: "Forbidden",
			status: failure(403, metav1.StatusReasonForbidden, `admission webhook "a.b" denied the request: no`),
		},
		"invalid template": {call: "POST /pods", at: 1, status: failure(422, metav1.StatusReasonInvalid, "spec.containers: Required value"), want: "Invalid"},
		"a template of no pod": {call: "POST /pods", at: 3, status: invalid(metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueRequired, Field: "spec.containers[0].image", Message: "Required value",
		}), want: gang.ReasonTemplate},
		"a policy that says it is invalid": {call: "POST /pods", at: 3, status: invalid(metav1.StatusCause{Message: "no pods on Sundays"}), want: "Invalid"},
		"invalid in two ways, one of them a policy's": {call: "POST /pods", at: 1, status: invalid(
			metav1.StatusCause{Type: metav1.CauseTypeFieldValueRequired, Field: "spec"}, metav1.StatusCause{Message: "no"},
		), want: "Invalid"},
		"no such namespace":    {call: "POST /pods", at: 1, status: failure(404, metav1.StatusReasonNotFound, `namespaces "team" not found`), want: "NotFound"},
		"no rights":            {call: "POST /pods", at: 1, status: failure(403, metav1.StatusReasonForbidden, rbacSentence), want: gang.ReasonRights},
		"service":              {call: "POST /services", at: 1, status: failure(403, metav1.StatusReasonForbidden, "exceeded quota: services"), want: "Forbidden"},
		"binding, last member": {call: "POST /binding", at: 3, status: failure(403, metav1.StatusReasonForbidden, "a policy says no"), want: "Forbidden"},
		"claim": {
			options: gang.Options{Class: "gpu"}, call: "POST /resourceclaims", at: 2, want: "Forbidden",
			status: failure(403, metav1.StatusReasonForbidden, "exceeded quota: claims"),
		},
		"allocation": {
			options: gang.Options{Class: "gpu"}, call: "PUT /status", at: 3, want: "Forbidden",
			status: failure(403, metav1.StatusReasonForbidden, "not allowed to change the binding"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, 4, tc.options)
			job := newJob("a")
			decide(job, true, seat(0, 3))
			r.settle(t, job)
			ran := r.summary()

			method, end, _ := strings.Cut(tc.call, " ")
			count := 0
			r.refuse = func(m, path string) *metav1.Status {
				if m != method || !strings.HasSuffix(path, end) {
					return nil
				}
				if count++; count < tc.at {
					return nil
				}
				return tc.status
			}
			decide(job, false, seat(0, 3), seat(1, 0), seat(1, 1), seat(2, 0))
			state := r.settle(t, job)[0]
			if state.Phase != gang.Refused || state.Reason != tc.want || state.Message != tc.status.Message || state.Leaving > 0 {
				t.Errorf("state %+v, want %s and %q", state, tc.want, tc.status.Message)
			}
			if diff := cmp.Diff(ran, r.summary()); diff != "" {
				t.Errorf("pods (-before +after):\n%s", diff)
			}
			asked := count
			if r.settle(t, job); count != asked {
				t.Error("what was refused is asked again")
			}
			r.refuse = nil
			seats := job.Seats
			job.Seats = state.Kept()
			decide(job, false, seats...)
			if state := r.settle(t, job)[0]; state.Phase != gang.Running {
				t.Errorf("state %+v after another decision", state)
			}
			r.holds(t, job)
			r.must(t)
		})
	}
}

// What fails for now is no refusal: nothing is taken back, and it works later.
func TestTrouble(t *testing.T) {
	for name, status := range map[string]*metav1.Status{
		"webhook that does not answer": failure(500, metav1.StatusReasonInternalError, "failed calling webhook"),
		"throttled":                    failure(429, metav1.StatusReasonTooManyRequests, "slow down"),
		"unavailable":                  failure(503, metav1.StatusReasonServiceUnavailable, "etcd"),
		"timeout":                      failure(504, metav1.StatusReasonTimeout, "request did not complete"),
		"quota was changed meanwhile":  failure(409, metav1.StatusReasonConflict, "Operation cannot be fulfilled on resourcequotas"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, 4, gang.Options{})
			job, count := newJob("a"), 0
			decide(job, true, seat(0, 0), seat(0, 1))
			r.refuse = func(method, path string) *metav1.Status {
				if !strings.HasSuffix(path, "/pods") {
					return nil
				}
				if count++; count == 1 {
					return nil
				}
				return status
			}
			if _, err := r.drive(job); !errors.Is(err, gang.ErrAgain) {
				t.Errorf("error %v, want ErrAgain", err)
			}
			if got := r.calls["DELETE pods"]; got > 0 || len(r.pods) != 1 {
				t.Errorf("%d deletions, %d pods", got, len(r.pods))
			}
			r.refuse = nil
			r.settle(t, job)
			r.holds(t, job)
		})
	}
}

// Conflicts end a drive: whoever makes them is faster.
func TestConflicts(t *testing.T) {
	r := newRig(t, 1, 4, gang.Options{})
	job := newJob("a")
	decide(job, true, seat(0, 0))
	r.refuse = func(_, path string) *metav1.Status {
		if strings.HasSuffix(path, "/binding") {
			return failure(409, metav1.StatusReasonConflict, "the object has been modified")
		}
		return nil
	}
	if _, err := r.drive(job); !errors.Is(err, gang.ErrAgain) {
		t.Errorf("error %v, want ErrAgain", err)
	}
	if got := r.calls["POST pods/binding"]; got != 4 {
		t.Errorf("%d bindings, want that it gave up after 3 more", got)
	}
}

// A pod that has the name of a member and is not of the job is left alone.
func TestNameTaken(t *testing.T) {
	r := newRig(t, 1, 4, gang.Options{})
	job := newJob("a")
	decide(job, true, seat(0, 0))
	r.settle(t, job)
	var taken *corev1.Pod
	for _, pod := range r.pods {
		taken = pod.DeepCopy()
	}
	r = newRig(t, 1, 4, gang.Options{})
	taken.OwnerReferences, taken.Finalizers, taken.UID = nil, nil, "another"
	r.save(taken)
	before := r.summary()
	if state := r.settle(t, job)[0]; state.Phase != gang.Refused || state.Reason != gang.ReasonTaken {
		t.Errorf("state %+v", state)
	}
	if diff := cmp.Diff(before, r.summary()); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
}

// A job that got the name of one that was deleted has pods of other names, and waits for the devices of the old ones.
func TestNameUsedAgain(t *testing.T) {
	r := newRig(t, 1, 4, gang.Options{})
	old, again := newJob("a"), newJob("a")
	again.UID = "job-a-again"
	decide(old, true, seat(0, 0, 1))
	r.settle(t, old)
	decide(again, true, seat(0, 0, 1))
	state := r.settle(t, again)[0]
	if state.Phase != gang.Queued || len(state.Behind) != 1 || state.Behind[0].Devices != 3 {
		t.Errorf("state %+v, want that it is behind the old job", state)
	}
	decide(old, false)
	r.settle(t, old, again)
	r.holds(t, again)
	r.must(t)
}

// Members are lost in many ways. Each is told with its cause, those that are left run on, and nothing is made anew before
// somebody decides so; then all is well again.
func TestLost(t *testing.T) {
	lost := func(member int, cause core.Cause, reason string) gang.Loss {
		return gang.Loss{Member: member, Node: fmt.Sprint("node-", member), Cause: cause, Reason: reason}
	}
	for name, tc := range map[string]struct {
		options gang.Options
		// begin is what happens before the members run, and then what happens when they do. The pods are those of members 0 and 1.
		begin func(r *rig, job *gang.Job)
		then  func(r *rig, pods []*corev1.Pod)
		want  gang.Phase
		lost  []gang.Loss
	}{
		"eviction": {
			then: func(r *rig, pods []*corev1.Pod) {
				pods[1].Status.Conditions = append(pods[1].Status.Conditions, corev1.PodCondition{
					Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI",
				})
				r.remove(pods[1], 30)
			},
			want: gang.Shrunk, lost: []gang.Loss{lost(1, core.CauseNodeDrained, "EvictionByEvictionAPI")},
		},
		"eviction from a device": {
			then: func(r *rig, pods []*corev1.Pod) {
				pods[1].Status.Conditions = append(pods[1].Status.Conditions, corev1.PodCondition{
					Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByDeviceTaintManager",
				})
				r.remove(pods[1], 30)
			},
			want: gang.Shrunk, lost: []gang.Loss{lost(1, core.CauseDeviceLost, "DeletionByDeviceTaintManager")},
		},
		"deletion": {
			then: func(r *rig, pods []*corev1.Pod) { r.remove(pods[1], 30) },
			want: gang.Shrunk, lost: []gang.Loss{lost(1, core.CauseKilled, gang.ReasonDeleted)},
		},
		"force deletion of all": {
			then: func(r *rig, pods []*corev1.Pod) { r.remove(pods[0], 0); r.remove(pods[1], 0) },
			want: gang.Interrupted,
			lost: []gang.Loss{lost(0, core.CauseKilled, gang.ReasonDeleted), lost(1, core.CauseKilled, gang.ReasonDeleted)},
		},
		"deletion by somebody who takes our finalizer off": {
			then: func(r *rig, pods []*corev1.Pod) { pods[0].Finalizers = nil; r.save(pods[0]); r.remove(pods[0], 0) },
			want: gang.Shrunk, lost: []gang.Loss{lost(0, core.CauseKilled, gang.ReasonGone)},
		},
		"node deleted": {
			then: func(r *rig, pods []*corev1.Pod) { r.dropNode("node-1") },
			want: gang.Shrunk, lost: []gang.Loss{lost(1, core.CauseNodeFailed, "DeletionByPodGC")},
		},
		"node out of service": {
			then: func(r *rig, pods []*corev1.Pod) {
				r.nodes["node-1"].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
			},
			want: gang.Shrunk, lost: []gang.Loss{lost(1, core.CauseNodeFailed, gang.ReasonNodeGone)},
		},
		"node gone between plan and binding": {
			begin: func(r *rig, job *gang.Job) { r.dropNode("node-1") },
			want:  gang.Interrupted, lost: []gang.Loss{lost(1, core.CauseNodeFailed, gang.ReasonNodeGone)},
		},
		"node gone between creation and binding": {
			begin: func(r *rig, job *gang.Job) {
				r.client.cutAt, r.client.how, r.client.dies = 4, "before", true // after the pods and the service
				_, _ = r.drive(job)
				r.restart()
				r.dropNode("node-1")
			},
			want: gang.Interrupted, lost: []gang.Loss{lost(1, core.CauseNodeFailed, gang.ReasonNodeGone)},
		},
		"kubelet refuses": {
			begin: func(r *rig, job *gang.Job) {
				r.stuck = func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "node-1" }
				r.settle(r.t.(*testing.T), job)
				r.end(r.at("node-1"), 1, "UnexpectedAdmissionError")
			},
			want: gang.Shrunk, lost: []gang.Loss{lost(1, core.CauseNeverBegan, "UnexpectedAdmissionError")},
		},
		"evicted by the kubelet": {
			then: func(r *rig, pods []*corev1.Pod) { r.end(pods[1], 137, "Evicted") },
			want: gang.Shrunk, lost: []gang.Loss{lost(1, core.CauseKilled, "Evicted")},
		},
		"node shuts down": {
			then: func(r *rig, pods []*corev1.Pod) { r.end(pods[1], 143, "NodeShutdown") },
			want: gang.Shrunk, lost: []gang.Loss{lost(1, core.CauseNodeFailed, "NodeShutdown")},
		},
		"image that nobody has": {
			begin: func(r *rig, job *gang.Job) {
				r.stuck = func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "node-1" }
				r.settle(r.t.(*testing.T), job)
				r.now = r.now.Add(2*time.Minute + time.Second)
			},
			want: gang.Shrunk, lost: []gang.Loss{lost(1, core.CauseNeverBegan, gang.ReasonStartTimeout)},
		},
		"program": {
			then: func(r *rig, pods []*corev1.Pod) { r.end(pods[1], 3, "") },
			want: gang.Failed, lost: []gang.Loss{lost(1, core.CauseExited, gang.ReasonExited)},
		},
		"program that lost a peer": {
			then: func(r *rig, pods []*corev1.Pod) { r.dropNode("node-1"); r.end(pods[0], 1, "") },
			want: gang.Interrupted,
			lost: []gang.Loss{lost(1, core.CauseNodeFailed, "DeletionByPodGC"), lost(0, core.CauseExited, gang.ReasonExited)},
		},
		"device that is gone": {
			options: gang.Options{Class: "gpu"},
			begin: func(r *rig, job *gang.Job) {
				decide(job, false, seat(0, 0), seat(1, 9))
				job.Seats[1].Member = 1
				job.Seats[0].Member = 0
			},
			want: gang.Interrupted, lost: []gang.Loss{lost(1, core.CauseDeviceLost, gang.ReasonDeviceGone)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, 4, tc.options)
			job := newJob("a")
			job.StartTimeout = 2 * time.Minute
			decide(job, true, seat(0, 0), seat(1, 0))
			if tc.begin != nil {
				tc.begin(r, job)
			}
			r.settle(t, job)
			if tc.then != nil {
				r.holds(t, job)
				tc.then(r, []*corev1.Pod{r.at("node-0"), r.at("node-1")})
			}
			state := r.settle(t, job)[0]
			got := slices.Clone(state.Lost)
			for i := range got {
				if !strings.Contains(state.Message, got[i].Message) && i == 0 {
					t.Errorf("message %q does not tell %q", state.Message, got[i].Message)
				}
				got[i].Message = ""
			}
			if diff := cmp.Diff(tc.lost, got); state.Phase != tc.want || diff != "" {
				t.Errorf("%s, want %s; losses (-want +got):\n%s%+v", state.Phase, tc.want, diff, state)
			}
			creations := r.calls["POST pods"]
			if r.settle(t, job); r.calls["POST pods"] != creations {
				t.Error("a member was made anew that nobody asked for")
			}
			if r.nodes["node-1"] == nil {
				r.addNode("node-1")
			}
			r.nodes["node-1"].Spec.Taints, r.stuck = nil, nil
			decide(job, true, seat(2, 0), seat(2, 1))
			if state := r.settle(t, job)[0]; state.Phase != gang.Running {
				t.Errorf("state %+v after another decision", state)
			}
			r.holds(t, job)
			r.must(t)
		})
	}
}

// at is a copy of the pod of a node.
func (a *api) at(node string) *corev1.Pod {
	for _, pod := range a.pods {
		if pod.Spec.NodeName == node {
			return pod.DeepCopy()
		}
	}
	return nil
}

func (a *api) dropNode(name string) {
	delete(a.nodes, name)
	for uid, process := range a.processes {
		if process.node == name {
			delete(a.processes, uid)
		}
	}
	a.changed()
}

// The devices of a pod that somebody deleted by force are not given to others while its process runs.
func TestForceDeletionKeepsDevices(t *testing.T) {
	r := newRig(t, 1, 4, gang.Options{})
	a, b := newJob("a"), newJob("b")
	decide(a, true, seat(0, 0, 1))
	r.settle(t, a)
	r.remove(r.at("node-0"), 0)
	decide(a, false)
	decide(b, true, seat(0, 1, 2))
	for range 2 {
		for _, job := range []*gang.Job{a, b} {
			if _, err := r.drive(job); err != nil {
				t.Fatal(err)
			}
		}
	}
	state, _ := r.drive(b)
	if len(r.processes) != 1 || state.Phase != gang.Queued || state.Behind[0].Devices != 2 {
		t.Errorf("%d processes, state %+v, want that b is behind device 1 of a", len(r.processes), state)
	}
	r.settle(t, a, b)
	r.holds(t, b)
	r.must(t)
}

// A member was bound, and nobody heard of it. Who stops it then, with a look that shows it on no node, does not conclude that it
// has no devices.
func TestBoundUnseen(t *testing.T) {
	r := newRig(t, 1, 4, gang.Options{})
	job := newJob("a")
	decide(job, true, seat(0, 0))
	r.client.cutAt, r.client.how = 2, "after"
	if _, err := r.drive(job); !errors.Is(err, gang.ErrAgain) {
		t.Fatal(err)
	}
	decide(job, false)
	if _, err := r.driver.Drive(t.Context(), *job, r.look(1)); err != nil {
		t.Fatal(err)
	}
	pod := r.at("node-0")
	if len(r.processes) != 1 || pod == nil || pod.DeletionTimestamp == nil || len(pod.Finalizers) != 1 {
		t.Fatalf("%d processes, pods %q: the finalizer has to stay until the process ended", len(r.processes), r.summary())
	}
	if state := r.settle(t, job)[0]; state.Phase != gang.Gone {
		t.Errorf("state %+v", state)
	}
	r.holds(t, job)
}

// A fence that says no is heard before every write, and its error comes back.
func TestFence(t *testing.T) {
	r := newRig(t, 1, 4, gang.Options{})
	job := newJob("a")
	decide(job, true, seat(0, 0), seat(0, 1))
	r.fence = errFenced
	if _, err := r.drive(job); !errors.Is(err, errFenced) || errors.Is(err, gang.ErrAgain) {
		t.Errorf("error %v, want the one of the fence", err)
	}
	if r.client.count > 0 {
		t.Errorf("%d calls", r.client.count)
	}
}

// A driver that is told old looks writes nothing twice.
func TestOldLooks(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, 4, way.Options)
			job := r.newJobs(way, "a")[0]
			decide(job, true, seat(0, 0), seat(1, 1, 2))
			if way.others {
				r.tick()
				clear(r.calls)
			}
			old := r.look(0)
			for range 3 {
				if _, err := r.driver.Drive(t.Context(), *job, old); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.driver.Drive(t.Context(), *job, r.look(2)); err != nil { // all is there, and nothing bound
				t.Fatal(err)
			}
			want := map[string]int{"POST services": 1, "POST pods": 2, "POST pods/binding": 2}
			if way.others {
				want = map[string]int{"PATCH pods": 3, "POST pods/binding": 3} // a seat is of one device
			}
			if way.Class != "" {
				want["POST resourceclaims"], want["PUT resourceclaims/status"] = 2, 2
			}
			if diff := cmp.Diff(want, r.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// A call that hangs ends after the timeout, and nobody concludes anything from it.
func TestTimeout(t *testing.T) {
	r := newRig(t, 1, 4, gang.Options{})
	r.driver.Client = over(t, hang{})
	r.driver.Timeout = time.Millisecond
	job := newJob("a")
	decide(job, true, seat(0, 0))
	if _, err := r.drive(job); !errors.Is(err, gang.ErrAgain) {
		t.Errorf("error %v, want ErrAgain", err)
	}
}

type hang struct{}

func (hang) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A job that is moved does not run twice: what it ran as before has to end, for it may be writing a checkpoint. Only whoever is on a
// node that is silent is not waited for.
func TestLastRunEndsFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(*rig)
		down   string
		want   gang.Phase
	}{
		"it still ends":        {want: gang.Queued},
		"another node is down": {down: "node-1", want: gang.Queued},
		"its node is down":     {down: "node-0", want: gang.Pulling},
		"its node says nothing yet": {want: gang.Queued, before: func(r *rig) {
			r.nodes["node-0"].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		}},
		"it has ended by now": {want: gang.Pulling, before: func(r *rig) { r.end(r.at("node-0"), 0, "") }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, 4, gang.Options{})
			job := newJob("a")
			decide(job, true, seat(0, 0))
			r.settle(t, job)
			if tc.before != nil {
				tc.before(r)
			}
			decide(job, true, seat(1, 0))
			var state gang.State
			var err error
			for range 3 {
				look := r.look(0)
				look.Down = func(node string) bool { return node == tc.down }
				if state, err = r.driver.Drive(t.Context(), *job, look); err != nil {
					t.Fatal(err)
				}
			}
			if state.Phase != tc.want || (state.Reason == gang.ReasonLastRun) != (tc.want == gang.Queued) {
				t.Errorf("state %+v, want %s", state, tc.want)
			}
			if tc.want == gang.Queued {
				r.settle(t, job)
				r.holds(t, job)
			}
		})
	}
}
