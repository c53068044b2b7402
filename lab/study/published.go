package study

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/quartet-sched/quartet/core/stats"
)

// Published is a figure of a publication, which the page of the study shows beside ours.
type Published struct {
	Figure string  // such as "Table 2"
	Metric string  // of the summary
	At     []Only  // one item of each axis that it is about; of others the mean over the workloads
	Value  float64 // in the unit of the metric
}

type publishedForm struct {
	Figure string         `config:"figure" doc:"table or figure of the publication that it is from" required:"true"`
	Metric string         `config:"metric" doc:"number of summary.json that it is" required:"true"`
	At     map[string]any `config:"at" doc:"items that it is about, by axis; the mean over the workloads, each over the items of other axes"`
	Value  string         `config:"value" doc:"number in the unit of the metric, or a duration where that is seconds" required:"true"`
}

// write checks which files are kept.
func (r *reader) write(s *Study, names []string) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			r.add(fmt.Sprintf("write[%d]", i), fmt.Sprintf("%q is named twice", name), "")
		}
	}
	s.Write = names
}

// published reads the published figures.
func (r *reader) published(s *Study, list []map[string]any) {
	for i, fields := range list {
		path := fmt.Sprintf("published[%d]", i)
		rest := maps.Clone(fields)
		if value, given := fields["value"]; given {
			rest["value"] = fmt.Sprint(value) // a number or a duration
		}
		var f publishedForm
		if !r.decode(&f, rest, path) {
			continue
		}
		r.checkMetric(path+".metric", f.Metric)
		p := Published{Figure: f.Figure, Metric: f.Metric, At: r.only(s, path+".at", f.At)}
		for _, o := range p.At {
			if len(o.Items) > 1 {
				r.add(path+".at."+s.Axes[o.Axis].Name, "names more than one item", "name one, or leave the axis out for the mean over all")
			}
		}
		var ok bool
		if p.Value, ok = pointValue(f.Metric, f.Value); !ok {
			hint := "write a number"
			if isSeconds(f.Metric) {
				hint = "write seconds, or a duration such as 1.2h"
			}
			r.add(path+".value", fmt.Sprintf("%q is no value of %s", f.Value, f.Metric), hint)
		}
		s.Points = append(s.Points, p)
	}
}

func isSeconds(metric string) bool { return strings.Contains(metric, "seconds") }

// pointValue reads a number or, of a metric in seconds, a duration.
func pointValue(metric, text string) (float64, bool) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	d, err := time.ParseDuration(text)
	return d.Seconds(), err == nil && isSeconds(metric)
}

// covers reports whether a figure is about a cell.
func (p *Published) covers(items []int) bool {
	return !slices.ContainsFunc(p.At, func(o Only) bool { return !slices.Contains(o.Items, items[o.Axis]) })
}

// pointLevel is that of the intervals of ours.
const pointLevel = .95

// ours is the mean over the workloads that a published figure is about, each the mean over its runs, with the interval of Student over
// the workloads, which ends at 0 where no value is below, and the numbers of runs and of workloads. It is unknown while one of the runs is; so is the interval of one workload.
func (p *Published) ours(s *Study, rows []Row) (mean float64, of stats.Interval, runs, workloads int) {
	axis := s.axis(axisWorkload)
	values := map[unit][]float64{}
	var order []unit
	for i := range rows {
		if !p.covers(rows[i].Items) {
			continue
		}
		key := unit{0, rows[i].Replicate}
		if axis >= 0 {
			key.workload = rows[i].Items[axis]
		}
		if values[key] == nil {
			order = append(order, key)
		}
		values[key] = append(values[key], rows[i].metric(p.Metric))
		runs++
	}
	means := make([]float64, len(order))
	for i, key := range order {
		means[i] = stat.Mean(values[key], nil)
	}
	of = stats.T(means, pointLevel)
	if len(means) > 0 && slices.Min(means) >= 0 {
		of.Low = math.Max(of.Low, 0) // times, counts and ratios are never below
	}
	return stat.Mean(means, nil), of, runs, len(order)
}

// publishedTable has a row for each published figure, with ours beside it.
func (r *Result) publishedTable() [][]string {
	header := append([]string{"figure", "metric"}, r.Study.axisNames()...)
	table := [][]string{append(header, "runs", "published", "ours", "difference", "ours_low", "ours_high", "workloads")}
	for i := range r.Study.Points {
		p := &r.Study.Points[i]
		items := r.Study.whole()
		for _, o := range p.At {
			items[o.Axis] = o.Items[0]
		}
		ours, interval, runs, workloads := p.ours(r.Study, r.Rows)
		row := append([]string{p.Figure, p.Metric}, r.Study.itemNames(items)...)
		table = append(table, append(row, strconv.Itoa(runs), decimal(p.Value), decimal(ours), decimal(ours/p.Value-1),
			decimal(interval.Low), decimal(interval.High), strconv.Itoa(workloads)))
	}
	return table
}
