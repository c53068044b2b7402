package advise

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/lab/study"
)

// Advice is what was chosen, and the evidence. It depends on what was asked for and the program only.
type Advice struct {
	Goal   Goal   `json:"goal"`   // metric that the choice lowers
	Chosen string `json:"chosen"` // name of the chosen composition
	Why    string `json:"why"`    // why it was chosen, as a sentence
	// Regret is the chosen composition against the best of the finalists on held-out windows.
	Regret       Comparison    `json:"regret"`
	Best         string        `json:"best_found"`    // finalist with the lowest mean on held-out windows
	NoDifference []string      `json:"no_difference"` // from the chosen one, on held-out windows
	Limits       []LimitResult `json:"limits"`        // of the chosen one
	Declared     DeclaredWork  `json:"told"`          // what policies knew of the work of jobs

	Windows int `json:"windows"`   // of choosing, and as many held out
	Jobs    int `json:"jobs"`      // of a window
	Runs    int `json:"runs"`      // simulations that were run or reused
	Grid    int `json:"full_grid"` // simulations that the full grid would take

	Finalists  []Finalist `json:"finalists"` // from the best to the worst on held-out windows
	Left       []Left     `json:"left"`      // other candidates, the last to leave first
	Invalid    []Dropped  `json:"invalid"`   // candidates that cannot be run here
	Notes      []string   `json:"notes"`     // what to know about the evidence, a sentence each
	Candidates []string   `json:"-"`         // names of all candidates
	Rungs      []Rung     `json:"-"`         // windows and survivors of each stage of the race
	Config     []byte     `json:"-"`         // of the chosen composition, with the evidence as comments
	Reused     int        `json:"-"`         // runs that were kept from before
}

// Comparison is one composition against another over the same windows. Changes are fractions.
type Comparison struct {
	Windows      int            `json:"windows"`        // number of windows that were compared
	Change       metrics.Number `json:"change"`         // geometric mean of the ratios, less one
	Low          metrics.Number `json:"low"`            // of the 95 % interval of Change; null for fewer than five windows
	High         metrics.Number `json:"high"`           // upper end of the 95 % interval of Change
	RatioOfMeans metrics.Number `json:"ratio_of_means"` // ratio of the arithmetic means, less one
	Equal        bool           `json:"equal"`          // in every window
}

// Undecided reports whether there may be no difference.
func (c *Comparison) Undecided() bool { return c.Equal || c.Low <= 0 && c.High >= 0 }

// Finalist is a candidate that was judged on held-out windows.
type Finalist struct {
	Name     string         `json:"name"`      // name of the composition
	Mean     metrics.Number `json:"mean"`      // of the goal over held-out windows
	HeldOut  Comparison     `json:"kept_back"` // against the chosen one
	Choosing Comparison     `json:"choosing"`  // against the chosen one
	Lost     int            `json:"lost"`      // jobs that did not complete, on held-out windows, though the cluster could hold them
	Limits   []LimitResult  `json:"limits"`    // whether each limit held
}

// Left is a candidate that was dropped before.
type Left struct {
	Name    string `json:"name"`    // name of the composition
	Windows int    `json:"windows"` // it was run on
	Reason  string `json:"reason"`  // why it left, as a sentence
}

// Dropped is a candidate that was not run.
type Dropped struct {
	Name   string `json:"name"`   // name of the composition
	Reason string `json:"reason"` // why it cannot be run here, as a sentence
}

// LimitResult says whether a limit held.
type LimitResult struct {
	Limit    string         `json:"limit"`     // the limit as it was given
	Held     bool           `json:"held"`      // in every window
	Choosing int            `json:"choosing"`  // windows in which it held
	HeldOut  int            `json:"kept_back"` // held-out windows in which it held
	Worst    metrics.Number `json:"worst"`     // value, over all windows
}

// level is that of every interval.
const level = 0.95

// choose puts the finalists in the order in which they are preferred, by the windows of choosing only.
func (a *adviser) choose() {
	ad := a.advice
	chosen, best := a.race.Pick()
	switch {
	case len(ad.Candidates) == 1:
		ad.Why = "the only candidate"
	case chosen == best:
		ad.Why = "the best on the windows of choosing"
	default:
		against := compare(a.race.Outcomes(chosen), a.race.Outcomes(best))
		ad.Why = fmt.Sprintf("the simplest of those that the windows of choosing show to be practically the same: %s is the best there, and %s", ad.Candidates[best], against.against())
	}
	a.judged = append([]int{chosen}, slices.DeleteFunc(a.judged, func(other int) bool { return other == chosen })...)
}

// against words a comparison from the other side.
func (c *Comparison) against() string {
	if c.Equal {
		return "equal to it in every window"
	}
	return fmt.Sprintf("%.2f %% better", 100*float64(c.Change)/(1+float64(c.Change)))
}

