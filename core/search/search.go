// Package search is where the trials of a search come from: hyper-parameters that are proposed, run as jobs, and judged by what these jobs report.
package search

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// Search proposes trials and learns from what becomes of them. One goroutine calls Ask and Tell, and the same calls get the same answers:
// its randomness comes from the stream that it was made with.
type Search interface {
	// Ask returns at most n trials that were not proposed before, n at least 1, numbered in the order in which they are proposed from 0 on. Fewer, or none, are
	// returned where it waits for results, or has no more to propose. With none of its trials running, no answer means that the search is over.
	Ask(ctx context.Context, n int) ([]Trial, error)
	// Tell hands over what became of trials since the last call, by time and then by trial, and returns the trials that are to be stopped, ascending.
	Tell(ctx context.Context, results []Result) (stop []int, err error)
	// Close lets go of what it holds, such as a process. It is called once, and nothing after it.
	Close() error
}

// Trial is a setting of hyper-parameters to be tried.
type Trial struct {
	ID     int    // number of the trial, from 0
	Params Params // hyper-parameters of the trial
}

// Result is something that became of a trial.
type Result struct {
	Trial     int     // number of the trial
	Kind      Kind    // what happened to the trial
	AtSeconds float64 // when, in seconds of the run
	// Step and Value are of the latest report: that which a Report holds, or the last before the trial ended. Value is NaN where it reported nothing.
	Step, Value float64
}

// Kind says what became of a trial.
type Kind uint8

// The kinds of results. Report is in the course of a trial, the others end it.
const (
	Report   Kind = iota
	Finished      // the trial came to its end
	Stopped       // somebody ended it before, such as a rule of early stopping or the search itself
	Failed        // it broke, was cancelled or was refused
)

// Goal says which values are better.
type Goal = core.Goal

// The goals: whether smaller or larger values of the metric are better.
const (
	Minimize = core.Minimize
	Maximize = core.Maximize
)

var kinds = [...]string{"report", "finished", "stopped", "failed"}

// String is the kind as in the protocol of external searches.
func (k Kind) String() string { return kinds[k] }
