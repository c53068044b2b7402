//go:build linux

package kube

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube/trainingjob"
)

// setClock is as late as it is set.
type setClock struct{ at time.Time }

func (c *setClock) Now() time.Time                       { return c.at }
func (c *setClock) After(time.Duration) <-chan time.Time { return nil }

// forecastingBackend is a backend that knows so many jobs that wait, and a moment of its run is a second of its clock.
func forecastingBackend(t *testing.T, jobs int) (*Backend, *setClock) {
	t.Helper()
	clock := &setClock{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	b := &Backend{clock: clock, known: map[types.UID]*job{}, work: newLabour()}
	t.Cleanup(b.work.end)
	b.state.Store(newRun(clock.at, clock.at, 0))
	for i := range jobs {
		id := int32(i)
		uid := types.UID(fmt.Sprintf("%06d", i))
		b.known[uid] = newJob(&trainingjob.TrainingJob{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: trainingjob.Status{ID: &id, State: trainingjob.Waiting}})
	}
	return b, clock
}

// writtenBy lists the jobs whose statuses are written by now.
func (b *Backend) writtenBy(now time.Time) (list []types.UID) {
	for uid, j := range b.known {
		if j.putOutlook(now); j.dirty {
			list = append(list, uid)
		}
		j.dirty = false
	}
	return list
}

func waits(id core.JobID, at, start, end float64) backend.Expected {
	band := func(x float64) backend.ExpectedBand {
		return backend.ExpectedBand{Low: x - 10, Median: x, High: x + 10}
	}
	return backend.Expected{Job: id, AtSeconds: at, Position: 1, Start: band(start), End: band(end)}
}

// However many jobs there are, and however wildly what is expected of them changes, few writes come of it, each job has its turn, and where little changes nothing is written.
func TestFewWritesOfOutlooks(t *testing.T) {
	for name, tc := range map[string]struct {
		jobs        int
		end         func(round, job int) float64
		writes      [2]int // in ten minutes, least and most
		atMost      int    // in any of them
		mostOfAJob  int
		leastOfAJob int
	}{
		"all change all the time":     {1000, func(round, _ int) float64 { return 1e5 * float64(1+round/6%2) }, [2]int{1000, 1201}, 121, 2, 1},
		"a few change all the time":   {10, func(round, _ int) float64 { return 1e5 * float64(1+round/6%2) }, [2]int{80, 100}, 10, 10, 8},
		"all change by a little":      {1000, func(round, _ int) float64 { return 1e5 + 4000*float64(round/6%2) }, [2]int{1000, 1000}, 121, 1, 1},
		"nothing is foreseen of them": {10, func(int, int) float64 { return math.Inf(1) }, [2]int{10, 10}, 10, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b, clock := forecastingBackend(t, tc.jobs)
			total, most := 0, 0
			writes := map[types.UID]int{}
			for minute := range 10 {
				within := 0
				for i := range 6 {
					var list []backend.Expected
					for id := range tc.jobs {
						at := b.Present()
						list = append(list, waits(core.JobID(id), at, at+tc.end(6*minute+i, id)/5, at+tc.end(6*minute+i, id)))
					}
					b.ReportForecasts(list)
					clock.at = clock.at.Add(10 * time.Second)
					for _, uid := range b.writtenBy(clock.at) {
						writes[uid]++
						within++
					}
				}
				total += within
				most = max(most, within)
			}
			least, mostOfOne := math.MaxInt, 0
			for uid := range b.known {
				least, mostOfOne = min(least, writes[uid]), max(mostOfOne, writes[uid])
			}
			if total < tc.writes[0] || total > tc.writes[1] || most > tc.atMost || least < tc.leastOfAJob || mostOfOne > tc.mostOfAJob {
				t.Errorf("%d writes, at most %d a minute, %d to %d of a job; want %+v", total, most, least, mostOfOne, tc)
			}
		})
	}
}

