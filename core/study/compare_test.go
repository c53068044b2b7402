package study

import (
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core/metrics"
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
			rows = append(rows, Row{&Run{Items: []int{scheduler}, Replicate: replicate}, &Record{Outcome: Completed, Summary: summary(scheduler, replicate)}})
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
		"not of those alone": {"gpu_hours", all, metrics.JobCounts{Submitted: 10, Completed: 7, Unfinished: 3}, false, 15, 0},
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
					Fairness: metrics.Fairness{RhoMean: x},
				}
			})
			r := &Result{Study: s, Rows: rows, Stats: s.compare(rows, nil, 1, 1)}
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
