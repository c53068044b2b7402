package kube

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// What fails so often in a row does not pass by itself: the job says so.
const lasting = 4

// podsFail is the reason of a job whose pods cannot be brought to what is decided.
const podsFail = "PodsFail"

// reportsFailure reports whether a failure is told, of so many in a row: the first one, and then fewer and fewer.
func reportsFailure(times int) bool { return times&(times-1) == 0 }

// failed logs that work on a job failed, so many times in a row.
func (b *Backend) failed(what string, uid types.UID, times int, err error) {
	if !reportsFailure(times) {
		return
	}
	name := "of UID " + string(uid) // it is not there any more
	if j := b.find(uid); j != nil {
		name = j.namespace + "/" + j.name
	}
	b.log.Warn(what, "job", name, "failures", times, "error", err)
}

// stuck takes in that the pods of a job could not be brought to what is decided. What lasts, and what an API server said, the job
// tells: of a server that does not answer nobody could write it.
func (b *Backend) stuck(uid types.UID, times int, err error) {
	b.failed("the pods of a job are not as decided", uid, times, err)
	var words apierrors.APIStatus
	if j := b.find(uid); j != nil && times >= lasting && reportsFailure(times) && errors.As(err, &words) {
		b.condition(j, metav1.ConditionTrue, podsFail, err.Error())
	}
}

// clearFailure takes back that the pods of a job could not be brought to what is decided.
func (b *Backend) clearFailure(j *job) { b.condition(j, metav1.ConditionFalse, "Mended", "") }

// condition says of a job that its pods fail, or no longer do. What is wrong with its spec stays.
func (b *Backend) condition(j *job, status metav1.ConditionStatus, reason, message string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	c := j.status.Condition(trainingjob.ConditionDegraded)
	degraded := c != nil && c.Status == metav1.ConditionTrue
	if degraded && c.Reason != podsFail || !degraded && status == metav1.ConditionFalse {
		return
	}
	if j.status.SetCondition(trainingjob.ConditionDegraded, status, reason, message, j.object.Generation, b.clock.Now()) {
		j.dirty = true
		b.work.write(j.uid)
	}
}
