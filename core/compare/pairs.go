package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/core/study"
)

// pair is a run of the base with the run that is compared with it.
type pair struct {
	base, other *Run
	unit        string   // pairs of one unit are one observation
	cell        []string // items of the axes of a study

	ends *ends // once they are known
}

// match puts the runs of two sides in pairs. Those without a partner are told of.
func match(base, other *Side, unequal bool) (pairs []*pair, alone []string, err error) {
	if (base.study == nil) != (other.study == nil) {
		return nil, nil, problem(other.Label, "only one of "+base.Label+" and this is a study", "compare runs with runs, and studies with studies")
	}
	if base.study != nil {
		return matchStudies(base, other)
	}
	if len(base.Runs) == 1 && len(other.Runs) == 1 {
		return []*pair{{base: base.Runs[0], other: other.Runs[0]}}, nil, nil
	}
	keys := []func(*Run) string{(*Run).key}
	if unequal {
		keys = append(keys,
			func(r *Run) string { return r.jobsKey + strconv.FormatUint(r.Seed, 10) },
			func(r *Run) string { return strconv.FormatUint(r.Seed, 10) })
	}
	left, right := base.Runs, other.Runs
	for _, key := range keys {
		var found []*pair
		found, left, right = matchBy(left, right, key)
		pairs = append(pairs, found...)
	}
	return pairs, labels(left, right), nil
}

func labels(sides ...[]*Run) (list []string) {
	for _, runs := range sides {
		for _, r := range runs {
			list = append(list, r.Label)
		}
	}
	return list
}

// matchBy pairs runs of one key, those of one seed first. The key is their unit.
func matchBy(base, other []*Run, key func(*Run) string) (pairs []*pair, left, right []*Run) {
	waiting := map[string][]*Run{}
	for _, r := range other {
		k := key(r)
		waiting[k] = append(waiting[k], r)
	}
	partner := make([]*Run, len(base))
	for _, anySeed := range []bool{false, true} {
		for i, b := range base {
			k := key(b)
			at := slices.IndexFunc(waiting[k], func(r *Run) bool { return anySeed || r.Seed == b.Seed })
			if partner[i] != nil || at < 0 {
				continue
			}
			partner[i] = waiting[k][at]
			waiting[k] = slices.Delete(waiting[k], at, at+1)
		}
	}
	for i, b := range base {
		if partner[i] == nil {
			left = append(left, b)
			continue
		}
		pairs = append(pairs, &pair{base: b, other: partner[i], unit: key(b)})
	}
	for _, r := range other {
		if slices.Contains(waiting[key(r)], r) {
			right = append(right, r)
		}
	}
	return pairs, left, right
}

// matchStudies pairs the runs of two studies by the items of their axes and their replicate: of the compared axis too, unless one
// item of each takes part.
func matchStudies(base, other *Side) (pairs []*pair, alone []string, err error) {
	a, b := base.study, other.study
	single := len(base.items) == 1 && len(other.items) == 1
	for i := range max(len(a.Axes), len(b.Axes)) {
		if i >= len(a.Axes) || i >= len(b.Axes) || a.Axes[i].Name != b.Axes[i].Name || a.Compared != b.Compared {
			return nil, nil, problem(other.Label, "its axes are not those of "+base.Label, "compare studies that differ in the items of their axes only")
		}
	}
	axis := a.Axes[a.Compared].Name
	common := func(item string) bool { return slices.Contains(base.items, item) && slices.Contains(other.items, item) }
	if !single && !slices.ContainsFunc(base.items, common) {
		return nil, nil, problem(other.Label, fmt.Sprintf("none of its items of %s is one of %s", axis, base.Label), fmt.Sprintf("choose one of each, such as %s and %s",
			base.folder+Separator+base.items[0], other.folder+Separator+other.items[0]))
	}
	key := func(r *Run) string {
		items := slices.Clone(r.Items)
		if single {
			items[a.Compared] = ""
		}
		return fmt.Sprintf("%q %d", items, r.Replicate)
	}
	workload := slices.IndexFunc(a.Axes, func(axis study.Axis) bool { return axis.Name == "workload" })
	taking := func(s *Side) (runs []*Run) {
		for _, item := range s.items {
			if !single && !common(item) {
				alone = append(alone, fmt.Sprintf("%s %s of %s", axis, item, s.folder))
			}
		}
		for _, r := range s.Runs {
			if single || common(r.Items[a.Compared]) {
				runs = append(runs, r)
			}
		}
		return runs
	}
	pairs, left, right := matchBy(taking(base), taking(other), key)
	for _, p := range pairs {
		p.cell = slices.Clone(p.base.Items)
		if single {
			p.cell[a.Compared] = p.other.Items[a.Compared]
		}
		p.unit = strconv.Itoa(p.base.Replicate)
		if workload >= 0 && workload != a.Compared {
			p.unit += " " + p.base.Items[workload]
		}
	}
	return pairs, append(alone, labels(left, right)...), nil
}

