//go:build linux

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/backendtest"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// scheduler is a pipeline that runs on a backend, first come, first served.
type scheduler struct {
	rig     *rig
	backend *Backend
	cancel  context.CancelFunc
	ended   chan error

	mutex  sync.Mutex
	names  map[core.JobID]string
	nodes  map[core.NodeID]string
	events []string
}

func (r *rig) schedule(wrap func(http.RoundTripper) http.RoundTripper) *scheduler {
	r.Helper()
	return r.scheduleBy(backendtest.FIFO(), wrap)
}

// scheduleBy runs other stages.
func (r *rig) scheduleBy(stages core.Stages, wrap func(http.RoundTripper) http.RoundTripper) *scheduler {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	s := &scheduler{
		rig: r, backend: r.open(wrap), cancel: cancel, ended: make(chan error, 1),
		names: map[core.JobID]string{}, nodes: map[core.NodeID]string{},
	}
	p := core.NewPipeline(&core.Cluster{MayGrow: true}, stages, core.PipelineOptions{
		Rounds:    core.RoundOptions{OnEvents: true, Settle: r.settle},
		Observers: []core.Observer{s, s.backend},
		Reseat:    s.backend.Reseat,
		RetryBackend: func(ctx context.Context, _ int, _ error) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(look):
				return nil
			}
		},
	})
	go func() { s.ended <- p.Run(ctx, s.backend) }()
	r.Cleanup(func() { _ = s.stop() })
	return s
}

// stop ends the scheduler, and waits for that.
func (s *scheduler) stop() error {
	s.cancel()
	err := <-s.ended
	s.ended <- err
	return errors.Join(err, s.backend.Close())
}

// ObserveRound notes the events of a round.
func (s *scheduler) ObserveRound(r *core.Report) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range r.Events {
		e := &r.Events[i]
		if e.Kind == core.NodeAdded {
			s.nodes[e.Node] = strings.TrimSuffix(e.Added.Name, "-"+s.rig.namespace+"-0")
		}
		if e.Kind == core.JobSubmitted {
			s.names[e.Job] = strings.TrimPrefix(e.Spec.Name, s.rig.namespace+"/")
		}
		text := e.Kind.String() + " "
		switch {
		case e.Kind.OfNode():
			text += s.nodes[e.Node]
			if e.Kind == core.NodeChanged {
				text += fmt.Sprint(" ", e.Health, " ", e.Unusable.Count())
			}
		default:
			text += s.names[e.Job]
			if e.Kind == core.JobInterrupted || e.Kind == core.JobFailed {
				text += " " + e.Cause.String()
			}
			if e.Held != nil && len(e.Held.Seats) > 0 {
				text += " held"
			}
		}
		s.events = append(s.events, text)
	}
	return nil
}

func (s *scheduler) messages() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.events)
}

// hears waits until an event was told.
func (s *scheduler) hears(event string) {
	s.rig.Helper()
	for range patience {
		if slices.Contains(s.messages(), event) {
			return
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			s.rig.Fatalf("the run ended: %v", err)
		case <-time.After(look):
		}
	}
	s.rig.Fatalf("never told %q, but %q", event, s.messages())
}

// news are the events that were told, but for starts, since somebody asked.
func (s *scheduler) news() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	list := slices.DeleteFunc(s.events, func(e string) bool {
		return strings.HasPrefix(e, "job_start") || strings.HasPrefix(e, "node_added")
	})
	s.events = nil
	return list
}

func (s *scheduler) wantNews(want ...string) {
	s.rig.Helper()
	if got := s.news(); !slices.Equal(got, want) {
		s.rig.Errorf("got %q, want %q", got, want)
	}
}

// becomes waits until the status of a job says so.
func (r *rig) becomes(name string, state trainingjob.State) *trainingjob.TrainingJob {
	r.Helper()
	var job *trainingjob.TrainingJob
	for range patience {
		if job = r.job(name); job.Status.State == state {
			return job
		}
		time.Sleep(look)
	}
	r.Fatalf("job %s never becomes %s: %+v", name, state, job.Status)
	return nil
}

// condition checks a condition of a job.
func (r *rig) condition(job *trainingjob.TrainingJob, kind string, status metav1.ConditionStatus, reason string) {
	r.Helper()
	if c := job.Status.Condition(kind); c == nil || c.Status != status || c.Reason != reason {
		r.Errorf("job %s: condition %s is %+v, want %s for %s", job.Name, kind, c, status, reason)
	}
}

// quiet waits until no pod is left that holds devices.
func (r *rig) quiet() {
	r.Helper()
	r.await("nothing runs, and no finalizer of ours is left", func() bool {
		for _, p := range r.pods() {
			if slices.Contains(p.Finalizers, gang.Finalizer) && (p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed) {
				return false
			}
			if p.Status.Phase == corev1.PodPending || p.Status.Phase == corev1.PodRunning {
				return false
			}
		}
		return true
	})
}

// witness looks at every change of every pod, and complains when a device is held twice.
type witness struct {
	rig  *rig
	stop context.CancelFunc
	done chan struct{}

	pods map[types.UID]*corev1.Pod
	seen int
}

func (r *rig) witness() *witness {
	r.Helper()
	list, err := r.admin.Pods(r.namespace).List(r.Context(), metav1.ListOptions{})
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &witness{rig: r, stop: cancel, done: make(chan struct{}), pods: map[types.UID]*corev1.Pod{}}
	go w.watch(ctx, list.ResourceVersion)
	r.Cleanup(w.end)
	return w
}

func (w *witness) watch(ctx context.Context, version string) {
	defer close(w.done)
	for ctx.Err() == nil {
		watch, err := w.rig.admin.Pods(w.rig.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
				w.rig.Errorf("the witness was blind for a while: %v", err)
				return
			}
			time.Sleep(look)
			continue
		}
		for e := range watch.ResultChan() {
			p, is := e.Object.(*corev1.Pod)
			if !is {
				break
			}
			version = p.ResourceVersion
			w.seen++
			if w.pods[p.UID] = p; e.Type == "DELETED" {
				delete(w.pods, p.UID)
			}
			w.check()
		}
		watch.Stop()
	}
}

func (w *witness) check() {
	holders := map[string]string{}
	for _, p := range w.pods {
		node, devices, ours := gang.Assigned(p)
		if !ours || p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		if node != p.Spec.NodeName {
			w.rig.Errorf("pod %s is for %s and is bound to %s", p.Name, node, p.Spec.NodeName)
		}
		for _, d := range devices.List() {
			device := fmt.Sprint(node, " ", d)
			if other := holders[device]; other != "" {
				w.rig.Errorf("device %s is held by %s and %s", device, other, p.Name)
			}
			holders[device] = p.Name
		}
	}
}

func (w *witness) end() {
	w.stop()
	<-w.done
	if w.seen == 0 {
		w.rig.Error("the witness saw no pod")
	}
}

// testing.TB of a rig is used by goroutines that end before the test does.
var _ testing.TB = (*rig)(nil)
