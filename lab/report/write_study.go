package report

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core/stats"
)

// studyMetrics are the columns of runs.csv of which the page draws curves, when the study compares nothing else.
var studyMetrics = [...]string{"jct_seconds_mean", "jct_seconds_p99", "makespan_seconds", "fairness_rho_mean"}

// mostListed is how many entries a list shows before it says how many more there are.
const mostListed = 50

// Notes say what is wrong with the study, a sentence each.
func (s *Study) Notes() []string {
	list := slices.Clone(s.Problems)
	if n := s.notRun(); n > 0 {
		list = append(list, "The study has not ended: "+wereRun(n)+" not run. The same quartet bench resumes it.")
	}
	return list
}

func wereRun(n int) string {
	if n == 1 {
		return "1 run was"
	}
	return fmt.Sprintf("%d runs were", n)
}

// notRun counts the runs that runs.csv misses.
func (s *Study) notRun() (n int) {
	for _, outcome := range s.runs.text("outcome") {
		if outcome == "missing" {
			n++
		}
	}
	return n
}

// WriteStudy writes the page of a study.
func WriteStudy(w io.Writer, s *Study) error {
	data := newPack()
	data.value("kind", "study")
	p := &page{Title: filepath.Base(filepath.Clean(s.Dir))}
	list, err := s.comparisons()
	if err != nil {
		p.Notes = append(p.Notes, fmt.Sprintf("stats.csv: %v.", err))
	}
	figures := s.Figures() // it notes what it cannot read
	p.Notes = append(s.Notes(), p.Notes...)
	found := section{ID: "verdict", Title: "Verdict", List: verdict(list)}
	if len(found.List) == 0 {
		found.Text = []string{"Nothing is compared: stats.csv holds no pair over all workloads."}
	}
	p.Sections = append(p.Sections, found)
	if missing := s.missingCells(); len(missing) > 0 {
		p.Sections = append(p.Sections, section{ID: "missing", Title: "Missing", Text: []string{counted(len(missing), "run") + " or cells are missing; no figure here counts them."}, List: shortened(missing)})
	}
	if s.published.rows > 0 {
		p.Sections = append(p.Sections, section{
			ID: "published", Title: "Published", Plots: []string{placePublished}, Tables: []grid{s.publishedTable()},
			Text: []string{"Figures of the publication, hollow, beside ours. Ours are means over the workloads that a figure is about, each over its runs. A bar is the 95 % interval of the mean, by t over these workloads: how far others would lie, and no error of measurement; one has none."},
		})
	}
	p.Sections = append(p.Sections, comparisonSections(s, list)...)
	packFigures(data, figures)
	for _, part := range [...]section{
		{ID: "changed", Title: "Changes", Text: []string{"The change against the baseline with its interval at " + levels(list) + "."}, Plots: []string{placeChanges}},
		{ID: "load", Title: "Over load", Text: []string{"The mean over the workloads of a load, of each one run. A band is its 95 % interval, by t over these workloads; one has none. How items differ on the same jobs is under Changes."}, Plots: []string{placeLoad}},
		{ID: "shape", Title: "Distributions", Text: []string{"Over the jobs of all workloads together."}, Plots: []string{placeShape}},
		{ID: "time", Title: "Over time", Text: []string{"One run of each."}, Plots: []string{placeOver}},
		{ID: "life", Title: "One job", Text: []string{"The job that held devices longest in the first of these runs: its devices, its batch and its statistical efficiency, 0 while it had none, and how many jobs were in the cluster with it."}, Plots: []string{placeOne}},
	} {
		if placed(figures, part.Plots[0]) {
			p.Sections = append(p.Sections, part)
		}
	}
	if s.packTradeoff(data, list) {
		p.Sections = append(p.Sections, section{ID: "tradeoff", Title: "Trade-offs", Text: []string{"Over all workloads, as parts of the baseline: nearer to the lower left is better."}, Plots: []string{"pairs"}})
	}
	if n := s.warnings.rows; n > 0 {
		p.Sections = append(p.Sections, section{ID: "warnings", Title: "Warnings", List: shortened(s.warned())})
	}
	p.Sections = append(p.Sections, s.files())
	return p.write(w, data, dataScript, figuresScript, studyScript, startScript)
}

