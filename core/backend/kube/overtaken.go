package kube

import (
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// leaves notes that a decision ends the present run, if there is one, for this scheduler and for the next. Of a run whose pods nobody has
// driven yet there is nothing to note: what the one before it came to is still to be seen.
func (j *job) leaves(next *trainingjob.Decision) {
	if len(j.seats) > 0 && j.driven == next.Run {
		j.past = gang.Past{Run: next.Run, Pods: len(j.seats)}
		next.Stopped = &trainingjob.Stopped{Run: next.Run, Pods: len(j.seats)}
	}
}

// pastOf is the last run that was told to stop, as those that drive pods know it. A job that speaks says when it is done. The lock is
// held.
func (b *Backend) pastOf(j *job) gang.Past {
	if j.deleted || j.past.Pods == 0 {
		return gang.Past{}
	}
	past := j.past
	spoke, done := b.door.done(keyOf(j.uid, past.Run))
	past.Unfinished = spoke && !done
	return past
}
