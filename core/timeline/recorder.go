package timeline

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Outputs is where a recorder writes; nil for what is not wanted.
type Outputs struct {
	Timeline, Nodes, Usage, Training, Efficiency, Reports io.Writer // where each table goes; nil for tables that are not wanted

	// Truth is how jobs train where they run; nil when nobody knows.
	Truth Truth
}

// Recorder is the observer that writes who held what when. Its cost follows what happens, not how many jobs run.
type Recorder struct {
	cluster *core.Cluster
	spans   *spanWriter // nil for what is not wanted
	nodes   *nodeBooks
	usage   *usageBooks
	trained *trainedBooks
	reports *bufio.Writer
	files   []*bufio.Writer

	owners  owners
	jobs    []holding // by JobID
	pending []core.JobID
	gone    []core.NodeID
	counts  counts // after the steps so far, in the order in which they were told
}

// holding is what a job holds now.
type holding struct {
	spec     *core.JobSpec
	seats    []core.Seat // nil unless it runs
	tuning   core.Tuning
	since    float64 // the start of its stay
	state    core.JobState
	progress float64   // last told
	training *training // nil until it is known to train
}

// counts are the jobs by state, and the devices that those that have not ended ask for.
type counts struct{ pending, waiting, running, demand int }

var _ core.Observer = (*Recorder)(nil)

const bufferSize = 64 << 10

// NewRecorder returns a recorder of one run on a cluster as it is when the run begins.
func NewRecorder(c *core.Cluster, o Outputs) *Recorder {
	r := &Recorder{cluster: c, owners: owners{cluster: c, shares: c.Sharing != core.Exclusive}}
	if w := r.file(o.Timeline, timelineHeader); w != nil {
		r.spans = &spanWriter{out: w, cluster: c}
	}
	if w := r.file(o.Nodes, nodesHeader); w != nil {
		r.nodes = newNodeBooks(w, c)
	}
	training, efficiency := r.file(o.Training, trainingHeader), r.file(o.Efficiency, efficiencyHeader)
	if o.Truth != nil && (training != nil || efficiency != nil || o.Usage != nil) {
		r.trained = &trainedBooks{out: training, truth: o.Truth}
		if efficiency != nil {
			r.trained.over = &efficiencyWriter{out: efficiency}
		}
	}
	r.reports = r.file(o.Reports, reportsHeader)
	header := usageHeader
	if len(c.Pools) > 0 {
		header += poolColumns
	}
	if w := r.file(o.Usage, header+"\n"); w != nil {
		r.usage = newUsageBooks(w, c)
	}
	return r
}

// Expect makes room for so many jobs at once. It comes before the first round, and more jobs may come.
func (r *Recorder) Expect(jobs int) { r.jobs = slices.Grow(r.jobs, jobs) }

func (r *Recorder) file(w io.Writer, header string) *bufio.Writer {
	if w == nil {
		return nil
	}
	b := bufio.NewWriterSize(w, bufferSize)
	_, _ = b.WriteString(header) // fits the buffer
	r.files = append(r.files, b)
	return b
}

// ObserveRound takes in one round.
func (r *Recorder) ObserveRound(report *core.Report) error {
	now := report.View.NowSeconds
	events := report.Events
	r.owners.shares = r.owners.shares || report.Repeated // devices may have been shared then
	if earlier := func(a, b core.Event) int { return cmp.Compare(a.AtSeconds, b.AtSeconds) }; r.owners.shares && !slices.IsSortedFunc(events, earlier) {
		events = slices.Clone(events) // who leaves a shared device last is to be counted out last
		slices.SortStableFunc(events, earlier)
	}
	for i := range events {
		r.takeEvent(&events[i], now)
	}
	for _, j := range report.Ended {
		if j.State == core.Rejected {
			r.end(j.ID, core.Rejected, now)
		}
	}
	for i := range report.Changes {
		r.takeChange(&report.Changes[i], now)
	}
	r.admit(report.View)
	return r.flush(now)
}

