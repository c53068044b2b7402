package tuning

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/search"
	"github.com/quartet-sched/quartet/core/workload"
)

// reserved are names that stand for something else than hyper-parameters in the job of a trial.
var reserved = []string{"trial", "experiment"}

// Run is the search of one run, from its begin to its end. Summary and ObserveRound may be called while Tell is.
type Run struct {
	*experiment
	search search.Search
	byJob  map[string]*trial
	live   int // trials that have not ended and are not paused

	mutex  sync.Mutex
	trials []*trial         // in the order in which they were submitted; only Tell changes them
	used   map[string]usage // by the name of the job
	others []string         // metrics that trials reported beside the one they are judged by, by name
}

// trial is what became of a trial.
type trial struct {
	search.Trial
	job        string
	state      state
	submitted  float64
	ended      float64 // NaN before
	step, last float64 // of the latest report; NaN before the first
	best       float64 // NaN before the first report
	bestStep   float64
	bestAt     float64
}

func newTrial(job string, now float64) *trial {
	nan := math.NaN()
	return &trial{job: job, submitted: now, ended: nan, step: nan, last: nan, best: nan, bestStep: nan, bestAt: nan}
}

// state is that of a trial.
type state uint8

const (
	running state = iota // or waiting for devices
	paused
	finished
	stopped
	failed
)

var states = [...]string{"unfinished", "paused", "finished", "stopped", "failed"}

func (s state) ended() bool { return s >= finished }

// Metric is what trials are judged by.
func (r *Run) Metric() string { return r.plan.Metric }

// Close ends the search.
func (r *Run) Close() error { return r.search.Close() }

// Tell passes to the search what became of trials, ends those that it stops, and submits as many as there is room for.
func (r *Run) Tell(ctx context.Context, nowSeconds float64, results []workload.Result) ([]workload.Answer, error) {
	var told []search.Result
	for i := range results {
		if t, known := r.byJob[results[i].Job]; known && !t.state.ended() {
			if what, tells := r.take(t, &results[i]); tells {
				told = append(told, what)
			}
		}
	}
	var answers []workload.Answer
	if len(told) > 0 {
		slices.SortStableFunc(told, func(a, b search.Result) int {
			return cmp.Or(cmp.Compare(a.AtSeconds, b.AtSeconds), cmp.Compare(a.Trial, b.Trial))
		})
		stop, err := r.search.Tell(ctx, told)
		if err != nil {
			return nil, r.failed("given results", err)
		}
		for _, id := range stop {
			t, err := r.byID(id)
			if err != nil {
				return nil, r.failed("given results", err)
			}
			if !t.state.ended() {
				answers = append(answers, workload.Answer{Action: workload.EndJob, Job: t.job, Reason: core.Pruned})
			}
		}
	}
	for {
		n := r.Parallel - r.live
		if most := r.Config.Trials; most > 0 {
			n = min(n, most-len(r.trials))
		}
		if n <= 0 {
			return answers, nil
		}
		asked, err := r.search.Ask(ctx, n)
		if err != nil {
			return nil, r.failed("asked", err)
		}
		if len(asked) > n {
			return nil, r.failed("asked", fmt.Errorf("it proposed %d trials, at most %d were asked for", len(asked), n))
		}
		for _, proposed := range asked {
			job, err := r.submit(proposed, nowSeconds)
			if err != nil {
				return nil, r.failed("asked", err)
			}
			answers = append(answers, workload.Answer{Action: workload.SubmitJob, Submit: job})
		}
		if len(asked) < n {
			return answers, nil
		}
	}
}

func (r *Run) failed(what string, err error) error {
	return fmt.Errorf("search %q of experiment %q, when it was %s: %w", r.chosen.Type(), r.Experiment, what, err)
}

// byID is a trial that was submitted.
func (r *Run) byID(id int) (*trial, error) {
	if id < 0 || id >= len(r.trials) {
		return nil, fmt.Errorf("it stops trial %d, which it never proposed", id)
	}
	return r.trials[id], nil
}

// take notes what became of a trial, and what the search is told of it, if anything.
func (r *Run) take(t *trial, what *workload.Result) (told search.Result, tells bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	told = search.Result{Trial: t.ID, AtSeconds: what.AtSeconds}
	switch what.Kind {
	case workload.JobPaused:
		if t.state == running {
			t.state = paused
			r.live--
		}
		return told, false
	case workload.JobResumed:
		if t.state == paused {
			t.state = running
			r.live++
		}
		return told, false
	case workload.JobReported:
		t.step, t.last = what.Step, what.Value
		if r.goal().Better(what.Value, t.best) {
			t.best, t.bestStep, t.bestAt = what.Value, what.Step, what.AtSeconds
		}
	default:
		if t.state == running {
			r.live--
		}
		t.ended = what.AtSeconds
		switch what.Kind {
		case workload.JobFinished:
			t.state, told.Kind = finished, search.Finished
		case workload.JobEndedEarly:
			t.state, told.Kind = stopped, search.Stopped
		default:
			t.state, told.Kind = failed, search.Failed
		}
	}
	told.Step, told.Value = t.step, t.last
	return told, true
}

// submit makes the job of a trial that the search proposed.
func (r *Run) submit(proposed search.Trial, now float64) (*workload.Job, error) {
	if proposed.ID != len(r.trials) {
		return nil, fmt.Errorf("it proposed trial %d after %d others", proposed.ID, len(r.trials))
	}
	name := r.name(proposed.ID)
	job, unknown := r.template.Job(name, func(named string) (string, bool) {
		if v, given := proposed.Params.Get(named); given {
			return v.String(), true
		}
		switch named {
		case "trial":
			return strconv.Itoa(proposed.ID), true
		case "experiment":
			return r.Experiment, true
		}
		return "", false
	})
	if len(unknown) > 0 {
		return nil, fmt.Errorf("the job names the hyper-parameter %q, which trial %d does not have", unknown[0], proposed.ID)
	}
	job.Spec.Experiment = r.Experiment
	if r.simulated != nil {
		shape, err := r.shape(r.seed, proposed)
		if err != nil {
			return nil, err
		}
		r.simulated.Fill(&job, shape)
	}
	t := newTrial(name, now)
	t.Trial = proposed
	r.byJob[name] = t
	r.live++
	r.mutex.Lock()
	r.trials = append(r.trials, t)
	r.mutex.Unlock()
	return &job, nil
}
