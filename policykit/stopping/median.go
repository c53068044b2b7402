package stopping

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Median is the settings of NewMedian.
type Median struct {
	Grace  float64 // reports at steps before it judge nobody
	Others int     // as many others are to have come to the step, at least 1
	// Goal says which values are better.
	Goal core.Goal
}

// mostPoints is how many points of a trial are kept. When there are as many, every second one is forgotten.
const mostPoints = 256

// NewMedian is the median rule of Golovin et al. (Vizier, KDD'17): a trial stops when its best value up to a step is worse than the median, over the others that have come to
// the step, of the mean of their reports up to it. Those that ended count as well, where the publication counts only them; those that came to nothing do not. A value of NaN
// leaves no best value before it, and its mean is the worst from there on. O(n log n) a report for n trials.
func NewMedian(m Median) Rule { return &median{config: m} }

type median struct {
	config Median
	trials []course // by trial
}

// course is how a trial went.
type course struct {
	Trial  Trial
	Points []point // by step
	Count  int     // of its reports
	Best   number
	Out    bool   `json:",omitempty"`
	Gone   bool   `json:",omitempty"`
	Lost   bool   `json:",omitempty"`
	Step   number `json:",omitzero"` // of one that is out
	Median number `json:",omitzero"`
	Of     int    `json:",omitempty"`
}

// point is the mean of the reports up to a step.
type point struct{ Step, Mean number }

func (r *median) course(t Trial) *course {
	at, found := find(r.trials, func(c *course) Trial { return c.Trial }, t)
	if !found {
		return nil
	}
	return &r.trials[at]
}

func (r *median) Enter(t Trial) {
	if at, found := find(r.trials, func(c *course) Trial { return c.Trial }, t); !found {
		r.trials = slices.Insert(r.trials, at, course{Trial: t, Best: number(math.NaN())})
	}
}

func (r *median) Report(t Trial, step, value float64) {
	c := r.course(t)
	if c == nil || c.Gone || c.Out || step != step || math.IsInf(step, 0) || len(c.Points) > 0 && step <= float64(c.Points[len(c.Points)-1].Step) {
		return
	}
	c.add(step, value)
	if math.IsNaN(value) { // it diverged: what it was before is lost
		c.Best = number(value)
	}
	if r.config.Goal.Better(value, float64(c.Best)) {
		c.Best = number(value)
	}
	if step < r.config.Grace {
		return
	}
	var others []float64
	for i := range r.trials {
		if o := &r.trials[i]; o != c && !o.Lost {
			if mean, came := o.at(step); came {
				others = append(others, mean)
			}
		}
	}
	if len(others) < max(1, r.config.Others) {
		return
	}
	if m := medianOf(others, r.config.Goal); r.config.Goal.Better(m, float64(c.Best)) {
		c.Out, c.Step, c.Median, c.Of = true, number(step), number(m), len(others)
	}
}

// add takes in a report.
func (c *course) add(step, value float64) {
	mean := value
	if n := len(c.Points); n > 0 {
		before := float64(c.Points[n-1].Mean)
		mean = before + (value-before)/float64(c.Count+1)
	}
	c.Count++
	if len(c.Points) == mostPoints {
		half := c.Points[:0]
		for i := 1; i < mostPoints; i += 2 { // the latest stays: the mean goes on from it
			half = append(half, c.Points[i])
		}
		c.Points = half
	}
	c.Points = append(c.Points, point{number(step), number(mean)})
}

// at is the mean of the reports up to a step; false where the trial has not come to it, or reported nothing before it.
func (c *course) at(step float64) (mean float64, came bool) {
	n := len(c.Points)
	if n == 0 || float64(c.Points[n-1].Step) < step {
		return 0, false
	}
	i, exact := slices.BinarySearchFunc(c.Points, step, func(p point, step float64) int {
		switch {
		case float64(p.Step) < step:
			return -1
		case float64(p.Step) > step:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	if i < 0 {
		return 0, false
	}
	return float64(c.Points[i].Mean), true
}

// medianOf is the middle of values, the mean of the two in the middle of an even number. It sorts them.
func medianOf(values []float64, goal core.Goal) float64 {
	slices.SortFunc(values, func(a, b float64) int { return orderValues(goal, a, b) })
	low, high := values[(len(values)-1)/2], values[len(values)/2]
	if low == high {
		return low // also where it is infinite
	}
	return low + (high-low)/2
}

func (r *median) Leave(t Trial, lost bool) {
	if c := r.course(t); c != nil && !c.Gone {
		c.Gone, c.Lost = true, lost
	}
}

func (r *median) Decide(t Trial) Decision {
	c := r.course(t)
	if c == nil || c.Gone || !c.Out {
		return goesOn()
	}
	return Decision{Action: Stop, Step: float64(c.Step), Value: float64(c.Best), Rung: -1, RungSize: c.Of, Threshold: float64(c.Median)}
}

// Settle, of a rule by which nobody waits, is nothing.
func (r *median) Settle() {}

func (r *median) Snapshot() ([]byte, error) { return json.Marshal(r.trials) }

func (r *median) Restore(snapshot []byte) error {
	var trials []course
	if err := json.Unmarshal(snapshot, &trials); err != nil {
		return err
	}
	for i := range trials {
		c := &trials[i]
		if i > 0 && trials[i-1].Trial >= c.Trial || c.Count < len(c.Points) || len(c.Points) > mostPoints ||
			!slices.IsSortedFunc(c.Points, func(a, b point) int { return orderValues(core.Minimize, float64(a.Step), float64(b.Step)) }) {
			return fmt.Errorf("trial %d has no course of its own", c.Trial)
		}
	}
	r.trials = trials
	return nil
}
