package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/core/study"
)

// level is that of every interval.
const level = 0.95

// Metrics that only a comparison has: they are of both runs together.
const (
	commonMean     = "jct_seconds.common_mean"     // over the jobs that completed in both
	restrictedMean = "jct_seconds.restricted_mean" // over all jobs, each up to a horizon
)

// DefaultMetrics are those of a comparison for which none are chosen.
var DefaultMetrics = []string{
	"jct_seconds.mean", "jct_seconds.p50", "jct_seconds.p99", "queueing_seconds.mean", "makespan_seconds", "utilization_ratio",
	"gpu_hours", "restarts.mean", "fairness.rho_mean",
}

// Metrics lists every metric that can be compared, by path.
func Metrics() []string { return append(study.Metrics(), commonMean, restrictedMean) }

// Choice says what of two sides is compared.
type Choice struct {
	Metrics []string // by path; DefaultMetrics where it is empty
	Judged  []string // are compared besides
	Unequal bool     // runs of other inputs are compared all the same
	Jobs    int      // that gained most, and as many that lost most, are listed
}

// Result is a comparison.
type Result struct {
	Base   *Side
	Others []Other
	Axes   []string // of studies; rows have an item of each
	Rows   []Row    // by metric
}

// Other is what one side comes to against the base.
type Other struct {
	*Side
	Pairs        int
	Inputs       []Difference // none unless they were asked to be compared all the same
	Composition  []Difference
	Alone        []string // runs without a partner
	Ends         Ends
	Gained, Lost []JobChange
	pairs        []*pair
}

// Ends adds up how jobs ended over all pairs.
type Ends struct {
	Unknown             int // pairs of which jobs.csv does not tell
	OnlyBase, OnlyOther []string
	LeftBase, LeftOther int // jobs that did not complete
}

// JobChange is a job whose completion time changed.
type JobChange struct {
	Run, Name   string
	Base, Other float64 // seconds
}

// Change is how much longer the job took, in seconds.
func (j JobChange) Change() float64 { return j.Other - j.Base }

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
	Metric   string
	Against  int      // index in Others
	Cell     []string // item of each axis, study.Pooled for all
	Headline bool     // nothing is pooled more
	Missing  []string // runs that lack the metric

	N           int // workloads; under stats.MethodBlocks it is 1
	Base, Other float64
	Change      float64 // a part of the base, or a difference where some value is zero
	Difference  bool
	Interval    stats.Interval
	Method      string
	Jobs        int // under stats.MethodBlocks
	P, Holm     float64
	Why         string

	judged []*pair
}

