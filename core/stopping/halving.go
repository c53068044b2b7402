package stopping

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Halving is successive halving: the trials of a rung wait for each other, then one of Eta goes on.
//
// Source: Jamieson and Talwalkar, AISTATS 2016.
type Halving struct {
	rungs  Rungs
	goal   core.Goal
	cohort int // trials of the first rung; 0 for as many as join before it is settled
	trials map[int]*climber
	order  []int // in which they joined
	rung   int   // that is being waited for
	done   bool  // the rungs are over: whoever is left goes on to its end
}

// climber is a trial that goes from rung to rung.
type climber struct {
	left    bool
	rung    int // that it is to reach next
	reached []result
	beyond  []result // reports that may reach rungs to come
	stopped bool
	why     string
}

// NewHalving is a rule for one search of so many trials.
func NewHalving(rungs Rungs, goal core.Goal, cohort int) *Halving {
	return &Halving{rungs: rungs, goal: goal, cohort: cohort, trials: map[int]*climber{}}
}

// Join takes in a trial. One that comes when the first rung has been decided is compared with nobody, and goes on to its end.
func (h *Halving) Join(trial int) {
	if h.trials[trial] != nil {
		return
	}
	c := &climber{}
	if h.rung > 0 || h.done {
		c.rung = -1
	}
	h.trials[trial] = c
	h.order = append(h.order, trial)
}

// Full reports whether the cohort is.
func (h *Halving) Full() bool { return h.cohort > 0 && len(h.order) >= h.cohort }

// Report takes in a report.
func (h *Halving) Report(trial int, step, value float64) {
	c := h.trials[trial]
	if c == nil || c.left || c.stopped || c.rung < 0 {
		return
	}
	c.beyond = append(c.beyond, result{trial, step, value})
	h.climb(c)
	h.decide(false)
}

// climb notes the result of the rung that is being waited for.
func (h *Halving) climb(c *climber) {
	at, is := h.rungs.At(c.rung)
	if !is || c.rung != h.rung {
		return
	}
	if i := slices.IndexFunc(c.beyond, func(r result) bool { return r.step >= at }); i >= 0 {
		c.reached = append(c.reached, c.beyond[i])
		c.beyond = c.beyond[i:]
		c.rung++
	}
}

// Leave takes note of an end. What the trial reached at a rung still counts there.
func (h *Halving) Leave(trial int) {
	if c := h.trials[trial]; c != nil && !c.left {
		c.left = true
		h.decide(false)
	}
}

// Settle decides by those that are there.
func (h *Halving) Settle() { h.decide(true) }

// decide goes from rung to rung as far as all that are awaited have reached them.
func (h *Halving) decide(settle bool) {
	for !h.done {
		at, is := h.rungs.At(h.rung)
		if !is {
			h.done = true
			return
		}
		var there []result
		missing := 0
		if h.rung == 0 {
			missing = max(h.cohort-len(h.order), 0)
			if h.cohort == 0 {
				missing = 1 // somebody may join
			}
		}
		for _, id := range h.order {
			switch c := h.trials[id]; {
			case c.rung < 0 || c.stopped:
			case c.rung > h.rung:
				there = append(there, c.reached[h.rung])
			case !c.left:
				missing++
			}
		}
		if missing > 0 && !settle || len(there) == 0 {
			return
		}
		h.cut(there, at)
		h.rung++
		for _, id := range h.order {
			if c := h.trials[id]; !c.stopped && !c.left && c.rung == h.rung {
				h.climb(c)
			}
		}
		settle = false
	}
}

// cut stops all but the best of those that reached a rung. Those that did not, where the rung was settled without them, are compared no more.
func (h *Halving) cut(there []result, at float64) {
	slices.SortFunc(there, order(h.goal))
	kept := h.rungs.keeps(len(there))
	for rank, r := range there {
		if c := h.trials[r.trial]; rank >= kept {
			c.stopped, c.why = true, ranked(r, rank, len(there), kept, at)
		}
	}
	for _, id := range h.order {
		if c := h.trials[id]; c.rung == h.rung {
			c.rung = -1
		}
	}
}

// Decision is Wait for a trial that reached the rung which others are still to reach.
func (h *Halving) Decision(trial int) (Decision, string) {
	switch c := h.trials[trial]; {
	case c == nil:
		return Go, ""
	case c.stopped:
		return Stop, c.why
	case c.rung > h.rung && !h.done:
		at, _ := h.rungs.At(h.rung)
		r := c.reached[h.rung]
		return Wait, fmt.Sprintf("%g at step %g: others are still to reach rung %g", r.value, r.step, at)
	}
	return Go, ""
}
