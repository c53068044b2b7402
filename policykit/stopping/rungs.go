package stopping

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// mostRungs bounds the rungs of a cohort. With an eta of 2 or more, no step is beyond them that matters.
const mostRungs = 64

// Ladder is where rungs are: at First, First × Eta, First × Eta² and so on below Most. The result of a trial at a rung is its first report at or after that step, so that
// one report may be the result at several.
type Ladder struct {
	First float64 // step of the first rung, above 0
	Eta   float64 // 2 or more: of the results at a rung the best 1/Eta go on
	Most  float64 // the step that a trial is to come to at most; 0 for none
	// Goal says which values are better.
	Goal core.Goal
}

// Step is that of a rung; +Inf for none.
func (l Ladder) Step(rung int) float64 {
	step := l.First
	for range rung {
		step *= l.Eta
	}
	if rung >= mostRungs || l.Most > 0 && step > l.Most*(1-1e-9) {
		return math.Inf(1)
	}
	return step
}

// How trials wait at rungs.
type manner uint8

const (
	together manner = iota // until each of their cohort has come there
	promoted               // until they are among the best of those that came there
	never                  // they go on or stop at once
)

// NewASHA is the asynchronous successive halving of Li et al. (MLSys'20): nobody waits for the slowest. Without stops, a trial that comes to a rung waits there, and goes on as
// soon as it is among the best ⌊n/eta⌋ of the n that came there, by what others report later, too. That is the publication's algorithm 2, in which nobody goes on from a rung to which fewer than eta came.
//
// With stops, a trial is judged once, when it comes to the rung, and stops for good or goes on. This is the rule of the reference experiment on tuning: as long as fewer than
// eta results are recorded at a rung, its own included, every trial goes on; after that one goes on if fewer than ⌊n/eta⌋ of the n recorded values are better than its own, so that
// equal values share a rank. The publication has no such variant: those who came first have nobody to be compared with, and a wait would cost what it is to save.
// O(log n) a report and O(n) a decision for n trials that came to a rung.
func NewASHA(l Ladder, stops bool) Rule {
	r := &rungs{brackets: []bracket{{ladder: l}}, manner: promoted}
	if stops {
		r.manner = never
	}
	return r
}

// NewSuccessiveHalving is that of Jamieson and Talwalkar (AISTATS'16) and of Karnin et al. (ICML'13): trials wait at a rung until each of their cohort has come there or ended. Then the best
// 1/eta of those that came, at least one, go on, and the others stop. A cohort is so many trials in the order in which they enter, and the next ones are
// one of their own; with 0, all that enter before the first rung is decided. One that comes to a rung after it was decided, as it was held up, goes on if it is no worse than
// the worst that did. O(n) a report and O(1) a decision for a cohort of n.
func NewSuccessiveHalving(l Ladder, cohort int) Rule {
	return &rungs{brackets: []bracket{{ladder: l, size: cohort}}}
}

// NewHyperband is that of Li et al. (JMLR 18, 2018): cohorts of successive halving in turn, from many trials with an early first rung to few that run through. With
// s_max = ⌊log_eta(Most/First)⌋, bracket s has ⌈(s_max+1)/(s+1) eta^s⌉ trials and its first rung at Most × eta^-s, for s from s_max down to 0; then again. Trials fill brackets in
// the order in which they enter.
func NewHyperband(l Ladder) Rule {
	r := &rungs{}
	for _, b := range Brackets(l) {
		r.brackets = append(r.brackets, bracket{ladder: Ladder{First: b.First, Eta: l.Eta, Most: l.Most, Goal: l.Goal}, size: b.Trials})
	}
	return r
}

// Bracket is a bracket of Hyperband.
type Bracket struct {
	Trials int     // of its cohort
	First  float64 // step of its first rung; that of the end in the last one, which has none
}

// Brackets are those of Hyperband, in order.
func Brackets(l Ladder) (list []Bracket) {
	most := 0
	for step := l.First * l.Eta; most < mostRungs && step <= l.Most*(1+1e-9); step *= l.Eta {
		most++
	}
	for s := most; s >= 0; s-- {
		part := math.Pow(l.Eta, float64(s))
		trials := math.Ceil(float64(most+1)/float64(s+1)*part - 1e-9)
		list = append(list, Bracket{Trials: int(min(trials, math.MaxInt32)), First: l.Most / part})
	}
	return list
}

type bracket struct {
	ladder Ladder
	size   int // 0 for as many as come
}

// rungs are the rules whose trials climb rungs.
type rungs struct {
	brackets []bracket
	manner   manner
	is       climb
}

