//go:build linux

package kube

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// history is every change of the pods and jobs of a namespace since it was opened, as the API server tells it, held to what must
// never be.
type history struct {
	rig      *rig
	capacity map[string]int // devices by node
	began    time.Time

	mutex      sync.Mutex
	pods       map[types.UID]*corev1.Pod
	lives      map[types.UID][]string // what was told of each pod
	devices    map[string]types.UID   // who holds a device, by node and index
	jobs       map[types.UID]*story
	leaders    []succession
	decisions  []time.Time // when one was seen
	events     int
	left       map[string]bool // nodes that are gone
	deletions  []deletion      // of pods that had ended by themselves
	problems   []string
	longestGap time.Duration // of a gang of which some were bound and some not
}

// story is what the history tells of a job.
type story struct {
	name, namespace string
	state           trainingjob.State
	run, epoch      int64
	decision        decisionID
	gone            bool
	goneAt          string                         // resource version of its deletion; empty for none
	bound           map[int64]map[string]types.UID // pods that were bound, by run and member
	succeeded       map[int64]int                  // pods, by run
	members         map[int64]int                  // of the decision, by run
	over            map[int64]string               // runs that ended by themselves, and how
	partial         time.Time                      // since when a part of the gang is bound; zero for never
	wants           int                            // members of the decision
	said            []string                       // what its status said, one after the other
	seats           map[string]bool                // devices of the decision, by node and index
}

// deletion is that of a pod which had ended by itself.
type deletion struct {
	pod     *corev1.Pod
	job     types.UID
	version string // resource version at which it was to go
	life    string // what was told of it
}

// succession is when a process held the lease for the first time.
type succession struct {
	holder string
	epoch  int64
	at     time.Time
}

