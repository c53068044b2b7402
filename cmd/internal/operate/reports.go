package operate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// experimentColumn tells of which search jobs are trials, where some job is one.
func experimentColumn(m *moreColumns[*controlv1.Job], jobs []*controlv1.Job) {
	if slices.ContainsFunc(jobs, func(j *controlv1.Job) bool { return j.GetExperiment() != "" }) {
		m.add(render.Column{Name: "experiment", Wide: true}, func(j *controlv1.Job) any { return j.GetExperiment() })
	}
}

func reported(j *controlv1.Job) bool { return len(j.GetMetrics()) > 0 }

// trialColumns tell of jobs which search they are trials of, and the latest report of the metric that each told first, where some job has one: to people
// in words, to programs with a column for each number.
func trialColumns(jobs []*controlv1.Job, words bool) moreColumns[*controlv1.Job] {
	m := demandColumns(jobs)
	experimentColumn(&m, jobs)
	if !slices.ContainsFunc(jobs, reported) {
		return m
	}
	if words {
		m.add(render.Column{Name: "reported", Wide: true}, func(j *controlv1.Job) any {
			if !reported(j) {
				return ""
			}
			first := j.GetMetrics()[0]
			return fmt.Sprintf("%s %s at %s", first.GetName(), short(first.GetValue()), short(first.GetStep()))
		})
		return m
	}
	m.add(render.Column{Name: "metric"}, func(j *controlv1.Job) any {
		if !reported(j) {
			return ""
		}
		return j.GetMetrics()[0].GetName()
	})
	number := func(name string, of func(*controlv1.Metric) float64) {
		m.add(render.Column{Name: name, Numeric: true}, func(j *controlv1.Job) any {
			if !reported(j) {
				return math.NaN()
			}
			return of(j.GetMetrics()[0])
		})
	}
	number("step", (*controlv1.Metric).GetStep)
	number("value", (*controlv1.Metric).GetValue)
	return m
}

// short words a number for people.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// metricsTable is what a job reported, a row for each metric.
func metricsTable(j *controlv1.Job, number func(float64) any) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "metric"}}}
	for _, name := range [...]string{"step", "value", "lowest", "lowest_step", "highest", "highest_step", "at_s", "reports"} {
		t.Columns = append(t.Columns, render.Column{Name: name, Numeric: true})
	}
	for _, m := range j.GetMetrics() {
		t.Rows = append(t.Rows, []any{
			m.GetName(), number(m.GetStep()), number(m.GetValue()), number(m.GetLowest()), number(m.GetLowestStep()), number(m.GetHighest()),
			number(m.GetHighestStep()), m.GetAtSeconds(), m.GetReports(),
		})
	}
	return t
}

// metricsMember is what a job reported, as a member of its description; none of a job that reported nothing.
func metricsMember(j *controlv1.Job) ([]member, error) {
	if !reported(j) {
		return nil, nil
	}
	var text jsonText
	if err := metricsTable(j, func(x float64) any { return x }).Write(&text, render.JSON); err != nil {
		return nil, err
	}
	return []member{{"metrics", json.RawMessage(text)}}, nil
}

type jsonText []byte

func (t *jsonText) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	return len(p), nil
}

// writeMetrics words what a job reported, below what was written before.
func (a *app) writeMetrics(j *controlv1.Job) error {
	if !reported(j) {
		return nil
	}
	if _, err := io.WriteString(a.Stdout, "\n"); err != nil {
		return err
	}
	t := metricsTable(j, func(x float64) any { return short(x) })
	for i := range t.Columns {
		switch t.Columns[i].Name {
		case "at_s":
			t.Columns[i] = render.Column{Name: "at", Numeric: true, Drop: 2}
		case "lowest_step", "highest_step":
			t.Columns[i].Name, t.Columns[i].Drop = "at step", 1
		}
	}
	for i, m := range j.GetMetrics() {
		t.Rows[i][7] = a.at(m.GetAtSeconds())
	}
	return t.Write(a.Stdout, a.Format)
}
