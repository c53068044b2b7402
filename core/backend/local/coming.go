package local

import (
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

var _ backend.Expecting = (*Backend)(nil)

// PendingSubmissions lists the jobs that the pipeline did not get before the run ended, by moment of submission: results hold them too.
// It is for the goroutine of the scheduler.
func (b *Backend) PendingSubmissions() (list []*core.Job) {
	b.takeIn()
	var awaited []*job
	for _, j := range b.jobs {
		if !j.told {
			awaited = append(awaited, j)
		}
	}
	slices.SortFunc(awaited, compareComing)
	for _, j := range awaited {
		list = append(list, core.NewJob(j.KnownSpec()))
	}
	return list
}

// Ended returns how and when a job ended whose end the pipeline may not have got: a process that is gone has ended, and
// whoever cancelled a job has the answer that it is. NaN is for one that was cancelled and whose moment of submission has not
// come: it ends then. It is for the goroutine of the scheduler.
func (b *Backend) Ended(id core.JobID) (state core.JobState, atSeconds float64, is bool) {
	for i := range b.events {
		if e := &b.events[i]; e.Job == id {
			switch e.Kind {
			case core.JobFinished:
				return core.Completed, e.AtSeconds, true
			case core.JobFailed:
				return core.Failed, e.AtSeconds, true
			}
		}
	}
	j := b.jobs[id]
	if !j.submitted && j.Spec.SubmitSeconds > b.elapsed() {
		return core.Cancelled, math.NaN(), j.cancelled
	}
	return core.Cancelled, max(j.Spec.SubmitSeconds, b.now, j.cancelledAt), j.cancelled
}

// Coming lists the jobs whose moment of submission has not come.
func (b *Backend) Coming(ctx context.Context) ([]backend.Coming, error) {
	var list []backend.Coming
	if err := b.wanted.Give(ctx, func() error {
		for _, j := range b.coming {
			list = append(list, backend.Coming{JobSpec: *j.KnownSpec(), Cancelled: j.cancelled})
		}
		return nil
	}); err != nil {
		return nil, err // it may be carried out all the same: the list is not to be touched
	}
	return list, nil
}
