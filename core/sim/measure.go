package sim

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// measurements are what jobs report of their step times.
type measurements struct {
	any   bool    // some jobs report
	noise *stream // random errors of the measurements; nil without
}

// report says what a job measures, if that is new.
func (s *Simulator) report(j *simJob, at float64) {
	if !j.unmeasured || j.measuring == nil {
		return
	}
	j.unmeasured, j.fresh = false, false
	if m, g, ok := j.measuring.Measure(j.phase, j.running); ok {
		if s.reports.noise != nil {
			s.blur(j, &m)
		}
		s.clock.events = append(s.clock.events, core.Event{Kind: core.JobMeasured, AtSeconds: at, Job: j.Spec.ID, Measurement: m, Gradients: g})
	}
}

// reportMetrics says what a job reports of its metrics at the end of a phase, if anything.
func (s *Simulator) reportMetrics(j *simJob, at float64) (some bool) {
	reporter, reports := j.Model.(workload.Reporter)
	if !reports {
		return false
	}
	for _, r := range reporter.Reports(j.phase) {
		some = true
		if math.IsInf(r.Value, 0) {
			r.Value = math.NaN() // a training that diverged, as any other that did
		}
		s.clock.events = append(s.clock.events, core.Event{Kind: core.JobReported, AtSeconds: at, Job: j.Spec.ID, Metric: r.Metric, Step: r.Step, Value: r.Value})
		s.reaction.reported(j, r, at)
	}
	return some
}

// blur puts a report off the truth.
func (s *Simulator) blur(j *simJob, m *core.Measurement) {
	n := &s.config.MeasurementNoise
	factor := math.Exp(n.Spread * s.reports.noise.NormFloat64())
	if s.reports.noise.Float64() < n.Outliers {
		factor *= n.OutlierFactor
	}
	if !slices.ContainsFunc(j.reported, m.SameConfiguration) {
		j.reported = append(j.reported, *m)
		factor *= n.FirstFactor
	}
	m.PassSeconds *= factor
	m.StepSeconds *= factor
}

// reportAll lets those report that ran since they were started and have not yet, and with noise all.
func (s *Simulator) reportAll(now float64) {
	if !s.reports.any {
		return
	}
	for _, j := range s.jobs.running {
		if now > j.pausedUntil {
			j.unmeasured = j.unmeasured || s.reports.noise != nil
			s.report(j, now)
		}
	}
}

// nextReport is the earliest moment at which a job that was started or moved has done a step and reports of it; +Inf when
// rounds are on a grid, where it waits for the next. Without it, a job that may grow once it has reported would wait for
// something else to happen.
func (s *Simulator) nextReport(w core.Wake) float64 {
	next := math.Inf(1)
	if !s.reports.any || w.IntervalSeconds > 0 {
		return next
	}
	for _, j := range s.jobs.running {
		if !j.fresh || j.measuring == nil {
			continue
		}
		if m, _, ok := j.measuring.Measure(j.phase, j.running); ok && m.StepSeconds > 0 {
			next = min(next, max(j.pausedUntil, s.clock.now)+m.StepSeconds)
		}
	}
	return next
}
