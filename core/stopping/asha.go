package stopping

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// ASHA is asynchronous successive halving: a trial that reaches a rung is compared with those that reached it so far, and nobody waits for stragglers. In the stopping variant it
// goes on or is stopped at once; in the promoting one it waits until it is among the best of its rung, as more trials reach it.
//
// Source: Li et al., MLSys 2020, algorithm 2 for promotion; the stopping variant is as tuners implement it.
type ASHA struct {
	rungs    Rungs
	goal     core.Goal
	promotes bool
	trials   map[int]*climber
	order    []int
	at       [][]result // by rung, from the best to the worst
}

// NewASHA is a rule for one search.
func NewASHA(rungs Rungs, goal core.Goal, promotes bool) *ASHA {
	return &ASHA{rungs: rungs, goal: goal, promotes: promotes, trials: map[int]*climber{}}
}

// Join takes in a trial.
func (a *ASHA) Join(trial int) {
	if a.trials[trial] == nil {
		a.trials[trial] = &climber{}
		a.order = append(a.order, trial)
	}
}

// Report takes in a report, which may reach several rungs.
func (a *ASHA) Report(trial int, step, value float64) {
	c := a.trials[trial]
	if c == nil || c.left || c.stopped {
		return
	}
	c.beyond = append(c.beyond, result{trial, step, value})
	a.climb(c)
	a.promote()
}

// waits reports whether a trial of the promoting variant reached a rung and was not promoted from it.
func (c *climber) waits() bool { return len(c.reached) > c.rung }

// climb takes a trial up the rungs that it reached, as far as it may go on.
func (a *ASHA) climb(c *climber) {
	for !c.stopped && !c.waits() {
		step, is := a.rungs.At(c.rung)
		i := slices.IndexFunc(c.beyond, func(r result) bool { return r.step >= step })
		if !is || i < 0 {
			return
		}
		r := c.beyond[i]
		c.beyond = c.beyond[i:]
		c.reached = append(c.reached, r)
		for len(a.at) <= c.rung {
			a.at = append(a.at, nil)
		}
		var rank int
		a.at[c.rung], rank = insert(a.at[c.rung], r, a.goal)
		if a.promotes {
			return
		}
		of := len(a.at[c.rung])
		if kept := a.rungs.keeps(of); rank >= kept {
			c.stopped, c.why = true, ranked(r, rank, of, kept, step)
		}
		c.rung++
	}
}

// promote lets those go on that came to be among the best of their rungs, from the highest rung down.
func (a *ASHA) promote() {
	if !a.promotes {
		return
	}
	for again := true; again; {
		again = false
		for rung := len(a.at) - 1; rung >= 0; rung-- {
			there := a.at[rung]
			best := int(float64(len(there))/a.rungs.Eta + 1e-9)
			for _, r := range there[:best] {
				if c := a.trials[r.trial]; c.rung == rung && c.waits() && !c.left {
					c.rung++
					a.climb(c)
					again = true
				}
			}
		}
	}
}

// Leave takes note of an end. What the trial reached still counts.
func (a *ASHA) Leave(trial int) {
	if c := a.trials[trial]; c != nil {
		c.left = true
	}
}

// Settle stops those that wait: nobody else will come to make them one of the best. Where nobody goes on, the best of the highest rung does.
func (a *ASHA) Settle() {
	for rung := len(a.at) - 1; rung >= 0; rung-- {
		for rank, r := range a.at[rung] {
			c := a.trials[r.trial]
			if c.left || c.stopped || c.rung != rung || !c.waits() {
				continue
			}
			if rank == 0 && rung == len(a.at)-1 {
				c.rung++
				a.climb(c)
				continue
			}
			step, _ := a.rungs.At(rung)
			c.stopped, c.why = true, ranked(r, rank, len(a.at[rung]), int(float64(len(a.at[rung]))/a.rungs.Eta+1e-9), step)
		}
	}
}

// Decision is that on the rung which the trial reached last.
func (a *ASHA) Decision(trial int) (Decision, string) {
	switch c := a.trials[trial]; {
	case c == nil:
		return Go, ""
	case c.stopped:
		return Stop, c.why
	case a.promotes && c.waits():
		step, _ := a.rungs.At(c.rung)
		r := c.reached[c.rung]
		return Wait, fmt.Sprintf("%g at step %g is not among the best of %d at rung %g", r.value, r.step, len(a.at[c.rung]), step)
	}
	return Go, ""
}