// record opens a history. It ends with the test.
func (r *rig) record(capacity map[string]int) *history {
	r.Helper()
	h := &history{
		rig: r, capacity: capacity, began: realClock{}.Now(), pods: map[types.UID]*corev1.Pod{}, lives: map[types.UID][]string{}, devices: map[string]types.UID{}, jobs: map[types.UID]*story{}, left: map[string]bool{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	r.Cleanup(func() {
		cancel()
		group.Wait()
	})
	pods, jobs, leases := r.admin.Pods(r.namespace), r.admin.jobs.Of(r.namespace), r.admin.Leases(r.namespace)
	for name, source := range map[string]struct {
		list  func(context.Context, metav1.ListOptions) (metav1.ListInterface, error)
		watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
		see   func(object runtime.Object, gone bool)
	}{
		"pods": {
			func(ctx context.Context, o metav1.ListOptions) (metav1.ListInterface, error) {
				return pods.List(ctx, o)
			}, pods.Watch,
			func(o runtime.Object, gone bool) { h.pod(o.(*corev1.Pod), gone) },
		},
		"jobs": {
			func(ctx context.Context, o metav1.ListOptions) (metav1.ListInterface, error) {
				return jobs.List(ctx, o)
			}, jobs.Watch,
			func(o runtime.Object, gone bool) { h.job(o.(*trainingjob.TrainingJob), gone) },
		},
		"leases": {
			func(ctx context.Context, o metav1.ListOptions) (metav1.ListInterface, error) {
				return leases.List(ctx, o)
			}, leases.Watch,
			func(o runtime.Object, _ bool) { h.lease(o.(*coordination.Lease)) },
		},
	} {
		list, err := source.list(ctx, metav1.ListOptions{})
		if err != nil {
			r.Fatal(err)
		}
		version := list.GetResourceVersion()
		group.Go(func() {
			for ctx.Err() == nil {
				w, err := source.watch(ctx, metav1.ListOptions{ResourceVersion: version})
				if apierrors.IsGone(err) || apierrors.IsResourceExpired(err) {
					h.complain("the history of %s has a hole: %v", name, err)
					return
				}
				if err != nil {
					time.Sleep(look)
					continue
				}
				for e := range w.ResultChan() {
					if e.Type == watch.Error {
						break
					}
					version = e.Object.(metav1.Object).GetResourceVersion()
					source.see(e.Object, e.Type == watch.Deleted)
				}
				w.Stop()
			}
		})
	}
	return h
}

// complain notes what must not be. The caller holds no lock.
func (h *history) complain(format string, args ...any) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.wrong(format, args...)
}

func (h *history) wrong(format string, args ...any) {
	const most = 50
	if len(h.problems) < most {
		h.problems = append(h.problems, fmt.Sprintf(format, args...))
	}
}

func final(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func (h *history) of(uid types.UID) *story {
	if h.jobs[uid] == nil {
		h.jobs[uid] = &story{bound: map[int64]map[string]types.UID{}, succeeded: map[int64]int{}, members: map[int64]int{}, over: map[int64]string{}}
	}
	return h.jobs[uid]
}

// pod takes in a change of a pod: who holds which devices, and for which run.
func (h *history) pod(p *corev1.Pod, gone bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.events++
	was := h.pods[p.UID]
	if h.pods[p.UID] = p; gone {
		delete(h.pods, p.UID)
	}
	h.lives[p.UID] = append(h.lives[p.UID], fmt.Sprintf("%.3f version %s gone %v: %s", realClock{}.Now().Sub(h.began).Seconds(), p.ResourceVersion, gone, describe(p)))
	node, devices, ours := gang.Assigned(p)
	owner := metav1.GetControllerOfNoCopy(p)
	if !ours || owner == nil {
		h.wrong("pod %s has no devices, or no owner", p.Name)
		return
	}
	if was != nil && was.Spec.NodeName != "" && was.Spec.NodeName != p.Spec.NodeName {
		h.wrong("pod %s was on %s, and is on %s", p.Name, was.Spec.NodeName, p.Spec.NodeName)
	}
	j := h.of(owner.UID)
	run, _ := strconv.ParseInt(p.Labels[gang.RunLabel], 10, 64)
	holds := p.Spec.NodeName != "" && !final(p) && !gone
	for _, d := range devices.List() {
		key := node + " " + strconv.Itoa(d)
		switch other := h.devices[key]; {
		case holds && other != "" && other != p.UID:
			h.wrong("device %s is held by two:\n%s\n%s", key, strings.Join(h.lives[other], "\n"), strings.Join(h.lives[p.UID], "\n"))
		case holds:
			h.devices[key] = p.UID
		case other == p.UID:
			delete(h.devices, key)
		}
		if holds && d >= h.capacity[node] {
			h.wrong("pod %s has device %s, which is not there", p.Name, key)
		}
	}
	if p.Spec.NodeName != "" {
		if p.Spec.NodeName != node {
			h.wrong("pod %s is for %s, and on %s", p.Name, node, p.Spec.NodeName)
		}
		if j.bound[run] == nil {
			j.bound[run] = map[string]types.UID{}
		}
		member := p.Labels[gang.MemberLabel]
		if before := j.bound[run][member]; before != "" && before != p.UID {
			h.wrong("member %s of run %d of %s was bound twice", member, run, p.Labels[gang.JobLabel])
		}
		j.bound[run][member] = p.UID
	}
	h.ranAgain(j, p, run, holds)
	h.deleted(j, owner.UID, was, p, run, gone)
	if holds {
		for _, other := range h.pods {
			if o := metav1.GetControllerOfNoCopy(other); o != nil && o.UID == owner.UID && other.Labels[gang.RunLabel] != p.Labels[gang.RunLabel] && other.Spec.NodeName != "" && !final(other) && !h.left[other.Spec.NodeName] && !h.left[node] {
				h.wrong("job %s has pods of two runs: %s and %s", p.Labels[gang.JobLabel], describe(p), describe(other))
			}
		}
	}
	// Of one that was told to end nobody knows whether it would have: its job may run again.
	if p.Status.Phase == corev1.PodSucceeded && p.DeletionTimestamp == nil && (was == nil || was.Status.Phase != corev1.PodSucceeded) {
		j.succeeded[run]++
		for other, count := range j.succeeded { // a part of a gang may end before its job is suspended: all of it runs again
			if other != run && count >= j.members[other] {
				h.wrong("pods of job %s succeeded in run %d, and all %d of run %d:\n%s", p.Labels[gang.JobLabel], run, count, other, strings.Join(j.said, "\n"))
				for _, uid := range j.bound[other] {
					h.wrong("one of them:\n%s", strings.Join(h.lives[uid], "\n"))
				}
			}
		}
	}
	h.gap(j, run)
}

// ranAgain complains about a pod of a run that begins after another had ended by itself.
func (h *history) ranAgain(j *story, p *corev1.Pod, run int64, holds bool) {
	byItself := p.DeletionTimestamp == nil && final(p) && disruption(p) == ""
	if byItself && j.members[run] == 1 && len(p.Status.ContainerStatuses) > 0 {
		j.over[run] = describe(p)
	}
	for before, how := range j.over {
		if holds && before < run {
			h.wrong("job %s runs again in run %d, and ended by itself in run %d: %s", j.name, run, before, how)
		}
	}
}

// disruption is why Kubernetes says that it ended a pod; empty where it did not.
func disruption(p *corev1.Pod) string {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
	if i < 0 {
		return ""
	}
	return p.Status.Conditions[i].Reason
}

// deleted notes the deletion of a pod that had ended by itself. Whether that was right is known when all is: pods and jobs come by two
// watches, and the one may be far behind the other.
func (h *history) deleted(j *story, job types.UID, was, p *corev1.Pod, run int64, gone bool) {
	first := gone || p.DeletionTimestamp != nil
	if !first || !final(p) || j.over[run] == "" || was != nil && was.DeletionTimestamp != nil {
		return
	}
	h.deletions = append(h.deletions, deletion{p, job, p.ResourceVersion, strings.Join(h.lives[p.UID], "\n")})
}

// kept complains about the pods of ended jobs that were deleted before their job was. Those that Kubernetes deletes because of a taint,
// and those of a node that is gone, nobody can keep.
func (h *history) kept() {
	for _, d := range h.deletions {
		j := h.of(d.job)
		if j.state.Ended() && (j.goneAt == "" || gang.Older(d.version, j.goneAt)) && !h.left[d.pod.Spec.NodeName] && disruption(d.pod) != "DeletionByTaintManager" {
			h.wrong("pod %s of the ended job %s was deleted at %s, the job at %q:\n%s\n%s", d.pod.Name, j.name, d.version, j.goneAt, d.life, strings.Join(j.said, "\n"))
		}
	}
}

// catchUp waits until the history knows of all jobs that are deleted.
func (h *history) catchUp() {
	h.rig.Helper()
	h.rig.await("the history knows which jobs are deleted", func() bool {
		list, err := h.rig.admin.jobs.Of(h.rig.namespace).List(h.rig.Context(), metav1.ListOptions{})
		if err != nil {
			return false
		}
		h.mutex.Lock()
		defer h.mutex.Unlock()
		for uid, j := range h.jobs {
			there := slices.ContainsFunc(list.Items, func(t trainingjob.TrainingJob) bool { return t.UID == uid })
			if !there && !j.gone {
				return false
			}
		}
		return true
	})
}

// grow takes in that a node is about to join: pods may be on it before whoever adds it knows that it is there.
func (h *history) grow(node string, devices int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.capacity[node] = devices
}

// leave takes in that a node is about to go, and with it its pods.
func (h *history) leave(node string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.left[node] = true
}

// gap measures for how long a part of a gang is bound, and not all of it.
func (h *history) gap(j *story, run int64) {
	count := len(j.bound[run])
	now := realClock{}.Now()
	switch partial := run == j.run && count > 0 && count < j.wants; {
	case partial && j.partial.IsZero():
		j.partial = now
	case !partial && !j.partial.IsZero():
		h.longestGap = max(h.longestGap, now.Sub(j.partial))
		j.partial = time.Time{}
	}
}

// job takes in a change of a job: what was decided, and how it ended.
func (h *history) job(t *trainingjob.TrainingJob, gone bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.events++
	j := h.of(t.UID)
	if j.name, j.namespace, j.gone = t.Name, t.Namespace, gone || t.DeletionTimestamp != nil; gone || t.DeletionTimestamp != nil {
		if j.seats = nil; j.goneAt == "" {
			j.goneAt = t.ResourceVersion
		}
		return
	}
	if j.state.Ended() && t.Status.State != j.state {
		h.wrong("job %s was %s, and is %s", t.Name, j.state, t.Status.State)
	}
	j.state = t.Status.State
	line := fmt.Sprintf("%.3f %s", realClock{}.Now().Sub(h.began).Seconds(), j.state)
	if d := t.Status.Decision; d != nil {
		line += fmt.Sprintf(" epoch %d round %d run %d stop %v by %s seats %v", d.Epoch, d.Round, d.Run, d.Stop, d.By, d.Seats)
	}
	if c := t.Status.Condition(trainingjob.ConditionRunning); c != nil {
		line += " " + c.Reason + " " + c.Message
	}
	if len(j.said) == 0 || j.said[len(j.said)-1] != line {
		j.said = append(j.said, line)
	}
	h.decided(j, t.Status.Decision)
	if d := t.Status.Decision; d != nil {
		if d.Run < j.run || d.Epoch < j.epoch {
			h.wrong("job %s: run %d of epoch %d came after run %d of epoch %d", t.Name, d.Run, d.Epoch, j.run, j.epoch)
		}
		if is := (decisionID{d.Epoch, d.Run, d.Round, d.World}); is != j.decision {
			j.decision = is
			h.decisions = append(h.decisions, realClock{}.Now())
		}
		j.run, j.epoch, j.wants = d.Run, d.Epoch, len(d.Seats)
		if d.Stop {
			j.wants = 0
		} else {
			j.members[d.Run] = max(j.members[d.Run], len(d.Seats))
		}
		h.gap(j, j.run)
	}
}

// decided complains when a device is in the decisions of two jobs: who takes over could not know which is true.
func (h *history) decided(j *story, d *trainingjob.Decision) {
	j.seats = map[string]bool{}
	if d == nil || d.Stop {
		return
	}
	for _, s := range d.Seats {
		devices, _ := trainingjob.ParseDevices(s.Devices)
		for _, index := range devices.List() {
			j.seats[s.Node+" "+strconv.Itoa(index)] = true
		}
	}
	for _, other := range h.jobs {
		for device := range j.seats {
			if other != j && !other.gone && other.seats[device] {
				h.wrong("device %s is in the decisions of %s and %s:\n%s\n%s", device, j.name, other.name, strings.Join(j.said, "\n"), strings.Join(other.said, "\n"))
				break
			}
		}
	}
}

func (h *history) lease(l *coordination.Lease) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if l.Name != leaseName || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return
	}
	s := succession{holder: *l.Spec.HolderIdentity, at: realClock{}.Now()}
	if l.Spec.LeaseTransitions != nil {
		s.epoch = int64(*l.Spec.LeaseTransitions)
	}
	if n := len(h.leaders); n == 0 || h.leaders[n-1].holder != s.holder {
		if n > 0 && s.epoch <= h.leaders[n-1].epoch {
			h.wrong("epoch %d came after epoch %d", s.epoch, h.leaders[n-1].epoch)
		}
		h.leaders = append(h.leaders, s)
	}
}

// after is the first leader that began later than a moment.
func (h *history) after(at time.Time) (succession, bool) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	i := slices.IndexFunc(h.leaders, func(s succession) bool { return s.at.After(at) })
	if i < 0 {
		return succession{}, false
	}
	return h.leaders[i], true
}

// verdict fails the test when anything was that must not be.
func (h *history) verdict() {
	h.rig.Helper()
	h.catchUp()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.kept()
	for _, p := range h.problems {
		h.rig.Error(p)
	}
	if h.events == 0 {
		h.rig.Error("the history is empty")
	}
}

// stateOf is how a job is.
func (h *history) stateOf(uid types.UID) story {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return *h.of(uid)
}
