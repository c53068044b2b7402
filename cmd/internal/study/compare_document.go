package study

import (
	"math"

	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/lab/compare"
)

// comparisonSchema names the form of the document. It changes when a field changes its meaning or goes away.
const comparisonSchema = "quartet.comparison/v1"

type comparisonJSON struct {
	Schema  string        `json:"schema"`
	Base    string        `json:"base"`
	Others  []otherJSON   `json:"others"`
	Metrics []metricJSON  `json:"metrics"`
	Judged  []verdictJSON `json:"judged"`
	Notes   []string      `json:"notes"`
}

type otherJSON struct {
	Label        string           `json:"label"`
	Pairs        int              `json:"pairs"`
	SameInputs   bool             `json:"same_inputs"`
	Inputs       []differenceJSON `json:"inputs"`
	Composition  []differenceJSON `json:"composition"`
	Alone        []string         `json:"alone"`
	NotCompleted struct {
		Base  int `json:"base"`
		Other int `json:"other"`
	} `json:"not_completed"`
	CompletedOnlyInBase  []string  `json:"completed_only_in_base"`
	CompletedOnlyInOther []string  `json:"completed_only_in_other"`
	Gained               []jobJSON `json:"gained"`
	Lost                 []jobJSON `json:"lost"`
}

type differenceJSON struct {
	What  string `json:"what"`
	Base  string `json:"base"`
	Other string `json:"other"`
	Pairs int    `json:"pairs"`
}

type jobJSON struct {
	Job          string  `json:"job"`
	Run          string  `json:"run"`
	BaseSeconds  float64 `json:"base_jct_seconds"`
	OtherSeconds float64 `json:"jct_seconds"`
}

type metricJSON struct {
	Metric     string            `json:"metric"`
	Against    string            `json:"against"`
	Cell       map[string]string `json:"cell,omitempty"`
	Headline   bool              `json:"headline"`
	Workloads  int               `json:"workloads"`
	Jobs       int               `json:"jobs,omitempty"`
	Base       metrics.Number    `json:"base"`
	Other      metrics.Number    `json:"other"`
	Change     metrics.Number    `json:"change"`
	Difference bool              `json:"difference"`
	Low        metrics.Number    `json:"low"`
	High       metrics.Number    `json:"high"`
	P          metrics.Number    `json:"p"`
	HolmP      metrics.Number    `json:"holm_p"`
	Method     string            `json:"method"`
	Why        string            `json:"why"`
}

type verdictJSON struct {
	Threshold string         `json:"threshold"`
	Against   string         `json:"against"`
	WorseBy   metrics.Number `json:"worse_by"`
	Kept      bool           `json:"kept"`
	Why       string         `json:"why"`
}

func comparisonDocument(r *compare.Result, verdicts []compare.Verdict) comparisonJSON {
	d := comparisonJSON{
		Schema: comparisonSchema, Base: r.Base.Label, Others: []otherJSON{}, Metrics: []metricJSON{}, Judged: []verdictJSON{},
		Notes: append([]string{}, comparisonNotes(r, true)...),
	}
	for i := range r.Others {
		d.Others = append(d.Others, otherDocument(&r.Others[i]))
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		m := metricJSON{
			Metric: row.Metric, Against: r.Others[row.Against].Label, Headline: row.Headline, Workloads: row.N, Jobs: row.Jobs,
			Base: metrics.Number(row.Base), Other: metrics.Number(row.Other), Change: metrics.Number(row.Change), Difference: row.Difference,
			Low: metrics.Number(row.Interval.Low), High: metrics.Number(row.Interval.High), P: metrics.Number(row.P), HolmP: metrics.Number(row.Holm),
			Method: row.Method, Why: row.Why,
		}
		if len(row.Cell) > 0 {
			m.Cell = map[string]string{}
			for a, item := range row.Cell {
				m.Cell[r.Axes[a]] = item
			}
		}
		d.Metrics = append(d.Metrics, m)
	}
	for _, v := range verdicts {
		d.Judged = append(d.Judged, verdictJSON{v.Text, r.Others[v.Row.Against].Label, metrics.Number(v.Worse), !v.Failed, v.Why})
	}
	return d
}

func otherDocument(o *compare.Other) otherJSON {
	differences := func(list []compare.Difference) []differenceJSON {
		out := []differenceJSON{}
		for _, d := range list {
			out = append(out, differenceJSON(d))
		}
		return out
	}
	jobs := func(list []compare.JobChange) []jobJSON {
		out := []jobJSON{}
		for _, j := range list {
			out = append(out, jobJSON{j.Name, j.Run, j.Base, j.Other})
		}
		return out
	}
	names := func(list []string) []string { return append([]string{}, list...) }
	d := otherJSON{
		Label: o.Label, Pairs: o.Pairs, SameInputs: len(o.Inputs)+len(o.Unpaired) == 0, Inputs: differences(o.Inputs), Composition: differences(o.Composition),
		Alone: names(o.Unpaired), CompletedOnlyInBase: names(o.Ends.OnlyBase), CompletedOnlyInOther: names(o.Ends.OnlyOther),
		Gained: jobs(o.Gained), Lost: jobs(o.Lost),
	}
	d.NotCompleted.Base, d.NotCompleted.Other = o.Ends.LeftBase, o.Ends.LeftOther
	return d
}

// metricRows has a row for each metric of the document.
func metricRows(r *compare.Result) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "metric"}}}
	for _, axis := range r.Axes {
		t.Columns = append(t.Columns, render.Column{Name: axis})
	}
	for _, name := range []string{"against", "headline", "workloads", "jobs", "base", "other", "change", "difference", "low", "high", "p", "holm_p", "method", "why"} {
		t.Columns = append(t.Columns, render.Column{Name: name})
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		cells := []any{row.Metric}
		for _, item := range row.Cell {
			cells = append(cells, item)
		}
		jobs := math.NaN()
		if row.Jobs > 0 {
			jobs = float64(row.Jobs)
		}
		t.Rows = append(t.Rows, append(cells, r.Others[row.Against].Label, row.Headline, row.N, jobs, row.Base, row.Other, row.Change, row.Difference,
			row.Interval.Low, row.Interval.High, row.P, row.Holm, row.Method, row.Why))
	}
	return t
}
