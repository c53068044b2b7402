package workload

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// qualityLoss is the part of the metric that a hyper-parameter costs which is one standard deviation off the best.
const qualityLoss = 0.08

// Trials makes jobs that train one application with hyper-parameters of its own each.
//
// A trial goes as its application was measured to, but a model of another width takes longer for a step, and one that is set up worse never gets as good:
// at the end of an epoch it reports what was measured at one batch, whatever its own, times 1 - 0.08 |offset|, plus its noise. Only the setting that was
// measured is data; the rest is a model.
type Trials struct {
	Inputs       []Input
	MostReplicas int

	profile *profile
	model   *measuredModel
	reports [][]Reported // by phase, of a trial without offset and noise
}

// TrialShape is how a trial differs from what was measured.
type TrialShape struct {
	Width   float64 // times as long for each step, above 0
	Quality float64 // offset from the best setting, in standard deviations
	Noise   float64 // added to all that it reports
}

// NewTrials reads the profile of an application in a folder, for trials at a total batch that report what was measured at another.
func NewTrials(ctx context.Context, folder, application string, batch, curveBatch int) (*Trials, error) {
	reader := profileReader{folder: folder}
	names, err := reader.applications()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, application) {
		return nil, core.Diagnostics{{Path: "application", Summary: fmt.Sprintf("no profile of %q in %q", application, filepath.ToSlash(folder)), Hint: core.SuggestHint(application, "names", names)}}
	}
	p := reader.read(ctx, application)
	if p == nil {
		return nil, reader.problems.Err()
	}
	var found core.Diagnostics
	outside := func(path string, batch int) {
		found = append(found, core.Diagnostic{Path: path, Summary: fmt.Sprintf("%s was trained with batches from %d to %d, got %d", application, p.batch.Initial, p.batch.Max, batch)})
	}
	t := &Trials{profile: p, Inputs: reader.inputs}
	p.truth() // which is made once: trials may be made by several runs at a time
	if batch == 0 {
		batch = p.batch.Initial
	}
	if t.model = newMeasuredModel(p, batch, false); t.model == nil {
		outside("batch", batch)
	}
	if curveBatch == 0 {
		curveBatch = batch
	}
	if t.reports = p.reports(curveBatch); t.reports == nil {
		outside("curve_batch", curveBatch)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	t.MostReplicas = t.model.maxReplicas
	slices.SortFunc(t.Inputs, func(a, b Input) int { return strings.Compare(a.Path, b.Path) })
	return t, nil
}

// Metric is what the trials report.
func (t *Trials) Metric() string { return t.reports[0][0].Metric }

// Runs reports whether a trial can run at its batch on so many replicas, consolidated.
func (t *Trials) Runs(replicas int) bool {
	return t.model.stepSeconds(consolidated(replicas, profileDevicesPerNode), replicas) > 0
}

// Fill has a job, whose replicas are set, train as a trial.
func (t *Trials) Fill(job *Job, s TrialShape) {
	m := &trialModel{measuredModel: t.model, width: s.Width, reports: make([][]Reported, len(t.reports))}
	for phase, told := range t.reports {
		m.reports[phase] = slices.Clone(told)
		for i := range told {
			r := &m.reports[phase][i]
			r.Value = float64(r.Value*(1-float64(qualityLoss*math.Abs(s.Quality)))) + s.Noise
		}
	}
	spec := &job.Spec
	spec.Application, spec.Batch = t.profile.application, m.batch
	spec.StepTimes, spec.Truth = t.stretched(s.Width)
	spec.TotalWork = m.PhaseEnd(m.Phases() - 1)
	job.Model = m
}

// stretched is what policies are told of a model whose steps take longer.
func (t *Trials) stretched(width float64) (*core.StepTimes, *core.Truth) {
	longer := func(times []float64) []float64 {
		times = slices.Clone(times)
		for i := range times {
			times[i] *= width
		}
		return times
	}
	times := &core.StepTimes{OneNode: longer(t.model.stepTimes.OneNode), ManyNodes: longer(t.model.stepTimes.ManyNodes)}
	truth := *t.profile.truth()
	truth.Measurements = slices.Clone(truth.Measurements)
	for i := range truth.Measurements {
		truth.Measurements[i].PassSeconds *= width
		truth.Measurements[i].StepSeconds *= width
	}
	return times, &truth
}

// trialModel is a trial.
type trialModel struct {
	*measuredModel
	width   float64
	reports [][]Reported // by phase
}

// Rate is that of the application, over the width.
func (m *trialModel) Rate(phase int, c Running) float64 {
	return m.measuredModel.Rate(phase, c) / m.width
}

// Measure is what the application measures, times the width.
func (m *trialModel) Measure(phase int, c Running) (core.Measurement, core.Gradients, bool) {
	measured, g, ok := m.measuredModel.Measure(phase, c)
	measured.PassSeconds *= m.width
	measured.StepSeconds *= m.width
	return measured, g, ok
}

// Reports is what the trial reports.
func (m *trialModel) Reports(phase int) []Reported { return m.reports[phase] }
