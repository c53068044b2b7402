package stopping

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// Hyperband runs brackets of successive halving beside each other, from many trials that are cut early to few that are not. Trials fill the brackets in the order in which they
// join; when all are full the first one is begun anew.
//
// Source: Li et al., JMLR 2018, algorithm 1: with R the most steps, r the first rung of the first bracket and eta, there are brackets s = smax..0, smax = floor(log_eta(R/r)), of
// ceil((smax+1)/(s+1) eta^s) trials whose first rung is R eta^-s.
type Hyperband struct {
	rungs    Rungs
	goal     core.Goal
	brackets []*Halving
	of       map[int]*Halving
}

// NewHyperband is a rule for one search. Rungs.Most is finite.
func NewHyperband(rungs Rungs, goal core.Goal) *Hyperband {
	return &Hyperband{rungs: rungs, goal: goal, of: map[int]*Halving{}}
}

// Brackets are how many trials each bracket has, and at which step these are first compared; of the last one, at none.
func (h *Hyperband) Brackets() (trials []int, first []float64) {
	most := int(math.Floor(math.Log(h.rungs.Most/h.rungs.First)/math.Log(h.rungs.Eta) + 1e-9))
	for s := most; s >= 0; s-- {
		trials = append(trials, int(math.Ceil(float64(most+1)/float64(s+1)*math.Pow(h.rungs.Eta, float64(s))-1e-9)))
		first = append(first, h.rungs.Most*math.Pow(h.rungs.Eta, -float64(s)))
	}
	return trials, first
}

// Join takes in a trial.
func (h *Hyperband) Join(trial int) {
	if h.of[trial] != nil {
		return
	}
	last := len(h.brackets) - 1
	if last < 0 || h.brackets[last].Full() {
		trials, first := h.Brackets()
		next := len(h.brackets) % len(trials)
		h.brackets = append(h.brackets, NewHalving(Rungs{First: first[next], Eta: h.rungs.Eta, Most: h.rungs.Most}, h.goal, trials[next]))
		last++
	}
	h.of[trial] = h.brackets[last]
	h.brackets[last].Join(trial)
}

// Report takes in a report.
func (h *Hyperband) Report(trial int, step, value float64) {
	if b := h.of[trial]; b != nil {
		b.Report(trial, step, value)
	}
}

// Leave takes note of an end.
func (h *Hyperband) Leave(trial int) {
	if b := h.of[trial]; b != nil {
		b.Leave(trial)
	}
}

// Settle decides by those that are there.
func (h *Hyperband) Settle() {
	for _, b := range h.brackets {
		b.Settle()
	}
}

// Decision is that of the trial's bracket.
func (h *Hyperband) Decision(trial int) (Decision, string) {
	if b := h.of[trial]; b != nil {
		return b.Decision(trial)
	}
	return Go, ""
}
