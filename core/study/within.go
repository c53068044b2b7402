package study

import (
	"math"
	"slices"
	"sync"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
)

// OverJobs lists the metrics that are means over jobs, or such up to a factor.
var OverJobs = []string{"jct_seconds.mean", "queueing_seconds.mean", "restarts.mean", "gpu_hours"}

// SameJobs reports whether two runs had the same jobs, each in the same row.
func SameJobs(a, b []metrics.Job) bool {
	return slices.EqualFunc(a, b, func(a, b metrics.Job) bool {
		return a.ID == b.ID && a.Name == b.Name && a.Application == b.Application && a.SubmitSeconds == b.SubmitSeconds
	})
}

// Within compares a metric that is a mean over jobs within the one trace of two runs of the same jobs. It is not ok for another
// metric, where the summaries are of other jobs in one of the runs, and where there is no ratio.
func Within(metric string, jobs, baseline []metrics.Job, summary, against *metrics.Summary, level float64) (paired stats.Paired, ok bool) {
	a, b := jobValues(metric, jobs, baseline, summary.Measured)
	if len(a) == 0 {
		return stats.Paired{}, false
	}
	paired, err := stats.CompareWithin(a, b, 0, level)
	if err != nil || math.IsNaN(paired.Change) {
		return stats.Paired{}, false
	}
	ratio := valueOfMetric(summary, metric) / valueOfMetric(against, metric)
	return paired, math.Abs(paired.Change+1-ratio) <= 1e-9*math.Abs(ratio)
}

// jobValues has the values of each job that a metric is a mean over; nil where it is over other jobs in one of two runs.
func jobValues(metric string, jobs, baseline []metrics.Job, window *metrics.Window) (a, b []float64) {
	var of func(j *metrics.Job) metrics.Number
	measured := window
	switch metric {
	case "jct_seconds.mean":
		of = func(j *metrics.Job) metrics.Number { return j.JCTSeconds }
	case "queueing_seconds.mean":
		of = func(j *metrics.Job) metrics.Number { return j.QueueingSeconds }
	case "restarts.mean":
		of = func(j *metrics.Job) metrics.Number {
			if !j.QueueingSeconds.Known() { // it never started
				return metrics.Number(nan)
			}
			return metrics.Number(j.Restarts)
		}
	case "gpu_hours":
		of = func(j *metrics.Job) metrics.Number { return metrics.Number(j.GPUSeconds) }
		measured = nil // it is of all jobs
	default:
		return nil, nil
	}
	for i := range jobs {
		if measured != nil && !measured.Holds(jobs[i].ID) {
			continue
		}
		x, y := of(&jobs[i]), of(&baseline[i])
		if x.Known() != y.Known() {
			return nil, nil
		}
		if x.Known() {
			a, b = append(a, float64(x)), append(b, float64(y))
		}
	}
	return a, b
}

// traces compares cells of one workload within its trace, each cell once at a level.
type traces struct {
	kept  *store
	mutex sync.Mutex
	cells map[traceKey]func() map[string]stats.Paired // by metric
}

// traceKey is two runs by their hashes, and the level of their intervals: metrics may differ in it.
type traceKey struct {
	run, baseline string
	level         float64
}

// compare compares two runs in all metrics over jobs that a study has.
func (t *traces) compare(s *Study, run, baseline *Row, level float64) map[string]stats.Paired {
	t.mutex.Lock()
	if t.cells == nil {
		t.cells = map[traceKey]func() map[string]stats.Paired{}
	}
	key := traceKey{run.Run.Hash, baseline.Run.Hash, level}
	compared := t.cells[key]
	if compared == nil {
		compared = sync.OnceValue(func() map[string]stats.Paired {
			jobs, err := t.kept.jobs(run.Run.Hash)
			against, errAgainst := t.kept.jobs(baseline.Run.Hash)
			if err != nil || errAgainst != nil || !SameJobs(jobs, against) {
				return nil // the values alone are told
			}
			found := map[string]stats.Paired{}
			for _, metric := range s.Metrics {
				if paired, ok := Within(metric, jobs, against, run.Summary, baseline.Summary, level); ok && paired.Interval().Known() {
					found[metric] = paired
				}
			}
			return found
		})
		t.cells[key] = compared
	}
	t.mutex.Unlock()
	return compared()
}
