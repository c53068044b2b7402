package kube

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// What is expected of a job is in its status. It goes along when something else is written there. For its own sake it is written only if it changed much, not
// often, and one job after the other: a large cluster has no more such writes than one of some hundred jobs.
const (
	outlookEvery  = time.Minute     // of a job, at the most often
	outlookGap    = time.Second / 2 // between two jobs
	outlookAhead  = 5 * time.Minute // for so long at most a job is to have its turn
	outlookChange = 0.1             // of the time to come
)

var _ backend.ForecastReporter = (*Backend)(nil)

// ReportForecasts writes what is expected of jobs into their statuses.
func (b *Backend) ReportForecasts(list []backend.Expected) {
	state := b.state.Load()
	if state == nil {
		return // it does not lead
	}
	b.forecasting.Lock()
	defer b.forecasting.Unlock()
	b.mutex.Lock()
	jobs := slices.Collect(maps.Values(b.known))
	b.mutex.Unlock()
	byID := make(map[core.JobID]*job, len(jobs))
	for _, j := range jobs {
		j.mutex.Lock()
		if id := j.status.ID; id != nil {
			byID[core.JobID(*id)] = j
		}
		j.mutex.Unlock()
	}
	now := b.clock.Now()
	var due []*job
	for i := range list {
		if j := byID[list[i].Job]; j != nil && j.expect(state.outlook(&list[i]), now) {
			due = append(due, j)
		}
	}
	slices.SortFunc(due, func(x, y *job) int { return cmp.Or(x.outlookAt.Compare(y.outlookAt), cmp.Compare(x.uid, y.uid)) })
	for _, j := range due {
		if b.outlookAt.Before(now) {
			b.outlookAt = now
		}
		if b.outlookAt.Sub(now) > outlookAhead {
			return
		}
		j.mutex.Lock()
		j.outlookAt, j.outlookDue = b.outlookAt, true
		j.mutex.Unlock()
		b.work.writes.AddAfter(j.uid, b.outlookAt.Sub(now))
		b.outlookAt = b.outlookAt.Add(outlookGap)
	}
}

// expect takes in what is expected of a job, and reports whether that is worth a write.
func (j *job) expect(f *trainingjob.Forecast, now time.Time) bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.expected = f
	return !j.deleted && !j.status.State.Ended() && now.Sub(j.outlookAt) >= outlookEvery && differs(j.status.Forecast, j.outlook())
}

// outlook is what is expected of a job as it is by now. The lock is held.
func (j *job) outlook() *trainingjob.Forecast {
	f := j.expected
	if f == nil || j.status.State.Ended() {
		return nil
	}
	if s := j.status.State; f.Start != nil && (s == trainingjob.Starting || s == trainingjob.Running) { // it has devices since
		with := *f
		with.Start, with.Position = nil, 0
		return &with
	}
	return f
}

// putOutlook puts what is expected into the status if that is to be written anyway, or the turn of the job has come, and it is not much the same as what is there. The lock
// is held.
func (j *job) putOutlook(now time.Time) {
	if !j.dirty && (!j.outlookDue || now.Before(j.outlookAt)) {
		return
	}
	j.outlookDue = false
	if j.expected == nil && !j.status.State.Ended() {
		return // what another leader expected
	}
	if f := j.outlook(); differs(j.status.Forecast, f) {
		j.status.Forecast, j.dirty = f, true
	}
}

// outlook is what is expected of a job, as its status has it.
func (r *run) outlook(e *backend.Expected) *trainingjob.Forecast {
	f := &trainingjob.Forecast{At: metav1.NewTime(r.moment(e.AtSeconds).UTC().Truncate(time.Second)), End: r.band(e.End), Judged: e.Judged, Held: e.Held}
	if e.Position > 0 {
		f.Position, f.Start = e.Position, r.band(e.Start)
	}
	return f
}

// band is a band by the calendar, in whole seconds.
func (r *run) band(b backend.ExpectedBand) *trainingjob.Band {
	at := func(seconds float64) *metav1.Time {
		moment := r.moment(seconds)
		if moment.IsZero() {
			return nil
		}
		return &metav1.Time{Time: moment.UTC().Truncate(time.Second)}
	}
	return &trainingjob.Band{Low: at(b.Low), Median: at(b.Median), High: at(b.High)}
}

// differs reports whether people would plan otherwise by one forecast than by another, as seen when the second was made.
func differs(was, is *trainingjob.Forecast) bool {
	if was == nil || is == nil {
		return was != is
	}
	return apart(was.Start, is.Start, is.At.Time) || apart(was.End, is.End, is.At.Time)
}

// apart reports whether two bands differ by more than a part of the time to come.
func apart(was, is *trainingjob.Band, now time.Time) bool {
	if was == nil || is == nil {
		return was != is
	}
	for _, pair := range [...][2]*metav1.Time{{was.Low, is.Low}, {was.Median, is.Median}, {was.High, is.High}} {
		if pair[0] == nil || pair[1] == nil {
			if pair[0] != pair[1] {
				return true
			}
			continue
		}
		ahead := max(pair[1].Sub(now).Seconds(), outlookEvery.Seconds())
		if math.Abs(pair[1].Sub(pair[0].Time).Seconds()) > outlookChange*ahead {
			return true
		}
	}
	return false
}

// sameStatus compares statuses but for what is expected, which an older definition of jobs does not keep.
func sameStatus(a, b trainingjob.Status) bool {
	a.Forecast, b.Forecast = nil, nil
	return equality.Semantic.DeepEqual(a, b)
}
