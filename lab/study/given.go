package study

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
)

// given is what decides which jobs a run has, whatever it is told of their work.
type given struct {
	workload string
	sample   string
	seed     uint64
	drawn    bool // jobs are drawn by the seed
}

func givenBy(c *configs.Config) (g given, err error) {
	settings, err := json.Marshal(core.Encode(c.Workload.Config))
	if err != nil {
		return g, err
	}
	sample, err := json.Marshal(core.Encode(&c.Sample))
	return given{workload: c.Workload.ID + " " + string(settings), sample: string(sample), seed: c.Seed, drawn: sampleDraws(c)}, err
}

// other tells in what a run has other jobs than another, as roots of a config; none when it has the same.
func (g given) other(than given) (roots []string) {
	if g.workload != than.workload {
		roots = append(roots, "workload")
	}
	if g.sample != than.sample {
		roots = append(roots, "sample")
	}
	if g.seed != than.seed && (g.drawn || than.drawn) {
		roots = append(roots, "seed")
	}
	return roots
}

// baselines are the runs that others are compared with over the same jobs, by index; nil for none, and where workloads or loads are
// what is compared.
func (s *Study) baselines(runs []*Run) []*Run {
	found := make([]*Run, len(runs))
	if s.Baseline < 0 || slices.Contains([]string{axisWorkload, axisLoad}, s.Axes[s.Compared].Name) {
		return found
	}
	key := func(r *Run) string {
		items := slices.Clone(r.Items)
		items[s.Compared] = s.Baseline
		return fmt.Sprint(items, r.Replicate)
	}
	known := map[string]*Run{}
	for _, r := range runs {
		if r.Items[s.Compared] == s.Baseline {
			known[key(r)] = r
		}
	}
	for i, r := range runs {
		found[i] = known[key(r)]
	}
	return found
}

// otherJobs tells in what the jobs of each run differ from those of its baseline; nil where they do not.
func (s *Study) otherJobs(runs []*Run) [][]string {
	found := make([][]string, len(runs))
	for i, against := range s.baselines(runs) {
		if against != nil {
			found[i] = runs[i].given.other(against.given)
		}
	}
	return found
}

// otherJobsText says that a run has other jobs than its baseline.
func (s *Study) otherJobsText(roots []string) string {
	return fmt.Sprintf("other jobs than those of the baseline %q: another %s", s.Axes[s.Compared].Items[s.Baseline].Name, strings.Join(roots, ", another "))
}

// refuseOtherJobs notes which items are compared over other jobs, unless the study asks for it.
func (e *expansion) refuseOtherJobs(ctx context.Context, runs []*Run) {
	for i, against := range e.baselines(runs) {
		if r := runs[i]; against != nil && r.given.seed != against.given.seed && !r.given.drawn {
			again := *r
			if c, ok := e.check(ctx, &again); ok {
				facts, ok := e.facts(ctx, c)
				r.given.drawn = ok && facts.random
			}
		}
	}
	if e.UnequalInputs {
		return
	}
	axis := &e.Axes[e.Compared]
	for i, roots := range e.otherJobs(runs) {
		if roots == nil {
			continue
		}
		item := &axis.Items[runs[i].Items[e.Compared]]
		e.note(core.Diagnostics{{
			Position: item.decides(roots), Path: "axes." + axis.Name, Summary: fmt.Sprintf("%q has %s", item.Name, e.otherJobsText(roots)),
			Hint: "set it for the whole study, or on an axis of its own; unequal_inputs: true (--unequal-inputs, of flags alone) compares all the same",
		}}, item.At)
	}
}

// decides is where an item sets what decides which jobs there are; that of the item where it does so by a file, or leaves it to one.
func (i *Item) decides(roots []string) core.Position {
	for _, s := range i.Set {
		if root, _, _ := strings.Cut(s.Path, "."); slices.Contains(roots, root) && s.At != (core.Position{}) {
			return s.At
		}
	}
	return i.At
}
