package compare

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/lab/study"
)

// Why a change is shown, or is not.
const (
	Shown        = "shown"        // its interval leaves out 0
	Same         = "same"         // all values are equal
	HoldsZero    = "holds_zero"   // its interval holds 0
	Corrected    = "corrected"    // it may be chance among so many comparisons
	FewWorkloads = "few"          // there are too few workloads for an interval
	FewJobs      = "few_jobs"     // there are too few jobs for an interval
	OneWorkload  = "one_workload" // of one workload, only means over jobs have an interval
	OtherJobs    = "other_jobs"   // of one workload, and it is a mean over other jobs
	Unknown      = "unknown"      // there is nothing to compare
)

// Row is a metric of a side against that of the base.
type Row struct {
	Metric   string   // metric, by path
	Against  int      // index in Others
	Cell     []string // item of each axis, study.Pooled for all
	Headline bool     // nothing is pooled more
	Missing  []string // runs that lack the metric

	N           int            // workloads; under stats.MethodBlocks it is 1
	Base, Other float64        // means of the two sides, in the unit of the metric
	Change      float64        // a part of the base, or a difference where some value is zero
	Difference  bool           // Change is a difference in the unit of the metric
	Interval    stats.Interval // 95 % interval of Change
	Method      string         // how Interval was computed, one of stats.Method…
	Jobs        int            // under stats.MethodBlocks
	P, Holm     float64        // p-value, and the same corrected by Holm for the rows of a family
	Why         string         // why there is no interval, as a sentence

	judged []*pair
	family string // rows of one are corrected together
}

// group is the pairs of a row.
type group struct {
	cell     []string
	headline bool
	pairs    []*pair
}

// groups are those over all cells, then each cell.
func (o *Other) groups() []group {
	if o.study == nil {
		return []group{{headline: true, pairs: o.pairs}}
	}
	var pooled, cells []group
	add := func(list *[]group, cell []string, p *pair) {
		at := slices.IndexFunc(*list, func(g group) bool { return slices.Equal(g.cell, cell) })
		if at < 0 {
			at = len(*list)
			*list = append(*list, group{cell: cell})
		}
		(*list)[at].pairs = append((*list)[at].pairs, p)
	}
	several := make([]bool, len(o.study.Axes))
	for _, p := range o.pairs {
		for a := range several {
			several[a] = several[a] || p.cell[a] != o.pairs[0].cell[a]
		}
	}
	for _, p := range o.pairs {
		over := slices.Clone(p.cell)
		for a := range over {
			if several[a] && a != o.study.Compared && a != o.chosen {
				over[a] = study.Pooled
			}
		}
		add(&pooled, over, p)
		add(&cells, p.cell, p)
	}
	for i := range pooled {
		pooled[i].headline = true
	}
	if len(cells) == len(pooled) {
		return pooled
	}
	return append(pooled, cells...)
}

// family is what the runs of the base in a group have in common: an item of a study that is compared with those of others is one
// base of them all.
func (g *group) family() string {
	cell := slices.Clone(g.cell)
	for i, item := range cell {
		if item != study.Pooled {
			cell[i] = g.pairs[0].base.Items[i]
		}
	}
	return fmt.Sprintf("%v %q", g.headline, cell)
}

// fill makes the rows: those of the metrics that were chosen, or of those that some run has.
func (r *Result) fill(chosen, judged []string) {
	names := slices.Clone(chosen)
	if len(chosen) == 0 {
		names = slices.Clone(DefaultMetrics)
		for _, o := range r.Others {
			if o.Ends.LeftBase+o.Ends.LeftOther > 0 {
				names = append(names, study.RestrictedMean, "jobs.completed")
				break
			}
		}
		if slices.ContainsFunc(r.Others, func(o Other) bool { return len(o.Ends.OnlyBase)+len(o.Ends.OnlyOther) > 0 }) {
			names = append(names, study.CommonMean)
		}
	}
	asked := slices.Concat(chosen, judged)
	names = distinct(append(names, judged...))
	groups := make([][]group, len(r.Others))
	for i := range r.Others {
		groups[i] = r.Others[i].groups()
	}
	for _, name := range names {
		first := len(r.Rows)
		for i := range r.Others {
			for _, g := range groups[i] {
				row := g.row(name)
				row.family = g.family()
				if row.Against = i; row.Why != Unknown || slices.Contains(asked, name) {
					r.Rows = append(r.Rows, row)
				}
			}
		}
		correct(r.Rows[first:], len(r.Others))
	}
}

