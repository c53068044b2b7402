package workload

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// Reacting submits jobs by what becomes of earlier ones: a search whose trials are jobs. One serves one run, and is called by one goroutine.
type Reacting interface {
	// Tell hands over what became of its jobs since the last call, by time and then by the order in which the jobs were submitted, and returns what is to be done at
	// nowSeconds, in this order. The first call, when the run begins, has no results. The same results get the same answers.
	Tell(ctx context.Context, nowSeconds float64, results []Result) ([]Answer, error)
	// Metric is the one whose reports it gets.
	Metric() string
	// Close lets go of what it holds, such as a process. It is called once, and nothing after it but what describes the run.
	Close() error
}

// Tabled is implemented by a Reacting that leaves a table behind, as trials.csv.
type Tabled interface {
	// Table is as of the end of the run.
	Table() (header []string, rows [][]string)
}

// Result is something that became of a job.
type Result struct {
	// Kind: what became of the job.
	Kind ResultKind
	Job  string // name of the job
	// AtSeconds: moment of it, in seconds since the start of the run.
	AtSeconds   float64
	Step, Value float64     // of JobReported, as in core.Point
	Reason      core.Reason // of JobEndedEarly and JobPaused, why
}

// ResultKind says what became of a job.
type ResultKind uint8

// The kinds of results.
const (
	JobReported   ResultKind = iota // a value of the metric
	JobFinished                     // its work is done
	JobEndedEarly                   // somebody ended it before, as completed
	JobFailed                       // it broke, was cancelled or was rejected
	JobPaused                       // a policy holds it back; it keeps its checkpoint
	JobResumed                      // it runs again after that
)

// Ends reports whether nothing more is reported of the job.
func (k ResultKind) Ends() bool { return k == JobFinished || k == JobEndedEarly || k == JobFailed }

// Answer is something to be done. Of one for a job that has ended meanwhile nothing comes.
type Answer struct {
	// Action: what to do.
	Action AnswerAction
	Submit *Job        // of SubmitJob: the job, whose name is new; whoever submits it sets the id and the moment
	Job    string      // of the others: its name
	Reason core.Reason // of EndJob
}

// AnswerAction is what is to be done.
type AnswerAction uint8

// The actions.
const (
	SubmitJob  AnswerAction = iota
	EndJob                  // as completed, with what it did
	SuspendJob              // its owner holds it back: it gives its devices back and keeps its checkpoint
	ResumeJob               // and no longer
)

// JobsOf looks up jobs by their ids: those of a list, and of a run to which jobs are added.
type JobsOf interface {
	// JobOf is nil where there is none.
	JobOf(id core.JobID) *Job
}

// Foreseen is a list of the jobs that are known before a run: of a workload that reacts, those of its kinds.
func (w *Workload) Foreseen() *Workload {
	if w.React == nil {
		return w
	}
	return &Workload{Jobs: w.Kinds, Inputs: w.Inputs}
}

// JobOf is a job of the list.
func (w *Workload) JobOf(id core.JobID) *Job {
	if id < 0 || int(id) >= len(w.Jobs) {
		return nil
	}
	return &w.Jobs[id]
}
