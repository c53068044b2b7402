package advise

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Outcome is what a run of a candidate on a window came to.
type Outcome struct {
	Value  float64   // of the goal, the less the better; NaN or +Inf where it has none
	Second float64   // decides between those that are equal by Value
	Limits []float64 // metrics of the limits
	Lost   int       // jobs that did not complete, without those that the cluster cannot hold
	Failed string    // why the run ended by an error; empty when it did not
}

// Rung is a step of a race.
type Rung struct {
	Windows int // that candidates were run on at its end
	Keep    int // candidates that go on, at most
}

// Cell is a candidate on a window.
type Cell struct {
	Candidate int // index of the candidate
	Window    int // index of the window
} // index of the candidate and of the window

// Race chooses among candidates by successive halving. Ask and Report take turns until Ask has no more cells.
type Race struct {
	limits []Limit
	order  []int // windows, in the order in which they are taken
	rungs  []Rung

	at    int // rung
	alive []int
	table [][]Outcome // by candidate, of the windows in order so far
	Out   []Leaving   // candidates that left, in the order in which they did
}

// Leaving says when and why a candidate left a race.
type Leaving struct {
	Candidate int    // index of the candidate
	Windows   int    // it was run on
	Same      int    // candidate whose outcomes were equal in all of them; -1 for none
	Failed    string // the error of its run
}

// NewRace begins a race of so many candidates on windows, taken in the order given. The earlier of two equal candidates is preferred.
func NewRace(candidates int, order []int, rungs []Rung, limits []Limit) *Race {
	r := &Race{limits: limits, order: order, rungs: rungs, table: make([][]Outcome, candidates)}
	for c := range candidates {
		r.alive = append(r.alive, c)
	}
	return r
}

// Ask lists the cells to run next; none when the race is over.
func (r *Race) Ask() []Cell {
	if r.at == len(r.rungs) || len(r.alive) == 0 {
		return nil
	}
	var cells []Cell
	for _, c := range r.alive {
		for k := len(r.table[c]); k < r.rungs[r.at].Windows; k++ {
			cells = append(cells, Cell{c, r.order[k]})
		}
	}
	return cells
}

// Report takes the outcomes of the cells that were asked for, and drops the worse candidates.
func (r *Race) Report(outcome func(Cell) Outcome) {
	rung := r.rungs[r.at]
	r.at++
	for _, c := range r.alive {
		for k := len(r.table[c]); k < rung.Windows; k++ {
			r.table[c] = append(r.table[c], outcome(Cell{c, r.order[k]}))
		}
	}
	r.alive = slices.DeleteFunc(r.alive, func(c int) bool {
		for _, o := range r.table[c] {
			if o.Failed != "" {
				r.Out = append(r.Out, Leaving{c, len(r.table[c]), -1, o.Failed})
				return true
			}
		}
		return false
	})
	// Candidates that are the same so far take one place, as long as others are there for the places.
	ranked := r.Ranked()
	first := map[string]int{}
	var places, same []int
	for _, c := range ranked {
		key := fingerprint(r.table[c])
		if _, known := first[key]; known {
			same = append(same, c)
			continue
		}
		first[key] = c
		places = append(places, c)
	}
	places = append(places, same...)
	keep := min(max(rung.Keep, 1), len(places))
	for _, c := range places[keep:] {
		out := Leaving{Candidate: c, Windows: rung.Windows, Same: -1}
		if twin := first[fingerprint(r.table[c])]; twin != c {
			out.Same = twin
		}
		r.Out = append(r.Out, out)
	}
	r.alive = places[:keep]
	slices.Sort(r.alive)
}

// Ranked lists the candidates that are left from the best to the worst, by what is known so far.
func (r *Race) Ranked() []int {
	scores := map[int]score{}
	for _, c := range r.alive {
		scores[c] = scoreOf(r.table[c], r.limits)
	}
	ranked := slices.Clone(r.alive)
	slices.SortFunc(ranked, func(a, b int) int { return cmp.Or(scores[a].compare(scores[b]), cmp.Compare(a, b)) })
	return ranked
}

// Outcomes are those of a candidate so far, by window in the order in which they were taken.
func (r *Race) Outcomes(candidate int) []Outcome { return r.table[candidate] }

