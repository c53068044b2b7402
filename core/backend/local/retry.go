package local

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

// failure is that a run of a job failed, or came to an end that was no fault of its own, or could not be started.
type failure struct {
	cause core.Cause
	why   string      // one sentence
	where []core.Seat // devices that may be why; none for certainly not
	at    float64     // seconds of the run
}

// tally is how many runs of a job ended for a cause, and how many may.
type tally struct {
	count   *int
	most    int
	counted bool // there is a bound
}

// tallyOf is the tally for a cause. What was preempted or drained never counts.
func (j *job) tallyOf(c core.Cause) tally {
	p := &j.Process
	bounded := func(count *int, most *int) tally {
		if most == nil {
			return tally{}
		}
		return tally{count, *most, true}
	}
	switch c {
	case core.CauseExited:
		return tally{&j.run.Failures, p.Retries, true}
	case core.CauseNeverBegan:
		return bounded(&j.run.Unstarted, p.StartRetries)
	case core.CauseNodeFailed, core.CauseDeviceLost, core.CauseKilled:
		return bounded(&j.run.Losses, p.LostRetries)
	default:
		return tally{}
	}
}

// count counts an end of the run that was decided last, once, whichever scheduler sees it. It reports whether the job may be tried again.
func (b *Backend) count(j *job, t tally) (again bool) {
	r := &j.run
	known := r.Counted == j.decided && j.decided > 0 || r.Counted == 0 && r.RetrySeconds > 0 // by a scheduler before this one, perhaps an older one
	if !known {
		*t.count++
		r.Counted, r.RetrySeconds = j.decided, 0
	}
	if *t.count > t.most {
		return false
	}
	b.uncounted = append(b.uncounted, j)
	return true
}

// failed has a job that failed wait, without devices, until it is tried again on others, or gives it up.
func (b *Backend) failed(j *job, t tally, f failure) {
	r := &j.run
	again := b.count(j, t)
	b.log.Warn("a run failed", "job", j.Spec.Name, "run", r.Number, "reason", f.why, "retries_left", max(t.most-*t.count+1, 0))
	j.leave(f.at)
	if !again {
		b.fail(j, f.why, f.at)
		return
	}
	if r.RetrySeconds == 0 {
		r.RetrySeconds = f.at + b.seconds(b.retryDelay(*t.count))
	}
	when := "at once"
	if wait := time.Duration((r.RetrySeconds - f.at) / b.config.Speedup * 1e9).Round(time.Millisecond); wait > 0 {
		when = fmt.Sprintf("in %v", wait)
	}
	f.why = fmt.Sprintf("%s; retry %d of %d %s", f.why, *t.count, t.most, when)
	if where := b.describe(f.where); where != "" {
		f.why += ", not on " + where + " if other devices are free"
	}
	b.interrupt(j, f)
	b.events[len(b.events)-1].NotBeforeSeconds = r.RetrySeconds
}

// lost has an elastic job continue on the devices that are left, and any other wait for new ones, unless that happened to it too often.
func (b *Backend) lost(j *job, left []core.Seat, f failure) {
	if b.shrink(j, left, f, 0) {
		return
	}
	if t := j.tallyOf(f.cause); t.counted && !b.count(j, t) {
		j.leave(f.at)
		b.fail(j, f.why, f.at)
		return
	}
	j.leave(f.at)
	b.interrupt(j, f)
}

// shrink has an elastic job continue on the devices that are left, if these are enough: it is started again there, from its checkpoint. It gets no more before a
// moment.
func (b *Backend) shrink(j *job, left []core.Seat, f failure, notBefore float64) bool {
	n := core.Replicas(left)
	if n == 0 || n < j.Spec.MinReplicas || n >= core.Replicas(j.seats) {
		return false
	}
	j.progress = j.keeps(f.at)
	j.seats, j.decided = left, b.journal.Rounds()+1
	if f.cause == core.CauseKilled {
		j.shrunk = j.decided
	}
	j.tuning.BatchByReplica = nil
	j.begin(f.at)
	b.unsettled = true
	e := j.progressed(f.at)
	e.Kind, e.Seats, e.Cause, e.NotBeforeSeconds = core.JobShrunk, left, f.cause, notBefore
	e.Message = fmt.Sprintf("%s; it continues with %d of %d replicas", f.why, n, len(j.run.Names))
	b.log.Warn("a job lost replicas", "job", j.Spec.Name, "run", j.run.Number, "reason", f.why, "replicas_left", n)
	b.events = append(b.events, e)
	return true
}