// Compare compares others with a base. Inputs that differ are refused with a core.Diagnostics, unless the choice allows them.
func Compare(base *Side, others []*Side, c Choice) (*Result, error) {
	r := &Result{Base: base}
	var found core.Diagnostics
	for _, side := range append([]*Side{base}, others...) {
		if side.study == nil {
			found = append(found, uniform(side)...)
		}
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	for _, side := range others {
		pairs, alone, err := match(base, side, c.Unequal)
		if err != nil {
			return nil, err
		}
		o := Other{Side: side, Pairs: len(pairs), Alone: alone, pairs: pairs}
		var inputs, composition gathered
		for _, p := range pairs {
			in, parts := differences(p.base, p.other)
			inputs.add(in)
			composition.add(parts)
		}
		o.Inputs, o.Composition = inputs.list, composition.list
		switch {
		case len(pairs) == 0 && len(side.Runs) > 0 && len(base.Runs) > 0:
			o.Inputs, _ = differences(base.Runs[0], side.Runs[0]) // for example
			found = append(found, o.refuse(base, "no run of the one has the inputs of one of the other")...)
		case len(pairs) == 0:
			found = append(found, o.refuse(base, "there are no runs")...)
		case !c.Unequal && len(o.Inputs)+len(alone) > 0:
			found = append(found, o.refuse(base, "")...)
		}
		r.Others = append(r.Others, o)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	if base.study != nil {
		for i := range base.study.Axes {
			r.Axes = append(r.Axes, base.study.Axes[i].Name)
		}
	}
	for i := range r.Others {
		r.Others[i].countEnds()
		r.Others[i].listJobs(c.Jobs)
	}
	r.fill(c.Metrics, c.Judged)
	return r, nil
}

// mostTold is how many differences of inputs a refusal lists.
const mostTold = 10

// refuse tells why two sides cannot be compared.
func (o *Other) refuse(base *Side, why string) core.Diagnostics {
	var texts []string
	for _, d := range o.Inputs {
		texts = append(texts, fmt.Sprintf("%s: %s, in %s %s", d.What, cmp.Or(d.Other, "nothing"), base.Label, cmp.Or(d.Base, "nothing")))
	}
	for _, label := range o.Alone {
		texts = append(texts, label+" has no partner of the same inputs")
	}
	if why != "" {
		texts = slices.Insert(texts, 0, why)
	}
	if more := len(texts) - mostTold; more > 0 {
		texts = append(texts[:mostTold], fmt.Sprintf("and %d more", more))
	}
	for i := range texts {
		texts[i] = clean(texts[i])
	}
	return core.Diagnostics{{
		Position: core.Position{File: clean(o.Label)}, Summary: "its inputs are not those of " + clean(base.Label) + ":\n  " + strings.Join(texts, "\n  "),
		Hint: "--unequal-inputs compares all the same",
	}}
}

// uniform refuses a folder of runs of several compositions.
func uniform(s *Side) (found core.Diagnostics) {
	for _, r := range s.Runs[1:] {
		_, composition := differences(s.Runs[0], r)
		composition = slices.DeleteFunc(composition, func(d Difference) bool { return d.What == "seed" })
		if len(composition) > 0 {
			d := composition[0]
			found = append(found, core.Diagnostic{
				Position: core.Position{File: clean(r.Label)},
				Summary:  clean(fmt.Sprintf("is another composition than %s beside it: %s is %s, there %s", s.Runs[0].Label, d.What, cmp.Or(d.Other, "nothing"), cmp.Or(d.Base, "nothing"))),
				Hint:     "give each composition as a folder of its own",
			})
		}
	}
	return found
}

// countEnds adds up how the jobs of all pairs ended.
func (o *Other) countEnds() {
	for _, p := range o.pairs {
		e := p.jobEnds()
		if !e.known {
			o.Ends.Unknown++
		}
		o.Ends.OnlyBase, o.Ends.OnlyOther = append(o.Ends.OnlyBase, e.onlyBase...), append(o.Ends.OnlyOther, e.onlyOther...)
		o.Ends.LeftBase += e.left[0]
		o.Ends.LeftOther += e.left[1]
	}
}

// listJobs lists the jobs whose completion time fell or rose most.
func (o *Other) listJobs(n int) {
	var all []JobChange
	for _, p := range o.pairs {
		for _, j := range p.jobEnds().bothEnded {
			if c := (JobChange{p.other.Label, j.base.Name, float64(j.base.JCTSeconds), float64(j.other.JCTSeconds)}); c.Change() != 0 {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b JobChange) int { return cmp.Compare(a.Change(), b.Change()) })
	for _, j := range all[:min(n, len(all))] {
		if j.Change() < 0 {
			o.Gained = append(o.Gained, j)
		}
	}
	for i := len(all) - 1; i >= 0 && len(o.Lost) < n && all[i].Change() > 0; i-- {
		o.Lost = append(o.Lost, all[i])
	}
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
			if several[a] && a != o.study.Compared {
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

// fill makes the rows: those of the metrics that were chosen, or of those that some run has.
func (r *Result) fill(chosen, judged []string) {
	names := slices.Clone(chosen)
	if len(chosen) == 0 {
		names = slices.Clone(DefaultMetrics)
		for _, o := range r.Others {
			if o.Ends.LeftBase+o.Ends.LeftOther > 0 {
				names = append(names, restrictedMean, "jobs.completed")
				break
			}
		}
		if slices.ContainsFunc(r.Others, func(o Other) bool { return len(o.Ends.OnlyBase)+len(o.Ends.OnlyOther) > 0 }) {
			names = append(names, commonMean)
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
		key := fmt.Sprintf("%v %q", rows[i].Headline, rows[i].Cell)
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
	switch metric {
	case restrictedMean:
		e := p.jobEnds()
		if e.known && e.left == [2]int{} {
			return p.value("jct_seconds.mean")
		}
		return e.restricted[0], e.restricted[1]
	case commonMean:
		a, b := p.commonTimes()
		if len(a) == 0 {
			return math.NaN(), math.NaN()
		}
		return stat.Mean(a, nil), stat.Mean(b, nil)
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
	if r.Metric != commonMean && !slices.Contains(study.OverJobs, r.Metric) {
		return
	}
	r.Why = OtherJobs
	if !sameJobs(p.base, p.other) {
		return
	}
	paired, ok := stats.Paired{}, false
	if r.Metric == commonMean {
		base, other := p.commonTimes()
		var err error
		paired, err = stats.CompareWithin(other, base, 0, level)
		ok = err == nil
	} else {
		paired, ok = study.Within(r.Metric, p.other.Jobs, p.base.Jobs, p.other.Summary, p.base.Summary, level)
	}
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
