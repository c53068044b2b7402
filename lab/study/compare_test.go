package study

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
)

// pairs is a study of two schedulers over so many seeds, with rows whose summaries are given by scheduler and replicate.
func pairs(t *testing.T, seeds, metric string, n int, summary func(scheduler, replicate int) *metrics.Summary) (*Study, []Row) {
	t.Helper()
	s, err := Parse("s.yaml", "s", []byte("version: 1\naxes: {scheduler: [fifo, las]}\nseeds: "+seeds+"\nbaseline: {scheduler: fifo}\nmetrics: ["+metric+"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	for scheduler := range 2 {
		for replicate := 1; replicate <= n; replicate++ {
			rows = append(rows, Row{&Run{Items: []int{scheduler}, Replicate: replicate, Hash: fmt.Sprint(scheduler, replicate)}, &Record{Outcome: Completed, Summary: summary(scheduler, replicate)}})
		}
	}
	return s, rows
}

// A scheduler that never ends its long jobs has short completion times, and wins nothing by it.
func TestOtherJobsAreNotCompared(t *testing.T) {
	all := metrics.JobCounts{Submitted: 10, Completed: 10}
	for name, tc := range map[string]struct {
		metric       string
		fifo, las    metrics.JobCounts
		other        bool
		left, inFIFO int
	}{
		"all complete":       {"jct_seconds.mean", all, all, false, 0, 0},
		"some never end":     {"jct_seconds.mean", all, metrics.JobCounts{Submitted: 10, Completed: 7, Unfinished: 3}, true, 15, 0},
		"none ends":          {"jct_seconds.mean", all, metrics.JobCounts{Submitted: 10, Unfinished: 10}, true, 50, 0},
		"in the baseline":    {"makespan_seconds", metrics.JobCounts{Submitted: 10, Completed: 9, Unfinished: 1}, all, true, 0, 5},
		"in both":            {"fairness.rho_mean", metrics.JobCounts{Submitted: 10, Completed: 9, Unfinished: 1}, metrics.JobCounts{Submitted: 10, Completed: 9, Unfinished: 1}, true, 5, 5},
		"rejected by one":    {"queueing_seconds.p99", all, metrics.JobCounts{Submitted: 10, Completed: 8, Rejected: 2}, true, 10, 0},
		"rejected by both":   {"jct_seconds.mean", metrics.JobCounts{Submitted: 10, Completed: 8, Rejected: 2}, metrics.JobCounts{Submitted: 10, Completed: 8, Rejected: 2}, false, 10, 10},
		"more were sent":     {"jct_seconds.mean", all, metrics.JobCounts{Submitted: 20, Completed: 20}, false, 0, 0},
		"less work was done": {"gpu_hours", all, metrics.JobCounts{Submitted: 10, Completed: 7, Unfinished: 3}, true, 15, 0},
		"others failed":      {"restarts.mean", metrics.JobCounts{Submitted: 10, Completed: 8, Failed: 2}, metrics.JobCounts{Submitted: 10, Completed: 8, Failed: 2}, true, 10, 10},
		"counts of jobs":     {"jobs.completed", all, metrics.JobCounts{Submitted: 10, Completed: 7, Unfinished: 3}, false, 15, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, rows := pairs(t, "{count: 5}", tc.metric, 5, func(scheduler, replicate int) *metrics.Summary {
				x := metrics.Number(100*(2-scheduler) + replicate)
				if name == "none ends" && scheduler == 1 {
					x = metrics.Number(nan)
				}
				of := metrics.Distribution{Mean: x, P99: x}
				return &metrics.Summary{
					Jobs: []metrics.JobCounts{tc.fifo, tc.las}[scheduler], JCTSeconds: of, QueueingSeconds: of, MakespanSeconds: x, GPUHours: x,
					Fairness: metrics.Fairness{RhoMean: x}, Restarts: metrics.Restarts{Mean: x},
				}
			})
			// The last jobs do not complete; where others failed, the first ones of las.
			jobs := func(hash string) ([]metrics.Job, error) {
				list := make([]metrics.Job, 10)
				for i := range list {
					list[i] = metrics.Job{ID: core.JobID(i), Outcome: "failed"}
					switch las := strings.HasPrefix(hash, "1"); {
					case !las && i < tc.fifo.Completed, las && name != "others failed" && i < tc.las.Completed, las && name == "others failed" && i >= 10-tc.las.Completed:
						list[i].Outcome = completed
					}
				}
				return list, nil
			}
			r := &Result{Study: s, Rows: rows, Stats: s.compare(rows, jobs, 1, 1)}
			c := r.Stats[0]
			if c.OtherJobs != tc.other || c.Known == tc.other || c.NotCompleted != tc.left || c.BaselineNotCompleted != tc.inFIFO {
				t.Errorf("other jobs %v, known %v, %d and %d not completed; want %v, %v, %d, %d", c.OtherJobs, c.Known, c.NotCompleted, c.BaselineNotCompleted, tc.other, !tc.other, tc.left, tc.inFIFO)
			}
			table := r.statsTable()
			at := slices.Index(table[0], "method")
			if got := table[1][at] == MethodOtherJobs; got != tc.other || tc.other && strings.Join(table[1][at-11:at-1], "") != "" {
				t.Errorf("row %q", table[1])
			}
		})
	}
}