// ends says how the jobs of a pair ended that both runs are about.
type ends struct {
	known               bool // jobs.csv tells
	bothEnded           []row
	onlyBase, onlyOther []string // names of the jobs that completed in one run only
	left                [2]int   // jobs of each run that did not complete
	horizon             float64  // until which the jobs of both were watched
	restricted          [2]float64
}

// row is a job in both runs.
type row struct{ base, other *metrics.Job }

const completed = "completed"

// job ends of a pair; it is made once.
func (p *pair) jobEnds() *ends {
	if p.ends != nil {
		return p.ends
	}
	p.ends = &ends{horizon: math.NaN(), restricted: [2]float64{math.NaN(), math.NaN()}}
	e := p.ends
	for i, r := range []*Run{p.base, p.other} {
		e.left[i] = r.Summary.Jobs.Submitted - r.Summary.Jobs.Completed
	}
	if !sameJobs(p.base, p.other) {
		return e
	}
	e.known = true
	rows := p.rows()
	for _, j := range rows {
		a, b := j.base.Outcome == completed, j.other.Outcome == completed
		switch {
		case a && b:
			e.bothEnded = append(e.bothEnded, j)
		case a:
			e.onlyBase = append(e.onlyBase, j.base.Name)
		case b:
			e.onlyOther = append(e.onlyOther, j.base.Name)
		}
	}
	e.restrict(p, rows)
	return e
}

// rows are the jobs that both runs measure.
func (p *pair) rows() (list []row) {
	window := metrics.AllJobs
	if w := p.base.Summary.Measured; w != nil {
		window = *w
	}
	for i := range p.base.Jobs {
		if id := p.base.Jobs[i].ID; window.Holds(id) {
			list = append(list, row{&p.base.Jobs[i], &p.other.Jobs[i]})
		}
	}
	return list
}

// restrict computes the restricted means up to the longest time that a job of each run was watched. A job that failed, was rejected
// or cancelled never completes; one that is unfinished was watched until the end of the run.
func (e *ends) restrict(p *pair, rows []row) {
	if e.left == [2]int{} {
		return
	}
	var times [2][]float64
	var ended [2][]bool
	e.horizon = math.Inf(1)
	for side, r := range []*Run{p.base, p.other} {
		end := r.end()
		longest := math.Inf(-1)
		for _, both := range rows {
			j := both.base
			if side == 1 {
				j = both.other
			}
			t := math.Inf(1)
			switch j.Outcome {
			case completed:
				t = float64(j.JCTSeconds)
			case "unfinished":
				t = math.Max(end-j.SubmitSeconds, 0)
			}
			times[side], ended[side] = append(times[side], t), append(ended[side], j.Outcome == completed)
			if !math.IsInf(t, 0) {
				longest = math.Max(longest, t)
			}
		}
		e.horizon = math.Min(e.horizon, longest)
	}
	for side := range times {
		e.restricted[side] = stats.RestrictedMean(times[side], ended[side], e.horizon)
	}
}

// end is the moment until which the run was watched: its makespan counts from the first submission.
func (r *Run) end() float64 {
	first, last := math.Inf(1), 0.0
	for i := range r.Jobs {
		j := &r.Jobs[i]
		first = math.Min(first, j.SubmitSeconds)
		if j.FinishSeconds.Known() {
			last = math.Max(last, float64(j.FinishSeconds))
		}
	}
	if span := r.Summary.MakespanSeconds; span.Known() {
		last = math.Max(last, first+float64(span))
	}
	return last
}

// sameEnds reports whether the same jobs completed in both runs, as far as is known.
func (p *pair) sameEnds() bool {
	e := p.jobEnds()
	if !e.known {
		return e.left == [2]int{}
	}
	return len(e.onlyBase)+len(e.onlyOther) == 0
}

// commonTimes are the completion times of the jobs that completed in both runs.
func (p *pair) commonTimes() (base, other []float64) {
	for _, j := range p.jobEnds().bothEnded {
		base, other = append(base, float64(j.base.JCTSeconds)), append(other, float64(j.other.JCTSeconds))
	}
	return base, other
}
