package stopping

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Median stops a trial whose best value so far is worse than the median of what others had on average up to the same step.
//
// Source: Golovin et al., KDD 2017 (Vizier), section 3.2.2.
type Median struct {
	goal  core.Goal
	grace float64 // nobody is stopped before this step
	least int     // others that reached the step, below which nobody is stopped

	trials map[int]*learner
	order  []int
}

// learner is a trial and what it reported, by step.
type learner struct {
	points  []result
	best    result
	stopped bool
	left    bool
	why     string
}

// NewMedian is a rule for one search.
func NewMedian(goal core.Goal, grace float64, least int) *Median {
	return &Median{goal: goal, grace: grace, least: least, trials: map[int]*learner{}}
}

// Join takes in a trial.
func (m *Median) Join(trial int) {
	if m.trials[trial] == nil {
		m.trials[trial] = &learner{}
		m.order = append(m.order, trial)
	}
}

// Report takes in a report. Of steps that are told again, the first value stays.
func (m *Median) Report(trial int, step, value float64) {
	l := m.trials[trial]
	if l == nil || l.stopped || l.left || len(l.points) > 0 && step <= l.points[len(l.points)-1].step {
		return
	}
	r := result{trial, step, value}
	if len(l.points) == 0 || m.goal.Better(value, l.best.value) {
		l.best = r
	}
	l.points = append(l.points, r)
	if step < m.grace {
		return
	}
	var others []result
	for _, id := range m.order {
		if o := m.trials[id]; id != trial {
			if mean, reached := o.mean(step); reached {
				others = append(others, result{id, step, mean})
			}
		}
	}
	if len(others) < m.least {
		return
	}
	slices.SortFunc(others, order(m.goal))
	middle := others[len(others)/2].value
	if len(others)%2 == 0 {
		middle = (others[len(others)/2-1].value + middle) / 2
	}
	if m.goal.Better(middle, l.best.value) {
		l.stopped, l.why = true, fmt.Sprintf("best value %g up to step %g is worse than %g, the median of %d others", l.best.value, step, middle, len(others))
	}
}

// mean is what a trial had on average up to a step; false where it did not reach it.
func (l *learner) mean(step float64) (float64, bool) {
	n := len(l.points)
	if n == 0 || l.points[n-1].step < step {
		return 0, false
	}
	sum, count := 0.0, 0
	for _, p := range l.points {
		if p.step > step {
			break
		}
		sum, count = sum+p.value, count+1
	}
	if count == 0 {
		return 0, false
	}
	return sum / float64(count), true
}

// Leave takes note of an end. What the trial reported still counts.
func (m *Median) Leave(trial int) {
	if l := m.trials[trial]; l != nil {
		l.left = true
	}
}

// Settle changes nothing: nobody waits.
func (*Median) Settle() {}

// Decision is Go or Stop.
func (m *Median) Decision(trial int) (Decision, string) {
	if l := m.trials[trial]; l != nil && l.stopped {
		return Stop, l.why
	}
	return Go, ""
}