func (r *Recorder) takeEvent(e *core.Event, now float64) {
	switch e.Kind {
	case core.JobSubmitted:
		r.enter(e.Spec, e.AtSeconds)
		if e.Held != nil {
			h := r.holding(e.Job)
			h.progress = e.Progress
			r.seat(h, &core.Change{Seats: e.Held.Seats, Tuning: e.Held.Tuning}, e.AtSeconds)
			r.train(h, e.AtSeconds, e.Rate, e.FromSeconds)
		}
	case core.JobShrunk:
		if h := r.holding(e.Job); h != nil && h.seats != nil {
			h.progress = e.Progress
			tuning := h.tuning
			tuning.BatchByReplica = nil
			r.seat(h, &core.Change{Seats: e.Seats, Tuning: tuning}, e.AtSeconds)
			r.train(h, e.AtSeconds, e.Rate, e.FromSeconds)
		}
	case core.JobChanged:
		if h := r.holding(e.Job); h != nil {
			r.edit(h, e, now)
		}
	case core.NodeChanged:
		r.setNode(e.Node, e.Health, e.Unusable, e.AtSeconds)
	case core.NodeAdded:
		r.addNode(e)
	case core.NodeRemoved:
		r.setNode(e.Node, core.Gone, 0, e.AtSeconds)
	case core.JobProgressed:
		if h := r.holding(e.Job); h != nil {
			h.progress = e.Progress
			r.train(h, e.AtSeconds, e.Rate, e.FromSeconds)
		}
	case core.JobReported:
		if r.reports != nil && r.holding(e.Job) != nil {
			writeReported(r.reports, e)
		}
	case core.JobInterrupted:
		if h := r.holding(e.Job); h != nil && h.seats != nil {
			h.progress = e.Progress
			r.release(h, Interrupted, e.AtSeconds)
		}
	case core.JobFinished:
		r.end(e.Job, core.Completed, e.AtSeconds)
	case core.JobFailed:
		r.end(e.Job, core.Failed, e.AtSeconds)
	case core.JobCancelled:
		r.end(e.Job, core.Cancelled, e.AtSeconds)
	}
}

func (r *Recorder) setNode(id core.NodeID, h core.Health, unusable core.DeviceSet, at float64) {
	if slices.Contains(r.gone, id) {
		return // it had not heard of the end yet
	}
	if h == core.Gone {
		r.gone = append(r.gone, id)
	}
	if r.usage != nil {
		r.usage.setHealth(id, h, unusable, at)
	}
	if r.nodes != nil {
		r.nodes.set(id, h, at)
	}
}

func (r *Recorder) addNode(e *core.Event) {
	if r.usage != nil {
		r.usage.addNode(e)
	}
	if r.nodes != nil {
		r.nodes.add(e)
	}
}

// edit notes what a job asks for since its owner edited it. One that is held back loses its devices in the round, and waits for
// admission again.
func (r *Recorder) edit(h *holding, e *core.Event, now float64) {
	more, used := e.Spec.Requested-h.spec.Requested, r.owners.add(h.spec, h.seats, -1)
	h.spec = e.Spec
	used += r.owners.add(h.spec, h.seats, 1)
	if more != 0 || used != 0 {
		r.step(step{at: e.AtSeconds, used: used, counts: counts{demand: more}})
	}
	if !e.Spec.Suspended || h.state == core.Pending {
		return
	}
	r.release(h, Preempted, now)
	r.change(h, core.Pending, now, 0)
	r.pending = append(r.pending, h.spec.ID)
}

func (r *Recorder) takeChange(c *core.Change, now float64) {
	h := r.holding(c.Job)
	if h == nil {
		return
	}
	switch c.Action {
	case core.Finish:
		r.end(c.Job, core.Completed, now)
	case core.Pause:
		if h.seats != nil {
			r.release(h, Preempted, now)
		}
		r.change(h, core.Pending, now, 0)
		r.pending = append(r.pending, h.spec.ID)
	case core.Stop:
		end := Preempted
		if c.Reason == core.NodeUnavailable {
			end = Interrupted
		}
		r.release(h, end, now)
	case core.Start, core.Move:
		r.seat(h, c, now)
	case core.Tune:
		h.tuning = c.Tuning
		r.configure(h, now)
	}
}

// holding is that of a job that was submitted and has not ended; nil for another one.
func (r *Recorder) holding(id core.JobID) *holding {
	if int(id) >= len(r.jobs) || r.jobs[id].spec == nil || r.jobs[id].state.Ended() {
		return nil
	}
	return &r.jobs[id]
}

func (r *Recorder) enter(spec *core.JobSpec, at float64) {
	for int(spec.ID) >= len(r.jobs) {
		r.jobs = append(r.jobs, holding{})
	}
	r.jobs[spec.ID] = holding{spec: spec}
	r.pending = append(r.pending, spec.ID)
	r.counts.pending++
	r.step(step{at: at, counts: counts{pending: 1, demand: spec.Requested}})
}

// admit notes which jobs an admission let pass that got no devices in the same round.
func (r *Recorder) admit(v *core.View) {
	if r.counts.waiting+r.counts.running == len(v.Active) {
		if len(r.pending) > 2*r.counts.pending {
			r.pending = slices.DeleteFunc(r.pending, func(id core.JobID) bool { return r.jobs[id].state != core.Pending })
		}
		return
	}
	r.pending = slices.DeleteFunc(r.pending, func(id core.JobID) bool {
		h := &r.jobs[id]
		if j := v.Job(id); h.state == core.Pending && j != nil && j.State != core.Pending {
			r.change(h, core.Waiting, v.NowSeconds, 0)
		}
		return h.state != core.Pending
	})
}

