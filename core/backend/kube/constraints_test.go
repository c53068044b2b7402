//go:build linux

package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

// constraint is what pods ask for, and what comes of it on two nodes of two devices each: a is of zone one and has a disk of the kind hdd, b is of
// zone two and has an ssd. A placer that looks at devices alone begins with a.
type constraint struct {
	spec  string // of the pods, as YAML
	pods  int    // of the gang; 1 if 0
	setup func(*rig)
	on    string // nodes on which they run, sorted; empty: they do not run
	says  string // part of what an Event says
	only  string // kind that this is about; all if empty
	event string // reason of the Event

	standIn bool // an API server takes such pods only with a class of the cluster
}

// The kinds of objects that pods come from.
var podKinds = []string{"Job", "Pod", "TrainingJob"}

// TestConstraints holds the table of docs/kubernetes.md: each constraint is respected, refused or warned of, whatever the pods come from.
func TestConstraints(t *testing.T) {
	c := sharedOrStandIn(t)
	for name, tc := range map[string]constraint{
		"node selector":                         {spec: "nodeSelector: {disk: ssd}", on: "b"},
		"node selector that no node has":        {spec: "nodeSelector: {disk: tape}", says: "0 of 2 nodes fit: 2 not matching its nodeSelector", event: noNodeFits},
		"required node affinity":                {spec: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: NotIn, values: [hdd]}]}]}}}", on: "b"},
		"preferred node affinity":               {spec: "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: disk, operator: In, values: [ssd]}]}}]}}", on: "a", says: "the preferred nodeAffinity", event: constraintsIgnored},
		"required pod affinity":                 {spec: "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: store}}}]}}", setup: someonesPod("b", "{}", "store"), on: "b"},
		"preferred pod affinity":                {spec: "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: store}}}}]}}", on: "a", says: "the preferred podAffinity", event: constraintsIgnored},
		"required pod anti-affinity":            {spec: "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: store}}}]}}", setup: someonesPod("a", "{}", "store"), on: "b"},
		"anti-affinity of a pod that is there":  {spec: "{}", setup: someonesPod("a", "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: train}}}]}}", "store"), on: "b"},
		"preferred pod anti-affinity":           {spec: "affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: store}}}}]}}", on: "a", says: "the preferred podAntiAffinity", event: constraintsIgnored},
		"topology spread that must hold":        {spec: "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: train}}}]", setup: someonesPod("a", "{}", "train"), on: "b"},
		"topology spread that may be broken":    {spec: "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: train}}}]", setup: someonesPod("a", "{}", "train"), on: "a", says: "ScheduleAnyway", event: constraintsIgnored},
		"toleration":                            {spec: "{nodeSelector: {disk: ssd}, tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]}", setup: gpuTaint("b"), on: "b"},
		"taint on all nodes that is tolerated":  {spec: "tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]", setup: gpuTaint("a", "b"), on: "a"},
		"taint that is not tolerated":           {spec: "{}", setup: gpuTaint("a"), on: "b"},
		"taint on all nodes":                    {spec: "{}", setup: gpuTaint("a", "b"), says: "2 with the taint nvidia.com/gpu=present:NoSchedule; tolerate the taint", event: noNodeFits},
		"host port":                             {spec: "containers: [{name: main, image: none, ports: [{containerPort: 80, hostPort: 31080}]}]", setup: someonesPod("a", "containers: [{name: main, image: none, ports: [{containerPort: 80, hostPort: 31080}]}]", "store"), on: "b"},
		"host network":                          {spec: "{hostNetwork: true, containers: [{name: main, image: none, ports: [{containerPort: 31080, hostPort: 31080}]}]}", setup: someonesPod("a", "containers: [{name: main, image: none, ports: [{containerPort: 80, hostPort: 31080}]}]", "store"), on: "b"},
		"CPU":                                   {spec: "containers: [{name: main, image: none, resources: {requests: {cpu: 60}}}]", setup: someonesPod("a", "containers: [{name: main, image: none, resources: {requests: {cpu: 60}}}]", "store"), on: "b"},
		"more CPU than a node has":              {spec: "containers: [{name: main, image: none, resources: {requests: {cpu: 4000}}}]", says: "2 with too little cpu", event: noNodeFits},
		"memory by a limit":                     {spec: "containers: [{name: main, image: none, resources: {limits: {memory: 500Gi}}}]", setup: someonesPod("a", "containers: [{name: main, image: none, resources: {requests: {memory: 500Gi}}}]", "store"), on: "b"},
		"extended resource":                     {spec: "containers: [{name: main, image: none, resources: {limits: {example.com/nic: 1}}}]", setup: hasNIC("b"), on: "b"},
		"ephemeral storage":                     {spec: "containers: [{name: main, image: none, resources: {requests: {ephemeral-storage: 1Gi}}}]", setup: givesNode("b", "ephemeral-storage", "10Gi"), on: "b"},
		"init container":                        {spec: "{initContainers: [{name: first, image: none, resources: {requests: {cpu: 60}}}], containers: [{name: main, image: none}]}", setup: someonesPod("a", "containers: [{name: main, image: none, resources: {requests: {cpu: 60}}}]", "store"), on: "b"},
		"preemption policy":                     {spec: "preemptionPolicy: Never", standIn: true, on: "a", says: "preemptionPolicy Never", event: constraintsIgnored},
		"volume of a claim":                     {spec: "volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]", on: "a", says: "where the volumes data are", event: constraintsIgnored},
		"pods that keep apart":                  {spec: "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {app: train}}}]}}", pods: 2, on: "a b", only: "Job"},
		"pods that are spread":                  {spec: "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: train}}}]", pods: 2, on: "a b", only: "Job"},
		"pods with a host port each":            {spec: "containers: [{name: main, image: none, ports: [{containerPort: 80, hostPort: 31081}]}]", pods: 2, on: "a b", only: "Job"},
		"more pods with a host port than nodes": {spec: "containers: [{name: main, image: none, ports: [{containerPort: 80, hostPort: 31082}]}]", pods: 3, says: "its pods need 3 devices and can have 2 at most", event: noNodeFits, only: "Job"},
		"pods with much CPU each":               {spec: "containers: [{name: main, image: none, resources: {requests: {cpu: 60}}}]", pods: 2, on: "a b", only: "Job"},
		"node name of a Job":                    {spec: "nodeName: x", says: "use a nodeSelector", event: "NotScheduled", only: "Job"},
		"labels of namespaces":                  {spec: "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {}, namespaceSelector: {matchLabels: {a: b}}}]}}", says: "namespaceSelector is not supported", event: "NotScheduled", only: "Job"},
		"labels of namespaces in a TrainingJob": {spec: "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {}, namespaceSelector: {matchLabels: {a: b}}}]}}", says: "namespaceSelector is not supported", event: "Invalid", only: "TrainingJob"},
		"runtime class of a TrainingJob":        {spec: "runtimeClassName: kata", standIn: true, on: "a", says: "runtimeClassName", event: constraintsIgnored, only: "TrainingJob"},
		"priority class of a TrainingJob":       {spec: "priorityClassName: system-node-critical", on: "a", says: "priorityClassName system-node-critical", event: constraintsIgnored, only: "TrainingJob"},
		"claims of other resources":             {spec: "resourceClaims: [{name: nic, resourceClaimName: none}]", on: "a", says: "resourceClaims", event: constraintsIgnored, only: "TrainingJob"},
	} {
		for _, kind := range podKinds {
			if tc.only != "" && tc.only != kind || tc.standIn && kubetest.Real() {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, c)
				r.label("a", "one", "hdd")
				r.label("b", "two", "ssd")
				if tc.setup != nil {
					tc.setup(r)
				}
				s := r.schedule(nil)
				s.hears("node_added b")
				uid := r.submitConstrained(kind, &tc)
				if tc.says != "" {
					if said := r.hearsOf(uid, tc.event); !strings.Contains(said, tc.says) {
						t.Errorf("an Event says %q, want %q", said, tc.says)
					}
				}
				if tc.on != "" {
					r.await("its pods run on "+tc.on, func() bool { return r.placed("train") == tc.on })
				} else if on := r.placed("train"); on != "" {
					t.Errorf("its pods are on %s", on)
				}
			})
		}
	}
}

