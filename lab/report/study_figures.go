package report

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// The parts of a study's page that hold figures.
const (
	placePublished = "published-figures"
	placeChanges   = "changes"
	placeLoad      = "curves"
	placeShape     = "shapes"
	placeOver      = "over"
	placeOne       = "one-job"
)

// mostLines is how many curves a figure holds: there are no more colours.
const mostLines = 8

// Figures are the pictures of a study: those that its page shows, except trade-offs.
func (s *Study) Figures() []Figure {
	list, _ := s.comparisons() // what cannot be read is told on the page
	figures := slices.Concat(s.publishedFigures(), changeFigures(s, list), s.loadFigures(), s.shapeFigures(), s.overFigures(), s.oneJobFigures())
	return unique(figures)
}

// publishedFigures draw the points of a publication beside ours: a figure for each of its metrics.
func (s *Study) publishedFigures() []Figure {
	t := s.published
	name, metric := t.text("figure"), t.text("metric")
	published, _ := t.numbers("published") // what is no number is not drawn, and the table shows it
	ours, _ := t.numbers("ours")
	low, _ := t.numbers("ours_low")
	high, _ := t.numbers("ours_high")
	runs, _ := t.numbers("runs")
	workloads, _ := t.numbers("workloads")
	var list []Figure
	for _, key := range items(join(name, metric)) {
		var rows []int
		for i := range t.rows {
			if name[i]+"\x00"+metric[i] == key {
				rows = append(rows, i)
			}
		}
		f := Figure{
			Place: placePublished, Name: fileName(name[rows[0]], metric[rows[0]]), Title: name[rows[0]] + ", " + metric[rows[0]],
			X: Plain, Y: unitOf(metric[rows[0]]), YLabel: metric[rows[0]],
		}
		lines, along := s.varying(rows)
		x := along
		if x == "" {
			x = lines
		}
		at := t.text(x)
		for _, i := range rows {
			if !slices.Contains(f.Ticks, at[i]) {
				f.Ticks = append(f.Ticks, at[i])
			}
		}
		f.XLabel = x
		groups := []string{""}
		of := make([]string, t.rows)
		if along != "" && lines != "" {
			of = t.text(lines)
			groups = groups[:0]
			for _, i := range rows {
				if !slices.Contains(groups, of[i]) {
					groups = append(groups, of[i])
				}
			}
		}
		if len(groups) > mostLines {
			groups = groups[:mostLines]
		}
		for colour, group := range groups {
			var lows, highs []float64
			mine, theirs := Line{Label: strings.TrimPrefix(group+", ours", ", "), Points: true, Colour: colour}, Line{Label: strings.TrimPrefix(group+", published", ", "), Points: true, Hollow: true, Colour: colour}
			for _, i := range rows {
				if of[i] != group {
					continue
				}
				place := float64(slices.Index(f.Ticks, at[i])) + beside(colour, len(groups))
				mine.X, mine.Y = append(mine.X, place), append(mine.Y, ours[i])
				lows, highs = append(lows, low[i]), append(highs, high[i])
				theirs.X, theirs.Y = append(theirs.X, place), append(theirs.Y, published[i])
			}
			f.Lines = append(f.Lines, mine.within(lows, highs), theirs)
		}
		f.Title += intervalNote("bars", f.Lines, slices.ContainsFunc(rows, func(i int) bool { return workloads[i] > 1 || runs[i] > 1 && workloads[i] != 1 }))
		list = append(list, f)
	}
	return list
}

// join pairs two columns.
func join(a, b []string) []string {
	list := make([]string, len(a))
	for i := range a {
		list[i] = a[i] + "\x00" + b[i]
	}
	return list
}

// varying names the axis whose items published points compare, and the axis along which they go, if there is one.
func (s *Study) varying(rows []int) (lines, along string) {
	for _, axis := range s.axes {
		texts := s.published.text(axis)
		differs := slices.ContainsFunc(rows, func(i int) bool { return texts[i] != texts[rows[0]] })
		switch {
		case !differs:
		case axis == s.compared:
			lines = axis
		default:
			along = axis
		}
	}
	if lines == "" && along == "" {
		return s.compared, ""
	}
	return lines, along
}

