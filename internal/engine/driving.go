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

// driver lets a workload that reacts submit and end the jobs of a run on real machines. It is told what the rounds of the run recorded, beside them: a slow search holds no
// round up. Whoever takes over a run repeats its rounds, and with them everything that the workload was told; what it had answered then is there already, and only what
// was not carried out any more is.
type driver struct {
	to    workload.Reacting
	world backend.Driven
	fail  context.CancelCauseFunc // ends the run

	names  map[core.JobID]string // of jobs that were submitted; of the goroutine of the pipeline, as is the next
	paused map[core.JobID]bool   // by a policy

	mutex sync.Mutex
	more  *sync.Cond
	queue []happened
	ended bool

	open map[string]bool // jobs that were submitted and have not ended; of the goroutine that drives, as are the next
	said bool            // that there are no more
	err  error           // ended the run
	deaf error           // of the workload: it can be told no more

	gone   chan struct{}   // closed when it drives no more
	hears  context.Context // of the workload: it outlives the run by its last words
	forget context.CancelFunc
	stop   context.CancelFunc // no more is carried out
}

// happened is what a round tells of jobs.
type happened struct {
	atSeconds float64
	results   []workload.Result
}

// lastWords is how long a workload may take to hear of what happened before a run was stopped.
const lastWords = 10 * time.Second

// recordFile is the file, in the folder of the state of a run, in which a workload keeps what it needs to answer alike again.
const recordFile = "search"

// openRecord names the record of a run, and removes those of runs before it in the same folder.
func openRecord(state string, world backend.Driven) (string, error) {
	name := fmt.Sprintf("%s-%s.jsonl", recordFile, world.Begun())
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

// newDriver begins to drive a run. The workload is told at once that it begins.
func newDriver(ctx context.Context, to workload.Reacting, world backend.Driven, fail context.CancelCauseFunc) *driver {
	d := &driver{
		to: to, world: world, fail: fail, names: map[core.JobID]string{}, paused: map[core.JobID]bool{},
		queue: []happened{{}}, open: map[string]bool{}, gone: make(chan struct{}),
	}
	d.more = sync.NewCond(&d.mutex)
	d.hears, d.forget = context.WithCancel(context.WithoutCancel(ctx))
	ctx, d.stop = context.WithCancel(ctx)
	go d.drive(ctx)
	return d
}

// ObserveRound takes in what a round tells.
func (d *driver) ObserveRound(r *core.Report) error {
	type told struct {
		workload.Result
		id core.JobID
	}
	var list []told
	tell := func(id core.JobID, what workload.Result) {
		what.Job = d.names[id]
		list = append(list, told{what, id})
	}
	for i := range r.Events {
		switch e := &r.Events[i]; e.Kind {
		case core.JobSubmitted:
			d.names[e.Job] = e.Spec.Name
		case core.JobReported:
			if e.Metric == d.to.Metric() {
				tell(e.Job, workload.Result{Kind: workload.JobReported, AtSeconds: e.AtSeconds, Step: e.Step, Value: e.Value})
			}
		case core.JobFinished:
			what := workload.Result{Kind: workload.JobFinished, AtSeconds: e.AtSeconds}
			if e.Early != core.NoReason {
				what.Kind, what.Reason = workload.JobEndedEarly, e.Early
			}
			tell(e.Job, what)
		case core.JobFailed, core.JobCancelled:
			tell(e.Job, workload.Result{Kind: workload.JobFailed, AtSeconds: e.AtSeconds})
		}
	}
	now := r.View.NowSeconds
	for i := range r.Changes {
		switch c := &r.Changes[i]; c.Action {
		case core.Finish:
			tell(c.Job, workload.Result{Kind: workload.JobEndedEarly, AtSeconds: now, Reason: c.Reason})
		case core.Discard:
			tell(c.Job, workload.Result{Kind: workload.JobFailed, AtSeconds: now, Reason: c.Reason})
		case core.Pause:
			d.paused[c.Job] = true
			tell(c.Job, workload.Result{Kind: workload.JobPaused, AtSeconds: now, Reason: c.Reason})
		case core.Start:
			if d.paused[c.Job] {
				delete(d.paused, c.Job)
				tell(c.Job, workload.Result{Kind: workload.JobResumed, AtSeconds: now})
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b told) int {
		return cmp.Or(cmp.Compare(a.AtSeconds, b.AtSeconds), cmp.Compare(a.id, b.id))
	})
	h := happened{atSeconds: now}
	for i := range list {
		h.results = append(h.results, list[i].Result)
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.queue = append(d.queue, h)
	d.more.Signal()
	return nil
}

// next waits for what a round tells. It is the last when nothing else waits to be heard; false when the run has ended.
func (d *driver) next() (h happened, last, is bool) {
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

func (d *driver) drive(ctx context.Context) {
	defer close(d.gone)
	for {
		h, last, is := d.next()
		if !is {
			return
		}
		err := d.react(ctx, h)
		if err == nil && last && len(d.open) == 0 && !d.said {
			d.said = true
			err = d.world.NoMore(ctx)
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

// react tells the workload what happened, and carries out what it answers.
func (d *driver) react(ctx context.Context, h happened) error {
	answers, err := d.tell(h)
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
			if err := d.world.SubmitJobs(ctx, jobs); err != nil {
				return fmt.Errorf("submit %q and what comes with it: %w", jobs[0].Spec.Name, err)
			}
		case workload.EndJob:
			if err := d.world.EndEarly(ctx, a.Job, a.Reason); err != nil {
				return fmt.Errorf("end job %q early: %w", a.Job, err)
			}
			i++
		default:
			return fmt.Errorf("the workload holds back job %q itself, which a run on real machines does not know", a.Job)
		}
	}
	return nil
}

// tell tells the workload what became of its jobs: those that others submit are no matter of it, nor is what comes of a job after its end.
func (d *driver) tell(h happened) ([]workload.Answer, error) {
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
	answers, err := d.to.Tell(d.hears, h.atSeconds, results)
	if err != nil {
		d.deaf = err
		return nil, err
	}
	for i := range answers {
		if a := &answers[i]; a.Action == workload.SubmitJob {
			d.open[a.Submit.Spec.Name] = true
		}
	}
	return answers, nil
}

// end drives no more. What happened until then the workload is told; its answers are for whoever goes on with the run. What went wrong with that is no failure of a run that
// was stopped; driving is why it ended, if that was it.
func (d *driver) end() (driving, telling error) {
	defer d.forget()
	d.stop()
	enough := time.AfterFunc(lastWords, d.forget)
	defer enough.Stop()
	d.mutex.Lock()
	d.ended = true
	d.more.Signal()
	d.mutex.Unlock()
	<-d.gone
	if d.err != nil {
		return d.err, nil
	}
	for i := 0; i < len(d.queue) && d.deaf == nil; i++ {
		_, _ = d.tell(d.queue[i]) // an error leaves it deaf
	}
	return nil, d.deaf
}
