package metrics

import (
	"bufio"
	"math"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

const jobsHeader = "job,name,application,submit_s,first_start_s,finish_s,jct_s,queueing_s,replicas_mean,restarts,gpu_seconds,outcome\n"

// The columns that only some runs have, in this order.
const (
	deadlineColumn   = "deadline_s"
	costColumn       = "cost"
	tierColumn       = "tier"
	shareColumn      = "share_milli"
	profileColumn    = "mig_profile"
	sharedColumn     = "shared_s"
	lostColumn       = "lost_s"
	experimentColumn = "experiment"
)

// more is which of these there are: where some job has a deadline, where there are pools, where some job has a tier, where some job asks for a
// part of its devices or these are divided into slices, where devices are shared, where some job was slowed down by others, and where some job is
// a trial of a search.
type more struct {
	deadlines bool
	pools     *bill // nil for none
	tiers     bool
	sharing   *sharingBooks // nil for none
	cluster   *core.Cluster
	searches  bool // some job is a trial of a search
}

func (m more) header() string {
	header := strings.TrimSuffix(jobsHeader, "\n")
	if m.deadlines {
		header += "," + deadlineColumn
	}
	if m.pools != nil {
		header += "," + costColumn
	}
	if m.tiers {
		header += "," + tierColumn
	}
	if m.sharing != nil {
		switch {
		case m.cluster.Sharing == core.Mig:
			header += "," + profileColumn
		case m.sharing.asks:
			header += "," + shareColumn
		}
		if header += "," + sharedColumn; m.sharing.lost {
			header += "," + lostColumn
		}
	}
	if m.searches {
		header += "," + experimentColumn
	}
	return header + "\n"
}

// outcome is how a job ended, as far as the run went.
type outcome uint8

const (
	unfinished outcome = iota
	completed
	rejected
	failed
	cancelled
)

var outcomeNames = [...]string{"unfinished", "completed", "rejected", "failed", "cancelled"}

// record is what is kept of a submitted job. It is small: a trace has many.
type record struct {
	spec        *core.JobSpec
	firstStart  float64  // NaN when the job never started
	finish      float64  // NaN unless completed, failed or cancelled
	executed    float64  // seconds with devices
	attained    float64  // device-seconds
	before      float64  // of those, what it had when it was submitted: other runs of the scheduler saw it
	demanded    demanded // by all jobs: up to the submission, then over the job's life
	restarts    int32
	preemptions int32
	part        float64     // of a device that each replica has; 1 as a rule
	share       *core.Share // that part, as it had it last; nil for a whole device
	outcome     outcome
	left        bool // no longer part of the demand
	admitted    bool // it had devices, or waited for them only
}

// settle takes over the final accounts of a job.
func (r *record) settle(j *core.Job, nowSeconds float64) {
	r.firstStart, r.finish = j.FirstStart, math.NaN()
	r.executed, r.attained = j.ExecutedSeconds(nowSeconds), j.AttainedService(nowSeconds)
	r.admitted = !math.IsNaN(j.FirstStart) || j.State == core.Waiting || j.State == core.Running
	r.restarts, r.preemptions = int32(j.Restarts), int32(j.Preemptions)
	r.share = j.Share
	switch j.State {
	case core.Completed:
		r.outcome, r.finish = completed, j.FinishSeconds
	case core.Failed:
		r.outcome, r.finish = failed, j.FinishSeconds
	case core.Rejected:
		r.outcome = rejected
	case core.Cancelled:
		r.outcome, r.finish = cancelled, j.FinishSeconds
	default:
		r.outcome = unfinished
	}
}

// jct is the time from submission to completion; NaN for a job that did not complete.
func (r *record) jct() float64 {
	if r.outcome != completed {
		return math.NaN()
	}
	return r.finish - r.spec.SubmitSeconds
}

// queueing is the time from submission to the first start; NaN for a job that never started.
func (r *record) queueing() float64 { return r.firstStart - r.spec.SubmitSeconds }

// started reports whether the accounts of the job are known and it ever held devices.
func (r *record) started() bool { return !math.IsNaN(r.firstStart) }

// replicasMean is the number of devices held, averaged over the time with devices. Of a job that computes on CPUs alone it is 0.
func (r *record) replicasMean(t *typeBooks) float64 {
	if t == nil || r.share == nil || r.attained == 0 {
		return r.attained / r.executed
	}
	mean := t.replicaSeconds(r.spec.ID) / r.executed
	if whole := math.Round(mean); math.Abs(mean-whole) <= 1e-12*whole { // seconds and replicas are summed up apart, and rounded
		return whole
	}
	return mean
}

func (r *record) write(w *bufio.Writer, m more, t *typeBooks) error {
	b := w.AvailableBuffer()
	b = strconv.AppendInt(b, int64(r.spec.ID), 10)
	b = append(b, ',')
	b = AppendCell(b, r.spec.Name)
	b = append(b, ',')
	b = AppendCell(b, r.spec.Application)
	for _, x := range [...]float64{r.spec.SubmitSeconds, r.firstStart, r.finish, r.jct(), r.queueing(), r.replicasMean(t)} {
		b = append(b, ',')
		b = AppendNumber(b, x)
	}
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(r.restarts), 10)
	b = append(b, ',')
	b = AppendNumber(b, r.attained)
	b = append(b, ',')
	b = append(b, outcomeNames[r.outcome]...)
	if m.deadlines {
		b = append(b, ',')
		b = AppendNumber(b, deadlineOf(r.spec))
	}
	if m.pools != nil {
		b = append(b, ',')
		b = AppendNumber(b, m.pools.cost(r.spec.ID))
	}
	if m.tiers {
		b = append(append(b, ','), r.spec.Tier...)
	}
	if m.sharing != nil {
		b = m.appendSharing(b, r)
	}
	if m.searches {
		b = AppendCell(append(b, ','), r.spec.Experiment)
	}
	_, err := w.Write(append(b, '\n'))
	return err
}

// appendSharing appends the cells of a job about who shares its devices.
func (m more) appendSharing(b []byte, r *record) []byte {
	switch {
	case m.cluster.Sharing == core.Mig:
		b = append(append(b, ','), profileOf(r.share)...)
	case m.sharing.asks:
		if b = append(b, ','); r.share != nil {
			b = strconv.AppendInt(b, int64(r.share.Milli), 10)
		}
	}
	b = AppendNumber(append(b, ','), m.sharing.companySeconds(r))
	if m.sharing.lost {
		b = AppendNumber(append(b, ','), m.sharing.lostSeconds(r))
	}
	return b
}

// profileOf is the MIG profile of the slices that a job has where devices are divided so; empty where it has none.
func profileOf(share *core.Share) string {
	return (&core.JobSpec{Share: share}).Profile()
}

// deadlineOf is how long after its submission a job is to be done; NaN for whenever.
func deadlineOf(spec *core.JobSpec) float64 {
	if spec.DeadlineSeconds == 0 {
		return math.NaN()
	}
	return spec.DeadlineSeconds
}
