package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/kube/gang"
)

// fewTries is how often in a row the write of a status fails, by one of the answers that may be about all jobs as well, before it is
// found that they are about this one.
const fewTries = 3

// refused is how often in a row the status of a job was not taken.
type refused struct {
	times   int
	renewed time.Time // the last renewal of the term before the first time
}

// leaveBehind takes those errors away that are one job's own trouble: the status of that job is written beside the rounds, when it
// can be. All others stay.
//
// An answer that may be about all jobs counts as one job's own when it came fewTries times in a row, while the lease was renewed, and
// so the store takes writes, and while the API server would take the status of another job. An API server that does not answer, or
// is asked for too much, is never one job's trouble.
func (b *Backend) leaveBehind(ctx context.Context, jobs []*job, errs []error) {
	failed := map[types.UID]bool{}
	for i, j := range jobs {
		if errs[i] != nil {
			failed[j.uid] = true
		}
	}
	asked, others := false, false
	for i, j := range jobs {
		err := errs[i]
		switch {
		case err == nil:
			j.refused = refused{}
			delete(b.behind, j.uid)
			continue
		case errors.Is(err, errFollows):
		case refusesStatus(err):
			j.refused.times++
		case mayBeOwn(err):
			if !asked {
				asked, others = true, b.takesOthers(ctx, failed)
			}
			if !others {
				j.refused = refused{} // it counts anew: this was no job's own trouble, and it may be about to end
				continue
			}
			if j.refused.times++; j.refused.times == 1 {
				j.refused.renewed = b.term.Renewed()
			}
			if j.refused.times < fewTries || !b.term.Renewed().After(j.refused.renewed) {
				errs[i] = &core.Unavailable{Cause: err} // whatever rights lack, they are not those of this scheduler
				continue
			}
		default:
			continue
		}
		errs[i] = nil
		b.behind[j.uid] = j
		b.work.writes.AddRateLimited(j.uid)
		if errors.Is(err, errFollows) {
			continue // the one that it follows is told
		}
		b.failed("cannot write the status of a job", j.uid, j.refused.times, err)
		b.takeBack(j, err)
	}
}

// takeBack takes back a start that nobody knows of: its devices are for others. A job that has devices by what is written keeps them.
func (b *Backend) takeBack(j *job, err error) {
	j.mutex.Lock()
	nothing, starts := len(j.writtenSeats()) == 0, len(j.seats) > 0
	j.mutex.Unlock()
	if !nothing || !starts || j.ended || j.losing {
		return
	}
	b.lose(j, b.now, core.CauseRefused, "StatusRefused", err.Error())
	b.holdBack(j, b.now)
}

// refusesStatus reports whether it is the status itself that an API server does not take, invalid or too large: it takes others.
func refusesStatus(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || err != nil && strings.Contains(err.Error(), "etcdserver: request is too large")
}

// mayBeOwn reports whether an answer may be about one job alone: a webhook or a policy refuses it or fails, or somebody writes it all
// the time.
func mayBeOwn(err error) bool {
	var words apierrors.APIStatus
	answered := errors.As(err, &words)
	return errors.Is(err, errChanges) || apierrors.IsForbidden(err) || answered && words.Status().Code == http.StatusInternalServerError
}

// others is how many jobs are tried at most before it is found that no status is taken.
const others = 3

// takesOthers reports whether an API server would take the status of a job beside those whose status it did not take.
func (b *Backend) takesOthers(ctx context.Context, failed map[types.UID]bool) bool {
	b.world.mutex.Lock()
	jobs := slices.Collect(maps.Values(b.world.byUID))
	b.world.mutex.Unlock()
	asked := 0
	for _, object := range jobs {
		if failed[object.UID] || b.behind[object.UID] != nil || object.DeletionTimestamp != nil {
			continue
		}
		if asked++; asked > others || b.fence() != nil {
			return false
		}
		call, cancel := context.WithTimeout(ctx, b.patience())
		_, err := b.clients.jobs.Of(object.Namespace).Patch(call, object.Name, types.MergePatchType, []byte(`{"status":{}}`),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, "status")
		cancel()
		if err == nil {
			_ = b.trouble(nil)
			return true
		}
	}
	return false
}

// errFollows is of a job whose decision is written after those of others.
var errFollows = errors.New("others have its devices by what is written")

// inTheWay are the jobs left behind that have devices, by what is written, which a job is to have: who takes over would find them in
// two decisions. Of two that wait for each other one goes first.
func (b *Backend) inTheWay(j *job) (list []*job) {
	j.mutex.Lock()
	seats := slices.Clone(j.seats)
	j.mutex.Unlock()
	for uid, other := range b.behind {
		other.mutex.Lock()
		had, done := other.writtenSeats(), other.deleted || other.written()
		other.mutex.Unlock()
		switch {
		case done:
			other.refused = refused{}
			delete(b.behind, uid)
		case other != j && overlap(seats, had) && !other.waits(j):
			list = append(list, other)
		}
	}
	return list
}

// writtenSeats are those that the job has by what is written.
func (j *job) writtenSeats() []gang.Seat {
	d := j.object.Status.Decision
	if d == nil || d.Stop {
		return nil
	}
	seats, _ := seatsOf(d)
	return seats
}

func overlap(a, b []gang.Seat) bool {
	return slices.ContainsFunc(a, func(x gang.Seat) bool {
		return slices.ContainsFunc(b, func(y gang.Seat) bool { return x.Node == y.Node && x.Devices&y.Devices != 0 })
	})
}

// first are the jobs whose decisions are to be written before that of a job.
func (j *job) first() (list []*job) {
	j.mutex.Lock()
	if len(j.seats) == 0 {
		j.after = nil // it was stopped since
	}
	after := j.after
	j.mutex.Unlock()
	for _, other := range after {
		other.mutex.Lock()
		if !other.deleted && !other.written() {
			list = append(list, other)
		}
		other.mutex.Unlock()
	}
	return list
}

// waits reports whether a job waits for another one, or for one that does.
func (j *job) waits(other *job) bool {
	return slices.ContainsFunc(j.first(), func(k *job) bool { return k == other || k.waits(other) })
}

// follows is nil if the decision of a job may be written.
func (j *job) follows() error {
	if first := j.first(); len(first) > 0 {
		return fmt.Errorf("%w: those of %s/%s", errFollows, first[0].namespace, first[0].name)
	}
	return nil
}
