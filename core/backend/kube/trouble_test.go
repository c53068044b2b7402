//go:build linux

package kube

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

var takeovers = flag.Int("kube.takeovers", 3, "how often TestTakeoverBesideTrouble has each trouble with a node meet each fate of its job")

// What befalls a node while nobody leads, and how often a job that ran there has run when another leads.
var troubles = map[string]struct {
	node, status string // patches of the node; none: it is deleted
	gone         bool
	runs         int64
}{
	"nothing":          {runs: 1},
	"cordon":           {node: `{"spec":{"unschedulable":true}}`, runs: 1},
	"taint":            {node: `{"spec":{"taints":[{"key":"x","effect":"NoSchedule"}]}}`, runs: 1},
	"taint, at once":   {node: `{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`, runs: 2},
	"delete":           {gone: true, runs: 2},
	"reboot":           {status: `{"status":{"allocatable":{"nvidia.com/gpu":"0"},"nodeInfo":{"bootID":"another"}}}`, runs: 1},
	"reboot, unready":  {status: `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"KubeletNotReady"}]}}`, runs: 1},
	"cordon, relabel":  {node: `{"spec":{"unschedulable":true},"metadata":{"labels":{"rig":null}}}`, runs: 2},
	"memory pressure":  {node: `{"spec":{"taints":[{"key":"node.kubernetes.io/memory-pressure","effect":"NoSchedule"}]}}`, runs: 1},
	"drain by Quartet": {node: `{"spec":{"unschedulable":true},"metadata":{"annotations":{"quartet.sched/drain":"true"}}}`, runs: 2},
}

// fates are how the pod of a job ends meanwhile; one that is empty runs on.
var fates = map[string]struct {
	phase string
	state trainingjob.State
}{
	"runs":   {"", trainingjob.Running},
	"ended":  {`"Succeeded","containerStatuses":[{"name":"main","image":"none","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":0,"finishedAt":"2026-01-01T00:00:00Z"}}}]`, trainingjob.Completed},
	"failed": {`"Failed","containerStatuses":[{"name":"main","image":"none","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":1,"reason":"Error","finishedAt":"2026-01-01T00:00:00Z"}}}]`, trainingjob.Failed},
}

// Each trouble with a node meets each fate of the job on it, while nobody leads: the fate first, the trouble first, or as another
// takes over. What ended never runs again, its pod and its log stay, what runs is not lost, and it stays where it may.
func TestTakeoverBesideTrouble(t *testing.T) {
	for i := range *takeovers {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			takeOverBesideTrouble(newRig(t, sharedOrStandIn(t)), i%3)
		})
	}
}

// meeting is a job on a node of its own.
type meeting struct {
	job, trouble, fate string
	node               string
	pod                corev1.Pod
	late               bool // its pod was to end before it ended
}

func takeOverBesideTrouble(r *rig, order int) {
	r.witness()
	count := len(troubles) * len(fates)
	for i := range 2*count - 2 { // and a and b
		r.addNode(fmt.Sprintf("n%d", i), 2)
	}
	l := &line{cut: make(chan struct{})}
	first := r.schedule(l.through)
	var all []*meeting
	for trouble := range troubles {
		for fate := range fates {
			m := &meeting{job: fmt.Sprintf("j%d", len(all)), trouble: trouble, fate: fate}
			r.submit(m.job, asked{replicas: 2})
			all = append(all, m)
		}
	}
	for _, m := range all {
		first.hears("job_started " + m.job)
		m.pod = r.podsOf(m.job)[0]
		m.node = m.pod.Spec.NodeName
	}
	for _, m := range all { // or a write is on its way
		r.becomes(m.job, trainingjob.Running)
	}
	l.sever()
	_ = first.stop()
	r.bury()
	end := func() {
		for _, m := range all {
			m.end(r)
		}
	}
	befall := func() {
		for _, m := range all {
			m.befall(r)
		}
	}
	switch order {
	case 0:
		end()
		befall()
		r.schedule(nil)
	case 1:
		befall()
		end()
		r.schedule(nil)
	default:
		var together sync.WaitGroup
		together.Go(befall)
		together.Go(end)
		r.schedule(nil)
		together.Wait()
	}
	for _, m := range all {
		m.check(r)
	}
}

// end has the pod of a job end as it is to.
func (m *meeting) end(r *rig) {
	fate := fates[m.fate]
	if fate.phase == "" {
		return
	}
	p, err := r.admin.Pods(r.namespace).Patch(context.Background(), m.pod.Name, types.MergePatchType, []byte(`{"status":{"phase":`+fate.phase+`}}`), metav1.PatchOptions{}, "status")
	m.late = err != nil || p.DeletionTimestamp != nil
}

func (m *meeting) befall(r *rig) {
	trouble := troubles[m.trouble]
	var err error
	nodes := r.admin.Nodes()
	switch {
	case trouble.gone:
		err = nodes.Delete(context.Background(), m.node, metav1.DeleteOptions{})
	case trouble.node != "":
		_, err = nodes.Patch(context.Background(), m.node, types.MergePatchType, []byte(trouble.node), metav1.PatchOptions{})
	case trouble.status != "":
		_, err = nodes.Patch(context.Background(), m.node, types.MergePatchType, []byte(trouble.status), metav1.PatchOptions{}, "status")
	}
	if err != nil {
		r.Errorf("%s: %v", m.trouble, err)
	}
}

func (m *meeting) check(r *rig) {
	r.Helper()
	want, runs := fates[m.fate].state, int64(1)
	if m.fate == "runs" || m.late {
		want, runs = trainingjob.Running, troubles[m.trouble].runs
	}
	j := r.job(m.job)
	is := func() bool {
		if m.late && j.Status.State == fates[m.fate].state {
			return true // it had ended by what its containers say
		}
		run, state := j.Status.Decision.Run, j.Status.State
		if run > 1 && want.Ended() { // it ended as it was moved, and has no pod of another run
			return state == want
		}
		if runs > 1 && run > 1 { // where it was moved to may be in trouble, too
			return !state.Ended()
		}
		return state == want && run == runs
	}
	for range patience {
		if is() {
			break
		}
		time.Sleep(look)
		j = r.job(m.job)
	}
	if s := j.Status; !is() {
		r.Fatalf("the job that %s beside %s is %s, want %s in run %d: %+v, %+v", m.fate, m.trouble, s.State, want, runs, s.Decision, s.Conditions)
	}
	if want == trainingjob.Running || m.trouble == "taint, at once" && kubetest.Real() { // Kubernetes deletes pods that have ended, too
		return
	}
	if pods := r.podsOf(m.job); len(pods) != 1 || pods[0].UID != m.pod.UID || pods[0].DeletionTimestamp != nil {
		r.Errorf("the job that %s beside %s has %d pods, want the one that ended", m.fate, m.trouble, len(pods))
	}
}