// publishedTable lists published figures beside ours.
func (s *Study) publishedTable() grid {
	t := s.published
	g := grid{Caption: "Published figures and ours", Head: append([]string{"figure", "metric"}, append(slices.Clone(s.axes), "runs", "workloads", "published", "ours", "95 % interval of ours", "difference")...)}
	published, _ := t.numbers("published")
	ours, _ := t.numbers("ours")
	difference, _ := t.numbers("difference")
	low, _ := t.numbers("ours_low")
	high, _ := t.numbers("ours_high")
	figure, metric, runs, workloads := t.text("figure"), t.text("metric"), t.text("runs"), t.text("workloads")
	for i := range t.rows {
		texts := []string{figure[i], metric[i]}
		for _, axis := range s.axes {
			texts = append(texts, t.text(axis)[i])
		}
		unit, interval := unitOf(metric[i]), unknownText
		if !math.IsNaN(low[i]) && !math.IsNaN(high[i]) {
			interval = unit.text(low[i]) + " to " + unit.text(high[i])
		}
		g.Rows = append(g.Rows, plain(append(texts, runs[i], cmp.Or(workloads[i], unknownText), unit.text(published[i]), unit.text(ours[i]), interval, signedPercent(difference[i]))...))
	}
	return g
}

// changeFigures draw changes against the baseline with their intervals: over all cells for each metric, and of the first metric
// by the items of each other axis.
func changeFigures(s *Study, list []comparison) []Figure {
	var figures []Figure
	var metrics []string
	for i := range list {
		if !slices.Contains(metrics, list[i].metric) {
			metrics = append(metrics, list[i].metric)
		}
	}
	for k, metric := range metrics {
		all := func(c *comparison) (string, bool) { return "all", c.pooled }
		if f, ok := changeFigure(s, list, metric, "", all); ok {
			figures = append(figures, f)
		}
		if k > 0 {
			continue
		}
		for a, axis := range s.others() {
			by := func(c *comparison) (string, bool) {
				for b, item := range c.where {
					if (item == "all") == (a == b) && len(items(s.runs.text(s.others()[b]))) > 1 {
						return "", false
					}
				}
				return c.where[a], true
			}
			if n := len(items(s.runs.text(axis))); n < 2 || n > mostLines {
				continue
			}
			if f, ok := changeFigure(s, list, metric, axis, by); ok {
				figures = append(figures, f)
			}
		}
	}
	return figures
}

// beside is by how much one of several lines of points is moved from its mark, so that none hides another.
func beside(i, lines int) float64 { return 0.5 * (float64(i) - 0.5*float64(lines-1)) / float64(lines) }

// changeFigure draws the changes that a choice takes, by the line that it puts them on.
func changeFigure(s *Study, list []comparison, metric, by string, choose func(*comparison) (string, bool)) (Figure, bool) {
	f := Figure{Place: placeChanges, Name: fileName("change", metric), Title: "Change of " + metric, XLabel: s.compared, YLabel: "change", X: Plain, Y: Share}
	if by != "" {
		f.Name, f.Title = fileName("change", metric, "by", by), f.Title+" by "+by
	}
	for i := range list {
		c := &list[i]
		label, taken := choose(c)
		if c.metric != metric || !taken || math.IsNaN(c.change) {
			continue
		}
		x := slices.Index(f.Ticks, c.item)
		if x < 0 {
			x = len(f.Ticks)
			f.Ticks = append(f.Ticks, c.item)
		}
		k := slices.IndexFunc(f.Lines, func(l Line) bool { return l.Label == label })
		if k < 0 {
			k = len(f.Lines)
			f.Lines = append(f.Lines, Line{Label: label, Points: true, Colour: k})
		}
		l := &f.Lines[k]
		l.X, l.Y = append(l.X, float64(x)), append(l.Y, c.change)
		l.Low, l.High = append(l.Low, c.low), append(l.High, c.high)
		f.Title = strings.TrimSuffix(f.Title, " against "+c.baseline) + " against " + c.baseline
	}
	for i := range f.Lines {
		if by != "" {
			for k := range f.Lines[i].X {
				f.Lines[i].X[k] += beside(i, len(f.Lines))
			}
		}
	}
	return f, len(f.Lines) > 1 || by == "" && len(f.Lines) > 0
}

