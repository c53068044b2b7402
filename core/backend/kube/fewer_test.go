//go:build linux

package kube

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

var shrinks = flag.Int("kube.shrinks", 20, "how many Jobs TestFewerPods has want fewer pods")

// shrinking is a Job that is to want fewer pods, whose controller is the test.
type shrinking struct {
	name   string
	uid    types.UID
	mirror string
	pods   []corev1.Pod
	to     int
	stay   map[types.UID]bool
}

// A Job that wants fewer pods loses those that its controller deletes, and no other: whichever that are, whether Quartet hears of the
// wish or of the deletions first, and whether it leads or takes over meanwhile.
func TestFewerPods(t *testing.T) {
	random := rand.New(rand.NewPCG(*seed, 0))
	r := newRig(t, sharedOrStandIn(t))
	r.witness()
	var all []*shrinking
	for i := range *shrinks {
		r.addNode(fmt.Sprintf("n%d", i), 6)
		all = append(all, r.controlled(fmt.Sprintf("j%d", i), 2+random.IntN(5), random))
	}
	l := &line{cut: make(chan struct{})}
	first := r.schedule(l.through)
	for _, s := range all {
		s.mirror = r.mirrorOf(s.uid)
		first.hears("job_started " + s.mirror)
	}
	half := len(all) / 2
	for _, s := range all[:half] {
		s.shrink(r, random)
	}
	for _, s := range all[:half] {
		s.check(r)
	}
	for _, s := range all[half:] {
		r.becomes(s.mirror, trainingjob.Running)
	}
	l.sever()
	_ = first.stop()
	for _, s := range all[half:] {
		s.shrink(r, random)
	}
	r.bury()
	r.schedule(nil)
	for _, s := range all {
		s.check(r)
	}
}

// controlled creates a Job, and the pods that its controller would where there is none.
func (r *rig) controlled(name string, pods int, random *rand.Rand) *shrinking {
	r.Helper()
	job := r.submitBatch(name, batch{pods: int32(pods), edit: func(j *batchv1.Job) { //nolint:gosec // few
		if !kubetest.Real() && random.IntN(2) == 0 {
			j.Spec.CompletionMode, j.Spec.Completions = nil, nil
		}
	}})
	s := &shrinking{name: name, uid: job.UID, to: 1 + random.IntN(pods-1), stay: map[types.UID]bool{}}
	for i := range pods {
		if kubetest.Real() {
			break
		}
		yes := true
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", name, i), Namespace: r.namespace, Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(i)},
			Labels:          map[string]string{batchv1.JobNameLabel: name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: gang.JobUnit, Name: name, UID: job.UID, Controller: &yes}},
		}, Spec: job.Spec.Template.Spec}
		made, err := r.admin.Pods(r.namespace).Create(r.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			r.Fatal(err)
		}
		s.pods = append(s.pods, *made)
	}
	return s
}

// shrink has the Job want fewer pods, and its controller delete others: those of the highest indices, or any.
func (s *shrinking) shrink(r *rig, random *rand.Rand) {
	r.Helper()
	if random.IntN(2) == 0 {
		random.Shuffle(len(s.pods), func(i, j int) { s.pods[i], s.pods[j] = s.pods[j], s.pods[i] })
	}
	if kubetest.Real() { // its controller chooses: had others been deleted, it would have made more
		for _, p := range r.podsOfBatch(s.name) {
			s.stay[p.UID] = true
		}
		r.editBatch(s.name, fmt.Sprintf(`{"spec":{"parallelism":%d}}`, s.to))
		return
	}
	for _, p := range s.pods[:s.to] {
		s.stay[p.UID] = true
	}
	want := func() { r.editBatch(s.name, fmt.Sprintf(`{"spec":{"parallelism":%d}}`, s.to)) }
	late := random.IntN(3)
	if late > 0 {
		want()
	}
	for i, p := range s.pods[s.to:] {
		if late == 2 && i > 0 {
			time.Sleep(look)
		}
		if err := r.admin.Pods(r.namespace).Delete(context.Background(), p.Name, metav1.DeleteOptions{}); err != nil {
			r.Fatal(err)
		}
	}
	if late == 0 {
		want()
	}
}

func (s *shrinking) check(r *rig) {
	r.Helper()
	var j *trainingjob.TrainingJob
	for range patience {
		if j = r.job(s.mirror); j.Status.Replicas == s.to && j.Status.State == trainingjob.Running {
			break
		}
		time.Sleep(look)
	}
	if j.Status.Replicas != s.to || j.Status.Decision.Run != 1 || j.Status.State != trainingjob.Running {
		r.Errorf("%s is %s in run %d with %d replicas, want %d", s.name, j.Status.State, j.Status.Decision.Run, j.Status.Replicas, s.to)
	}
	left := slices.DeleteFunc(r.pods(), func(p corev1.Pod) bool { return !s.stay[p.UID] || p.DeletionTimestamp != nil })
	if len(left) != s.to {
		r.Errorf("%s: %d of %d rightful survivors stay", s.name, len(left), s.to)
	}
}

// Pods that wait say so by the condition of Kubernetes, the Events of a Job and of its TrainingJob name each other, and a Job that is
// moved says why.
func TestWaitingPodsSaySo(t *testing.T) {
	r := newRig(t, sharedOrStandIn(t))
	s := r.schedule(nil)
	s.hears("node_added b")
	random := rand.New(rand.NewPCG(*seed, 0))
	first := r.controlled("first", 3, random)
	first.mirror = r.mirrorOf(first.uid)
	s.hears("job_started " + first.mirror)
	second := r.controlled("second", 2, random)
	second.mirror = r.mirrorOf(second.uid)
	r.await("its pods say why they wait", func() bool {
		waiting := 0
		for _, p := range r.podsOfBatch("second") {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable &&
					strings.HasPrefix(c.Message, "WaitingForDevices: ") {
					waiting++
				}
			}
		}
		return waiting == 2
	})
	for _, of := range []struct{ uid, names string }{
		{string(second.uid), "(TrainingJob " + second.mirror + ")"}, {string(r.job(second.mirror).UID), "(Job second)"},
	} {
		if message := r.hearsOf(types.UID(of.uid), "WaitingForDevices"); !strings.Contains(message, of.names) {
			t.Errorf("an Event says %q, want %q in it", message, of.names)
		}
	}
}