// loses says what comes of a run that failed by itself.
func (b *Backend) loses(j *job, e *keeper.Exit, at float64) {
	where := b.seatsOf(j, e.Failed)
	f := failure{core.CauseExited, e.Reason, where, at}
	if e.Killed && !j.rigid {
		killed := f
		killed.cause = core.CauseKilled
		decided, times := j.decided, j.run.Shrunk
		if j.run.Counted != decided { // a scheduler before this one may have counted it
			times++
		}
		if b.shrink(j, core.SeatsWithout(j.seats, where), killed, at+b.seconds(b.retryDelay(times))) {
			j.run.Shrunk, j.run.Counted = times, decided
			b.uncounted = append(b.uncounted, j)
			return
		}
	}
	if t := j.tallyOf(core.CauseNeverBegan); t.counted && slices.Contains(e.Codes, -1) {
		b.failed(j, t, failure{core.CauseNeverBegan, e.Reason, where, at})
		return
	}
	b.failed(j, j.tallyOf(core.CauseExited), f)
}

// seatsOf are those of some replicas of a job; of all where nobody knows which.
func (b *Backend) seatsOf(j *job, ranks []int) (seats []core.Seat) {
	if len(ranks) == 0 {
		return j.seats
	}
	rank := 0
	for _, s := range j.seats {
		some := core.Seat{Node: s.Node}
		for _, device := range s.Devices.List() {
			if slices.Contains(ranks, rank) {
				some.Devices |= 1 << device
			}
			rank++
		}
		if some.Devices != 0 {
			seats = append(seats, some)
		}
	}
	return seats
}

// describe names devices, as in "a:0,1 b:0"; of many nodes it says how many.
func (b *Backend) describe(seats []core.Seat) string {
	const most = 4
	if len(seats) > most {
		return fmt.Sprintf("the same devices of %d nodes", len(seats))
	}
	var list []string
	for _, s := range seats {
		list = append(list, fmt.Sprintf("%s:%s", b.cluster.Nodes[s.Node].Name, s.Devices))
	}
	return strings.Join(list, " ")
}

// retryDelay is how long a job waits that has failed so often.
func (b *Backend) retryDelay(failures int) time.Duration {
	delay := b.config.RetryDelay
	for range failures - 1 {
		if delay == 0 || delay >= b.config.RetryDelayMax {
			break
		}
		delay *= 2 // of less than a day
	}
	return min(delay, b.config.RetryDelayMax)
}

// countFailures records how often runs failed before anybody is told, so that a scheduler after this one knows how many there were, and how long to wait.
func (b *Backend) countFailures() error {
	if len(b.uncounted) == 0 {
		return nil
	}
	if err := b.store.begin(b.uncounted); err != nil {
		return fmt.Errorf("record failures: %w", err)
	}
	b.uncounted = b.uncounted[:0]
	return nil
}

// retries is when a job that failed and waits may be tried again; +Inf for one that does not.
func (j *job) retries() float64 {
	if j.run.RetrySeconds == 0 || j.seats != nil || j.ended || !j.submitted {
		return math.Inf(1)
	}
	return j.run.RetrySeconds
}

// waitedSeconds is until when a job that failed waited, or is to wait: that is no stall. 0 for one that did not.
func (b *Backend) waitedSeconds(j *job) float64 {
	if b.config.RetryDelay == 0 || j.ended {
		return 0
	}
	return j.run.RetrySeconds
}

// retryDue is when a round is due for a job that failed: none was held since it may be tried again.
func (b *Backend) retryDue(w core.Wake) float64 {
	due := math.Inf(1)
	for _, j := range b.jobs {
		if at := j.retries(); at > b.now {
			due = min(due, at)
		}
	}
	if w.OnEvents || math.IsInf(due, 1) {
		return due
	}
	return onGrid(due, w)
}

// repeatedInPlace takes in a run in the place of one that failed, which an older scheduler started on the same devices after the last recorded round.
func (b *Backend) repeatedInPlace(j *job) {
	r := &j.run
	if r.Why == "" || !j.wanted() || r.BeganSeconds <= j.asOf || r.RetrySeconds > 0 {
		return
	}
	j.progress = r.From
	j.begin(r.BeganSeconds)
	again := j.progressed(max(r.BeganSeconds, b.now))
	again.Message = r.Why
	b.events = append(b.events, again)
}

// neverStarted takes in that a run could not be started, which is the job's own fault.
func (b *Backend) neverStarted(j *job, err error, now float64) {
	b.log.Warn("a run could not be started", "job", j.Spec.Name, "error", err)
	if t := j.tallyOf(core.CauseNeverBegan); t.counted {
		b.failed(j, t, failure{cause: core.CauseNeverBegan, why: err.Error(), at: now})
		return
	}
	j.leave(now)
	b.fail(j, err.Error(), now)
}