// A job that no node fits runs when one does, and stays where it is when it does not fit any more.
func TestNodesThatFitLater(t *testing.T) {
	r := newRig(t, sharedOrStandIn(t))
	s := r.schedule(nil)
	s.hears("node_added b")
	uid := r.submitConstrained("TrainingJob", &constraint{spec: "nodeSelector: {disk: ssd}"})
	r.hearsOf(uid, noNodeFits)
	if job := r.becomes("train", trainingjob.Pending); job.Status.Condition(trainingjob.ConditionRunning).Reason != noNodeFits {
		t.Errorf("got %+v", job.Status.Conditions)
	}
	r.label("b", "two", "ssd")
	r.await("it runs on b", func() bool { return r.placed("train") == "b" })
	r.becomes("train", trainingjob.Running)
	r.label("b", "two", "hdd")
	r.submit("other", asked{})
	r.becomes("other", trainingjob.Running)
	if on := r.placed("train"); on != "b" || r.job("train").Status.Progress.Restarts > 0 {
		t.Errorf("it is on %q, restarted %d times", on, r.job("train").Status.Progress.Restarts)
	}
}

// What a pod of others leaves is taken up without anything else happening.
func TestRoomOnNodesIsTakenUp(t *testing.T) {
	r := newRig(t, sharedOrStandIn(t))
	const hungry = "containers: [{name: main, image: none, resources: {requests: {cpu: 60}}}]"
	someonesPod("a", hungry, "one")(r)
	someonesPod("b", hungry, "two")(r)
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submitConstrained("TrainingJob", &constraint{spec: hungry})
	r.await("it says that nodes are taken", func() bool {
		c := r.job("train").Status.Condition(trainingjob.ConditionRunning)
		return c != nil && c.Reason == nodesTaken && c.Message == "0 of 2 nodes fit: 2 with too little cpu"
	})
	if err := r.admin.Pods(r.namespace).Delete(r.Context(), "two", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	r.await("it runs on b", func() bool { return r.placed("train") == "b" })
}

// Each replica has a pod of its own where the job says so, with the CPU of the template, and knows its rank.
func TestPodPerReplica(t *testing.T) {
	r := newRig(t, sharedOrStandIn(t))
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("each", asked{replicas: 3, edit: func(j *trainingjob.TrainingJob) { j.Spec.PodPer = trainingjob.PodPerReplica }})
	r.becomes("each", trainingjob.Running)
	ranks := map[string]string{}
	for _, p := range r.podsOf("each") {
		limit := p.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
		values := map[string]string{}
		for _, e := range p.Spec.Containers[0].Env {
			values[e.Name] = e.Value
		}
		if limit.Value() != 1 || values["PET_NPROC_PER_NODE"] != "1" || values["PET_NNODES"] != "3" || values["WORLD_SIZE"] != "3" || values["LOCAL_RANK"] != "0" || values["MASTER_PORT"] == "" {
			t.Errorf("pod %s has %s devices and %v", p.Name, limit.String(), values)
		}
		ranks[values["RANK"]] = p.Name
	}
	if len(ranks) != 3 || ranks["0"] == "" || ranks["2"] == "" {
		t.Errorf("the pods have the ranks %v", ranks)
	}
}

// label says of which zone a node is, and what disk it has.
func (r *rig) label(node, zone, disk string) {
	r.Helper()
	r.patchNode(node, fmt.Sprintf(`{"metadata":{"labels":{"zone":%q,"disk":%q}}}`, zone, disk))
}

// gpuTaint keeps pods off nodes that do not tolerate it.
func gpuTaint(nodes ...string) func(*rig) {
	return func(r *rig) {
		for _, n := range nodes {
			r.patchNode(n, `{"spec":{"taints":[{"key":"nvidia.com/gpu","value":"present","effect":"NoSchedule"}]}}`)
		}
	}
}

func hasNIC(node string) func(*rig) { return givesNode(node, "example.com/nic", "1") }

// givesNode gives a node so much of a resource.
func givesNode(node, resource, amount string) func(*rig) {
	return func(r *rig) {
		r.offerOf(node, resource, amount)
	}
}

func (r *rig) offerOf(node, resource, amount string) {
	r.Helper()
	change := fmt.Sprintf(`{"status":{"allocatable":{%q:%q},"capacity":{%q:%q}}}`, resource, amount, resource, amount)
	if _, err := r.admin.Nodes().Patch(r.Context(), r.node(node), types.MergePatchType, []byte(change), metav1.PatchOptions{}, "status"); err != nil {
		r.Fatal(err)
	}
}

// someonesPod puts a pod of nobody on a node, named and labelled app.
func someonesPod(node, spec, app string) func(*rig) {
	return func(r *rig) {
		r.Helper()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: app, Namespace: r.namespace, Labels: map[string]string{"app": app}}}
		r.decode(spec, &pod.Spec)
		pod.Name = app + "-there"
		if app == "one" || app == "two" {
			pod.Name = app
		}
		pod.Spec.NodeName = r.node(node)
		if _, err := r.admin.Pods(r.namespace).Create(r.Context(), pod, metav1.CreateOptions{}); err != nil {
			r.Fatal(err)
		}
	}
}