// An interval that is not known is not narrow.
func TestOnlyKnownIntervalsAreNarrow(t *testing.T) {
	jobs := metrics.JobCounts{Submitted: 10, Completed: 10}
	for name, tc := range map[string]struct {
		most          string
		look, n       int
		las           func(replicate int) metrics.Number
		jobs          metrics.JobCounts
		narrow, known bool
	}{
		"narrow":                 {"20", 1, 5, func(i int) metrics.Number { return metrics.Number(80 + i) }, jobs, true, true},
		"wide":                   {"20", 1, 5, func(i int) metrics.Number { return metrics.Number(1 + 100*(i%2)) }, jobs, false, true},
		"a zero":                 {"20", 1, 5, func(i int) metrics.Number { return metrics.Number(i - 1) }, jobs, false, false},
		"the first of 20 looks":  {"100", 1, 5, func(i int) metrics.Number { return metrics.Number(80 + i) }, jobs, false, false},
		"the second of 20 looks": {"100", 2, 10, func(i int) metrics.Number { return metrics.Number(80 + i) }, jobs, true, true},
		"too few":                {"20", 1, 4, func(i int) metrics.Number { return metrics.Number(80 + i) }, jobs, false, false},
		"other jobs": {
			"20", 1, 5, func(i int) metrics.Number { return metrics.Number(80 + i) },
			metrics.JobCounts{Submitted: 10, Completed: 9, Unfinished: 1},
			false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, rows := pairs(t, "{count: 5, until: {metric: jct_seconds.mean, half_width: 30%, most: "+tc.most+"}}", "jct_seconds.mean", tc.n,
				func(scheduler, replicate int) *metrics.Summary {
					if scheduler == 0 {
						return &metrics.Summary{Jobs: jobs, JCTSeconds: metrics.Distribution{Mean: metrics.Number(100 + replicate)}}
					}
					return &metrics.Summary{Jobs: tc.jobs, JCTSeconds: metrics.Distribution{Mean: tc.las(replicate)}}
				})
			r := &Result{Study: s, Rows: rows}
			if narrow, known := s.narrow(r, nil, tc.look); narrow != tc.narrow || known != tc.known {
				t.Errorf("narrow %v, known %v; want %v, %v", narrow, known, tc.narrow, tc.known)
			}
			if c := s.compare(rows, nil, tc.look, 1)[0]; c.Known && c.Change != c.Change {
				t.Errorf("no change at any level: %+v", c)
			}
		})
	}
}

// An interval is narrow when half of it is at most as wide as was asked for.
func TestHalfWidths(t *testing.T) {
	s, rows := pairs(t, "{count: 5, until: {metric: jct_seconds.mean, half_width: 30%, most: 20}}", "jct_seconds.mean", 5, func(scheduler, replicate int) *metrics.Summary {
		x := metrics.Number(100 + replicate*(1+2*scheduler))
		return &metrics.Summary{Jobs: metrics.JobCounts{Submitted: 10, Completed: 10}, JCTSeconds: metrics.Distribution{Mean: x}}
	})
	interval := s.compare(rows, nil, 1, 1)[0].T
	half := interval.Width() / 2
	if !(half > 0.001) {
		t.Fatalf("the interval is %+v", interval)
	}
	for name, tc := range map[string]struct {
		asked float64
		want  bool
	}{
		"half as wide":         {half / 2, false},
		"a little less":        {half * 0.99, false},
		"just as wide":         {half, true},
		"a little more":        {half * 1.01, true},
		"as the whole of them": {2 * half, true},
	} {
		s.Seeds.Until.share = tc.asked
		if narrow, known := s.narrow(&Result{Study: s, Rows: rows}, nil, 1); narrow != tc.want || !known {
			t.Errorf("%s: narrow %v, known %v; want %v", name, narrow, known, tc.want)
		}
	}
}

