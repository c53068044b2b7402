package study

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gonum.org/v1/gonum/stat"

	"github.com/quartet-sched/quartet/core/stats"
)

// level is that of every interval, but for one that decides how many seeds there are.
const level = 0.95

// MethodOtherJobs is the method of a row that is not compared: the metric is of the jobs that completed, and those are others.
const MethodOtherJobs = "other_jobs"

// Comparison is a row of stats.csv: an item against the baseline in one metric, within items of the other axes.
type Comparison struct {
	Metric       string  // metric, by path
	Items        []int   // of each axis, that of the compared axis among them; -1 for all
	Mean         float64 // mean of the item's runs, in the unit of the metric
	BaselineMean float64 // NaN without a baseline
	Known        bool    // there is a comparison
	stats.Paired
	Holm  float64 // P corrected for several comparisons by Holm's method
	Looks int     // how often the intervals were looked at, with seeds added in between
	Level float64 // of the intervals

	OtherJobs            bool // it is not compared for MethodOtherJobs
	NotCompleted         int  // jobs in the runs of the item
	BaselineNotCompleted int  // jobs in those of the baseline that they are compared with
	LeftOut              int  // workloads with a run that is missing or failed, or whose value is not known: none of their runs counts
}

// unit is a workload and its replicate: what counts as one observation. Where a row pools other axes, such as loads, a unit is
// the mean of the logarithms over them: the same jobs at another load are not another observation.
type unit struct{ workload, replicate int }

// sums are what a unit collects.
type sums struct {
	item, baseline float64 // sums of logarithms; NaN where a value is not positive
	n              int
}

// compare makes the rows of stats.csv: metrics in their order, pooled rows after those of their items.
func (s *Study) compare(rows []Row, jobs jobsOf, looks, workers int) []Comparison {
	var list []Comparison
	for _, metric := range s.Metrics {
		for _, items := range s.selections() {
			list = append(list, Comparison{Metric: metric, Items: items, Looks: looks})
		}
	}
	values := newTable(s, rows, jobs)
	var next sync.Mutex
	at := 0
	var waiting sync.WaitGroup
	for range max(workers, 1) {
		waiting.Go(func() {
			for {
				next.Lock()
				i := at
				at++
				next.Unlock()
				if i >= len(list) {
					return
				}
				at := s.levelOf(list[i].Metric, looks)
				s.fill(&list[i], values, at)
				s.fillWithin(&list[i], values, at)
			}
		})
	}
	waiting.Wait()
	s.correct(list)
	return list
}

// levelOf is the level of the intervals of a metric. One that is looked at again and again needs a higher one.
func (s *Study) levelOf(metric string, look int) float64 {
	u := s.Seeds.Until
	if u == nil || u.Metric != metric {
		return level
	}
	return stats.Looks((u.Most+s.Seeds.Count-1)/s.Seeds.Count, level)[look-1]
}

// selections lists what the rows of a metric are about: each item of the compared axis within each choice of items, or all items,
// of the others. An axis of one item is not pooled.
func (s *Study) selections() [][]int {
	var list [][]int
	choices := make([][]int, len(s.Axes))
	for a := range s.Axes {
		for k := range s.Axes[a].Items {
			if a != s.Compared || k != s.Baseline {
				choices[a] = append(choices[a], k)
			}
		}
		if a != s.Compared && len(s.Axes[a].Items) > 1 {
			choices[a] = append(choices[a], -1)
		}
	}
	items := make([]int, len(s.Axes))
	var choose func(a int)
	choose = func(a int) {
		if a == len(s.Axes) {
			if s.any(items) {
				list = append(list, slices.Clone(items))
			}
			return
		}
		for _, items[a] = range choices[a] {
			choose(a + 1)
		}
	}
	choose(0)
	// The more that is pooled, the later.
	slices.SortStableFunc(list, func(a, b []int) int { return cmp.Compare(pooled(a), pooled(b)) })
	return list
}

func pooled(items []int) (n int) {
	for _, k := range items {
		if k < 0 {
			n++
		}
	}
	return n
}

// table finds the rows of cells.
type table struct {
	workload int            // axis; -1 for none
	cells    map[string]int // index of the first row of a cell, by its items
	rows     []Row
	traces   traces
}