// climb is how far trials have come.
type climb struct {
	Cohorts []*cohort
	Trials  []member // by trial
}

// cohort is trials that are held against each other. Cohort i is of bracket i modulo the number of brackets.
type cohort struct {
	Entered int
	Closed  bool       // takes in no more
	Results [][]result // by rung, best first
	Cuts    []result   // of the rungs at which trials no longer wait for each other: the worst that went on
	news    bool       // since rungs were looked at
}

// member is a trial of a cohort.
type member struct {
	Trial  Trial
	Cohort int
	Last   number // step; below that of any report before the first
	Given  int    // rungs that it has a result at
	Passed int    // rungs that it was let past
	Out    bool   `json:",omitempty"` // it is to stop
	Gone   bool   `json:",omitempty"`
	Why    why    `json:",omitzero"` // of one that is out
}

// why are the figures of a decision that are of its moment.
type why struct{ Rank, Of, Keep int }

func (r *rungs) bracket(cohort int) bracket { return r.brackets[cohort%len(r.brackets)] }

func (r *rungs) member(t Trial) *member {
	at, found := find(r.is.Trials, func(m *member) Trial { return m.Trial }, t)
	if !found {
		return nil
	}
	return &r.is.Trials[at]
}

func (r *rungs) Enter(t Trial) {
	at, found := find(r.is.Trials, func(m *member) Trial { return m.Trial }, t)
	if found {
		return
	}
	last := len(r.is.Cohorts) - 1
	if last < 0 || r.is.Cohorts[last].Closed {
		r.is.Cohorts = append(r.is.Cohorts, &cohort{})
		last++
	}
	c := r.is.Cohorts[last]
	c.Entered++
	c.Closed = c.Entered == r.bracket(last).size
	r.is.Trials = slices.Insert(r.is.Trials, at, member{Trial: t, Cohort: last, Last: -1})
}

func (r *rungs) Report(t Trial, step, value float64) {
	m := r.member(t)
	if m == nil || m.Gone || !(step > float64(m.Last)) || math.IsInf(step, 1) {
		return
	}
	m.Last = number(step)
	c, ladder := r.is.Cohorts[m.Cohort], r.bracket(m.Cohort).ladder
	for !m.Out && step >= ladder.Step(m.Given) {
		rung := m.Given
		if len(c.Results) == rung {
			c.Results = append(c.Results, nil)
		}
		one := result{Trial: t, Step: number(step), Value: number(value)}
		at, _ := slices.BinarySearchFunc(c.Results[rung], one, order(ladder.Goal))
		c.Results[rung] = slices.Insert(c.Results[rung], at, one)
		m.Given++
		c.news = true
		of := len(c.Results[rung])
		switch {
		case r.manner == never:
			better, _ := slices.BinarySearchFunc(c.Results[rung], one, func(a, b result) int { return orderValues(ladder.Goal, float64(a.Value), float64(b.Value)) })
			keep := kept(of, ladder.Eta)
			if keep == 0 { // fewer than eta
				keep = of
			}
			m.judge(rung, why{better + 1, of, keep})
		case rung < len(c.Cuts) && m.Passed == rung: // too late to be waited for
			keep, _ := slices.BinarySearchFunc(c.Results[rung], c.Cuts[rung], order(ladder.Goal))
			m.judge(rung, why{at + 1, of, keep + 1})
		}
	}
}

// judge lets a trial past a rung, or stops it.
func (m *member) judge(rung int, w why) {
	if w.Rank <= w.Keep {
		m.Passed = rung + 1
	} else {
		m.Out, m.Why = true, w
	}
}

func (r *rungs) Leave(t Trial, lost bool) {
	m := r.member(t)
	if m == nil || m.Gone {
		return
	}
	m.Gone = true
	c := r.is.Cohorts[m.Cohort]
	c.news = true
	if !lost || m.Out {
		return
	}
	for rung := m.Passed; rung < m.Given; rung++ {
		c.Results[rung] = slices.DeleteFunc(c.Results[rung], func(o result) bool { return o.Trial == t })
	}
	m.Given = m.Passed
}

func (r *rungs) Decide(t Trial) Decision {
	m := r.member(t)
	if m == nil || m.Gone {
		return goesOn()
	}
	c := r.is.Cohorts[m.Cohort]
	eta := r.bracket(m.Cohort).ladder.Eta
	if r.manner == together && c.news {
		for c.news = false; r.complete(m.Cohort); {
			r.halve(m.Cohort)
		}
	}
	for !m.Out && m.Passed < m.Given {
		w := why{c.rank(m.Passed, t), len(c.Results[m.Passed]), 0}
		w.Keep = kept(w.Of, eta)
		if r.manner == together || w.Rank > w.Keep {
			return r.decision(Wait, m, w)
		}
		m.Passed++
	}
	if m.Out {
		return r.decision(Stop, m, m.Why)
	}
	return goesOn()
}

