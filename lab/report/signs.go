package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core/stats"
)

// signs lists what limits what the figures of a run say, a sentence each.
func (r *Run) signs() (list []string) {
	n := len(r.Jobs.name)
	switch {
	case r.derived && n > 0:
		return nil // too little is known of them
	case n == 0 && r.nojobs:
		return []string{"There is no jobs.csv: nothing is known of the jobs."}
	case n == 0:
		return []string{"The run has no jobs."}
	}
	list = append(list, signsOfCount(n)...)
	list = append(list, r.signsOfStarts()...)
	list = append(list, r.signsOfWarmUp()...)
	if types := r.unusedTypes(); len(types) > 0 {
		list = append(list, fmt.Sprintf("Nothing ran on %s.", strings.Join(types, ", ")))
	}
	if r.elastic() && len(r.stays) > 0 && !slices.ContainsFunc(r.stays, func(s stay) bool { return s.how == "resized" }) {
		list = append(list, "The elasticity can change the number of devices, and no job was ever resized.")
	}
	return append(list, r.signsOfSummary()...)
}

// signsOfCount says how many of n jobs the 99th percentile rests on, where they are few.
func signsOfCount(n int) []string {
	switch {
	case n < 100:
		return []string{fmt.Sprintf("The 99th percentile of %s is that of its largest: with less than 100 jobs it says what the maximum says.", counted(n, "job"))}
	case n < 1000:
		return []string{fmt.Sprintf("The 99th percentile rests on %s.", counted(n-int(math.Ceil(.99*float64(n)))+1, "job"))}
	}
	return nil
}

// signsOfStarts says where policies had little to decide, and which jobs never started.
func (r *Run) signsOfStarts() (list []string) {
	started, single, same, never := 0, 0, 0, 0
	for i, replicas := range r.Jobs.replicas {
		if math.IsNaN(replicas) {
			never++
			continue
		}
		started++
		if replicas == 1 {
			single++
		}
		if r.Jobs.queueing[i] == 0 {
			same++
		}
	}
	if started > 1 && single == started {
		list = append(list, "All jobs ran on one device: no policy had a choice of how many.")
	}
	if never > 0 {
		list = append(list, counted(never, "job")+" never got devices.")
	}
	if started > 1 && same == started {
		list = append(list, "No job waited for its first devices: the cluster was never full.")
	}
	return list
}

// signsOfWarmUp says whether waits settle, and after how many jobs.
func (r *Run) signsOfWarmUp() []string {
	settled, known := r.warmUp()
	switch {
	case !known:
		return []string{"The waits do not settle within the first half of the jobs: the figures are of a cluster that fills, or that is overloaded."}
	case settled > 0:
		return []string{fmt.Sprintf("The waits settle after the first %d of %d jobs, by MSER-5; measure.warm_up_ratio=%.2f leaves these out of the summary.",
			settled, len(r.Jobs.name), math.Ceil(100*float64(settled)/float64(len(r.Jobs.name)))/100)}
	}
	return nil
}

// signsOfSummary says what the summary shows of the load, of jobs that did not finish and of plugins that failed.
func (r *Run) signsOfSummary() (list []string) {
	s := r.Summary
	if s == nil {
		return nil
	}
	if u := float64(s.UtilizationRatio); u < .2 {
		list = append(list, fmt.Sprintf("The devices were held %.0f %% of the time: the load is too low to compare schedulers.", 100*u))
	}
	if c := s.Jobs; c.Unfinished > 0 {
		list = append(list, wereCounted(c.Unfinished)+" not finished: mean and quantiles leave out the jobs that take longest.")
	}
	for _, p := range s.Plugins {
		if p.Fallback {
			list = append(list, fmt.Sprintf("%s failed, and a built-in policy took its place: %s", p.Component, p.Reason))
		}
	}
	return list
}

const (
	fewForWarmUp  = 200 // jobs that tell nothing of a warm-up
	warmUpMatters = 20  // one job in so many, or more
)

// warmUp is how many jobs came before waits settled, 0 when they are few or left out of the summary; not known when waits did not
// settle in the first half.
func (r *Run) warmUp() (settled int, known bool) {
	if len(r.Jobs.queueing) < fewForWarmUp || slices.ContainsFunc(r.Jobs.queueing, math.IsNaN) || slices.Max(r.Jobs.queueing) == slices.Min(r.Jobs.queueing) {
		return 0, true
	}
	settled = stats.MSER5(r.Jobs.queueing)
	if settled >= len(r.Jobs.queueing)/10*5 {
		return 0, false
	}
	if settled*warmUpMatters < len(r.Jobs.queueing) || r.Summary != nil && r.Summary.Measured != nil && int(r.Summary.Measured.First) >= settled {
		return 0, true
	}
	return settled, true
}

// elastic reports whether the composition has an elasticity that may resize jobs.
func (r *Run) elastic() bool {
	return r.Summary != nil && r.Summary.Components.Elasticity != "elasticity/fixed" && r.Summary.Components.Elasticity != ""
}

// unusedTypes lists the accelerator types of the cluster on which nothing ran, when it is known where jobs ran.
func (r *Run) unusedTypes() (list []string) {
	if len(r.stays) == 0 {
		return nil
	}
	used := map[string]bool{}
	for i := range r.stays {
		for _, s := range r.stays[i].seats {
			used[r.nodes[s.node].accelerator] = true
		}
	}
	for _, n := range r.nodes {
		if !used[n.accelerator] && n.accelerator != "" && !slices.Contains(list, n.accelerator) {
			list = append(list, n.accelerator)
		}
	}
	return list
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func wereCounted(n int) string {
	if n == 1 {
		return "1 job was"
	}
	return fmt.Sprintf("%d jobs were", n)
}
