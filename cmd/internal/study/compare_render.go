package study

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/stats"
	"github.com/quartet-sched/quartet/lab/compare"
	"github.com/quartet-sched/quartet/lab/study"
)

// printComparison writes tables for people, one document, or the rows of the metrics.
func (a *app) printComparison(r *compare.Result, verdicts []compare.Verdict) error {
	switch a.Format {
	case render.JSON:
		return render.Document(a.Stdout, comparisonDocument(r, verdicts))
	case render.CSV:
		return metricRows(r).Write(a.Stdout, a.Format)
	}
	parts := []func(io.Writer) error{render.Lines(introduction(r))}
	table := func(t render.Table) {
		if len(t.Rows) > 0 {
			parts = append(parts, func(w io.Writer) error { return t.Write(w, a.Format) })
		}
	}
	table(differing(r))
	table(changes(r, a.Format == render.Wide))
	table(movers(r))
	if notes := comparisonNotes(r, a.Format == render.Wide); len(notes) > 0 {
		parts = append(parts, render.Lines(notes))
	}
	table(judged(r, verdicts))
	return render.WriteApart(a.Stdout, parts)
}

// shown is a name from elsewhere that is fit for a terminal.
func shown(name string) string { return core.CleanText(name, core.MaxText) }

// introduction says what is compared with what.
func introduction(r *compare.Result) (lines []string) {
	for i := range r.Others {
		o := &r.Others[i]
		line := fmt.Sprintf("%s against %s: ", shown(o.Label), shown(r.Base.Label))
		if o.Pairs > 1 || len(o.Runs) > 1 {
			line += render.Count(o.Pairs, "pair") + " of runs, "
		}
		switch {
		case len(o.Inputs)+len(o.Unpaired) > 0:
			line += "OTHER INPUTS"
		case o.Ends.Unknown > 0:
			line += "the same inputs as far as is known"
		default:
			line += "the same inputs"
		}
		if len(o.Composition) == 0 {
			line += ", the same composition"
		}
		lines = append(lines, line)
	}
	return lines
}

// differing lists what differs between the sides.
func differing(r *compare.Result) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "differs"}}}
	several := len(r.Others) > 1
	if several {
		t.Columns = append(t.Columns, render.Column{Name: "in"})
	}
	t.Columns = append(t.Columns, render.Column{Name: "base"}, render.Column{Name: "other"})
	for i := range r.Others {
		o := &r.Others[i]
		for _, list := range [][]compare.Difference{o.Inputs, o.Composition} {
			for _, d := range list {
				what := shown(d.What)
				if d.Pairs < o.Pairs {
					what += fmt.Sprintf(" (%d of %d pairs)", d.Pairs, o.Pairs)
				}
				row := []any{what}
				if several {
					row = append(row, shown(o.Label))
				}
				t.Rows = append(t.Rows, append(row, shown(orNothing(d.Base)), shown(orNothing(d.Other))))
			}
		}
	}
	return t
}

func orNothing(value string) string {
	if value == "" {
		return "-"
	}
	return value
}

// amountText is a value of a metric for people.
func amountText(metric string, x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "-"
	case strings.Contains(metric, "_seconds"):
		return render.Span(x)
	case strings.HasSuffix(metric, "_ratio"):
		return render.Percent(x)
	}
	return metricText(x)
}

// signed is a difference of amounts with its sign.
func signed(metric string, x float64) string {
	if x > 0 {
		return "+" + differenceText(metric, x)
	}
	return differenceText(metric, x)
}

// differenceText is a difference of amounts. That of ratios is told in points: in per cent it would read as a part of the base.
func differenceText(metric string, x float64) string {
	if strings.HasSuffix(metric, "_ratio") {
		return render.Decimal(100*x, 1, " points")
	}
	return amountText(metric, x)
}

// partText is a change as a part of the base.
func partText(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case math.IsInf(x, 0):
		return "from nothing"
	case x == 0:
		return "0.0 %"
	case math.Abs(x) >= 10:
		return fmt.Sprintf("× %.3g", 1+x)
	}
	return fmt.Sprintf("%+.1f %%", 100*x)
}

// changeOf is a change, after a ~ where it is not shown, and its interval.
func changeOf(row *compare.Row) (change, interval string) {
	text := partText
	if row.Difference {
		text = func(x float64) string { return signed(row.Metric, x) }
	}
	if row.Interval.Known() {
		interval = fmt.Sprintf("[%s, %s]", text(row.Interval.Low), text(row.Interval.High))
	}
	switch row.Why {
	case compare.Unknown:
		return "", ""
	case compare.Same:
		return "=", ""
	case compare.Shown:
		return text(row.Change), interval
	}
	return "~ " + text(row.Change), interval
}