// What a status tells is as of the moment at which the job is: of one that has devices no start, of one that ended nothing, and of what another leader expected until it is
// known better. What the API server could not keep is left out.
func TestOutlookOfAStatus(t *testing.T) {
	b, _ := forecastingBackend(t, 1)
	j := b.known["000000"]
	now := metav1.NewTime(b.clock.Now().UTC())
	old := &trainingjob.Forecast{At: now, Position: 7}
	moment := func(seconds float64) *metav1.Time {
		at := metav1.NewTime(now.Add(time.Duration(seconds) * time.Second))
		return &at
	}
	band := func(x float64) *trainingjob.Band {
		return &trainingjob.Band{Low: moment(x - 10), Median: moment(x), High: moment(x + 10)}
	}
	far := waits(0, 0, 100, 200)
	far.End = backend.ExpectedBand{Low: 190, Median: 1e12, High: math.Inf(1)}
	never := waits(0, 0, 100, 200)
	never.End = backend.ExpectedBand{Low: math.Inf(1), Median: math.Inf(1), High: math.Inf(1)}
	usual := waits(0, 0, 100, 200)
	for name, tc := range map[string]struct {
		state trainingjob.State
		told  *backend.Expected
		want  *trainingjob.Forecast
	}{
		"it waits":                       {trainingjob.Waiting, &usual, &trainingjob.Forecast{At: now, Position: 1, Start: band(100), End: band(200)}},
		"it was given devices meanwhile": {trainingjob.Starting, &usual, &trainingjob.Forecast{At: now, End: band(200)}},
		"it ended meanwhile":             {trainingjob.Completed, &usual, nil},
		"a new leader knows nothing yet": {trainingjob.Waiting, nil, old},
		"it ended under a new leader":    {trainingjob.Failed, nil, nil},
		"its end is far":                 {trainingjob.Waiting, &far, &trainingjob.Forecast{At: now, Position: 1, Start: band(100), End: &trainingjob.Band{Low: moment(190)}}},
		"its end is not foreseen":        {trainingjob.Waiting, &never, &trainingjob.Forecast{At: now, Position: 1, Start: band(100), End: &trainingjob.Band{}}},
	} {
		t.Run(name, func(t *testing.T) {
			j.expected, j.outlookAt, j.outlookDue, b.outlookAt, j.dirty = nil, time.Time{}, false, time.Time{}, false
			j.status.Forecast, j.status.State = old, trainingjob.Waiting
			if tc.told != nil {
				b.ReportForecasts([]backend.Expected{*tc.told})
			}
			j.status.State, j.dirty = tc.state, true
			j.putOutlook(b.clock.Now())
			if diff := cmp.Diff(tc.want, j.status.Forecast); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := json.Marshal(j.status); err != nil {
				t.Error(err)
			}
		})
	}
	(&Backend{}).ReportForecasts([]backend.Expected{usual}) // it does not lead yet
}

// The API server keeps what is expected of a job, as long as it has not ended.
func TestOutlookIsWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t, sharedOrStandIn(t))
	s := r.schedule(nil)
	s.hears("node_added b")
	r.submit("runs", asked{})
	r.becomes("runs", trainingjob.Running)
	r.submit("wide", asked{replicas: 9})
	r.becomes("wide", trainingjob.Pending)
	now := s.backend.Present()
	var list []backend.Expected
	for _, name := range []string{"runs", "wide"} {
		list = append(list, waits(core.JobID(*r.job(name).Status.ID), now, now+100, now+200))
	}
	list[1].End.High = math.Inf(1)
	s.backend.ReportForecasts(list)
	r.await("what is expected is written", func() bool {
		runs, wide := r.job("runs").Status.Forecast, r.job("wide").Status.Forecast
		return runs != nil && runs.Start == nil && runs.End.High.Sub(runs.At.Time) == 210*time.Second &&
			wide != nil && wide.Position == 1 && wide.Start.Median.Sub(wide.At.Time) == 100*time.Second && wide.End.High == nil && wide.End.Low != nil
	})
	for _, p := range r.podsOf("runs") { // it ends when what was expected of it has been seen
		r.patch(&p, `{"status":{"phase":"Succeeded"}}`, "status")
	}
	r.becomes("runs", trainingjob.Completed)
	r.await("nothing is expected of a job that ended", func() bool { return r.job("runs").Status.Forecast == nil })
}
