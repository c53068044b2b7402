package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/journal"
	"github.com/quartet-sched/quartet/core/workload"
)

// workloadDriver lets a reactive workload submit and end the jobs of a live run. It reports to the workload what the rounds recorded, in a goroutine
// of its own: a slow search delays no round. A scheduler that takes over a run repeats its rounds, and with them all that was reported; what the
// workload answered then is there already, and only what had not been carried out is.
type workloadDriver struct {
	to      workload.Reacting
	backend backend.Driven
	fail    context.CancelCauseFunc // ends the run

	names  map[core.JobID]string // of jobs that were submitted; of the goroutine of the pipeline, as is the next
	paused map[core.JobID]bool   // by a policy

	mutex sync.Mutex
	more  *sync.Cond
	queue []roundResults
	ended bool

	open map[string]bool // jobs that were submitted and have not ended; of the goroutine that drives, as are the next
	said bool            // that there are no more
	err  error           // ended the run
	lost error           // of the workload: nothing more is reported to it

	gone       chan struct{}   // closed when it drives no more
	reporting  context.Context // of what is reported: it outlives the run by finalReports
	stopReport context.CancelFunc
	stop       context.CancelFunc // no more is carried out
}

// jobResult is what became of a job, with its id.
type jobResult struct {
	workload.Result
	id core.JobID
}

// roundResults is what became of jobs in a round.
type roundResults struct {
	atSeconds float64
	results   []workload.Result
}

// finalReports is how long a workload may take for what happened before a run was stopped.
const finalReports = 10 * time.Second

// recordFile is the file, in the folder of the state of a run, in which a workload keeps what it needs to answer alike again.
const recordFile = "search"

// openRecord names the record of a run, and removes those of runs before it in the same folder.
func openRecord(state string, run backend.Identified) (string, error) {
	name := fmt.Sprintf("%s-%s.jsonl", recordFile, run.Begun())
	found, err := os.ReadDir(state)
	if err != nil {
		return "", err
	}
	for _, entry := range found {
		other := entry.Name()
		if strings.HasPrefix(other, recordFile+"-") && strings.HasSuffix(other, ".jsonl") && other != name {
			if err := os.Remove(filepath.Join(state, other)); err != nil {
				return "", err
			}
		}
	}
	return filepath.Join(state, name), nil
}

// newWorkloadDriver begins to drive a run. It reports at once to the workload that the run begins.
func newWorkloadDriver(ctx context.Context, to workload.Reacting, driven backend.Driven, fail context.CancelCauseFunc) *workloadDriver {
	d := &workloadDriver{
		to: to, backend: driven, fail: fail, names: map[core.JobID]string{}, paused: map[core.JobID]bool{},
		queue: []roundResults{{}}, open: map[string]bool{}, gone: make(chan struct{}),
	}
	d.more = sync.NewCond(&d.mutex)
	d.reporting, d.stopReport = context.WithCancel(context.WithoutCancel(ctx))
	ctx, d.stop = context.WithCancel(ctx)
	go d.drive(ctx)
	return d
}

// ObserveRound queues what became of jobs in a round, in order of time.
func (d *workloadDriver) ObserveRound(r *core.Report) error {
	var list []jobResult
	for i := range r.Events {
		list = d.addEvent(list, &r.Events[i])
	}
	for i := range r.Changes {
		list = d.addChange(list, &r.Changes[i], r.View.NowSeconds)
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b jobResult) int {
		return cmp.Or(cmp.Compare(a.AtSeconds, b.AtSeconds), cmp.Compare(a.id, b.id))
	})
	h := roundResults{atSeconds: r.View.NowSeconds}
	for i := range list {
		h.results = append(h.results, list[i].Result)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.queue = append(d.queue, h)
	d.more.Signal()
	return nil
}

// add adds what became of a job, by its name.
func (d *workloadDriver) add(list []jobResult, id core.JobID, what workload.Result) []jobResult {
	what.Job = d.names[id]
	return append(list, jobResult{what, id})
}

// addEvent adds what an event says of a job, if the workload has to know.
func (d *workloadDriver) addEvent(list []jobResult, e *core.Event) []jobResult {
	switch e.Kind {
	case core.JobSubmitted:
		d.names[e.Job] = e.Spec.Name
	case core.JobReported:
		if e.Metric == d.to.Metric() {
			return d.add(list, e.Job, workload.Result{Kind: workload.JobReported, AtSeconds: e.AtSeconds, Step: e.Step, Value: e.Value})
		}
	case core.JobFinished:
		what := workload.Result{Kind: workload.JobFinished, AtSeconds: e.AtSeconds}
		if e.Early != core.NoReason {
			what.Kind, what.Reason = workload.JobEndedEarly, e.Early
		}
		return d.add(list, e.Job, what)
	case core.JobFailed, core.JobCancelled:
		return d.add(list, e.Job, workload.Result{Kind: workload.JobFailed, AtSeconds: e.AtSeconds})
	}
	return list
}