func newTable(s *Study, rows []Row, jobs jobsOf) *table {
	t := &table{workload: s.axis(axisWorkload), cells: map[string]int{}, rows: rows, traces: traces{jobs: jobs}}
	for i := range rows {
		key := cellKey(rows[i].Items)
		if _, known := t.cells[key]; !known {
			t.cells[key] = i
		}
	}
	return t
}

func cellKey(items []int) string {
	var key []byte
	for _, k := range items {
		key = append(strconv.AppendInt(key, int64(k), 10), ' ')
	}
	return string(key)
}

// replicates are the rows of a cell.
func (t *table) replicates(items []int) []Row {
	first, known := t.cells[cellKey(items)]
	if !known {
		return nil
	}
	end := first
	for end < len(t.rows) && slices.Equal(t.rows[end].Items, items) {
		end++
	}
	return t.rows[first:end]
}

func (r *Row) metric(path string) float64 {
	if r.Record == nil {
		return nan
	}
	return valueOfMetric(r.Summary, path)
}

// together is one of PairMetrics in a run and in that of the baseline.
func (t *table) together(run, baseline *Row, metric string) (value, against float64) {
	both := t.traces.ends(run, baseline).values[metric]
	return both[1], both[0]
}

// pair is a run of an item, and the one of the baseline that it is compared with.
type pair struct {
	unit           unit
	run, partner   *Row // partner is nil without a baseline
	value, against float64
}

// ran reports whether the runs of a pair came to figures.
func (p *pair) ran() bool {
	return p.run.came() && (p.partner == nil || p.partner.came())
}

func (r *Row) came() bool { return r.Record != nil && r.Summary != nil }

// pairs lists what a comparison is about, in the order of the tables. What the study has no baseline for is not in it.
func (s *Study) pairs(c *Comparison, t *table) (list []pair) {
	for _, items := range s.within(c.Items) {
		for _, row := range t.replicates(items) {
			p := pair{unit: unit{0, row.Replicate}, run: &row, against: nan}
			if t.workload >= 0 && t.workload != s.Compared {
				p.unit.workload = items[t.workload]
			}
			if s.Baseline >= 0 {
				if p.partner = t.partner(s, &row); p.partner.Run == nil {
					continue
				}
			}
			list = append(list, p)
		}
	}
	return list
}

// measure reads the values of a pair, and reports whether they are known.
func (p *pair) measure(metric string, t *table) bool {
	p.value = p.run.metric(metric)
	if p.partner == nil {
		return !math.IsNaN(p.value)
	}
	if p.against = p.partner.metric(metric); ofPair(metric) {
		p.value, p.against = t.together(p.run, p.partner, metric)
	}
	return !math.IsNaN(p.value) && !math.IsNaN(p.against)
}

// fill compares an item with the baseline, over the units of which every run is there and its value is known: units that cover
// other cells than the rest, such as some of the loads, would move a mean over all.
func (s *Study) fill(c *Comparison, t *table, level float64) {
	c.Mean, c.BaselineMean, c.Holm, c.Level = nan, nan, nan, level
	pairs, out := s.pairs(c, t), map[unit]bool{}
	for i := range pairs {
		if !pairs[i].ran() {
			out[pairs[i].unit] = true
		}
	}
	pairs = slices.DeleteFunc(pairs, func(p pair) bool { return out[p.unit] })
	for i := range pairs {
		p := &pairs[i]
		if p.partner != nil {
			c.countJobs(p.run, p.partner, t) // of those in which none completed, too
		}
		if !p.measure(c.Metric, t) {
			out[p.unit] = true
		}
	}
	units := map[unit]*sums{}
	var order []unit
	var all, baseline []float64
	for i := range pairs {
		p := &pairs[i]
		if out[p.unit] {
			continue
		}
		if s.Baseline >= 0 {
			baseline = append(baseline, p.against)
		}
		all = append(all, p.value)
		if units[p.unit] == nil {
			units[p.unit] = &sums{}
			order = append(order, p.unit)
		}
		u := units[p.unit]
		u.item += logarithm(p.value)
		u.baseline += logarithm(p.against)
		u.n++
	}
	c.N, c.LeftOut = len(order), len(out)
	if len(all) == 0 {
		return
	}
	c.Mean = stat.Mean(all, nil)
	if s.Baseline < 0 {
		return
	}
	c.BaselineMean = stat.Mean(baseline, nil)
	if c.OtherJobs {
		return
	}
	a, b := make([]float64, len(order)), make([]float64, len(order))
	for i, key := range order {
		u := units[key]
		a[i], b[i] = math.Exp(u.item/float64(u.n)), math.Exp(u.baseline/float64(u.n))
	}
	if len(all) == len(order) { // nothing was pooled within a unit
		a, b = all, baseline
	}
	paired, err := compareAt(a, b, level)
	if err != nil {
		return // some value is zero: there is no ratio to it
	}
	c.Paired, c.Known = paired, true
	c.RatioOfMeans = c.Mean/c.BaselineMean - 1
}

