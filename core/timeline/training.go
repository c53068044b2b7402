package timeline

import (
	"bufio"
	"container/heap"
	"fmt"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

const trainingHeader = "job,initial_batch,seconds,batch_mean,efficiency_mean,goodput_mean\n"

// Truth says how a job trains where it runs, at a progress in the unit of its work: the samples of an optimizer step, what
// a sample gains over one at the initial batch, and how many of the latter a unit of work is worth. It is false for a job that
// does not train at a batch, or cannot run so.
type Truth func(id core.JobID, progress float64, seats []core.Seat, t core.Tuning) (batch int, efficiency, samples float64, ok bool)

// training is how a job trains since a moment, and what that came to before.
type training struct {
	setting
	known   bool
	since   float64
	goodput float64 // useful samples per second

	resumes bool // it pauses until a moment, and goes on at so many samples per second
	at, to  float64

	seconds, batches, efficiencies, useful float64 // while it was known, integrals over time
}

// setting is what a truth tells.
type setting struct {
	batch               int
	efficiency, samples float64
}

// trainedBooks follow how jobs train.
type trainedBooks struct {
	out     *bufio.Writer     // nil when only others need them, as the next
	over    *efficiencyWriter // what they do over time
	truth   Truth
	resumes resumptions
}

// of asks how a job trains now.
func (b *trainedBooks) of(h *holding) (s setting, known bool) {
	s.batch, s.efficiency, s.samples, known = b.truth(h.spec.ID, h.progress, h.seats, h.tuning)
	return s, known
}

// configure asks anew how a job trains that got other devices or another batch. It makes no progress before it is told.
func (r *Recorder) configure(h *holding, now float64) {
	if r.trained == nil || h.seats == nil {
		return
	}
	next, known := r.trained.of(h)
	if h.training == nil && known {
		h.training = &training{since: now}
	}
	if h.training != nil && (known || h.training.known) {
		r.setTraining(h, now, next, known, 0)
	}
}

// train takes in the rate at which a job progresses from a moment on.
func (r *Recorder) train(h *holding, at, rate, from float64) {
	if h.training == nil || !h.training.known {
		return
	}
	next, known := r.trained.of(h)
	goodput := rate * next.samples
	if from > at {
		r.setTraining(h, at, next, known, 0)
		h.training.resumes, h.training.at, h.training.to = true, from, goodput
		heap.Push(&r.trained.resumes, resumption{from, h.spec.ID})
		return
	}
	r.setTraining(h, at, next, known, goodput)
}

// setTraining ends how a job trained so far.
func (r *Recorder) setTraining(h *holding, at float64, next setting, known bool, goodput float64) {
	t := h.training
	if t.resumes && t.at < at {
		r.resume(h)
	}
	t.count(at)
	s := step{at: at}
	held := float64(core.Replicas(h.seats))
	if t.known {
		s.training -= int(held)
		s.efficiency -= t.efficiency * held
		s.goodput -= t.goodput
	}
	if known {
		s.training += int(held)
		s.efficiency += next.efficiency * held
		s.goodput += goodput
	}
	if s != (step{at: at}) {
		r.step(s)
	}
	t.setting, t.known, t.goodput, t.resumes = next, known, goodput, false
	r.trained.note(h, at)
}

func (b *trainedBooks) note(h *holding, at float64) {
	if b.over != nil {
		b.over.add(h, at)
	}
}

func (b *trainedBooks) flush(before float64) error {
	if b.over == nil {
		return nil
	}
	if err := b.over.flush(before); err != nil {
		return fmt.Errorf("write efficiency: %w", err)
	}
	return nil
}

// resume ends the pause of a job.
func (r *Recorder) resume(h *holding) {
	t := h.training
	t.resumes = false
	t.count(t.at)
	r.step(step{at: t.at, goodput: t.to})
	t.goodput = t.to
	r.trained.note(h, t.at)
}

// resumeUntil ends the pauses that are over at a moment.
func (r *Recorder) resumeUntil(now float64) {
	q := &r.trained.resumes
	for len(*q) > 0 && (*q)[0].at <= now {
		due := heap.Pop(q).(resumption)
		if h := &r.jobs[due.job]; h.training.resumes && h.training.at == due.at {
			r.resume(h)
		}
	}
}

func (r *Recorder) stopTraining(h *holding, at float64) {
	if h.training != nil && h.training.known {
		r.setTraining(h, at, setting{}, false, 0)
	}
}

// count brings the integrals up to a moment.
func (t *training) count(at float64) {
	if seconds := at - t.since; t.known {
		t.seconds += seconds
		t.batches += seconds * float64(t.batch)
		t.efficiencies += seconds * t.efficiency
		t.useful += seconds * t.goodput
	}
	t.since = at
}

// finish writes a row for every job that trained.
func (b *trainedBooks) finish(jobs []holding) error {
	if b.out == nil {
		return nil
	}
	for i := range jobs {
		h := &jobs[i]
		t := h.training
		if t == nil || t.seconds == 0 {
			continue
		}
		row := strconv.AppendInt(b.out.AvailableBuffer(), int64(h.spec.ID), 10)
		row = append(row, ',')
		row = strconv.AppendInt(row, int64(h.spec.Batch.Initial), 10)
		for _, x := range [...]float64{t.seconds, t.batches / t.seconds, t.efficiencies / t.seconds, t.useful / t.seconds} {
			row = append(row, ',')
			row = metrics.AppendNumber(row, x)
		}
		if _, err := b.out.Write(append(row, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// resumption is the end of the pause of a job.
type resumption struct {
	at  float64
	job core.JobID
}

// resumptions is a heap by time, then by job.
type resumptions []resumption

func (q resumptions) Len() int { return len(q) }
func (q resumptions) Less(a, b int) bool {
	return q[a].at < q[b].at || q[a].at == q[b].at && q[a].job < q[b].job
}
func (q resumptions) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *resumptions) Push(x any)   { *q = append(*q, x.(resumption)) }
func (q *resumptions) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	*q = (*q)[:last]
	return x
}