// Of five seeds no signed rank test comes below 0.06; the p that is corrected is that of the interval.
func TestHolmIsOfTheInterval(t *testing.T) {
	s, rows := pairs(t, "{count: 5, until: {metric: jct_seconds.mean, half_width: 30%, most: 10}}", "jct_seconds.mean, gpu_hours", 10, func(scheduler, replicate int) *metrics.Summary {
		x := metrics.Number((100 + replicate%3) * (2 - scheduler))
		return &metrics.Summary{JCTSeconds: metrics.Distribution{Mean: x}, GPUHours: x}
	})
	rows = slices.DeleteFunc(rows, func(r Row) bool { return r.Replicate > 5 })
	r := &Result{Study: s, Rows: rows, Stats: s.compare(rows, nil, 1, 1)}
	table := r.statsTable()
	at := func(row int, column string) string { return table[row][slices.Index(table[0], column)] }
	for i := range r.Stats {
		c := &r.Stats[i]
		if !(c.Wilcoxon > 0.05) || !(c.P < 0.001) || c.Holm != c.P || at(i+1, "holm_p") != decimal(c.Holm) || at(i+1, "interval_p") != decimal(c.P) {
			t.Errorf("%s: Wilcoxon's p %v, p %v, after Holm %v", c.Metric, c.Wilcoxon, c.P, c.Holm)
		}
	}
	if first, second := at(1, "level"), at(2, "level"); first != decimal(s.levelOf("jct_seconds.mean", 1)) || first == "0.95" || second != "0.95" {
		t.Errorf("levels %s and %s; want that of the first look, and 0.95", first, second)
	}
}

// Jobs that do not end are counted up to the horizon for which the jobs of both runs were watched.
func TestMeansOfTwoRuns(t *testing.T) {
	s, rows := pairs(t, "{count: 5}", "jct_seconds.restricted_mean, jct_seconds.common_mean, jct_seconds.mean", 5, func(scheduler, replicate int) *metrics.Summary {
		if scheduler == 0 {
			return &metrics.Summary{Jobs: metrics.JobCounts{Submitted: 3, Completed: 3}, JCTSeconds: metrics.Distribution{Mean: metrics.Number(200 + replicate)}, MakespanSeconds: 600}
		}
		if replicate == 5 { // here all jobs end
			return &metrics.Summary{Jobs: metrics.JobCounts{Submitted: 3, Completed: 3}, JCTSeconds: metrics.Distribution{Mean: 100}, MakespanSeconds: 600}
		}
		return &metrics.Summary{Jobs: metrics.JobCounts{Submitted: 3, Completed: 2, Unfinished: 1}, JCTSeconds: metrics.Distribution{Mean: 75}, MakespanSeconds: 900}
	})
	jobs := func(hash string) ([]metrics.Job, error) {
		var list []metrics.Job
		for i, jct := range []metrics.Number{100, 200, 300} {
			j := metrics.Job{ID: core.JobID(i), Outcome: completed, JCTSeconds: jct, FinishSeconds: jct}
			if strings.HasPrefix(hash, "1") {
				j.JCTSeconds /= 2
				if i == 2 && hash != "1 5" {
					j.Outcome, j.JCTSeconds, j.FinishSeconds = "unfinished", metrics.Number(nan), metrics.Number(nan)
				}
			}
			list = append(list, j)
		}
		return list, nil
	}
	got := s.compare(rows, jobs, 1, 1)
	// fifo was watched for 300 s and las for 900 s; in the last run all jobs ended, so that it is the mean itself.
	restricted, common, plain := got[0], got[1], got[2]
	if want := (4*200. + 205) / 5; restricted.BaselineMean != want {
		t.Errorf("restricted mean of the baseline %v, want %v", restricted.BaselineMean, want)
	}
	if want := (4*(50+100+300)/3. + 100) / 5; restricted.Mean != want || restricted.OtherJobs || !restricted.T.Known() {
		t.Errorf("restricted mean %+v, want %v", restricted, want)
	}
	if want := (4*75. + 100) / 5; common.Mean != want || common.BaselineMean != (4*150.+200)/5 || !common.T.Known() {
		t.Errorf("common mean %+v, want %v", common, want)
	}
	if !plain.OtherJobs || plain.Known {
		t.Errorf("mean %+v, want none", plain)
	}
	for name, unknown := range map[string]jobsOf{
		"no jobs": nil, "other jobs": func(hash string) ([]metrics.Job, error) { return []metrics.Job{{Name: hash}}, nil },
		"broken": func(string) ([]metrics.Job, error) { return nil, errors.New("broken") },
	} {
		for _, c := range s.compare(rows, unknown, 1, 1)[:2] {
			if c.Known || c.N != 0 {
				t.Errorf("%s: %+v, want nothing known", name, c)
			}
		}
	}
}