// addChange adds what the round decided of a job, if the workload has to know.
func (d *workloadDriver) addChange(list []jobResult, c *core.Change, now float64) []jobResult {
	switch c.Action {
	case core.Finish:
		return d.add(list, c.Job, workload.Result{Kind: workload.JobEndedEarly, AtSeconds: now, Reason: c.Reason})
	case core.Discard:
		return d.add(list, c.Job, workload.Result{Kind: workload.JobFailed, AtSeconds: now, Reason: c.Reason})
	case core.Pause:
		d.paused[c.Job] = true
		return d.add(list, c.Job, workload.Result{Kind: workload.JobPaused, AtSeconds: now, Reason: c.Reason})
	case core.Start:
		if d.paused[c.Job] {
			delete(d.paused, c.Job)
			return d.add(list, c.Job, workload.Result{Kind: workload.JobResumed, AtSeconds: now})
		}
	}
	return list
}

// next waits for the results of a round. They are the last when no others wait; is is false when the run has ended.
func (d *workloadDriver) next() (h roundResults, last, is bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for len(d.queue) == 0 && !d.ended {
		d.more.Wait()
	}
	if d.ended {
		return h, false, false
	}
	h, d.queue = d.queue[0], d.queue[1:]
	return h, len(d.queue) == 0, true
}

func (d *workloadDriver) drive(ctx context.Context) {
	defer close(d.gone)
	for {
		h, last, is := d.next()
		if !is {
			return
		}
		err := d.react(ctx, h)
		if err == nil && last && len(d.open) == 0 && !d.said {
			d.said = true
			err = d.backend.NoMore(ctx)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, journal.ErrEnded): // it is driven again by whoever goes on with the run
			return
		default:
			d.err = err
			d.fail(err)
			return
		}
	}
}

// react reports to the workload, and carries out what it answers.
func (d *workloadDriver) react(ctx context.Context, h roundResults) error {
	answers, err := d.report(h)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	for i := 0; i < len(answers); {
		switch a := &answers[i]; a.Action {
		case workload.SubmitJob:
			var jobs []workload.Job
			for ; i < len(answers) && answers[i].Action == workload.SubmitJob; i++ { // what is recorded together is recorded sooner
				jobs = append(jobs, *answers[i].Submit)
			}
			if err := d.backend.SubmitJobs(ctx, jobs); err != nil {
				return fmt.Errorf("submit %q and what comes with it: %w", jobs[0].Spec.Name, err)
			}
		case workload.EndJob:
			if err := d.backend.EndEarly(ctx, a.Job, a.Reason); err != nil {
				return fmt.Errorf("end job %q early: %w", a.Job, err)
			}
			i++
		default:
			return fmt.Errorf("the workload holds back job %q itself, which a run on real machines does not know", a.Job)
		}
	}
	return nil
}

// report reports to the workload what became of its jobs; jobs that others submit are none of its business, nor is what follows the end of a job.
func (d *workloadDriver) report(h roundResults) ([]workload.Answer, error) {
	var results []workload.Result
	for _, r := range h.results {
		if !d.open[r.Job] {
			continue
		}
		results = append(results, r)
		if r.Kind.Ends() {
			delete(d.open, r.Job)
		}
	}
	if len(results) == 0 && len(h.results) > 0 {
		return nil, nil
	}
	answers, err := d.to.Tell(d.reporting, h.atSeconds, results)
	if err != nil {
		d.lost = err
		return nil, err
	}
	for i := range answers {
		if a := &answers[i]; a.Action == workload.SubmitJob {
			d.open[a.Submit.Spec.Name] = true
		}
	}
	return answers, nil
}

// end stops driving, and reports what happened until then to the workload, whose answers are for the scheduler that resumes the run. driving is the error
// that ended the run, if one of these did; reporting is what went wrong with the last reports, which is no failure of a run that was stopped.
func (d *workloadDriver) end() (driving, reporting error) {
	defer d.stopReport()
	d.stop()
	enough := time.AfterFunc(finalReports, d.stopReport)
	defer enough.Stop()
	d.mutex.Lock()
	d.ended = true
	d.more.Signal()
	d.mutex.Unlock()
	<-d.gone
	if d.err != nil {
		return d.err, nil
	}
	for i := 0; i < len(d.queue) && d.lost == nil; i++ {
		_, _ = d.report(d.queue[i]) // an error stops it
	}
	return nil, d.lost
}
