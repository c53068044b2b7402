package metrics

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Forecast is the latest forecast of a run.
type Forecast struct {
	AtSeconds    float64    // moment of the run at which the forecast was made, in seconds
	Starts, Ends Judged     // how many earlier intervals of starts and of ends were right
	Jobs         []Expected // of at most MostForecastJobs jobs
}

// MostForecastJobs is the largest number of jobs whose forecast a snapshot holds: those submitted first. It bounds the size of what is exported.
const MostForecastJobs = 200

// Judged counts the earlier intervals that could be checked, and those of them that were right.
type Judged struct {
	Bands int // intervals that could be checked
	Held  int // intervals that were right
}

// Expected is when a job is expected to start or to end, in seconds; NaN for unknown.
type Expected struct {
	ID                core.JobID // id of the job
	Job, Moment       string     // "start" or "end"
	Low, Median, High float64    // ends of the 80 % interval and its median, in seconds of the run
}

// SetForecast replaces the forecast, which must not be changed afterwards.
func (l *Live) SetForecast(f *Forecast) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forecast = f
}

// unfinished is what is expected of the jobs that have not ended.
func (f *Forecast) unfinished(jobs map[core.JobID]*core.Job) *Forecast {
	if f == nil {
		return nil
	}
	left := *f
	left.Jobs = slices.DeleteFunc(slices.Clone(f.Jobs), func(e Expected) bool { return jobs[e.ID] == nil })
	return &left
}
