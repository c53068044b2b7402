package compare

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/lab/study"
)

// pair is a run of the base with the run that is compared with it.
type pair struct {
	base, other *Run
	unit        string   // pairs of one unit are one observation
	cell        []string // items of the axes of a study

	ends *study.Ends // once they are known
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

// paired is the axis on which items of two sides are compared: that of those that were chosen, or the compared one of the studies.
func paired(base, other *Side) (axis int, err error) {
	switch {
	case base.chosen >= 0 && other.chosen >= 0 && base.chosen != other.chosen:
		return 0, problem(other.Label, fmt.Sprintf("is one %s, and %s is one %s", other.study.Axes[other.chosen].Name, base.Label, base.study.Axes[base.chosen].Name), "choose both on one axis")
	case base.chosen >= 0:
		return base.chosen, nil
	case other.chosen >= 0:
		return other.chosen, nil
	}
	return base.study.Compared, nil
}

// matchStudies pairs the runs of two studies by the items of their axes and their replicate: of the axis on which items are chosen
// too, unless one item of each takes part.
func matchStudies(base, other *Side) (pairs []*pair, alone []string, err error) {
	a, b := base.study, other.study
	for i := range max(len(a.Axes), len(b.Axes)) {
		if i >= len(a.Axes) || i >= len(b.Axes) || a.Axes[i].Name != b.Axes[i].Name || a.Compared != b.Compared {
			return nil, nil, problem(other.Label, "its axes are not those of "+base.Label, "compare studies that differ in the items of their axes only")
		}
	}
	at, err := paired(base, other)
	if err != nil {
		return nil, nil, err
	}
	axis, here, there := a.Axes[at].Name, base.on(at), other.on(at)
	single := len(here) == 1 && len(there) == 1
	common := func(item string) bool { return slices.Contains(here, item) && slices.Contains(there, item) }
	if !single && !slices.ContainsFunc(here, common) {
		return nil, nil, problem(other.Label, fmt.Sprintf("none of its items of %s is one of %s", axis, base.Label), fmt.Sprintf("choose one of each, such as %s and %s",
			base.folder+Separator+here[0], other.folder+Separator+there[0]))
	}
	key := func(r *Run) string {
		items := slices.Clone(r.Items)
		if single {
			items[at] = ""
		}
		return fmt.Sprintf("%q %d", items, r.Replicate)
	}
	workload := slices.IndexFunc(a.Axes, func(axis study.Axis) bool { return axis.Name == "workload" })
	taking := func(s *Side) (runs []*Run) {
		for _, item := range s.on(at) {
			if !single && !common(item) {
				alone = append(alone, fmt.Sprintf("%s %s of %s", axis, item, s.folder))
			}
		}
		for _, r := range s.Runs {
			if single || common(r.Items[at]) {
				runs = append(runs, r)
			}
		}
		return runs
	}
	pairs, left, right := matchBy(taking(base), taking(other), key)
	for _, p := range pairs {
		p.cell = slices.Clone(p.base.Items)
		if single {
			p.cell[at] = p.other.Items[at]
		}
		p.unit = strconv.Itoa(p.base.Replicate)
		if workload >= 0 && workload != at {
			p.unit += " " + p.base.Items[workload]
		}
	}
	return pairs, append(alone, labels(left, right)...), nil
}

// jobEnds says how the jobs of a pair ended. It is made once.
func (p *pair) jobEnds() *study.Ends {
	if p.ends == nil {
		base, other := study.Ended{Summary: p.base.Summary}, study.Ended{Summary: p.other.Summary}
		if sameJobs(p.base, p.other) {
			base.Jobs, other.Jobs = p.base.Jobs, p.other.Jobs
		}
		p.ends = study.NewEnds(base, other)
	}
	return p.ends
}
