package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// born is when the jobs of these tests were created, in Unix time.
const born = 1_800_000_000

func at(seconds int64) time.Time { return time.Unix(born+seconds, 0) }

func made(change func(*trainingjob.TrainingJob)) *trainingjob.TrainingJob {
	t := &trainingjob.TrainingJob{ObjectMeta: metav1.ObjectMeta{Name: "train", Namespace: "vision", UID: "u", CreationTimestamp: metav1.NewTime(at(0))}}
	t.Spec.Requested = 2
	t.Spec.Template.Raw = []byte(`{"spec":{"containers":[{"name":"main","image":"t:1","command":["python"],"args":["train.py"]}]}}`)
	if change != nil {
		change(t)
	}
	return t
}

// gave makes a job what it is some time after it was first given devices, 100 s after its creation, in the 400th second of the run.
func gave(t *trainingjob.TrainingJob, d trainingjob.Decision) {
	id, first := int32(7), 400.0
	t.Status.ID, t.Status.Decision = &id, &d
	t.Status.Progress = &trainingjob.Progress{FirstStartSeconds: &first}
	t.Status.SetCondition(trainingjob.ConditionAdmitted, metav1.ConditionTrue, "Admitted", "", 1, at(100))
}

// What a person is told of a job in each state it can be in.
func TestJob(t *testing.T) {
	c := &Cluster{namespace: "vision"}
	seats := []trainingjob.Seat{{Node: "a", Devices: "0,2-3"}, {Node: "b", Devices: "63"}}
	cases := map[string]struct {
		job     *trainingjob.TrainingJob
		want    map[string]any
		history []string // what, moment since the creation
	}{
		"nobody has seen it": {
			made(nil),
			map[string]any{"state": "submitted", "submit": nil, "command": "python train.py", "requested": 2},
			[]string{"job_submitted 0"},
		},
		"it waits": {
			made(func(t *trainingjob.TrainingJob) {
				t.Status.State = trainingjob.Waiting
				t.Status.SetCondition(trainingjob.ConditionRunning, metav1.ConditionFalse, "WaitingForDevices", "waiting_for_devices (wants 2 devices, 1 available)", 1, at(10))
			}),
			map[string]any{"state": "waiting", "reason": "waiting_for_devices", "message": "", "submit": 0.0},
			[]string{"job_submitted 0", "defer 10 waiting_for_devices 2/1 devices"},
		},
		"it lost a node": {
			made(func(t *trainingjob.TrainingJob) {
				gave(t, trainingjob.Decision{Run: 1, Round: 9, AtSeconds: 460, Stop: true})
				t.Status.State = trainingjob.Waiting
				t.Status.SetCondition(trainingjob.ConditionRunning, metav1.ConditionFalse, "NodeLost", "node a is gone", 1, at(160))
			}),
			map[string]any{"state": "waiting", "reason": "NodeLost", "message": "node a is gone", "first": 100.0, "held": 0},
			[]string{"job_submitted 0", "start 100", "stop 160 in 9", "defer 160 NodeLost node a is gone"},
		},
		"it was moved, and runs again": {
			made(func(t *trainingjob.TrainingJob) {
				gave(t, trainingjob.Decision{Run: 2, Round: 9, AtSeconds: 460, Seats: seats[:1]})
				t.Status.State = trainingjob.Running
				t.Status.Interrupt("NodeDrained", "the node b is being drained", 1, at(159))
				t.Status.SetCondition(trainingjob.ConditionRunning, metav1.ConditionTrue, "Running", "all 1 pods run", 1, at(161))
			}),
			map[string]any{"state": "running"},
			[]string{"job_submitted 0", "start 100", "job_interrupted 159 NodeDrained the node b is being drained", "start 160 in 9", "job_started 161 all 1 pods run"},
		},
		"it runs": {
			made(func(t *trainingjob.TrainingJob) {
				gave(t, trainingjob.Decision{Run: 1, Round: 3, AtSeconds: 400, Seats: seats, By: "placement/packed"})
				t.Status.State, t.Spec.Work = trainingjob.Running, 1000
				t.Status.Progress.Done, t.Status.Progress.Rate, t.Status.Progress.FromSeconds = 100, 2, 450
				t.Status.SetCondition(trainingjob.ConditionRunning, metav1.ConditionTrue, "Running", "all 2 pods run", 1, at(103))
			}),
			map[string]any{"state": "running", "reason": "", "held": 4, "executed": 100.0, "attained": 400.0, "progress": 200.0, "first": 100.0},
			[]string{"job_submitted 0", "start 100 by placement/packed in 3", "job_started 103 all 2 pods run"},
		},
		"it runs for the second time": {
			made(func(t *trainingjob.TrainingJob) {
				gave(t, trainingjob.Decision{Run: 2, Round: 5, AtSeconds: 480.5, Seats: seats})
				t.Status.State = trainingjob.Running
				t.Status.Progress.ExecutedSeconds, t.Status.Progress.AttainedSeconds = 30, 60
				t.Status.SetCondition(trainingjob.ConditionRunning, metav1.ConditionTrue, "Running", "all 2 pods run", 1, at(180))
			}),
			map[string]any{"state": "running", "executed": 49.5, "attained": 138.0},
			[]string{"job_submitted 0", "start 100", "start 180.5 in 5", "job_started 180.5 all 2 pods run"},
		},
		"it never gets further than it has to": {
			made(func(t *trainingjob.TrainingJob) {
				gave(t, trainingjob.Decision{Run: 1, Round: 3, AtSeconds: 400, Seats: seats})
				t.Status.State, t.Spec.Work = trainingjob.Running, 120
				t.Status.Progress.Done, t.Status.Progress.Rate, t.Status.Progress.FromSeconds = 100, 2, 450
			}),
			map[string]any{"progress": 120.0},
			[]string{"job_submitted 0", "start 100 in 3"},
		},
		"it starts": {
			made(func(t *trainingjob.TrainingJob) {
				gave(t, trainingjob.Decision{Run: 1, Round: 3, AtSeconds: 400, Seats: seats})
				t.Status.State = trainingjob.Starting
				t.Status.SetCondition(trainingjob.ConditionRunning, metav1.ConditionFalse, "ImagePullBackOff", "no such image", 1, at(100))
			}),
			map[string]any{"state": "starting", "reason": "ImagePullBackOff", "message": "no such image", "held": 4},
			[]string{"job_submitted 0", "start 100 in 3", "defer 100 ImagePullBackOff no such image"},
		},
		"it failed": {
			made(func(t *trainingjob.TrainingJob) {
				gave(t, trainingjob.Decision{Run: 1, Round: 3, AtSeconds: 460, Stop: true})
				t.Status.State = trainingjob.Failed
				t.Status.SetCondition(trainingjob.ConditionRunning, metav1.ConditionFalse, "Failed", "exit code 1", 1, at(160))
				t.Status.SetCondition(trainingjob.ConditionFinished, metav1.ConditionTrue, "Failed", "exit code 1", 1, at(160))
			}),
			map[string]any{"state": "failed", "reason": "", "message": "exit code 1", "finish": 160.0},
			[]string{"job_submitted 0", "start 100", "failed 160 exit code 1"},
		},
		"it was rejected": {
			made(func(t *trainingjob.TrainingJob) {
				t.Status.State = trainingjob.Rejected
				t.Status.SetCondition(trainingjob.ConditionFinished, metav1.ConditionTrue, "ExceedsCluster", "exceeds_cluster: too wide (wants 2 devices, 1 available)", 1, at(5))
			}),
			map[string]any{"state": "rejected", "reason": "exceeds_cluster", "finish": 5.0},
			[]string{"job_submitted 0", "rejected 5 exceeds_cluster too wide 2/1 devices"},
		},
		"something is wrong with it": {
			made(func(t *trainingjob.TrainingJob) {
				t.Status.State = trainingjob.Pending
				t.Status.SetCondition(trainingjob.ConditionDegraded, metav1.ConditionTrue, "Invalid", "spec.weight: is negative", 1, at(5))
			}),
			map[string]any{"state": "pending", "message": "Invalid: spec.weight: is negative"},
			[]string{"job_submitted 0", "degraded 5 Invalid spec.weight: is negative"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			j := c.job(tc.job, born+200)
			held := 0
			for _, s := range j.GetSeats() {
				held += len(s.GetDevices())
			}
			moment := func(x *float64) any {
				if x == nil {
					return nil
				}
				return *x - born
			}
			got := map[string]any{
				"state": j.GetState(), "reason": j.GetReason(), "message": j.GetMessage(), "held": held, "submit": moment(j.SubmitSeconds),
				"first": moment(j.FirstStartSeconds), "finish": moment(j.FinishSeconds), "executed": j.GetExecutedSeconds(),
				"attained": j.GetAttainedSeconds(), "progress": j.GetProgress(), "command": strings.Join(j.GetCommand(), " "), "requested": int(j.GetRequested()),
			}
			for key := range got {
				if _, asked := tc.want[key]; !asked {
					delete(got, key)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("job (-want +got):\n%s", diff)
			}
			var worded []string
			for _, d := range history(tc.job) {
				worded = append(worded, wordDecision(d))
			}
			if diff := cmp.Diff(tc.history, worded); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}

func wordDecision(d *controlv1.Decision) string {
	text := fmt.Sprint(d.GetWhat(), " ", d.GetAtSeconds()-born, " ", d.GetReason(), " ", d.GetMessage())
	if d.GetUnit() != "" {
		text += fmt.Sprint(" ", d.GetWanted(), "/", d.GetAvailable(), " ", d.GetUnit())
	}
	if d.GetBy() != "" {
		text += " by " + d.GetBy()
	}
	if d.GetRound() > 0 {
		text += fmt.Sprint(" in ", d.GetRound())
	}
	return strings.Join(strings.Fields(text), " ")
}

// A verdict that the scheduler writes into a condition is read back as it was.
func TestVerdictIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		reason := core.Reason(rapid.IntRange(1, 30).Draw(t, "reason"))
		if !isReason(reason.String()) {
			t.Skip("the draw is no reason")
		}
		v := core.Verdict{Reason: reason, Message: rapid.SampledFrom([]string{"", "the queue is full", "a (b)"}).Draw(t, "message")}
		if rapid.Bool().Draw(t, "counted") {
			v.Wanted, v.Available, v.Unit = float64(rapid.IntRange(0, 99).Draw(t, "wanted")), rapid.SampledFrom([]float64{0, 1.5, 7}).Draw(t, "available"), "devices"
		}
		var camel strings.Builder
		for word := range strings.SplitSeq(reason.String(), "_") {
			camel.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		d := verdict(camel.String(), v.Explain())
		got := core.Verdict{Message: d.GetMessage(), Wanted: d.GetWanted(), Available: d.GetAvailable(), Unit: d.GetUnit()}
		got.Reason, _ = core.ParseReason(d.GetReason())
		if diff := cmp.Diff(v.Explain(), got.Explain()); diff != "" || got.Reason != v.Reason {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestNodeHealth(t *testing.T) {
	cases := map[string]struct {
		change func(*corev1.Node)
		want   string
	}{
		"ready":    {func(*corev1.Node) {}, "ready"},
		"silent":   {func(n *corev1.Node) { n.Status.Conditions = nil }, "down"},
		"unknown":  {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, "down"},
		"cordoned": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, "cordoned"},
		"drained": {func(n *corev1.Node) {
			n.Spec.Unschedulable, n.Annotations = true, map[string]string{"quartet.sched/drain": "true"}
		}, "draining"},
		"uncordoned since it was drained": {func(n *corev1.Node) { n.Annotations = map[string]string{"quartet.sched/drain": "true"} }, "ready"},
		"being gone":                      {func(n *corev1.Node) { n.DeletionTimestamp = new(metav1.Time) }, "draining"},
		"tainted": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
		}, "cordoned"},
		"to be left": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoExecute}}
		}, "draining"},
		"ours": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "quartet.sched/nodes", Effect: corev1.TaintEffectNoSchedule}}
		}, "ready"},
		"a mild hint": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}}
		}, "ready"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
			tc.change(n)
			if got := healthOf(n); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	amd := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"quartet.sched/accelerator": "mi300"}}}
	amd.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("9"), "amd.com/gpu": resource.MustParse("8")}
	if devicesOf(amd) != 8 || acceleratorOf(amd) != "mi300" || devicesOf(&corev1.Node{}) != 0 || acceleratorOf(&corev1.Node{}) != "gpu" {
		t.Error("devices are not found, or their type")
	}
}