// loadFigures draw metrics over the axis load, when it is of numbers: over all workloads, and for each where its loads are several.
func (s *Study) loadFigures() []Figure {
	loads, ok := numeric(items(s.runs.text("load")))
	if !ok || len(loads) < 2 || s.compared == "load" || !s.runs.has("load") {
		return nil
	}
	slices.Sort(loads)
	load, _ := s.runs.numbers("load") // checked above
	item := s.runs.text(s.compared)
	group := func(but string) []string {
		groups := make([]string, s.runs.rows)
		for _, axis := range s.others() {
			if axis == "load" || axis == but {
				continue
			}
			for i, text := range s.runs.text(axis) {
				groups[i] = strings.TrimPrefix(groups[i]+", "+text, ", ")
			}
		}
		return groups
	}
	type way struct {
		groups []string
		suffix string
	}
	ways := []way{{group(""), ""}}
	if slices.Contains(s.others(), "workload") && len(items(s.runs.text("workload"))) > 1 {
		ways = []way{{group("workload"), ", all workloads"}, ways[0]}
	}
	var list []Figure
	for _, w := range ways {
		for _, metric := range studyMetrics {
			values, err := s.runs.numbers(metric)
			if err != nil || !s.runs.has(metric) {
				continue
			}
			for _, g := range items(w.groups) {
				title := strings.TrimSuffix(metric+", "+g, ", ") + w.suffix
				f := Figure{Place: placeLoad, Name: fileName(title), Title: title, XLabel: "load", YLabel: metric, X: Plain, Y: unitOf(metric)}
				several := false
				for _, name := range items(item) {
					mean, low, high := overLoads(loads, load, values, func(i int) bool { return w.groups[i] == g && item[i] == name })
					if !known(mean) || len(f.Lines) == mostLines {
						continue
					}
					several = several || count(mean) > 1
					f.Lines = append(f.Lines, Line{Label: name, Colour: len(f.Lines), X: loads, Y: mean}.within(low, high))
				}
				if several {
					f.Title += intervalNote("bands", f.Lines, false)
					list = append(list, f)
				}
			}
		}
	}
	return list
}

func count(list []float64) (n int) {
	for _, v := range list {
		if !math.IsNaN(v) {
			n++
		}
	}
	return n
}

