// Package stopping holds rules of early stopping: which trials of a search go on, by what they report. It knows of trials, steps and values, and of nothing that runs
// them.
package stopping

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
)

// Trial is the number of a trial. Of equal results the one of the lower number is better.
type Trial int32

// Rule decides which trials of one search go on. It gets what happens in the order in which it happens; what it gets about trials that it does not know, or that left,
// is nothing. A step that is not above those reported before is nothing, too: what a trial computes anew, after it was thrown back to a checkpoint, changes no result.
type Rule interface {
	// Enter adds a trial. One that entered before stays as it is.
	Enter(t Trial)
	// Report adds a value at a step. NaN is the worst of all.
	Report(t Trial, step, value float64)
	// Leave removes a trial that ended. Lost says that it came to nothing, so that nobody has to give way to it.
	Leave(t Trial, lost bool)
	// Decide says what is to become of a trial by all that was reported. To ask again changes nothing.
	Decide(t Trial) Decision
	// Settle has the rule decide about all trials that wait by the results that there are: no more will come while they wait.
	Settle()
	// Snapshot is what the rule got and decided, as far as it still matters.
	Snapshot() ([]byte, error)
	// Restore takes up the snapshot of a rule of the same settings. After an error the rule is as before.
	Restore(snapshot []byte) error
}

// Action is what is to become of a trial.
type Action uint8

// The actions. A trial that is to wait keeps what it did, and needs nothing to run on.
const (
	GoOn Action = iota
	Wait
	Stop
)

var actionNames = [...]string{"continue", "wait", "stop"}

// String returns the action in words, such as "go on".
func (a Action) String() string { return actionNames[min(int(a), len(actionNames)-1)] }

// Decision is what is to become of a trial, and by what.
type Decision struct {
	// Action is what happens to the trial.
	Action Action
	// Step and Value are the result that it is judged by; of a trial that waits or stops.
	Step, Value float64
	// Rung is the number of the rung, from 0, that the result is of; -1 where there are no rungs. It is number Rank of RungSize results there, of which the best Keep go on.
	Rung, Rank, RungSize, Keep int
	// Threshold is what its best value was held against, where there are no rungs; NaN otherwise.
	Threshold float64
}

// goesOn is the decision about a trial that nothing holds back.
func goesOn() Decision { return Decision{Rung: -1, Threshold: math.NaN()} }

// result is a value of a trial at a step.
type result struct {
	Trial Trial
	Step  number
	Value number
}

// order sorts results, better ones first.
func order(goal core.Goal) func(a, b result) int {
	return func(a, b result) int {
		return cmp.Or(orderValues(goal, float64(a.Value), float64(b.Value)), cmp.Compare(a.Trial, b.Trial))
	}
}

func orderValues(goal core.Goal, a, b float64) int {
	switch {
	case goal.Better(a, b):
		return -1
	case goal.Better(b, a):
		return 1
	}
	return 0
}

// find is where a trial is, or belongs, in a list by trial.
func find[T any](list []T, of func(*T) Trial, t Trial) (int, bool) {
	return slices.BinarySearchFunc(list, t, func(m T, t Trial) int { return cmp.Compare(of(&m), t) })
}

// kept is how many of so many results go on.
func kept(results int, eta float64) int { return int(float64(results)/eta + 1e-9) }

// number is a float whose text may be that of NaN and of infinities.
type number float64

// MarshalText is the shortest text that is read as the same number.
func (n number) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// UnmarshalText reads what MarshalText wrote.
func (n *number) UnmarshalText(text []byte) error {
	x, err := strconv.ParseFloat(string(text), 64)
	*n = number(x)
	return err
}
