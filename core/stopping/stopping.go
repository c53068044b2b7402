// Package stopping holds rules that end the trials of a search early, by what they report: median, successive halving, ASHA and Hyperband. Rules know neither jobs nor
// schedulers. They are asked by one goroutine, and decide alike when they are told alike.
package stopping

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Decision is what is to become of a trial.
type Decision uint8

// The decisions. A trial that waits keeps what it has learned and computes nothing; a stopped one never goes on.
const (
	Go Decision = iota
	Wait
	Stop
)

// Rule decides about the trials of one search. A trial is known by a number of its caller's, which breaks ties: the lower one is better.
type Rule interface {
	// Join tells of a trial, in the order of submission. Another one that joins with the same number is the same.
	Join(trial int)
	// Report tells what a trial reported. Steps that it passed before are told again after it was thrown back: a rung that it reached keeps its value.
	Report(trial int, step, value float64)
	// Leave tells that a trial ended, in whatever way.
	Leave(trial int)
	// Settle tells that nobody who does not wait is left to report, and that no trial will join: those that wait are decided about by what there is.
	Settle()
	// Decision is what is to become of a trial, and why.
	Decision(trial int) (Decision, string)
}

// result is what a trial reached at a rung.
type result struct {
	trial       int
	step, value float64
}

// order sorts results from the best to the worst. A value that is no number is worst.
func order(g core.Goal) func(a, b result) int {
	return func(a, b result) int {
		if g.Better(a.value, b.value) {
			return -1
		}
		if g.Better(b.value, a.value) {
			return 1
		}
		return cmp.Compare(a.trial, b.trial)
	}
}

// insert puts a result where it belongs among sorted ones, and returns its rank from 0.
func insert(sorted []result, r result, g core.Goal) ([]result, int) {
	at, _ := slices.BinarySearchFunc(sorted, r, order(g))
	return slices.Insert(sorted, at, r), at
}

// Rungs are the steps at which trials are compared: First, and then each Eta times the one before, below Most.
type Rungs struct {
	First, Eta, Most float64 // Most is +Inf for no end
}

// At is the step of a rung from 0; false where there is none.
func (r Rungs) At(rung int) (float64, bool) {
	step := r.First * math.Pow(r.Eta, float64(rung))
	return step, step < r.Most
}

// keeps is how many of so many trials go on: one of Eta of them, at least one.
func (r Rungs) keeps(of int) int { return max(int(math.Floor(float64(of)/r.Eta+1e-9)), min(of, 1)) }

func ranked(r result, rank, of, kept int, rung float64) string {
	return fmt.Sprintf("%g at step %g is number %d of %d at rung %g, of which %d go on", r.value, r.step, rank+1, of, rung, kept)
}
