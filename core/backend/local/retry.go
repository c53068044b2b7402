package local

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// failed repeats a job on its devices after a while, or gives it up.
func (b *Backend) failed(j *job, reason string, at float64) {
	r := &j.run
	if r.RetrySeconds > 0 { // a scheduler before this one counted it, and did not get to repeat it
		j.again = true
		if j.asOf < r.BeganSeconds { // nor to record what it told
			j.progress, j.asOf, j.rate = r.From, r.BeganSeconds, 0
			b.tellAgain(j, max(r.BeganSeconds, b.now))
		}
		return
	}
	r.Failures++
	b.log.Warn("a run failed", "job", j.Spec.Name, "run", r.Number, "reason", reason, "retries_left", max(j.Process.Retries-r.Failures+1, 0))
	if r.Failures > j.Process.Retries {
		j.leave(at)
		b.fail(j, reason, at)
		return
	}
	j.again = true
	j.progress = j.keeps(at)
	j.begin(at)
	r.Why, r.BeganSeconds, r.From = fmt.Sprintf("begins again, for run %d failed: %s", r.Number, reason), at, j.progress
	if delay := b.retryDelay(r.Failures); delay > 0 {
		r.Why = fmt.Sprintf("begins again in %v, for run %d failed: %s", delay, r.Number, reason)
		r.RetrySeconds = at + b.seconds(delay)
		b.uncounted = append(b.uncounted, j)
		j.rate = 0 // until it does
	}
	b.tellAgain(j, at)
}

// tellAgain tells that a job begins again, and why.
func (b *Backend) tellAgain(j *job, at float64) {
	again := j.progressed(at)
	again.Message = j.run.Why
	b.events = append(b.events, again)
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

// countFailures records the failures of runs that are to be repeated, so that a scheduler after this one knows how many there were, and how long to wait.
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

// retries is when a job that failed is repeated; +Inf for one that is not, or has begun.
func (j *job) retries() float64 {
	if !j.again || j.seats == nil || j.ended || j.watched {
		return math.Inf(1)
	}
	return j.run.RetrySeconds
}

// waitsToRetry reports whether the job is to run and has to wait, as it failed.
func (j *job) waitsToRetry(now float64) bool { return now < j.run.RetrySeconds }

// retrying reports whether a job waits to be repeated.
func (b *Backend) retrying() bool {
	return slices.ContainsFunc(b.jobs, func(j *job) bool { return !math.IsInf(j.retries(), 1) })
}

// retried begins to count the work of a job that waited to be repeated.
func (b *Backend) retried(j *job) {
	if j.run.Waited {
		j.begin(j.run.BeganSeconds)
		b.lastWork = min(b.lastWork+j.run.BeganSeconds-j.run.FailedSeconds, j.run.BeganSeconds) // the wait was no stall
		b.events = append(b.events, j.progressed(j.run.BeganSeconds))
	}
}