// decode reads the spec of a pod, and gives it a container if it has none.
func (r *rig) decode(spec string, to *corev1.PodSpec) {
	r.Helper()
	if err := yaml.UnmarshalStrict([]byte(spec), to); err != nil {
		r.Fatal(err)
	}
	if len(to.Containers) == 0 {
		to.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	}
}

// submitConstrained creates an object of a kind whose pods have a label app=train and ask for one device each. It returns whom Events are about.
func (r *rig) submitConstrained(kind string, tc *constraint) types.UID {
	r.Helper()
	var spec corev1.PodSpec
	r.decode(tc.spec, &spec)
	labels := map[string]string{"app": "train"}
	if kind == "TrainingJob" {
		template, err := json.Marshal(corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec})
		if err != nil {
			r.Fatal(err)
		}
		return r.submit("train", asked{edit: func(j *trainingjob.TrainingJob) { j.Spec.Template = runtime.RawExtension{Raw: template} }}).UID
	}
	base := podOf(1, 0, 0)
	spec.SchedulerName, spec.RestartPolicy = trainingjob.SchedulerName, corev1.RestartPolicyNever
	limits := spec.Containers[0].Resources.Limits
	if limits == nil {
		limits = corev1.ResourceList{}
	}
	maps.Copy(limits, base.Spec.Containers[0].Resources.Limits)
	spec.Containers[0].Resources.Limits = limits
	if kind == "Pod" {
		return r.submitPods(0, func(p *corev1.Pod) { p.Labels, p.Spec = labels, spec }, "train")[0].UID
	}
	n := max(tc.pods, 1)
	job := r.submitBatch("train", batch{pods: int32(n), edit: func(j *batchv1.Job) {
		j.Spec.Template.Labels, j.Spec.Template.Spec = labels, spec
	}})
	if kubetest.Real() || spec.NodeName != "" {
		return job.UID
	}
	yes := true
	for i := range n { // as the Job's controller would
		r.submitPods(0, func(p *corev1.Pod) {
			p.Labels, p.Spec = labels, spec
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: &yes}}
		}, fmt.Sprint("train-", i))
	}
	return job.UID
}