// Runs of one workload at several loads and settings are one observation of a published figure.
func TestPublishedFiguresCountWorkloads(t *testing.T) {
	s, err := Parse("s.yaml", "s", []byte(`version: 1
axes:
  scheduler: [fifo, las]
  load: [1, 2]
  setting: [{name: a}, {name: b, with: {load: "1"}}]
  workload: [{name: one}, {name: two, with: {load: "1"}}]
seeds: {count: 3}
published:
  - {figure: T, metric: jct_seconds.mean, at: {scheduler: fifo}, value: 10}
  - {figure: T, metric: jct_seconds.mean, at: {scheduler: fifo, load: "1", setting: a, workload: one}, value: 10}
  - {figure: T, metric: jct_seconds.mean, at: {scheduler: las}, value: 10}
`))
	if err != nil {
		t.Fatal(err)
	}
	var rows []Row
	_ = s.cells(func(items []int) error {
		for replicate := 1; replicate <= 3; replicate++ {
			// 1, 2 and 3 of the first workload and 4, 5 and 6 of the second; loads and settings move each run, not its mean.
			value := float64(3*items[3]+replicate) + []float64{-10, 5, 20}[2*items[1]+items[2]]
			if items[3] == 0 {
				value -= 5
			} else {
				value += 2.5
			}
			rows = append(rows, Row{&Run{Items: items, Replicate: replicate}, &Record{Summary: &metrics.Summary{JCTSeconds: metrics.Distribution{Mean: metrics.Number(value)}}}})
		}
		return nil
	})
	rows[len(rows)-1].Record = nil // of las
	r := Result{Study: s, Rows: rows}
	want := []struct {
		mean            float64
		values          []float64
		runs, workloads int
	}{{3.5, []float64{1, 2, 3, 4, 5, 6}, 15, 6}, {-13, []float64{-14, -13, -12}, 3, 3}, {nan, nil, 15, 6}}
	for i, row := range r.publishedTable()[1:] {
		tail := row[len(row)-7:]
		between := stats.T(want[i].values, 0.95)
		got := []string{tail[0], tail[6], tail[2], tail[4], tail[5]}
		if diff := cmp.Diff([]string{strconv.Itoa(want[i].runs), strconv.Itoa(want[i].workloads), decimal(want[i].mean), decimal(between.Low), decimal(between.High)}, got); diff != "" {
			t.Errorf("row %d: runs, workloads, ours and its ends (-want +got):\n%s", i, diff)
		}
	}
}