func shortened(list []string) []string {
	if len(list) <= mostListed {
		return list
	}
	return append(slices.Clone(list[:mostListed]), fmt.Sprintf("and %d more", len(list)-mostListed))
}

// comparisonSections are the table of what is pooled, and a heat map of the cells for each metric.
func comparisonSections(s *Study, list []comparison) []section {
	if len(list) == 0 {
		return nil
	}
	table := section{ID: "table", Title: "Comparison", Text: []string{"The change against the baseline with its interval at " + levels(list) + "; ~ where the interval holds 0. The unit is the workload."}}
	g := grid{Caption: "All workloads together", Head: []string{"metric", s.compared, "baseline", "workloads", "mean", "mean of the baseline", "change", "p after Holm", "method"}}
	maps := section{ID: "cells", Title: "Cells", Text: []string{"Changes against the baseline: + is worse by more than chance, ✓ better by more than chance, ~ neither; no mark: no interval could be computed, or the metric has no better or worse; other jobs: not compared, because other jobs completed."}}
	var metrics []string
	for i := range list {
		c := &list[i]
		if !slices.Contains(metrics, c.metric) {
			metrics = append(metrics, c.metric)
		}
		if !c.pooled {
			continue
		}
		write := digits
		if strings.Contains(c.metric, "seconds") {
			write = span
		}
		p := unknownText
		if !math.IsNaN(c.holm) {
			p = trimmed(c.holm, 2)
		}
		row := plain(c.metric, c.item, c.baseline, c.workloads(""), write(c.mean), write(c.base), c.text(), p, c.method)
		row[6].Class = c.class()
		g.Rows = append(g.Rows, row)
	}
	if slices.ContainsFunc(list, func(c comparison) bool { return c.out > 0 }) {
		table.Text[0] += " A workload of which a run is missing or failed, or has no value, is left out with all its runs: 4 of 5 are compared then."
	}
	table.Tables = []grid{g}
	for _, metric := range metrics {
		if m := heat(s, list, metric); len(m.Rows) > 0 && len(m.Head) > 1 {
			maps.Tables = append(maps.Tables, m)
		}
	}
	if len(maps.Tables) == 0 {
		return []section{table}
	}
	return []section{table, maps}
}

// levels says which level the intervals have.
func levels(list []comparison) string {
	var others []string
	for i := range list {
		if c := &list[i]; c.level != usualLevel && !slices.Contains(others, c.metric) {
			others = append(others, c.metric)
		}
	}
	text := levelText(usualLevel)
	for _, metric := range others {
		i := slices.IndexFunc(list, func(c comparison) bool { return c.metric == metric && c.level != usualLevel })
		text += ", that of " + metric + " at " + levelText(list[i].level)
	}
	return text
}

// heat is a table of one metric: a row for each cell of the other axes, a column for each item of the compared axis.
func heat(s *Study, list []comparison, metric string) grid {
	g := grid{Caption: metric, Head: []string{strings.Join(s.others(), ", ")}}
	at := map[string]int{}
	for i := range list {
		c := &list[i]
		if c.metric != metric || slices.Contains(c.where, "all") || c.item == c.baseline || math.IsNaN(c.change) && c.method != otherJobs {
			continue
		}
		column := slices.Index(g.Head[1:], c.item) + 1
		if column == 0 {
			column = len(g.Head)
			g.Head = append(g.Head, c.item)
		}
		name := strings.Join(c.where, ", ")
		row, known := at[name]
		if !known {
			row = len(g.Rows)
			at[name], g.Rows = row, append(g.Rows, plain(name))
		}
		for len(g.Rows[row]) <= column {
			g.Rows[row] = append(g.Rows[row], cell{Text: unknownText})
		}
		if c.method == otherJobs {
			g.Rows[row][column] = cell{Text: "other jobs"}
			continue
		}
		g.Rows[row][column] = cell{Text: heatMark(c) + signedPercent(c.change), Class: heatClass(c)}
	}
	for i := range g.Rows {
		for len(g.Rows[i]) < len(g.Head) {
			g.Rows[i] = append(g.Rows[i], cell{Text: unknownText})
		}
	}
	return g
}

func heatMark(c *comparison) string {
	switch c.class() {
	case "better":
		return "✓ "
	case "worse":
		return "+ "
	case "":
		if c.low <= 0 && c.high >= 0 {
			return "~ "
		}
	}
	return ""
}

