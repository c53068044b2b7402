package coretest

import (
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// Reporting lets jobs of the random worlds report: losses and accuracies, noisy, constant and wild ones, and steps that are told again.
func Reporting() Option { return func(o *options) { o.reports = true } }

// drawReports has a running job report some values now and then.
func (w *world) drawReports(j *core.Job, from float64) {
	if j.State != core.Running || rapid.Bool().Draw(w.t, "is silent") {
		return
	}
	metric := rapid.SampledFrom([]string{"loss", "accuracy"}).Draw(w.t, "metric")
	last, step := 1.0, 0.0
	if point, told := j.Series(metric).Latest(); told {
		last, step = point.Value, point.Step
	}
	for range rapid.IntRange(1, 4).Draw(w.t, "reports") {
		step += rapid.SampledFrom([]float64{1, 1, 1, 1, 0.5, 40, 0, -2, -1e9}).Draw(w.t, "steps")
		step = max(step, 0)
		last = rapid.SampledFrom([]float64{0.5 * last, 0.9 * last, 0.9 * last, last, last, 1.1 * last, 10 * last, 0, -1, 1e300}).Draw(w.t, "value")
		last = min(last, 1e300)
		w.events = append(w.events, core.Event{Kind: core.JobReported, AtSeconds: w.drawMoment(from), Job: j.ID, Metric: metric, Step: step, Value: last})
	}
}