// A workload of which a run is missing enters no row that pools it: the others alone cover all cells.
func TestPooledRowsAreOfWholeWorkloads(t *testing.T) {
	for name, tc := range map[string]struct {
		gone           func(scheduler, workload, load, replicate int) bool
		unknown        bool    // what is gone was run, and has no value
		n, left        int     // of the row over all
		mean, baseline float64 // of that row
		loads          [2]int  // n of each load, all workloads
	}{
		"whole":                  {gone: func(int, int, int, int) bool { return false }, n: 6, mean: 110, baseline: 220, loads: [2]int{6, 6}},
		"a run of the item":      {gone: func(s, w, l, r int) bool { return s == 1 && w == 0 && l == 1 && r == 2 }, n: 5, left: 1, mean: 110, baseline: 220, loads: [2]int{6, 5}},
		"a run of the baseline":  {gone: func(s, w, l, r int) bool { return s == 0 && w == 1 && l == 0 && r == 1 }, n: 5, left: 1, mean: 110, baseline: 220, loads: [2]int{5, 6}},
		"no value":               {gone: func(s, w, l, r int) bool { return s == 0 && w == 1 && l == 0 && r == 1 }, unknown: true, n: 5, left: 1, mean: 110, baseline: 220, loads: [2]int{5, 6}},
		"one load of a workload": {gone: func(_, w, l, _ int) bool { return w == 0 && l == 1 }, n: 3, left: 3, mean: 110, baseline: 220, loads: [2]int{6, 3}},
		"one load":               {gone: func(_, _, l, _ int) bool { return l == 1 }, n: 0, left: 6, mean: nan, baseline: nan, loads: [2]int{6, 0}},
		"all":                    {gone: func(int, int, int, int) bool { return true }, n: 0, left: 6, mean: nan, baseline: nan},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse("s.yaml", "s", []byte("version: 1\naxes:\n  scheduler: [fifo, las]\n  workload: [{name: one}, {name: two}]\n  load: [1, 2]\n"+
				"seeds: {count: 3}\nbaseline: {scheduler: fifo}\nmetrics: [jct_seconds.mean]\n"))
			if err != nil {
				t.Fatal(err)
			}
			var rows []Row
			_ = s.cells(func(items []int) error {
				for replicate := 1; replicate <= 3; replicate++ {
					// The second load takes ten times as long: to lack one moves the mean.
					value := metrics.Number([]float64{20, 200}[items[2]] * []float64{2, 1}[items[0]])
					row := Row{&Run{Items: items, Replicate: replicate}, &Record{Outcome: Completed, Summary: &metrics.Summary{JCTSeconds: metrics.Distribution{Mean: value}}}}
					switch gone := tc.gone(items[0], items[1], items[2], replicate); {
					case gone && tc.unknown:
						row.Summary.JCTSeconds.Mean = metrics.Number(nan)
					case gone && replicate%2 == 0:
						row.Record = nil
					case gone:
						row.Record = &Record{Outcome: Failed}
					}
					rows = append(rows, row)
				}
				return nil
			})
			r := &Result{Study: s, Rows: rows, Stats: s.compare(rows, nil, 1, 1)}
			for i := range r.Stats {
				c := &r.Stats[i]
				if c.Items[1] >= 0 {
					continue
				}
				if c.Items[2] >= 0 {
					if c.N != tc.loads[c.Items[2]] || c.N+c.LeftOut != 6 {
						t.Errorf("load %d: %d workloads and %d left out, want %d of 6", c.Items[2]+1, c.N, c.LeftOut, tc.loads[c.Items[2]])
					}
					continue
				}
				if got := []string{strconv.Itoa(c.N), strconv.Itoa(c.LeftOut), decimal(c.Mean), decimal(c.BaselineMean)}; !slices.Equal(got, []string{strconv.Itoa(tc.n), strconv.Itoa(tc.left), decimal(tc.mean), decimal(tc.baseline)}) {
					t.Errorf("n, left out and means are %q, want %d, %d, %v, %v", got, tc.n, tc.left, tc.mean, tc.baseline)
				}
			}
			if head, last := r.statsTable()[0], r.statsTable()[len(r.Stats)]; head[len(head)-1] != "left_out" || last[len(last)-1] != strconv.Itoa(tc.left) {
				t.Errorf("row %q", last)
			}
		})
	}
}

// What is never below 0 has no interval that is.
func TestPublishedIntervalsEndAtZero(t *testing.T) {
	s, err := Parse("s.yaml", "s", []byte(`version: 1
axes: {scheduler: [fifo]}
seeds: {count: 2}
published: [{figure: T, metric: jct_seconds.mean, at: {scheduler: fifo}, value: 10}]
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		values   [2]float64
		low, far bool // the interval ends at 0, or goes on below
	}{
		"far apart":   {[2]float64{1, 9}, true, false},
		"close":       {[2]float64{100, 101}, false, false},
		"one below 0": {[2]float64{-1, 9}, false, true},
	} {
		var rows []Row
		for i, v := range tc.values {
			rows = append(rows, Row{&Run{Items: []int{0}, Replicate: i + 1}, &Record{Summary: &metrics.Summary{JCTSeconds: metrics.Distribution{Mean: metrics.Number(v)}}}})
		}
		if _, of, _, _ := s.Points[0].ours(s, rows); (of.Low == 0) != tc.low || (of.Low < 0) != tc.far {
			t.Errorf("%s: the interval begins at %v", name, of.Low)
		}
	}
}