// countJobs counts the jobs of a pair of runs that did not complete. A mean over those that did is of other jobs, unless the same ones
// did: a scheduler that never ends its long jobs has the best of means. It did less work as well, so that its GPU time, its restarts
// and its utilization are no others' either. The counts of jobs, deadlines and tiers can be compared, and PairMetrics are made for it.
func (c *Comparison) countJobs(item, baseline *Row, t *table) {
	a, b := item.Summary.Jobs, baseline.Summary.Jobs
	c.NotCompleted += a.Submitted - a.Completed
	c.BaselineNotCompleted += b.Submitted - b.Completed
	if c.OtherJobs || ofPair(c.Metric) || strings.HasPrefix(c.Metric, "jobs.") || strings.HasPrefix(c.Metric, "deadlines.") || strings.HasPrefix(c.Metric, "tiers.") || a.Completed == a.Submitted && b.Completed == b.Submitted {
		return
	}
	a.Submitted, a.Completed, b.Submitted, b.Completed = 0, 0, 0, 0 // loads differ in these
	c.OtherJobs = a != b || a.Unfinished > 0 || !t.traces.ends(item, baseline).same
}

// fillWithin compares the only run of a cell within its trace, where the metric is a mean over jobs.
func (s *Study) fillWithin(c *Comparison, t *table, level float64) {
	if c.N != 1 || c.OtherJobs || pooled(c.Items) > 0 || s.Baseline < 0 || !slices.Contains(OverJobs, c.Metric) {
		return
	}
	for _, row := range t.replicates(c.Items) {
		against := t.partner(s, &row)
		if !row.came() || !against.came() {
			continue
		}
		if paired, ok := t.traces.compare(s, &row, against, level)[c.Metric]; ok {
			paired.N, paired.Wins, paired.Ties = c.N, c.Wins, c.Ties // of workloads
			c.Paired, c.Known = paired, true
		}
		return
	}
}

// logarithm is NaN for what has none.
func logarithm(x float64) float64 {
	if !(x > 0) {
		return nan
	}
	return math.Log(x)
}

// within lists the cells that a selection of items covers, in the order of the tables.
func (s *Study) within(selection []int) (list [][]int) {
	_ = s.cells(func(items []int) error {
		for a, k := range selection {
			if k >= 0 && items[a] != k {
				return nil
			}
		}
		list = append(list, items)
		return nil
	}) // it fails only as the visit does
	return list
}

// partner is the run of the baseline with the same jobs as a run.
func (t *table) partner(s *Study, r *Row) *Row {
	items := slices.Clone(r.Items)
	items[s.Compared] = s.Baseline
	for _, other := range t.replicates(items) {
		if other.Replicate == r.Replicate {
			return &other
		}
	}
	return &Row{}
}

// correct corrects the p of the intervals for the comparisons of a table: those of one metric that pool the same axes.
func (s *Study) correct(list []Comparison) {
	families := map[string][]int{}
	var order []string
	for i := range list {
		if !list[i].Known {
			continue
		}
		key := []byte(list[i].Metric)
		for _, k := range list[i].Items {
			key = strconv.AppendBool(append(key, ' '), k < 0)
		}
		if families[string(key)] == nil {
			order = append(order, string(key))
		}
		families[string(key)] = append(families[string(key)], i)
	}
	for _, key := range order {
		var p []float64
		for _, i := range families[key] {
			p = append(p, list[i].P)
		}
		for k, adjusted := range stats.Holm(p) {
			list[families[key][k]].Holm = adjusted
		}
	}
}