// compare compares outcomes on the same windows.
func compare(x, y []Outcome) Comparison {
	unknown := metrics.Number(math.NaN())
	c := Comparison{Windows: len(x), Change: unknown, Low: unknown, High: unknown, RatioOfMeans: unknown}
	p, err := stats.Compare(values(x), values(y), level)
	if err != nil { // some value is not known, or zero
		c.Equal = slices.EqualFunc(x, y, func(a, b Outcome) bool { return math.Float64bits(a.Value) == math.Float64bits(b.Value) })
		return c
	}
	c.Change, c.RatioOfMeans, c.Equal = metrics.Number(p.Change), metrics.Number(p.RatioOfMeans), p.Equal
	if !p.Equal {
		c.Low, c.High = metrics.Number(p.T.Low), metrics.Number(p.T.High)
	}
	return c
}

func values(outcomes []Outcome) []float64 {
	list := make([]float64, len(outcomes))
	for i := range outcomes {
		list[i] = outcomes[i].Value
	}
	return list
}

// judge compares the finalists on the held-out windows.
func (a *adviser) judge(rows []study.Row) {
	outcomes := map[int][]Outcome{}
	a.judged = slices.DeleteFunc(a.judged, func(c int) bool {
		for w := range a.advice.Windows {
			o := a.outcome(rows, Cell{c, a.advice.Windows + w})
			if o.Failed != "" {
				a.race.Out = append(a.race.Out, Leaving{c, a.advice.Windows + w + 1, -1, o.Failed})
				return true
			}
			outcomes[c] = append(outcomes[c], o)
		}
		return false
	})
	for k := range a.race.Out {
		out := &a.race.Out[len(a.race.Out)-1-k]
		reason := "worse than those that went on"
		if out.Failed != "" {
			reason = "failed: " + out.Failed
		} else if out.Same >= 0 {
			reason = "equal to " + a.advice.Candidates[out.Same] + " in every window so far"
		}
		a.advice.Left = append(a.advice.Left, Left{a.advice.Candidates[out.Candidate], out.Windows, reason})
	}
	if len(a.judged) == 0 {
		return
	}
	chosen := a.judged[0]
	ranked := slices.SortedStableFunc(slices.Values(a.judged), func(x, y int) int { // the chosen one first among equals
		return scoreOf(outcomes[x], a.Limits).compare(scoreOf(outcomes[y], a.Limits))
	})
	ad := a.advice
	ad.Chosen, ad.Best = ad.Candidates[chosen], ad.Candidates[ranked[0]]
	ad.Regret = compare(outcomes[chosen], outcomes[ranked[0]])
	for _, c := range ranked {
		f := Finalist{
			Limits: []LimitResult{},
			Name:   ad.Candidates[c], Mean: metrics.Number(stat.Mean(values(outcomes[c]), nil)),
			HeldOut: compare(outcomes[c], outcomes[chosen]), Choosing: compare(a.race.Outcomes(c), a.race.Outcomes(chosen)),
		}
		for i := range outcomes[c] {
			f.Lost += outcomes[c][i].Lost
		}
		for k, l := range a.Limits {
			f.Limits = append(f.Limits, resultOf(l, k, a.race.Outcomes(c), outcomes[c]))
		}
		if c == chosen {
			ad.Limits = f.Limits
		} else if f.HeldOut.Undecided() {
			ad.NoDifference = append(ad.NoDifference, f.Name)
		}
		ad.Finalists = append(ad.Finalists, f)
	}
}

func resultOf(l Limit, k int, choosing, heldOut []Outcome) LimitResult {
	r := LimitResult{Limit: l.String()}
	var all []float64
	for i, list := range [][]Outcome{choosing, heldOut} {
		for w := range list {
			value := list[w].Limits[k]
			all = append(all, value)
			if l.Holds(value) {
				if i == 0 {
					r.Choosing++
				} else {
					r.HeldOut++
				}
			}
		}
	}
	r.Held = r.Choosing == len(choosing) && r.HeldOut == len(heldOut)
	r.Worst = metrics.Number(l.worst(all))
	return r
}

// chosen is the candidate that was chosen; -1 while none is.
func (a *adviser) chosen() int { return slices.Index(a.advice.Candidates, a.advice.Chosen) }

// LimitsHold reports whether the chosen composition kept every limit.
func (a *Advice) LimitsHold() bool {
	return !slices.ContainsFunc(a.Limits, func(l LimitResult) bool { return !l.Held })
}

// Nearest is the finalist that comes nearest to the limits: it holds them in the most windows.
func (a *Advice) Nearest() *Finalist {
	held := func(f *Finalist) (n int) {
		for _, l := range f.Limits {
			n += l.Choosing + l.HeldOut
		}
		return n
	}
	best := -1
	for i := range a.Finalists {
		if best < 0 || cmp.Compare(held(&a.Finalists[i]), held(&a.Finalists[best])) > 0 {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	return &a.Finalists[best]
}
