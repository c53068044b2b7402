package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	mostReports  = 200_000 // of all jobs, before a page leaves out some of each
	mostTrials   = 12      // lines of a figure
	mostTold     = 1_000   // points of such a line
	mostTrialRow = 500     // rows of a table
)

// metricSeries is what a job reported of a metric, by ascending step: a step that was told again took back what was told from it on.
type metricSeries struct {
	job         int // row of jobs.csv
	metric      int // of those that were reported, in the order in which they were first told
	step, value []float64
	low, high   int // places of the least and the largest value
}

func (t *metricSeries) add(step, value float64) {
	n := len(t.step)
	for n > 0 && t.step[n-1] >= step {
		n--
	}
	t.step, t.value = append(t.step[:n], step), append(t.value[:n], value)
}

func (t *metricSeries) last() float64 { return t.step[len(t.step)-1] }

// thinned is every so manyth point, and the last.
func (t *metricSeries) thinned(every int) (step, value []float64) {
	if every < 2 {
		return t.step, t.value
	}
	for i := range t.step {
		if i%every == 0 || i == len(t.step)-1 {
			step, value = append(step, t.step[i]), append(value, t.value[i])
		}
	}
	return step, value
}

// readReports takes in what reports.csv tells. Rows that hold no numbers are told by the page, and left out.
func (r *Run) readReports() {
	if r.reports == nil {
		return
	}
	job, _ := r.reports.numbers("job")
	step, _ := r.reports.numbers("step")
	value, _ := r.reports.numbers("value")
	names := r.reports.text("metric")
	rows := r.byID()
	type key struct{ job, metric int }
	at, metrics := map[key]int{}, map[string]int{}
	for i := range job {
		row, known := rows[int(zeroed(job[i]))]
		if !known || math.IsNaN(job[i]+step[i]+value[i]) || names[i] == "" {
			continue
		}
		metric, seen := metrics[names[i]]
		if !seen {
			metric = len(r.metrics)
			metrics[names[i]], r.metrics = metric, append(r.metrics, strings.Clone(names[i]))
		}
		k, some := at[key{row, metric}]
		if !some {
			k = len(r.reported)
			at[key{row, metric}], r.reported = k, append(r.reported, metricSeries{job: row, metric: metric})
		}
		r.reported[k].add(step[i], value[i])
	}
	for k := range r.reported {
		t := &r.reported[k]
		for i, v := range t.value {
			if v < t.value[t.low] {
				t.low = i
			}
			if v > t.value[t.high] {
				t.high = i
			}
		}
	}
	slices.SortFunc(r.reported, func(a, b metricSeries) int {
		return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.metric, b.metric))
	})
}

// packReports adds what jobs reported of themselves.
func (r *Run) packReports(p *pack) {
	if slices.ContainsFunc(r.Jobs.experiment, func(name string) bool { return name != "" }) {
		p.dictionary("experiments", "jobs.experiment", r.trials())
	}
	if len(r.reported) == 0 {
		return
	}
	all := 0
	for k := range r.reported {
		all += len(r.reported[k].step)
	}
	every := 1 + (all-1)/mostReports
	var job, metric, step, value []float64
	for k := range r.reported {
		t := &r.reported[k]
		x, y := t.thinned(every)
		for i := range x {
			job, metric = append(job, float64(t.job)), append(metric, float64(t.metric))
			step, value = append(step, x[i]), append(value, y[i])
		}
	}
	p.value("metrics", r.metrics)
	p.wholes("reports.job", job)
	p.wholes("reports.metric", metric)
	p.ratios("reports.step", step)
	p.ratios("reports.value", value)
	if figures := r.experimentFigures(); len(figures) > 0 {
		packFigures(p, figures)
	}
}

// trials is the experiment of each job; empty for none.
func (r *Run) trials() []string {
	list := make([]string, len(r.Jobs.name))
	copy(list, r.Jobs.experiment) // jobs that only decisions name have none
	return list
}

// An experiment is what its trials reported of a metric.
type experiment struct {
	name   string
	metric int
	told   []*metricSeries
}

// byExperiment is what trials reported, by the name of their experiment and then by metric.
func (r *Run) byExperiment() (list []experiment) {
	trials := r.trials()
	for k := range r.reported {
		t := &r.reported[k]
		name := trials[t.job]
		if name == "" {
			continue
		}
		at := slices.IndexFunc(list, func(e experiment) bool { return e.name == name && e.metric == t.metric })
		if at < 0 {
			at, list = len(list), append(list, experiment{name: name, metric: t.metric})
		}
		list[at].told = append(list[at].told, t)
	}
	slices.SortFunc(list, func(a, b experiment) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.metric, b.metric))
	})
	return list
}

// experimentFigures show each metric by step, a line for each trial of an experiment: of many those that went furthest, by step.
func (r *Run) experimentFigures() (list []Figure) {
	for _, e := range r.byExperiment() {
		metric := r.metrics[e.metric]
		f := Figure{
			Name: fileName(e.name, metric, "by-step"), Title: fmt.Sprintf("%s of %s", metric, e.name),
			XLabel: "step", YLabel: metric, X: Plain, Y: Plain, Place: "trials",
		}
		shown := slices.Clone(e.told)
		if len(shown) > mostTrials {
			slices.SortStableFunc(shown, func(a, b *metricSeries) int { return cmp.Compare(b.last(), a.last()) })
			shown = shown[:mostTrials]
			f.Title += fmt.Sprintf(", the %d of %d trials that went furthest", mostTrials, len(e.told))
		}
		for i, t := range shown {
			x, y := t.thinned(1 + (len(t.step)-1)/mostTold)
			f.Lines = append(f.Lines, Line{Label: r.Jobs.name[t.job], Colour: i, X: x, Y: y})
		}
		list = append(list, f)
	}
	return list
}

// experiments is the part of a page about searches and their trials.
func (r *Run) experiments() []section {
	s := section{ID: "experiments", Title: "Experiments"}
	for _, e := range r.byExperiment() {
		metric := r.metrics[e.metric]
		g := grid{
			Caption: fmt.Sprintf("%s: what trials reported of %s", e.name, metric),
			Head:    []string{"job", "step", metric, "lowest", "at step", "highest", "at step", "reports", "outcome"},
		}
		if len(e.told) > mostTrialRow {
			g.Caption += fmt.Sprintf(", the first %d of %d", mostTrialRow, len(e.told))
		}
		for _, t := range e.told[:min(len(e.told), mostTrialRow)] {
			n := len(t.step)
			g.Rows = append(g.Rows, plain(r.Jobs.name[t.job], digits(t.step[n-1]), digits(t.value[n-1]), digits(t.value[t.low]), digits(t.step[t.low]),
				digits(t.value[t.high]), digits(t.step[t.high]), digits(float64(n)), r.Jobs.outcome[t.job]))
		}
		s.Tables = append(s.Tables, g)
	}
	if len(s.Tables) == 0 {
		return nil
	}
	s.Text = []string{"Jobs that name the same experiment are its trials. A step that a job reported again after it resumed from a checkpoint counts once."}
	s.Plots = []string{"trials"}
	return []section{s}
}
