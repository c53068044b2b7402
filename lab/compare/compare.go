package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/lab/study"
)

// level is that of every interval.
const level = 0.95

// DefaultMetrics are those of a comparison for which none are chosen.
var DefaultMetrics = []string{
	"jct_seconds.mean", "jct_seconds.p50", "jct_seconds.p99", "queueing_seconds.mean", "makespan_seconds", "utilization_ratio",
	"gpu_hours", "restarts.mean", "fairness.rho_mean",
}

// Metrics lists every metric that can be compared, by path.
func Metrics() []string { return append(study.Metrics(), study.PairMetrics...) }

// Choice says what of two sides is compared.
type Choice struct {
	Metrics []string // by path; DefaultMetrics where it is empty
	Judged  []string // are compared besides
	Unequal bool     // runs of other inputs are compared all the same
	Jobs    int      // that gained most, and as many that lost most, are listed
}

// Result is a comparison.
type Result struct {
	Base   *Side    // runs that the others are compared with
	Others []Other  // each of the other sides
	Axes   []string // of studies; rows have an item of each
	Rows   []Row    // differences by metric
}

// Other is what one side comes to against the base.
type Other struct {
	*Side
	Pairs        int          // pairs of runs that are compared
	Inputs       []Difference // none unless they were asked to be compared all the same
	Composition  []Difference // settings in which the compositions differ
	Unpaired     []string     // runs without a partner
	Ends         Ends         // jobs that ended on one side only
	Gained, Lost []JobChange  // jobs whose JCT fell or rose most, at most Choice.Jobs of each
	pairs        []*pair
}

// Ends adds up how jobs ended over all pairs.
type Ends struct {
	Unknown             int      // pairs that jobs.csv does not give
	OnlyBase, OnlyOther []string // names of jobs that completed on one side only
	LeftBase, LeftOther int      // jobs that did not complete
}

// JobChange is a job whose completion time changed.
type JobChange struct {
	Run, Name   string  // label of the pair of runs, and name of the job
	Base, Other float64 // seconds in each of the two runs
}

// Change is how much longer the job took, in seconds.
func (j JobChange) Change() float64 { return j.Other - j.Base }

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
		o := Other{Side: side, Pairs: len(pairs), Unpaired: alone, pairs: pairs}
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

// mostListed is how many differences of inputs a refusal lists.
const mostListed = 10

// refuse says why two sides cannot be compared.
func (o *Other) refuse(base *Side, why string) core.Diagnostics {
	var texts []string
	for _, d := range o.Inputs {
		texts = append(texts, fmt.Sprintf("%s: %s, in %s %s", d.What, cmp.Or(d.Other, "nothing"), base.Label, cmp.Or(d.Base, "nothing")))
	}
	for _, label := range o.Unpaired {
		texts = append(texts, label+" has no partner of the same inputs")
	}
	if why != "" {
		texts = slices.Insert(texts, 0, why)
	}
	if more := len(texts) - mostListed; more > 0 {
		texts = append(texts[:mostListed], fmt.Sprintf("and %d more", more))
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
		if !e.Known {
			o.Ends.Unknown++
		}
		o.Ends.OnlyBase, o.Ends.OnlyOther = append(o.Ends.OnlyBase, e.Only[0]...), append(o.Ends.OnlyOther, e.Only[1]...)
		o.Ends.LeftBase += e.Left[0]
		o.Ends.LeftOther += e.Left[1]
	}
}

// listJobs lists the jobs whose completion time fell or rose most.
func (o *Other) listJobs(n int) {
	var all []JobChange
	for _, p := range o.pairs {
		both := p.jobEnds().Both
		for i := range both {
			base, other := both[i][0], both[i][1]
			if c := (JobChange{p.other.Label, base.Name, float64(base.JCTSeconds), float64(other.JCTSeconds)}); c.Change() != 0 {
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