// usual is the item of an axis that figures of single runs are about: the load 1, or the first.
func (s *Study) usual(axis string) string {
	all := items(s.runs.text(axis))
	if axis == "load" && slices.Contains(all, "1") {
		return "1"
	}
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// chosen are runs by their id, with the item of the compared axis, at the usual items of the other axes; of the axis workload all
// or the usual one, with all replicates or the first.
func (s *Study) chosen(single bool) (runs map[string]string, order []string, where string) {
	runs = map[string]string{}
	id, item, replicate := s.runs.text("run"), s.runs.text(s.compared), s.runs.text("replicate")
	var names []string
	keep := make([]bool, s.runs.rows)
	for i := range keep {
		keep[i] = !single || replicate[i] == cmp.Or(first(replicate), "1")
	}
	for _, axis := range s.others() {
		if axis == "workload" && !single {
			continue
		}
		usual := s.usual(axis)
		if len(items(s.runs.text(axis))) > 1 {
			names = append(names, axis+" "+usual)
		}
		for i, text := range s.runs.text(axis) {
			keep[i] = keep[i] && text == usual
		}
	}
	for i := range keep {
		if !keep[i] || !slices.Contains(order, item[i]) && len(order) == mostLines {
			continue
		}
		if runs[id[i]] == "" || !single { // a run may have two names
			runs[id[i]] = item[i]
		}
		if !slices.Contains(order, item[i]) {
			order = append(order, item[i])
		}
	}
	return runs, order, strings.Join(names, ", ")
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// shapeFigures are distributions over the jobs of all workloads.
func (s *Study) shapeFigures() []Figure {
	runs, order, where := s.chosen(false)
	var list []Figure
	for _, d := range [...]struct{ file, column, title string }{{"jobs", "jct_s", "JCT"}, {"fairness", "rho", "finish-time fairness (rho)"}} {
		values := map[string][]float64{}
		s.rows(d.file, []string{d.column}, func(run string, cells []string) {
			if runs[run] != "" {
				values[runs[run]] = append(values[runs[run]], finite(cells[0]))
			}
		})
		f := Figure{Place: placeShape, Name: fileName(d.column, "cdf"), Title: "CDF of " + d.title + suffix(where), XLabel: d.title, YLabel: "jobs", X: Plain, Y: Share, LogX: true}
		if d.column == "jct_s" {
			f.X = Seconds
		}
		for k, item := range order {
			if all := newDistribution("", "", false, values[item]); len(all.values) > 0 {
				f.Lines = append(f.Lines, cdf(item, k, all))
			}
		}
		if len(f.Lines) > 0 {
			list = append(list, f)
		}
	}
	return list
}

func suffix(where string) string {
	if where == "" {
		return ""
	}
	return "; " + where
}

// mostSteps is how many moments a curve over time of a study keeps.
const mostSteps = 1500

// overFigures are what single runs held over time, and how well.
func (s *Study) overFigures() []Figure {
	runs, order, where := s.chosen(true)
	columns := []string{"at_s", "devices_used", "efficiency", "waiting"}
	series := map[string][4][]float64{}
	s.rows("usage", columns, func(run string, cells []string) {
		item := runs[run]
		if item == "" {
			return
		}
		all := series[item]
		for k, cell := range cells {
			all[k] = append(all[k], finite(cell))
		}
		series[item] = all
	})
	var list []Figure
	for k, title := range [...]string{1: "Devices held", 2: "Statistical efficiency", 3: "Waiting jobs"} {
		if k == 0 {
			continue // the time
		}
		f := Figure{Place: placeOver, Name: fileName(columns[k], "over-time"), Title: title + suffix(where), XLabel: "time", YLabel: columns[k], X: Seconds, Y: Plain}
		if k == 2 {
			f.Y = Share
		}
		for c, item := range order {
			x, y := thinned(series[item][0], series[item][k])
			if known(y) {
				f.Lines = append(f.Lines, Line{Label: item, Colour: c, Step: true, X: x, Y: y})
			}
		}
		if len(f.Lines) > 0 {
			list = append(list, f)
		}
	}
	return list
}

// thinned reads a step function at even steps of time, when it has more than mostSteps.
func thinned(x, y []float64) (at, values []float64) {
	if len(x) <= mostSteps {
		return x, y
	}
	i := 0
	for k := range mostSteps {
		t := x[0] + (x[len(x)-1]-x[0])*float64(k)/float64(mostSteps-1)
		for i+1 < len(x) && x[i+1] <= t {
			i++
		}
		at, values = append(at, t), append(values, y[i])
	}
	return at, values
}

// oneJobFigures follow the job that held devices longest under the first item, under each of them.
func (s *Study) oneJobFigures() []Figure {
	runs, order, where := s.chosen(true)
	stays := map[string]map[string][]period{}
	s.rows("timeline", []string{"job", "start_s", "end_s", "replicas", "batch_per_device", "accumulation_steps"}, func(run string, cells []string) {
		item := runs[run]
		if item == "" {
			return
		}
		var v [6]float64
		for k := 1; k < 6; k++ {
			v[k] = zeroed(finite(cells[k])) // no batch is 0
		}
		if stays[item] == nil {
			stays[item] = map[string][]period{}
		}
		stays[item][cells[0]] = append(stays[item][cells[0]], period{v[1], v[2], v[3], v[3] * v[4] * (v[5] + 1)})
	})
	if len(order) == 0 {
		return nil
	}
	job := longestHeld(stays[order[0]])
	if job == "" {
		return nil
	}
	batches, efficiencies, contentions := map[string]course{}, map[string]course{}, map[string]course{}
	extend := func(of map[string]course, item string, at, value float64) {
		c := of[item]
		c.add(at, value)
		of[item] = c
	}
	s.rows("efficiency", []string{"job", "at_s", "batch", "efficiency"}, func(run string, cells []string) {
		if item := runs[run]; item != "" && cells[0] == job {
			at := finite(cells[1])
			extend(batches, item, at, finite(cells[2]))
			extend(efficiencies, item, at, finite(cells[3]))
		}
	})
	s.rows("usage", []string{"at_s", "running", "waiting", "pending"}, func(run string, cells []string) {
		if item := runs[run]; item != "" {
			extend(contentions, item, finite(cells[0]), finite(cells[1])+finite(cells[2])+finite(cells[3]))
		}
	})
	var lives []life
	for _, item := range order {
		l := newLife(item, stays[item][job])
		l.trained(batches[item], efficiencies[item])
		l.beside(contentions[item])
		lives = append(lives, l)
	}
	return lifeFigures(job, where, lives)
}