// compareAt is stats.Compare, and without intervals at a level that rounds to 1: the first of many looks has such.
func compareAt(a, b []float64, at float64) (stats.Paired, error) {
	if at < 1 {
		return stats.Compare(a, b, at)
	}
	p, err := stats.Compare(a, b, level)
	p.Method, p.P = stats.MethodValues, nan
	p.T, p.Percentile, p.BCa, p.Expanded, p.Unpaired = stats.Unknown(), stats.Unknown(), stats.Unknown(), stats.Unknown(), stats.Unknown()
	return p, err
}

// narrow reports whether every change within items of all axes has an interval as narrow as was asked for, and whether every
// one has an interval at all. What is not known is not narrow.
func (s *Study) narrow(r *Result, jobs jobsOf, look int) (narrow, known bool) {
	u := s.Seeds.Until
	values := newTable(s, r.Rows, jobs)
	level := s.levelOf(u.Metric, look)
	narrow, known = true, true
	for _, items := range s.selections() {
		c := Comparison{Metric: u.Metric, Items: items}
		if pooled(items) > 0 || s.windowed(items) {
			continue
		}
		s.fill(&c, values, level)
		known = known && c.Known && c.T.Known()
		narrow = narrow && c.Known && c.T.Width()/2 <= u.share
	}
	return narrow, known
}

// onlyWindows reports whether no workload is replicated by seeds.
func (s *Study) onlyWindows() bool {
	a := s.axis(axisWorkload)
	return a >= 0 && !slices.ContainsFunc(s.Axes[a].Items, func(i Item) bool { return i.Windows == nil })
}

// windowed reports whether the replicates of a cell are windows, of which there are no more.
func (s *Study) windowed(items []int) bool {
	for a, k := range items {
		if k >= 0 && s.Axes[a].Items[k].Windows != nil {
			return true
		}
	}
	return false
}

// statsTable has a row for each comparison.
func (r *Result) statsTable() [][]string {
	s := r.Study
	header := []string{"metric"}
	for a, name := range s.axisNames() {
		if a != s.Compared {
			header = append(header, name)
		}
	}
	header = append(header, s.Axes[s.Compared].Name, "baseline", "n", "mean", "baseline_mean", "change", "t_low", "t_high", "bca_low", "bca_high",
		"ratio_of_means", "wins", "ties", "wilcoxon_p", "holm_p", "looks", "method", "not_completed", "baseline_not_completed", "interval_p", "level", "left_out")
	table := [][]string{header}
	baseline := ""
	if s.Baseline >= 0 {
		baseline = s.Axes[s.Compared].Items[s.Baseline].Name
	}
	for i := range r.Stats {
		c := &r.Stats[i]
		names := s.itemNames(c.Items)
		row := []string{c.Metric}
		row = append(row, slices.Concat(names[:s.Compared], names[s.Compared+1:])...)
		row = append(row, names[s.Compared], baseline, strconv.Itoa(c.N), decimal(c.Mean), decimal(c.BaselineMean))
		if c.Known {
			row = append(row, decimal(c.Change), decimal(c.Interval().Low), decimal(c.Interval().High), decimal(c.BCa.Low), decimal(c.BCa.High), decimal(c.RatioOfMeans),
				strconv.Itoa(c.Wins), strconv.Itoa(c.Ties), decimal(c.Wilcoxon), decimal(c.Holm), strconv.Itoa(c.Looks), c.Method)
		} else {
			method := stats.MethodValues
			if c.OtherJobs {
				method = MethodOtherJobs
			}
			row = append(row, "", "", "", "", "", "", "", "", "", "", strconv.Itoa(c.Looks), method)
		}
		if s.Baseline >= 0 {
			row = append(row, strconv.Itoa(c.NotCompleted), strconv.Itoa(c.BaselineNotCompleted))
		} else {
			row = append(row, "", "")
		}
		p, at := nan, nan
		if c.Known {
			p = c.P
		}
		if c.Known && c.Interval().Known() {
			at = c.Level
		}
		row = append(row, decimal(p), decimal(at), strconv.Itoa(c.LeftOut))
		table = append(table, row)
	}
	return table
}
