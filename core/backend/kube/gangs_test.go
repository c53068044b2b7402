//go:build linux

package kube

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
	"github.com/quartet-sched/quartet/internal/kubecluster"
	"github.com/quartet-sched/quartet/internal/kubecluster/kubetest"
)

var (
	gangs   = flag.Int("kube.gangs", 6, "how many gangs of 2 to 64 pods TestGangsThatDoNotFit submits")
	compare = flag.Duration("kube.compare", 0, "give the same gangs to kube-scheduler, and count which are stuck when nothing changed for this long")
)

// TestGangsThatDoNotFit submits gangs of 2 to 64 pods, of one device each, which do not fit together, all at once. Each runs whole
// or not at all, none waits for ever, and all end.
func TestGangsThatDoNotFit(t *testing.T) {
	const nodes, startTimeout = 128, 120 // seconds
	c := kubetest.Start(t, kubecluster.Options{Scheduler: *compare > 0})
	if err := define(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, c)
	r.settings.Nodes = "gangs=yes"
	if err := c.AddNodes(t.Context(), kubecluster.Pool{Name: "gang", Count: nodes, Devices: 1, Labels: map[string]string{"gangs": "yes"}}); err != nil {
		t.Fatal(err)
	}
	r.await("all nodes are ready", func() bool {
		list, err := r.admin.Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "gangs=yes"})
		count := 0
		for i := range list.Items {
			if ready(&list.Items[i]) && len(list.Items[i].Spec.Taints) == 0 {
				count++
			}
		}
		return err == nil && count == nodes
	})
	random := rand.New(rand.NewPCG(*seed, 2))
	sizes := make([]int, *gangs)
	total := 0
	for i := range sizes {
		sizes[i] = 2 + random.IntN(63)
		total += sizes[i]
	}
	if total <= nodes {
		t.Fatalf("%d pods fit together", total)
	}
	capacity := map[string]int{}
	for i := range nodes {
		capacity[fmt.Sprintf("gang-%d", i)] = 1
	}
	h := r.record(capacity)
	began := realClock{}.Now()
	r.schedule(nil)
	limit := int64(startTimeout)
	jobs := make([]*trainingjob.TrainingJob, len(sizes))
	for i, size := range sizes {
		jobs[i] = r.submit(fmt.Sprintf("gang-%d", i), asked{
			replicas: size, run: time.Duration(1+random.IntN(3)) * time.Second,
			edit: func(j *trainingjob.TrainingJob) { j.Spec.StartTimeoutSeconds = &limit },
		})
	}
	for _, j := range jobs {
		var told story
		r.await("gang "+j.Name+" ends", func() bool {
			told = h.stateOf(j.UID)
			return told.state.Ended()
		})
		if told.state != trainingjob.Completed || told.run != 1 {
			t.Errorf("gang %s is %s in run %d, want completed in run 1:\n%s", j.Name, told.state, told.run, strings.Join(told.said, "\n"))
		}
	}
	h.verdict()
	t.Logf("%d gangs, %d pods: all ended after %v; a part of a gang was bound for %v at most", len(sizes), total, realClock{}.Now().Sub(began), h.longestGap)
	if h.longestGap > startTimeout*time.Second {
		t.Errorf("a part of a gang was bound for %v, longer than the start timeout", h.longestGap)
	}
	if *compare > 0 {
		r.stuck(sizes)
	}
}

// stuck gives gangs of pods to kube-scheduler, plays that each ends once all of its pods run, and counts what is left when nothing
// changes any more.
func (r *rig) stuck(sizes []int) {
	r.Helper()
	const other = "other"
	ctx := r.Context()
	r.ask("POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: other}}, nil)
	r.awaitAccount(other)
	pods := r.admin.Pods(other)
	var group sync.WaitGroup
	gate := make(chan struct{}, 16)
	for i, size := range sizes {
		for member := range size {
			gate <- struct{}{}
			group.Go(func() {
				defer func() { <-gate }()
				_, err := pods.Create(ctx, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("gang-%d-%d", i, member), Labels: map[string]string{"gang": fmt.Sprint(i)}},
					Spec: corev1.PodSpec{
						NodeSelector: map[string]string{"gangs": "yes"},
						Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
							Limits: corev1.ResourceList{kubecluster.DeviceResource: resource.MustParse("1")},
						}}},
					},
				}, metav1.CreateOptions{})
				if err != nil {
					r.Error(err)
				}
			})
		}
	}
	group.Wait()
	var atOnce int64
	last, progress, since, ended := "", "", realClock{}.Now(), 0
	for now := since; now.Sub(since) < *compare; now = (realClock{}).Now() {
		list, err := pods.List(context.Background(), metav1.ListOptions{})
		if err != nil {
			r.Fatal(err)
		}
		bound, running := map[string]int{}, map[string]int{}
		for i := range list.Items {
			p := &list.Items[i]
			if p.Spec.NodeName != "" {
				bound[p.Labels["gang"]]++
			}
			if p.Status.Phase == corev1.PodRunning {
				running[p.Labels["gang"]]++
			}
		}
		partial := 0
		for i, size := range sizes {
			gang := fmt.Sprint(i)
			switch {
			case running[gang] == size: // it trained, and is over
				r.ask("DELETE", "/api/v1/namespaces/"+other+"/pods?labelSelector=gang%3D"+gang, &metav1.DeleteOptions{GracePeriodSeconds: &atOnce}, nil)
				ended++
			case bound[gang] > 0 && bound[gang] < size:
				partial++
			}
		}
		if is := fmt.Sprint(len(list.Items), bound, running, ended); is != last {
			last, since = is, realClock{}.Now()
		}
		if len(list.Items) == 0 {
			r.Logf("kube-scheduler: all %d gangs ended", ended)
			return
		}
		progress = fmt.Sprintf("kube-scheduler: of %d gangs %d ended, %d are stuck with a part of their pods bound, %d wait with none", len(sizes), ended, partial, len(sizes)-ended-partial)
		time.Sleep(5 * look)
	}
	r.Logf("%s; nothing changed for %v", progress, *compare)
}
