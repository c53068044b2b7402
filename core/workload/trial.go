package workload

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// qualityLoss is the part of the metric that a hyper-parameter costs which is one standard deviation off the best.
const qualityLoss = 0.08

// Trials makes jobs that train one application with hyper-parameters of its own each.
//
// A trial goes as its application was measured to, but a model of another width takes longer for a step, and one that is set up worse never gets as good:
// at the end of an epoch it reports what was measured at one batch, whatever its own, times 1 - 0.08 |offset|, plus its noise. Only the setting that was
// measured is data; the rest is a model.
type Trials struct {
	// Inputs: files that the measurements were read from.
	Inputs []Input

	profile *profile
	model   *measuredModel
	reports [][]Reported // by phase, of a trial without offset and noise
	adapts  bool
	batches []int // that a trial which adapts chooses from
}

// TrialsConfig says what trials train and how.
type TrialsConfig struct {
	Profiles string // folder of the profiles
	// Application: name of the application that trials train.
	Application string
	Batch       int // total batch that they ask for; 0 for the smallest that was measured
	CurveBatch  int // of the training whose metric they report; 0 for Batch
	// Adapts has a trial choose the best batch for its devices by itself, as each epoch begins, whatever the scheduler set: so does the agent of Pollux.
	Adapts bool

	Replicas, MaxReplicas int    // that their jobs ask for, and can use
	Metric                string // that they are to report
}

// TrialShape is how a trial differs from what was measured.
type TrialShape struct {
	Width   float64 // times as long for each step, above 0
	Quality float64 // offset from the best setting, in standard deviations
	Noise   float64 // added to all that it reports
}

// NewTrials reads the profile that trials go by. Problems with the config are reported together, with paths as in the config of the workload.
func NewTrials(ctx context.Context, c TrialsConfig) (*Trials, core.Diagnostics, error) {
	reader := profileReader{folder: c.Profiles}
	names, err := reader.applications()
	if err != nil {
		return nil, nil, err
	}
	if !slices.Contains(names, c.Application) {
		return nil, core.Diagnostics{{
			Path: "simulated.application", Summary: fmt.Sprintf("no profile of %q in %q", c.Application, filepath.ToSlash(c.Profiles)), Hint: core.SuggestHint(c.Application, "names", names),
		}}, nil
	}
	p := reader.read(ctx, c.Application)
	if p == nil {
		return nil, reader.problems, nil
	}
	t := &Trials{profile: p, Inputs: reader.inputs, adapts: c.Adapts, batches: goodput.GeometricBatches(p.batch)}
	p.truth() // which is made once: trials may be made by several runs at a time
	slices.SortFunc(t.Inputs, func(a, b Input) int { return strings.Compare(a.Path, b.Path) })
	return t, t.check(&c), nil
}

// check finds what is wrong with a config, and sets what follows from it.
func (t *Trials) check(c *TrialsConfig) (found core.Diagnostics) {
	p := t.profile
	problem := func(path, hint, format string, args ...any) {
		found = append(found, core.Diagnostic{Path: path, Summary: fmt.Sprintf(format, args...), Hint: hint})
	}
	batch := cmp.Or(c.Batch, p.batch.Initial)
	trained := fmt.Sprintf("%s was trained with batches from %d to %d", c.Application, p.batch.Initial, p.batch.Max)
	if t.model = newMeasuredModel(p, batch, false); t.model == nil {
		problem("simulated.batch", "", "%s, got %d", trained, batch)
	}
	curve := cmp.Or(c.CurveBatch, batch)
	if t.reports = p.reports(curve); t.reports == nil && (c.CurveBatch > 0 || t.model != nil) {
		problem("simulated.curve_batch", "", "%s, got %d", trained, curve)
	}
	if c.MaxReplicas > p.maxReplicas {
		path := "job.max_replicas"
		if c.MaxReplicas == c.Replicas {
			path = "job.replicas"
		}
		problem(path, "", "must be at most %d, the most that %s runs on, got %d", p.maxReplicas, c.Application, c.MaxReplicas)
	} else if t.model != nil && t.model.stepSeconds(consolidated(c.Replicas, profileDevicesPerNode), c.Replicas) == 0 {
		problem("job.replicas", fmt.Sprintf("at most %d", t.model.mostReplicas()), "%s was not measured on %d replicas at a batch of %d", c.Application, c.Replicas, batch)
	}
	if reported := p.metric(); c.Metric != reported {
		problem("metric", core.SuggestHint(c.Metric, "metrics", []string{reported}), "trials of %s report no %q", c.Application, c.Metric)
	}
	return found
}

// metric is what trainings of the application report.
func (p *profile) metric() string { return p.reports(p.batch.Initial)[0][0].Metric }

// Fill has a job, whose replicas are set, train as a trial.
func (t *Trials) Fill(job *Job, s TrialShape) {
	m := &trialModel{measuredModel: t.model, of: t, width: s.Width, reports: make([][]Reported, len(t.reports))}
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
	of      *Trials
	width   float64
	reports [][]Reported // by phase
}

// adapted is how a trial runs in a phase that chooses its batch by itself: with the one that brings it on fastest, and of equals the smallest.
func (m *trialModel) adapted(phase int, c Running) Running {
	if !m.of.adapts {
		return c
	}
	tried, fastest := c, 0.0
	for _, total := range m.of.batches {
		tried.Tuning = core.Tuning{}
		if tried.Tuning.BatchPerDevice, tried.Tuning.AccumulationSteps = goodput.SplitBatch(total, c.Replicas, m.batch); tried.Tuning.BatchPerDevice == 0 {
			continue
		}
		if rate := m.measuredModel.Rate(phase, tried); rate > fastest {
			fastest, c.Tuning = rate, tried.Tuning
		}
	}
	return c
}

// Rate is that of the application, over the width.
func (m *trialModel) Rate(phase int, c Running) float64 {
	return m.measuredModel.Rate(phase, m.adapted(phase, c)) / m.width
}

// Training is as the profile says.
func (m *trialModel) Training(phase int, c Running) (batch int, efficiency, samples float64, ok bool) {
	return m.measuredModel.Training(phase, m.adapted(phase, c))
}

// Measure is what the application measures, times the width.
func (m *trialModel) Measure(phase int, c Running) (core.Measurement, core.Gradients, bool) {
	measured, g, ok := m.measuredModel.Measure(phase, m.adapted(phase, c))
	measured.PassSeconds *= m.width
	measured.StepSeconds *= m.width
	return measured, g, ok
}

// Reports is what the trial reports.
func (m *trialModel) Reports(phase int) []Reported { return m.reports[phase] }