func (r *rungs) decision(a Action, m *member, w why) Decision {
	d := Decision{Action: a, Rung: m.Passed, Rank: w.Rank, RungSize: w.Of, Keep: w.Keep, Threshold: math.NaN()}
	c := r.is.Cohorts[m.Cohort]
	if i := c.rank(m.Passed, m.Trial) - 1; i >= 0 {
		d.Step, d.Value = float64(c.Results[m.Passed][i].Step), float64(c.Results[m.Passed][i].Value)
	}
	return d
}

// rank is that of a trial at a rung, from 1; 0 where it has no result there.
func (c *cohort) rank(rung int, t Trial) int {
	if rung >= len(c.Results) {
		return 0
	}
	return 1 + slices.IndexFunc(c.Results[rung], func(o result) bool { return o.Trial == t })
}

// complete reports whether all of a cohort that can come to the rung that is next to be decided have come there.
func (r *rungs) complete(i int) bool {
	c := r.is.Cohorts[i]
	rung := len(c.Cuts)
	if rung >= len(c.Results) || len(c.Results[rung]) == 0 || !c.Closed && r.bracket(i).size > 0 {
		return false
	}
	return !slices.ContainsFunc(r.is.Trials, func(m member) bool { return m.Cohort == i && !m.Gone && !m.Out && m.Given <= rung })
}

// halve lets the best of those past that came to the rung that is next to be decided, and stops the others.
func (r *rungs) halve(i int) {
	c := r.is.Cohorts[i]
	rung := len(c.Cuts)
	of := len(c.Results[rung])
	keep := max(1, kept(of, r.bracket(i).ladder.Eta))
	c.Closed, c.Cuts = true, append(c.Cuts, c.Results[rung][keep-1])
	for at, one := range c.Results[rung] {
		if m := r.member(one.Trial); m != nil {
			m.judge(rung, why{at + 1, of, keep})
		}
	}
}

func (r *rungs) Settle() {
	for i, c := range r.is.Cohorts {
		switch r.manner {
		case together:
			if rung := len(c.Cuts); rung < len(c.Results) && len(c.Results[rung]) > 0 {
				r.halve(i)
				c.news = true
			}
		case promoted:
			r.promote(i)
		}
	}
}

// promote lets the best past that wait at a rung, at least the best of all that came there, and stops the others.
func (r *rungs) promote(i int) {
	c, eta := r.is.Cohorts[i], r.bracket(i).ladder.Eta
	for k := range r.is.Trials {
		m := &r.is.Trials[k]
		if m.Cohort == i && !m.Gone && !m.Out && m.Passed < m.Given {
			of := len(c.Results[m.Passed])
			m.judge(m.Passed, why{c.rank(m.Passed, m.Trial), of, max(1, kept(of, eta))})
		}
	}
}

func (r *rungs) Snapshot() ([]byte, error) { return json.Marshal(r.is) }

func (r *rungs) Restore(snapshot []byte) error {
	var is climb
	if err := json.Unmarshal(snapshot, &is); err != nil {
		return err
	}
	for i, c := range is.Cohorts {
		if c == nil || len(c.Results) > mostRungs || len(c.Cuts) > len(c.Results) {
			return fmt.Errorf("cohort %d has no rungs of its own", i)
		}
		goal := r.bracket(i).ladder.Goal
		for _, rung := range c.Results {
			if !slices.IsSortedFunc(rung, order(goal)) {
				return fmt.Errorf("cohort %d has results that are not in order", i)
			}
		}
		c.news = true
	}
	if !slices.IsSortedFunc(is.Trials, func(a, b member) int { return cmp.Compare(a.Trial, b.Trial) }) {
		return errors.New("trials are out of order")
	}
	for i, m := range is.Trials {
		if m.Cohort < 0 || m.Cohort >= len(is.Cohorts) || m.Passed < 0 || m.Passed > m.Given || m.Given > len(is.Cohorts[m.Cohort].Results) ||
			i > 0 && is.Trials[i-1].Trial == m.Trial {
			return fmt.Errorf("trial %d is on no rung of its own", m.Trial)
		}
	}
	r.is = is
	return nil
}
