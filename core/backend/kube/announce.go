package kube

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// announcer writes Events of jobs, which kubectl describe shows. They may be lost: the conditions of a job are what holds.
type announcer struct {
	recorder *recorder
}

// announced are the conditions whose changes become Events.
var announced = []string{
	trainingjob.ConditionInterrupted, trainingjob.ConditionRunning, trainingjob.ConditionDegraded, trainingjob.ConditionFinished, trainingjob.ConditionIgnored,
}

// announce records an Event for each condition whose reason a written status changed. Those of a job whose pods others make are of both
// objects, and each names the other.
func (a *announcer) announce(object *trainingjob.TrainingJob, status *trainingjob.Status) {
	interrupted := ""
	for _, name := range announced {
		is := status.Condition(name)
		if is == nil || !isNews(object.Status.Condition(name), is) {
			continue
		}
		if name == trainingjob.ConditionInterrupted {
			interrupted = is.Reason
		}
		if name == trainingjob.ConditionRunning &&
			(status.State.Ended() || is.Reason == startingReason || is.Reason == "ContainerCreating" || is.Reason == interrupted) {
			continue // Finished says it, or Running will, or it is said
		}
		message, owner := is.Message, adoptedFrom(object)
		if owner != nil {
			a.recorder.record(owner, severity(is, status.State), is.Reason, naming(message, trainingjob.Kind, object.Name))
			message = naming(message, owner.Kind, owner.Name)
		}
		a.recorder.record(&corev1.ObjectReference{
			APIVersion: trainingjob.GroupVersion().String(), Kind: trainingjob.Kind, Namespace: object.Namespace, Name: object.Name, UID: object.UID,
			ResourceVersion: object.ResourceVersion,
		}, severity(is, status.State), is.Reason, message)
	}
}

// isNews reports whether a condition says something new. A job may be interrupted twice for the same reason.
func isNews(was, is *metav1.Condition) bool {
	again := was != nil && is.Type == trainingjob.ConditionInterrupted && (was.Message != is.Message || !was.LastTransitionTime.Equal(&is.LastTransitionTime))
	return was == nil || was.Reason != is.Reason || was.Status != is.Status || again
}

// naming adds to a message which other object it is about.
func naming(message, kind, name string) string {
	return strings.TrimSpace(message + " (" + kind + " " + name + ")")
}

// severity is Warning of what somebody should look at.
func severity(c *metav1.Condition, state trainingjob.State) string {
	bad := (c.Type == trainingjob.ConditionDegraded || c.Type == trainingjob.ConditionIgnored) && c.Status == metav1.ConditionTrue ||
		c.Type == trainingjob.ConditionFinished && slices.Contains([]trainingjob.State{trainingjob.Failed, trainingjob.Rejected}, state)
	if bad || c.Reason == noNodeFits {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
