package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// Pod is a pod of a job: one of its members.
type Pod struct {
	Name    string // of the pod
	Run     string // number of the start of its job
	Node    string // "-" for none
	Devices string // ranges of indices, such as "0-3,6"
	Ranks   string // of its replicas, such as "0-3"
	Phase   string // as kubectl shows it
	Why     string // what keeps it from running, or ended it; empty for nothing
}

// Pods lists the pods of a job that are there, those of its last run last.
func (c *Cluster) Pods(ctx context.Context, job string) ([]Pod, error) {
	t, err := c.get(ctx, job)
	if err != nil {
		return nil, err
	}
	objects, err := c.podsOf(ctx, t)
	if apierrors.IsForbidden(err) { // all else is known of the job
		c.note("%s", forbidden(err))
		return nil, nil
	}
	if err != nil {
		return nil, c.words(fmt.Sprintf("list the pods of job %q", t.Name), err)
	}
	var list []Pod
	for i := range objects {
		p := &objects[i]
		list = append(list, Pod{
			Name: p.Name, Run: p.Labels[gang.RunLabel], Node: orNone(p.Spec.NodeName), Devices: p.Annotations[gang.DevicesAnnotation],
			Ranks: p.Annotations[gang.RanksAnnotation], Phase: phaseOf(p), Why: whyOf(p),
		})
	}
	return list, nil
}

// pods are those of a job, by run and member.
func (c *Cluster) pods(ctx context.Context, t *trainingjob.TrainingJob) ([]corev1.Pod, error) {
	pods, err := c.podsOf(ctx, t)
	return pods, c.words(fmt.Sprintf("list the pods of job %q", t.Name), err)
}

func (c *Cluster) podsOf(ctx context.Context, t *trainingjob.TrainingJob) ([]corev1.Pod, error) {
	labels := (&gang.Job{Name: t.Name}).Labels()
	list, err := c.api.Pods(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels})})
	if err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !metav1.IsControlledBy(&p, t) && gang.AdoptedBy(&p) != t.UID })
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(number(&a, gang.RunLabel), number(&b, gang.RunLabel)), cmp.Compare(number(&a, gang.MemberLabel), number(&b, gang.MemberLabel)))
	})
	return pods, nil
}

func number(p *corev1.Pod, label string) int64 {
	n, _ := strconv.ParseInt(p.Labels[label], 10, 64) // a label of ours, or of somebody who writes what he likes
	return n
}

func phaseOf(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		return "Terminating"
	}
	return string(p.Status.Phase)
}

// whyOf is what keeps a pod from running, or what ended it.
func whyOf(p *corev1.Pod) string {
	if p.Status.Reason != "" || p.Status.Message != "" {
		return strings.Trim(p.Status.Reason+": "+p.Status.Message, ": ")
	}
	for i := range p.Status.ContainerStatuses {
		s := &p.Status.ContainerStatuses[i].State
		if s.Waiting != nil && s.Waiting.Reason != "" {
			return strings.Trim(s.Waiting.Reason+": "+s.Waiting.Message, ": ")
		}
		if s.Terminated != nil && s.Terminated.ExitCode != 0 {
			return fmt.Sprintf("%s, exit code %d", cmp.Or(s.Terminated.Reason, "ended"), s.Terminated.ExitCode)
		}
	}
	return ""
}

// lookAgain is how often somebody who follows looks for the next pod.
const lookAgain = time.Second

// ReadLog writes what the pod of a rank put out. With Follow it goes on with the next run, until the job has ended.
func (c *Cluster) ReadLog(ctx context.Context, l backend.Log, to io.Writer) error {
	if l.Stderr {
		return problem("--stderr", "Kubernetes keeps one output of a pod, with both in it", "leave it out")
	}
	read := map[string]bool{} // pods, by UID
	for {
		t, err := c.get(ctx, l.Job)
		if err != nil {
			return err
		}
		pods, err := c.pods(ctx, t)
		if err != nil {
			return err
		}
		if !l.Follow {
			return c.readOnce(ctx, l, t, pods, to)
		}
		p := holder(pods, l.Rank)
		if p != nil && !read[string(p.UID)] {
			began, err := c.copyLog(ctx, p, true, to)
			if err != nil {
				return err
			}
			if read[string(p.UID)] = began; began {
				continue // to see whether the job has ended
			}
		}
		if t.Status.State.Ended() {
			if len(read) == 0 && p == nil {
				return noPod(t, pods, l.Rank)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.options.After(lookAgain):
		}
	}
}

// readOnce writes what the pod of a rank put out so far.
func (c *Cluster) readOnce(ctx context.Context, l backend.Log, t *trainingjob.TrainingJob, pods []corev1.Pod, to io.Writer) error {
	p := holder(pods, l.Rank)
	if p == nil {
		return noPod(t, pods, l.Rank)
	}
	began, err := c.copyLog(ctx, p, false, to)
	if err == nil && !began {
		err = fmt.Errorf("read the log of job %q: its pod %q has not begun: %s", l.Job, p.Name, cmp.Or(whyOf(p), phaseOf(p)))
	}
	return err
}

// holder is the pod of the last run that has a rank; nil for none.
func holder(pods []corev1.Pod, rank int) *corev1.Pod {
	for i := len(pods) - 1; i >= 0 && number(&pods[i], gang.RunLabel) == number(&pods[len(pods)-1], gang.RunLabel); i-- {
		first, last, _ := strings.Cut(pods[i].Annotations[gang.RanksAnnotation], "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to, err := strconv.Atoi(cmp.Or(last, first))
		if err == nil && from <= rank && rank <= to {
			return &pods[i]
		}
	}
	return nil
}

// noPod says why there is nothing to read.
func noPod(t *trainingjob.TrainingJob, pods []corev1.Pod, rank int) error {
	if len(pods) > 0 {
		return problem("--rank", fmt.Sprintf("no pod of job %q has rank %d", t.Name, rank), "quartet describe lists its pods and their ranks")
	}
	return fmt.Errorf("read the log of job %q: it has no pods, it is %s", t.Name, cmp.Or(string(t.Status.State), unseen))
}

// copyLog writes the log of a pod, and reports whether it had begun.
func (c *Cluster) copyLog(ctx context.Context, p *corev1.Pod, follow bool, to io.Writer) (began bool, err error) {
	options := &corev1.PodLogOptions{Follow: follow}
	if len(p.Spec.Containers) > 0 {
		options.Container = p.Spec.Containers[0].Name
	}
	stream, err := c.api.Pods(p.Namespace).Log(p.Name, options).Stream(ctx)
	switch {
	case apierrors.IsBadRequest(err): // it waits to start
		return false, nil
	case err != nil:
		return false, c.words(fmt.Sprintf("read the log of pod %q", p.Name), err)
	}
	_, err = io.Copy(to, stream)
	return true, errors.Join(err, stream.Close())
}

// WriteSnapshot refuses: there is none, for the cluster itself is read.
func (c *Cluster) WriteSnapshot(context.Context, io.Writer) error {
	return problem("--context", "a scheduler on Kubernetes writes no snapshots", "")
}
