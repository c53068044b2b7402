package report

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core/metrics"
)

func TestWarmUp(t *testing.T) {
	// waits rise until a share of the jobs has come, and repeat a short pattern from then on
	rising := func(jobs int, share float64) []float64 {
		list := make([]float64, jobs)
		for i := range list {
			list[i] = 1000*min(1, float64(i)/(share*float64(jobs))) + float64(i%7)
		}
		return list
	}
	unknown := rising(400, 0.2)
	unknown[17] = math.NaN()
	cases := map[string]struct {
		waits       []float64
		measured    *metrics.Window
		least, most int
		unsettled   bool
	}{
		"settles":             {waits: rising(400, 0.2), least: 60, most: 90},
		"ten times the jobs":  {waits: rising(4000, 0.2), least: 700, most: 820},
		"at once":             {waits: rising(400, 0.001)},
		"within few":          {waits: rising(400, 0.02)},
		"never":               {waits: rising(400, 1), unsettled: true},
		"left out":            {waits: rising(400, 0.2), measured: &metrics.Window{First: 100, Last: -1}},
		"partly left out":     {waits: rising(400, 0.2), measured: &metrics.Window{First: 20, Last: -1}, least: 60, most: 90},
		"all alike":           {waits: make([]float64, 400)},
		"too few":             {waits: rising(150, 1)},
		"one that never ran":  {waits: unknown},
		"no jobs":             {},
		"as many as it takes": {waits: rising(200, 1), unsettled: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Run{Jobs: jobs{queueing: tc.waits}, Summary: &metrics.Summary{Measured: tc.measured}}
			settled, known := r.warmUp()
			if known == tc.unsettled || settled < tc.least || settled > tc.most {
				t.Errorf("settles after %d, known %v; want %d to %d, known %v", settled, known, tc.least, tc.most, !tc.unsettled)
			}
		})
	}
}

// Each sign is told where it is so, and not where it is not.
func TestSigns(t *testing.T) {
	nan := math.NaN()
	of := func(replicas, queueing []float64) jobs {
		return jobs{name: make([]string, len(replicas)), replicas: replicas, queueing: queueing}
	}
	many := func(n int, v float64) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = v
		}
		return list
	}
	const few = "The 99th percentile of 3 jobs is that of its largest: with less than 100 jobs it says what the maximum says."
	summary := func(utilization float64, c metrics.JobCounts, elasticity string) *metrics.Summary {
		return &metrics.Summary{UtilizationRatio: metrics.Number(utilization), Jobs: c, Components: metrics.Components{Elasticity: elasticity}}
	}
	nodes := []node{{"a", "t4", 1}, {"b", "v100", 1}, {"c", "v100", 1}, {"d", "", 1}}
	for name, tc := range map[string]struct {
		run  Run
		want []string
	}{
		"no jobs":              {Run{}, []string{"The run has no jobs."}},
		"nothing to tell":      {Run{Jobs: of([]float64{1, 2, 1}, []float64{0, 1, 0}), Summary: summary(.2, metrics.JobCounts{}, "")}, []string{few}},
		"one device each":      {Run{Jobs: of([]float64{1, 1, 1}, []float64{0, 1, 0})}, []string{few, "All jobs ran on one device: no policy had a choice of how many."}},
		"never full":           {Run{Jobs: of([]float64{1, 2, 1}, []float64{0, 0, 0})}, []string{few, "No job waited for its first devices: the cluster was never full."}},
		"some never ran":       {Run{Jobs: of([]float64{nan, 2, nan}, []float64{nan, 3, nan})}, []string{few, "2 jobs never got devices."}},
		"one of several ran":   {Run{Jobs: of([]float64{1, nan, nan}, []float64{0, nan, nan})}, []string{few, "2 jobs never got devices."}},
		"a low load":           {Run{Jobs: of([]float64{1, 2, 1}, []float64{0, 1, 0}), Summary: summary(.19, metrics.JobCounts{}, "")}, []string{few, "The devices were held 19 % of the time: the load is too low to compare schedulers."}},
		"one did not finish":   {Run{Jobs: of([]float64{1, 2, 1}, []float64{0, 1, 0}), Summary: summary(1, metrics.JobCounts{Unfinished: 1}, "")}, []string{few, "1 job was not finished: mean and quantiles leave out the jobs that take longest."}},
		"some did not finish":  {Run{Jobs: of([]float64{1, 2, 1}, []float64{0, 1, 0}), Summary: summary(1, metrics.JobCounts{Unfinished: 2}, "")}, []string{few, "2 jobs were not finished: mean and quantiles leave out the jobs that take longest."}},
		"99 jobs":              {Run{Jobs: of(many(99, 2), append(many(98, 0), 1))}, []string{"The 99th percentile of 99 jobs is that of its largest: with less than 100 jobs it says what the maximum says."}},
		"100 jobs":             {Run{Jobs: of(many(100, 2), append(many(99, 0), 1))}, []string{"The 99th percentile rests on 2 jobs."}},
		"a job of 999":         {Run{Jobs: of(many(999, 2), many(999, 0))}, []string{"The 99th percentile rests on 10 jobs.", "No job waited for its first devices: the cluster was never full."}},
		"enough jobs":          {Run{Jobs: of(append(many(999, 2), 1), many(1000, 5))}, nil},
		"a type is unused":     {Run{Jobs: of([]float64{1, 2, 1}, []float64{0, 1, 0}), nodes: nodes, stays: []stay{{seats: []seat{{0, 1}}, how: "resized"}}}, []string{few, "Nothing ran on v100."}},
		"all types are used":   {Run{Jobs: of([]float64{1, 2, 1}, []float64{0, 1, 0}), nodes: nodes, stays: []stay{{seats: []seat{{0, 1}, {2, 1}}}}}, []string{few}},
		"elastic, not resized": {Run{Jobs: of([]float64{1, 2, 1}, []float64{0, 1, 0}), Summary: summary(1, metrics.JobCounts{}, "elasticity/goodput"), stays: []stay{{how: "moved"}}}, []string{few, "The elasticity can change the number of devices, and no job was ever resized."}},
		"elastic, and resized": {Run{Jobs: of([]float64{1, 2, 1}, []float64{0, 1, 0}), Summary: summary(1, metrics.JobCounts{}, "elasticity/goodput"), stays: []stay{{how: "moved"}, {how: "resized"}}}, []string{few}},
		"fixed":                {Run{Jobs: of([]float64{1, 2, 1}, []float64{0, 1, 0}), Summary: summary(1, metrics.JobCounts{}, "elasticity/fixed"), stays: []stay{{how: "moved"}}}, []string{few}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.run.signs()); diff != "" {
				t.Errorf("signs (-want +got):\n%s", diff)
			}
		})
	}
	settles := Run{Jobs: of(many(400, 2), make([]float64, 400))}
	for i := range settles.Jobs.queueing {
		settles.Jobs.queueing[i] = float64(i%7) + 1
		if i < 80 {
			settles.Jobs.queueing[i] = 1000
		}
	}
	if diff := cmp.Diff([]string{"The 99th percentile rests on 5 jobs.", "The waits settle after the first 80 of 400 jobs, by MSER-5; measure.warm_up_ratio=0.20 leaves these out of the summary."}, settles.signs()); diff != "" {
		t.Errorf("signs of a warm-up (-want +got):\n%s", diff)
	}
}