// placed are the nodes that running pods are on which have the label app=train and are of Quartet, sorted.
func (r *rig) placed(app string) string {
	r.Helper()
	nodes := ""
	for _, name := range []string{"a", "b"} {
		for _, p := range r.pods() {
			if p.Labels["app"] == app && p.Spec.SchedulerName == trainingjob.SchedulerName && p.Spec.NodeName == r.node(name) && p.Status.Phase == corev1.PodRunning {
				nodes += " " + name
				break
			}
		}
	}
	return strings.TrimSpace(nodes)
}

// A job whose pod a kubelet refuses is started elsewhere, though a placer that looks at devices alone would put it there again.
func TestRefusedJobGoesElsewhere(t *testing.T) {
	r := newRig(t, sharedOrStandIn(t))
	r.settings.RetryRefused = time.Second
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("train", asked{annotations: map[string]string{"quartet.sched/start": "1h"}})
	var first *corev1.Pod
	r.await("it is bound to a", func() bool {
		for _, p := range r.podsOf("train") {
			if p.Spec.NodeName == r.node("a") {
				first = &p
			}
		}
		return first != nil
	})
	r.patch(first, `{"status":{"phase":"Failed","reason":"OutOfcpu","message":"Node didn't have enough resource: cpu"}}`, "status")
	r.await("it is bound to b", func() bool {
		for _, p := range r.podsOf("train") {
			if p.UID != first.UID && p.Spec.NodeName == r.node("a") {
				t.Fatal("it is on a again")
			}
			if p.Spec.NodeName == r.node("b") {
				return true
			}
		}
		return false
	})
}

// Jobs whose pods ask for nothing are not in the way of one that waits for a node, nor it in theirs, when a round is settled.
func TestSettlingBesideConstraints(t *testing.T) {
	r := newRig(t, sharedOrStandIn(t))
	r.label("a", "one", "hdd")
	r.label("b", "two", "ssd")
	r.settle = core.Settling{Passes: 3}
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("first", asked{replicas: 2, edit: func(j *trainingjob.TrainingJob) { r.selectDisk(j, "ssd") }})
	r.becomes("first", trainingjob.Running)
	r.submit("second", asked{edit: func(j *trainingjob.TrainingJob) { r.selectDisk(j, "ssd") }})
	r.becomes("second", trainingjob.Waiting)
	r.submit("third", asked{})
	r.becomes("third", trainingjob.Running)
	r.await("the second says what nodes lack", func() bool {
		c := r.job("second").Status.Condition(trainingjob.ConditionRunning)
		return c != nil && strings.Contains(c.Message, "1 not matching its nodeSelector") && strings.Contains(c.Message, "1 without free devices")
	})
}

// selectDisk has the pods of a job run on nodes with such a disk.
func (r *rig) selectDisk(j *trainingjob.TrainingJob, disk string) {
	r.Helper()
	var t corev1.PodTemplateSpec
	if err := json.Unmarshal(j.Spec.Template.Raw, &t); err != nil {
		r.Fatal(err)
	}
	t.Spec.NodeSelector = map[string]string{"disk": disk}
	text, err := json.Marshal(t)
	if err != nil {
		r.Fatal(err)
	}
	j.Spec.Template.Raw = text
}
