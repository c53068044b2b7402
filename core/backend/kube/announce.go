package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// announcer writes Events of jobs, which kubectl describe shows. They may be lost: the conditions of a job are what holds.
type announcer struct {
	recorder *recorder
}

// announced are the conditions whose changes become Events.
var announced = []string{trainingjob.ConditionRunning, trainingjob.ConditionDegraded, trainingjob.ConditionFinished, trainingjob.ConditionIgnored}

// announce records an Event for each condition whose reason a written status changed.
func (a *announcer) announce(object *trainingjob.TrainingJob, status *trainingjob.Status) {
	for _, name := range announced {
		was, is := object.Status.Condition(name), status.Condition(name)
		if is == nil || was != nil && was.Reason == is.Reason && was.Status == is.Status {
			continue
		}
		if name == trainingjob.ConditionRunning && (status.State.Ended() || is.Reason == startingReason || is.Reason == "ContainerCreating") {
			continue // Finished says it, or Running will
		}
		a.recorder.record(&corev1.ObjectReference{
			APIVersion: trainingjob.GroupVersion().String(), Kind: trainingjob.Kind, Namespace: object.Namespace, Name: object.Name, UID: object.UID,
			ResourceVersion: object.ResourceVersion,
		}, severity(is, status.State), is.Reason, is.Message)
		if owner := adoptedFrom(object); owner != nil {
			a.recorder.record(owner, severity(is, status.State), is.Reason, is.Message)
		}
	}
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