// change brings a job into another state, in which it holds more devices, or fewer.
func (r *Recorder) change(h *holding, to core.JobState, at float64, used int) {
	s := step{at: at, used: used}
	*s.of(h.state)--
	*r.counts.of(h.state)--
	if h.state = to; to.Ended() {
		s.demand = -h.spec.Requested
	} else {
		*s.of(to)++
		*r.counts.of(to)++
	}
	r.step(s)
}

// of is the number of jobs in a state that is not final.
func (c *counts) of(s core.JobState) *int {
	switch s {
	case core.Pending:
		return &c.pending
	case core.Waiting:
		return &c.waiting
	default:
		return &c.running
	}
}

func (r *Recorder) step(s step) {
	if r.usage != nil {
		r.usage.add(s)
	}
}

func (r *Recorder) seat(h *holding, c *core.Change, now float64) {
	used := 0
	if h.seats != nil {
		end := Moved
		if core.Replicas(c.Seats) != core.Replicas(h.seats) {
			end = Resized
		}
		used = r.close(h, end, now)
	}
	used += r.owners.add(h.spec, c.Seats, 1)
	h.seats, h.tuning, h.since = slices.Clone(c.Seats), c.Tuning, now
	r.change(h, core.Running, now, used)
	r.configure(h, now)
}

// release takes the devices of a job away.
func (r *Recorder) release(h *holding, end End, at float64) {
	if h.seats != nil {
		r.change(h, core.Waiting, at, r.close(h, end, at))
	}
}

// close ends a stay, and returns by how many devices more are used then: by fewer, as a rule.
func (r *Recorder) close(h *holding, end End, at float64) (used int) {
	if r.spans != nil {
		r.spans.add(h, end, at)
	}
	r.stopTraining(h, at)
	used = r.owners.add(h.spec, h.seats, -1)
	h.seats = nil
	return used
}

func (r *Recorder) end(id core.JobID, state core.JobState, at float64) {
	h := r.holding(id)
	if h == nil {
		return
	}
	used := 0
	if h.seats != nil {
		used = r.close(h, endOf(state), at)
	}
	r.change(h, state, at, used)
}

// flush writes what is known for good after a round.
func (r *Recorder) flush(now float64) error {
	if r.trained != nil {
		r.resumeUntil(now)
		if err := r.trained.flush(now); err != nil {
			return err
		}
	}
	if r.spans != nil {
		if err := r.spans.flush(now); err != nil {
			return fmt.Errorf("write timeline: %w", err)
		}
	}
	if r.usage != nil {
		if err := r.usage.flush(now); err != nil {
			return fmt.Errorf("write usage: %w", err)
		}
	}
	return nil
}

// Finish adds the jobs that never ended, or whose end no round saw, at the end of the run, and completes the files. It is
// called once, also after a run that was cut short.
func (r *Recorder) Finish(unfinished []*core.Job, endSeconds float64) error {
	for _, j := range unfinished {
		if int(j.ID) >= len(r.jobs) || r.jobs[j.ID].spec == nil { // submitted in a round that was not completed
			r.enter(j.JobSpec, j.SubmitSeconds)
		}
		if j.State.Ended() {
			r.end(j.ID, j.State, j.FinishSeconds)
		}
	}
	if r.trained != nil {
		r.resumeUntil(endSeconds)
	}
	for i := range r.jobs {
		h := &r.jobs[i]
		if h.seats == nil {
			continue
		}
		if r.spans != nil {
			r.spans.add(h, Unfinished, endSeconds)
		}
		if t := h.training; t != nil {
			t.count(endSeconds)
			t.known = false
			r.trained.note(h, endSeconds)
		}
	}
	if err := r.complete(endSeconds); err != nil {
		return err
	}
	return r.Flush()
}

// Flush writes out what is known, for who reads it while the run goes on.
func (r *Recorder) Flush() error {
	for _, w := range r.files {
		if err := w.Flush(); err != nil {
			return fmt.Errorf("write the timeline of the run: %w", err)
		}
	}
	return nil
}

// complete writes what is known at the end only.
func (r *Recorder) complete(endSeconds float64) error {
	if r.spans != nil {
		if err := r.spans.flush(math.Inf(1)); err != nil {
			return fmt.Errorf("write timeline: %w", err)
		}
	}
	if r.nodes != nil {
		if err := r.nodes.finish(endSeconds); err != nil {
			return fmt.Errorf("write nodes: %w", err)
		}
	}
	if r.usage != nil {
		if err := r.usage.finish(endSeconds); err != nil {
			return fmt.Errorf("write usage: %w", err)
		}
	}
	if r.trained != nil {
		if err := r.trained.flush(math.Inf(1)); err != nil {
			return err
		}
		if err := r.trained.finish(r.jobs); err != nil {
			return fmt.Errorf("write training: %w", err)
		}
	}
	return nil
}