// whyText says what a change rests on, or why it is not shown.
func whyText(row *compare.Row) string {
	switch row.Why {
	case compare.HoldsZero:
		return within(row, "the interval holds 0")
	case compare.Corrected:
		return within(row, fmt.Sprintf("may be chance: p = %.2g after Holm", row.Holm))
	case compare.FewWorkloads:
		return fmt.Sprintf("no interval: %s, it takes %d", render.Count(row.N, "workload"), stats.MinSample)
	case compare.FewJobs:
		return "no interval: " + render.Count(row.Jobs, "job")
	case compare.OneWorkload:
		return "no interval: one workload"
	case compare.OtherJobs:
		return "no interval: it is of other jobs"
	case compare.Unknown:
		return "not known"
	case compare.Same:
		return ""
	}
	return within(row, "")
}

func within(row *compare.Row, why string) string {
	switch {
	case row.Method != stats.MethodBlocks:
		return why
	case why == "":
		return "within one trace"
	}
	return why + ", within one trace"
}

// changes is the table of metrics. All cells of a study are only in the wide one.
func changes(r *compare.Result, wide bool) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "metric"}}}
	axes := make([]bool, len(r.Axes))
	for i := range r.Rows {
		for a, item := range r.Rows[i].Cell {
			axes[a] = axes[a] || (wide || r.Rows[i].Headline) && item != r.Rows[0].Cell[a]
		}
	}
	for a, name := range r.Axes {
		if axes[a] {
			t.Columns = append(t.Columns, render.Column{Name: shown(name)})
		}
	}
	several := len(r.Others) > 1
	if several {
		t.Columns = append(t.Columns, render.Column{Name: "run"})
	}
	t.Columns = append(t.Columns, render.Column{Name: "base", Numeric: true, Drop: 1}, render.Column{Name: "other", Numeric: true, Drop: 1}, render.Column{Name: "change", Numeric: true},
		render.Column{Name: "95 % interval"}, render.Column{Name: "", Drop: 2}, render.Column{Name: "workloads", Numeric: true, Wide: true},
		render.Column{Name: "method", Wide: true}, render.Column{Name: "p", Numeric: true, Wide: true}, render.Column{Name: "Holm", Numeric: true, Wide: true})
	for i := range r.Rows {
		row := &r.Rows[i]
		if !wide && !row.Headline {
			continue
		}
		cells := []any{row.Metric}
		for a, item := range row.Cell {
			if axes[a] {
				cells = append(cells, shown(item))
			}
		}
		if several {
			cells = append(cells, shown(r.Others[row.Against].Label))
		}
		change, interval := changeOf(row)
		t.Rows = append(t.Rows, append(cells, amountText(row.Metric, row.Base), amountText(row.Metric, row.Other), change, interval, whyText(row),
			row.N, row.Method, probability(row.P), probability(row.Holm)))
	}
	return t
}

func probability(p float64) string {
	if math.IsNaN(p) {
		return ""
	}
	return fmt.Sprintf("%.2g", p)
}

// movers lists the jobs whose completion time changed most.
func movers(r *compare.Result) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "job"}}}
	several := false
	for i := range r.Others {
		several = several || len(r.Others) > 1 || r.Others[i].Pairs > 1
	}
	if several {
		t.Columns = append(t.Columns, render.Column{Name: "in"})
	}
	t.Columns = append(t.Columns, render.Column{Name: "JCT, base", Numeric: true}, render.Column{Name: "other", Numeric: true}, render.Column{Name: "change", Numeric: true})
	for i := range r.Others {
		for _, list := range [][]compare.JobChange{r.Others[i].Gained, r.Others[i].Lost} {
			for _, j := range list {
				row := []any{shown(j.Name)}
				if several {
					row = append(row, shown(j.Run))
				}
				t.Rows = append(t.Rows, append(row, render.Span(j.Base), render.Span(j.Other), signed("_seconds", j.Change())))
			}
		}
	}
	return t
}

// comparisonNotes say what the figures leave out.
func comparisonNotes(r *compare.Result, wide bool) (notes []string) {
	add := func(format string, args ...any) { notes = append(notes, "note: "+fmt.Sprintf(format, args...)) }
	notesOnRows(r, wide, add)
	seen := map[*compare.Run]bool{}
	notesOnRuns(r.Base, seen, add)
	for i := range r.Others {
		notesOnRuns(r.Others[i].Side, seen, add)
		notesOnSide(r, &r.Others[i], add)
	}
	return notes
}

