package twin

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// Band is where a moment lies: with probability BandRatio between Low and High, in seconds; +Inf for never, as far as anybody can tell.
type Band struct{ Low, Median, High float64 }

// BandRatio is the probability that a band is to hold.
const BandRatio = 0.8

// JobForecast is when a job is expected to start and to end.
type JobForecast struct {
	ID       core.JobID
	Name     string
	Running  bool
	Start    Band // of one that waits: when it has devices next
	End      Band
	Position int          // of one that waits, among those that wait, by expected start: 1 for the first; 0 for one that runs
	Ahead    []core.JobID // those that wait and are expected to start before it, the next ones first; at most ten
}

// Forecast is what is expected of a run.
type Forecast struct {
	AtSeconds float64
	Draws     int
	Jobs      []JobForecast // by JobID
}

// Forecaster forecasts, and calibrates its bands by what became of jobs that it forecast earlier.
type Forecaster struct{}

// Forecast simulates so many draws of what is believed, in parallel. Same arguments, same answer.
func (f *Forecaster) Forecast(ctx context.Context, s *Still, p Policies, b *Beliefs, draws int) (*Forecast, error) {
	return nil, nil
}