// heatClass is a colour by the sense and the size of a change: three steps to each side.
func heatClass(c *comparison) string {
	sense := senseOf(c.metric)
	if sense == 0 || c.change == 0 {
		return ""
	}
	step := 1
	for _, limit := range [...]float64{.05, .2} {
		if math.Abs(c.change) > limit {
			step++
		}
	}
	if c.change*float64(sense) > 0 {
		return fmt.Sprintf("good%d", step)
	}
	return fmt.Sprintf("bad%d", step)
}

// overLoads is the mean of what is chosen at each load, with its interval of Student over the workloads, of each of which it is one run; NaN where there are none, or
// too few. A part of the interval that nothing can lie in, for no value is below 0, is left out.
func overLoads(loads, load, values []float64, chosen func(int) bool) (mean, low, high []float64) {
	for _, at := range loads {
		var taken []float64
		sum := 0.0
		for i, v := range values {
			if load[i] == at && !math.IsNaN(v) && chosen(i) {
				taken = append(taken, v)
				sum += v
			}
		}
		of := stats.T(taken, usualLevel)
		if len(taken) > 0 && slices.Min(taken) >= 0 {
			of.Low = max(of.Low, 0) // NaN stays
		}
		mean, low, high = append(mean, sum/float64(len(taken))), append(low, of.Low), append(high, of.High)
	}
	return mean, low, high
}

// packTradeoff adds the pooled changes of one metric against those of another.
func (s *Study) packTradeoff(p *pack, list []comparison) bool {
	changes := map[string]map[string]float64{}
	var names, metrics []string
	for i := range list {
		c := &list[i]
		if !c.pooled || math.IsNaN(c.change) {
			continue
		}
		if changes[c.metric] == nil {
			changes[c.metric] = map[string]float64{}
			metrics = append(metrics, c.metric)
		}
		changes[c.metric][c.item] = 1 + c.change
		if changes[c.metric][c.baseline] = 1; !slices.Contains(names, c.baseline) {
			names = append(names, c.baseline)
		}
		if !slices.Contains(names, c.item) {
			names = append(names, c.item)
		}
	}
	type pair struct {
		Title string    `json:"title"`
		X     []float64 `json:"x"`
		Y     []float64 `json:"y"`
		Names []string  `json:"names"`
		XName string    `json:"xName"`
	}
	var pairs []pair
	for k, metric := range metrics {
		if k == 0 || senseOf(metric) >= 0 || senseOf(metrics[0]) >= 0 {
			continue
		}
		one := pair{Title: metric + " against " + metrics[0], XName: metrics[0]}
		for _, name := range names {
			x, xOK := changes[metrics[0]][name]
			y, yOK := changes[metric][name]
			if xOK && yOK {
				one.X, one.Y, one.Names = append(one.X, x), append(one.Y, y), append(one.Names, name)
			}
		}
		if len(one.X) > 1 {
			pairs = append(pairs, one)
		}
	}
	p.value("pairs", pairs)
	return len(pairs) > 0
}

func (s *Study) warned() (list []string) {
	run, kind, message := s.warnings.text("run"), s.warnings.text("kind"), s.warnings.text("message")
	for i := range s.warnings.rows {
		list = append(list, fmt.Sprintf("%s (%s): %s", run[i], kind[i], message[i]))
	}
	return list
}

// files links what the page was made of.
func (s *Study) files() section {
	out := section{ID: "files", Title: "Files", Pre: s.file, More: "Show study.yaml"}
	g := grid{Caption: "Beside this page", Head: []string{"file", "holds"}, Words: true}
	for _, f := range [...][2]string{{"study.yaml", "the study, resolved"}, {runsFile, "a row for each run"}, {statsFile, "a row for each comparison"}, {"jobs.csv.gz", "the jobs of all runs"}, {"warnings.csv", "what people should know of runs"}, {publishedFile, "published figures beside ours"}} {
		if f[0] == publishedFile && s.published.rows == 0 {
			continue
		}
		g.Rows = append(g.Rows, []cell{{Text: f[0], Link: f[0]}, {Text: f[1]}})
	}
	g.Caption += "; " + counted(s.runs.rows, "run")
	out.Tables = []grid{g}
	return out
}