// addNote adds a note to those below a comparison.
type addNote func(format string, args ...any)

// notesOnRows say what the intervals mean, and which rows the table leaves out.
func notesOnRows(r *compare.Result, wide bool, add addNote) {
	blocks, cells := false, 0
	for i := range r.Rows {
		blocks = blocks || r.Rows[i].Method == stats.MethodBlocks && r.Rows[i].Why != compare.Same
		if !r.Rows[i].Headline && r.Rows[i].Metric == r.Rows[0].Metric {
			cells++
		}
	}
	if blocks {
		add("intervals within one trace say how much a mean varies within these jobs, not how far it holds for others")
	}
	if cells > 0 && !wide {
		add("over %s; -o wide, csv and json have each", render.Count(cells, "cell"))
	}
}

// notesOnRuns say which runs of a side were interrupted, changed or have no jobs, each run once.
func notesOnRuns(s *compare.Side, seen map[*compare.Run]bool, add addNote) {
	for _, run := range s.Runs {
		if seen[run] {
			continue
		}
		seen[run] = true
		if run.Interrupted {
			add("%s was interrupted: its figures are those up to then", shown(run.Label))
		}
		if run.Changed {
			add("the config of %s was changed while it ran: what differs is that at its end", shown(run.Label))
		}
		if run.Jobs == nil {
			add("%s has no jobs.csv: nothing is known of its jobs", shown(run.Label))
		}
	}
}

// notesOnSide say which jobs and runs of a side were not compared, and that versions differ.
func notesOnSide(r *compare.Result, o *compare.Other, add addNote) {
	name := shown(o.Label)
	if e := o.Ends; e.LeftBase+e.LeftOther > 0 {
		counted := "; jct_seconds.restricted_mean counts them"
		if e.Unknown > 0 {
			counted = ""
		}
		add("jobs that did not complete: %d in %s, %d in %s%s", e.LeftBase, shown(r.Base.Label), e.LeftOther, name, counted)
	}
	for _, only := range []struct {
		label string
		jobs  []string
	}{{shown(r.Base.Label), o.Ends.OnlyBase}, {name, o.Ends.OnlyOther}} {
		if len(only.jobs) > 0 {
			add("completed only in %s: %s; the means over completed jobs are of other jobs", only.label, firstNames(only.jobs))
		}
	}
	if len(o.Unpaired) > 0 {
		add("left out, without a partner: %s", firstNames(o.Unpaired))
	}
	if base, other := r.Base.Runs[0].Version, o.Runs[0].Version; base != other {
		add("%s is of quartet %s, %s of %s", shown(r.Base.Label), shown(base), name, shown(other))
	}
}

// firstNames lists a few names and counts the others.
func firstNames(names []string) string {
	const most = 3
	var list []string
	for _, name := range names[:min(most, len(names))] {
		list = append(list, shown(name))
	}
	text := strings.Join(list, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// worseText is how much worse a metric is in the terms of its threshold.
func worseText(v compare.Verdict) string {
	if v.Part {
		return fmt.Sprintf(", %s worse", strings.TrimPrefix(partText(v.Worse), "+"))
	}
	return fmt.Sprintf(", %s worse", differenceText(v.Metric, v.Worse))
}

// judged lists what the thresholds came to.
func judged(r *compare.Result, verdicts []compare.Verdict) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "threshold"}, {Name: "of"}, {Name: "worse by", Numeric: true}, {Name: "verdict"}}}
	several := false // headline rows of one side
	for i := range verdicts {
		several = several || i > 0 && verdicts[i].Text == verdicts[i-1].Text && verdicts[i].Row.Against == verdicts[i-1].Row.Against
	}
	for _, v := range verdicts {
		of := []string{shown(r.Others[v.Row.Against].Label)}
		for _, item := range v.Row.Cell {
			if several && item != study.Pooled {
				of = append(of, shown(item))
			}
		}
		worse := partText(v.Worse)
		if !v.Part {
			worse = signed(v.Metric, v.Worse)
		}
		verdict := "kept"
		if v.Failed {
			verdict = "NOT KEPT"
		}
		if v.Why != "" {
			verdict += ": " + v.Why
		}
		t.Rows = append(t.Rows, []any{v.Text, strings.Join(of, ", "), worse, verdict})
	}
	return t
}