// Pick is the candidate to choose of those that are left, and the best of them by what is known: another one where that is simpler and
// practically the same. -1 when none is left.
//
// Practically the same is a candidate whose change against the best has an interval that holds 0 and ends below a quarter of a per
// cent. That an interval holds 0 would not do: with few windows it holds a lot besides, and what is simplest may be far worse.
func (r *Race) Pick() (chosen, best int) {
	ranked := r.Ranked()
	if len(ranked) == 0 {
		return -1, -1
	}
	best = ranked[0]
	top := scoreOf(r.table[best], r.limits)
	second := top.second
	var same []int
	for _, c := range r.alive {
		s := scoreOf(r.table[c], r.limits)
		against := compare(r.table[c], r.table[best])
		if c == best || s.before(top) == 0 && (against.Equal || against.Undecided() && float64(against.High) <= equivalent) {
			same = append(same, c)
			second = min(second, s.second)
		}
	}
	slack := math.Log1p(equivalent) * float64(len(r.table[best]))
	for _, c := range same {
		if s := scoreOf(r.table[c], r.limits).second; s <= second+slack {
			return c, best
		}
	}
	return best, best
}

// equivalent is the change that makes no difference in practice.
const equivalent = 0.0025

// score orders candidates that ran on the same windows: who loses fewer jobs, then who misses fewer limits and by less, then whose
// values have the lesser geometric mean, and then whose second ones.
type score struct {
	lost, missed int
	excess       float64
	logs, second float64
}

func (s score) compare(o score) int {
	return cmp.Or(s.before(o), cmp.Compare(s.logs, o.logs), cmp.Compare(s.second, o.second))
}

// before compares what comes before the goal.
func (s score) before(o score) int {
	return cmp.Or(cmp.Compare(s.lost, o.lost), cmp.Compare(s.missed, o.missed), cmp.Compare(s.excess, o.excess))
}

func scoreOf(outcomes []Outcome, limits []Limit) score {
	var s score
	for i := range outcomes {
		o := &outcomes[i]
		s.lost += o.Lost
		missed := false
		for k, l := range limits {
			excess := l.excess(o.Limits[k])
			s.excess = max(s.excess, excess)
			missed = missed || excess > 0 || !l.Holds(o.Limits[k])
		}
		if missed {
			s.missed++
		}
		s.logs += logarithm(o.Value)
		s.second += logarithm(o.Second)
	}
	return s
}

// logarithm is +Inf for what is not known, and -Inf for zero.
func logarithm(x float64) float64 {
	if math.IsNaN(x) || x < 0 {
		return math.Inf(1)
	}
	return math.Log(x)
}

// fingerprint is equal for outcomes that are.
func fingerprint(outcomes []Outcome) string {
	var b strings.Builder
	for i := range outcomes {
		o := &outcomes[i]
		for _, v := range append([]float64{o.Value, o.Second, float64(o.Lost)}, o.Limits...) {
			b.WriteString(strconv.FormatUint(math.Float64bits(v), 36))
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// The shape of a race.
const (
	budgetShare  = 4 // runs of the full grid over those of a race, at least, where there are enough candidates
	finalists    = 4 // candidates judged on held-out windows, at most
	wholeGridFor = 4 // candidates up to which every one is run on every window
)

// PlanRungs chooses the rungs of a race of candidates over windows of choosing, of which the last keeps those to judge on windows kept
// back, such that all runs are at most a quarter of those of the full grid. That is not possible for few candidates: up to four are
// run on every window.
func PlanRungs(candidates, windows, kept int) []Rung {
	if candidates <= wholeGridFor {
		return []Rung{{windows, candidates}}
	}
	budget := candidates * (windows + kept) / budgetShare
	var best []Rung
	for last := finalists; last >= 2; last-- {
		for part := 2; part <= 4; part++ {
			// As many windows at the first rung as there is budget for: that is where most candidates leave.
			for begin := windows; begin >= 1; begin-- {
				if rungs := halve(candidates, windows, begin, part, last); Runs(candidates, kept, rungs) <= budget {
					return rungs
				}
			}
			best = halve(candidates, windows, 1, part, last)
		}
	}
	// The last rungs go on fewer windows.
	for len(best) > 1 && Runs(candidates, kept, best) > budget {
		if last := &best[len(best)-1]; last.Windows > best[len(best)-2].Windows+1 {
			last.Windows--
			continue
		}
		keep := best[len(best)-1].Keep
		best = best[:len(best)-1]
		best[len(best)-1].Keep = keep
	}
	return best
}

// halve makes rungs of twice the windows and a part of the candidates each.
func halve(candidates, windows, begin, part, last int) []Rung {
	var rungs []Rung
	for n, w := candidates, begin; ; w = min(2*w, windows) {
		n = min(max((n+part-1)/part, last), n)
		rungs = append(rungs, Rung{w, n})
		if w == windows {
			rungs[len(rungs)-1].Keep = last
			return rungs
		}
	}
}

// Runs is how many runs a race takes at most, those on held-out windows included.
func Runs(candidates, kept int, rungs []Rung) int {
	runs, windows := 0, 0
	for _, r := range rungs {
		runs += candidates * (r.Windows - windows)
		candidates, windows = min(r.Keep, candidates), r.Windows
	}
	return runs + candidates*kept
}
