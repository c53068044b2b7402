package study

import (
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/stats"
)

// OverJobs lists the metrics that are means over jobs, or such up to a factor.
var OverJobs = []string{"jct_seconds.mean", "queueing_seconds.mean", "restarts.mean", "gpu_hours", CommonMean}

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
	if metric == CommonMean {
		return paired, true
	}
	ratio := valueOfMetric(summary, metric) / valueOfMetric(against, metric)
	return paired, math.Abs(paired.Change+1-ratio) <= 1e-9*math.Abs(ratio)
}

// jobValues has the values of each job that a metric is a mean over; nil where it is over other jobs in one of two runs.
func jobValues(metric string, jobs, baseline []metrics.Job, window *metrics.Window) (a, b []float64) {
	var of func(j *metrics.Job) metrics.Number
	measured := window
	switch metric {
	case "jct_seconds.mean", CommonMean:
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
		if x.Known() != y.Known() && metric != CommonMean {
			return nil, nil
		}
		if x.Known() && y.Known() {
			a, b = append(a, float64(x)), append(b, float64(y))
		}
	}
	return a, b
}

// traces looks at the jobs of two runs: each pair is read once.
type traces struct {
	jobs  jobsOf
	mutex sync.Mutex
	pairs map[[2]string]func() pairOf                 // by the hashes of the baseline and of the run
	cells map[traceKey]func() map[string]stats.Paired // by metric
}

// jobsOf reads the jobs of a run by its hash.
type jobsOf func(hash string) ([]metrics.Job, error)

// traceKey is two runs by their hashes, and the level of their intervals: metrics may differ in it.
type traceKey struct {
	run, baseline string
	level         float64
}

// once is the value of a key, which is made once.
func once[K comparable, V any](mutex *sync.Mutex, known *map[K]func() V, key K, of func() V) V {
	mutex.Lock()
	if *known == nil {
		*known = map[K]func() V{}
	}
	value := (*known)[key]
	if value == nil {
		value = sync.OnceValue(of)
		(*known)[key] = value
	}
	mutex.Unlock()
	return value()
}

// ends says how the jobs of a run and of its baseline ended. The rows are let go: a study has many pairs.
func (t *traces) ends(run, baseline *Row) pairOf {
	return once(&t.mutex, &t.pairs, [2]string{baseline.Run.Hash, run.Run.Hash}, func() pairOf {
		base, other := Ended{Summary: baseline.Summary}, Ended{Summary: run.Summary}
		if jobs, against, err := t.both(run, baseline); err == nil {
			base.Jobs, other.Jobs = against, jobs
		}
		return NewEnds(base, other).pair()
	})
}

func (t *traces) both(run, baseline *Row) (jobs, against []metrics.Job, err error) {
	if t.jobs == nil {
		return nil, nil, errors.New("no jobs are kept")
	}
	jobs, err = t.jobs(run.Run.Hash)
	against, errAgainst := t.jobs(baseline.Run.Hash)
	return jobs, against, errors.Join(err, errAgainst)
}

// compare compares two runs in all metrics over jobs that a study has.
func (t *traces) compare(s *Study, run, baseline *Row, level float64) map[string]stats.Paired {
	return once(&t.mutex, &t.cells, traceKey{run.Run.Hash, baseline.Run.Hash, level}, func() map[string]stats.Paired {
		jobs, against, err := t.both(run, baseline)
		if err != nil || !SameJobs(jobs, against) {
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
}