// distinct leaves out what was there before.
func distinct(names []string) (list []string) {
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// correct corrects for several sides that are compared with one base.
func correct(rows []Row, others int) {
	if others < 2 {
		return
	}
	families := map[string][]*Row{}
	var order []string
	for i := range rows {
		if math.IsNaN(rows[i].P) {
			continue
		}
		key := rows[i].family
		if families[key] == nil {
			order = append(order, key)
		}
		families[key] = append(families[key], &rows[i])
	}
	for _, key := range order {
		var p []float64
		for _, row := range families[key] {
			p = append(p, row.P)
		}
		for i, holm := range stats.Holm(p) {
			row := families[key][i]
			if row.Holm = holm; row.Why == Shown && !(holm < 1-level) {
				row.Why = Corrected
			}
		}
	}
}

// value is a metric of both runs; NaN where one is not known.
func (p *pair) value(metric string) (base, other float64) {
	if slices.Contains(study.PairMetrics, metric) {
		return p.jobEnds().Value(metric)
	}
	return study.Value(p.base.Summary, metric), study.Value(p.other.Summary, metric)
}

// row compares a metric over the pairs of a group.
func (g *group) row(metric string) Row {
	r := Row{
		Metric: metric, Cell: g.cell, Headline: g.headline, Base: math.NaN(), Other: math.NaN(), Change: math.NaN(),
		Interval: stats.Unknown(), P: math.NaN(), Holm: math.NaN(), Method: stats.MethodValues, Why: Unknown, judged: g.pairs,
	}
	var all, base units
	for _, p := range g.pairs {
		b, o := p.value(metric)
		if math.IsNaN(b) || math.IsInf(b, 0) {
			r.Missing = append(r.Missing, p.base.Label)
		}
		if math.IsNaN(o) || math.IsInf(o, 0) {
			r.Missing = append(r.Missing, p.other.Label)
		}
		if diff := o - b; !math.IsNaN(diff) && !math.IsInf(diff, 0) {
			all.add(p.unit, o)
			base.add(p.unit, b)
		}
	}
	if len(all.values) == 0 {
		return r
	}
	r.N = len(all.order)
	r.Base, r.Other = stat.Mean(base.values, nil), stat.Mean(all.values, nil)
	r.Difference = slices.Min(base.values) <= 0 || slices.Min(all.values) <= 0
	if r.Difference {
		r.differ(all.means(false), base.means(false))
	} else if paired, err := stats.Compare(all.means(true), base.means(true), level); err == nil {
		r.Change, r.Interval, r.P, r.Method = paired.Change, paired.Interval(), paired.P, paired.Method
	}
	r.Why = FewWorkloads
	if r.N == 1 {
		r.Why = OneWorkload
		if len(g.pairs) == 1 {
			r.within(g.pairs[0])
		}
	}
	switch {
	case slices.Equal(all.values, base.values):
		r.Why, r.Change = Same, 0
	case r.Interval.Known() && r.Interval.Contains(0):
		r.Why = HoldsZero
	case r.Interval.Known():
		r.Why = Shown
	}
	return r
}

// differ compares by differences, where there are no ratios.
func (r *Row) differ(other, base []float64) {
	d := make([]float64, len(other))
	for i := range d {
		d[i] = other[i] - base[i]
	}
	r.Change = stat.Mean(d, nil)
	if len(d) >= stats.MinSample {
		r.Interval, r.P, r.Method = stats.T(d, level), stats.StudentP(d), stats.MethodPaired
	}
}

// within gives the interval of a mean over jobs within the only workload.
func (r *Row) within(p *pair) {
	if !slices.Contains(study.OverJobs, r.Metric) {
		return
	}
	r.Why = OtherJobs
	if !sameJobs(p.base, p.other) {
		return
	}
	paired, ok := study.Within(r.Metric, p.other.Jobs, p.base.Jobs, p.other.Summary, p.base.Summary, level)
	switch {
	case ok && paired.Interval().Known():
		r.Jobs, r.Interval, r.P, r.Method = paired.N, paired.Interval(), paired.P, paired.Method
		r.Change, r.Difference = paired.Change, false
	case ok:
		r.Jobs, r.Why = paired.N, FewJobs
	case r.Difference:
		r.Why = OneWorkload
	}
}

// units collects values, and those of one unit together.
type units struct {
	values []float64
	order  []string
	of     map[string][]float64
}

func (u *units) add(unit string, value float64) {
	if u.of == nil {
		u.of = map[string][]float64{}
	}
	if u.of[unit] == nil {
		u.order = append(u.order, unit)
	}
	u.values = append(u.values, value)
	u.of[unit] = append(u.of[unit], value)
}

// means is the mean of each unit, that of the logarithms for ratios.
func (u *units) means(logarithmic bool) []float64 {
	list := make([]float64, len(u.order))
	for i, unit := range u.order {
		values := u.of[unit]
		if list[i] = values[0]; len(values) == 1 {
			continue
		}
		if list[i] = stat.Mean(values, nil); logarithmic {
			list[i] = stat.GeometricMean(values, nil)
		}
	}
	return list
}
