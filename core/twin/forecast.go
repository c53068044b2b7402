package twin

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/quartet-sched/quartet/core"
)

// BandRatio is the probability that a band is to hold.
const BandRatio = 0.8

// Band is where a moment lies, in seconds: with BandRatio between Low and High. +Inf is never, as far as is known.
type Band struct {
	Low, Median, High float64 // seconds of the run, or from the moment that its user says
}

// Holds reports whether a moment lies in the band; +Inf for never.
func (b Band) Holds(seconds float64) bool { return b.Low <= seconds && seconds <= b.High }

// JobForecast is when a job is expected to start and to end.
type JobForecast struct {
	ID       core.JobID   // of the job
	Name     string       // of the job
	Running  bool         // has devices at the moment of the forecast
	Start    Band         // of one that waits: when it has devices next; of one that runs: when it began to have those that it has
	End      Band         // when it ends, or is rejected
	Position int          // of one that waits, among those that wait, by expected start: 1 for the first; 0 for one that runs
	Ahead    []core.JobID // those that wait and are expected to start before it, the next ones first; at most mostAhead

	rawStart, rawEnd Band // of the draws alone
}

// mostAhead is how many jobs are named that are in front of another.
const mostAhead = 10

// Forecast is what is expected of a run.
type Forecast struct {
	AtSeconds   float64       // moment of the forecast, in seconds of the run
	Draws       int           // futures that were simulated
	Jobs        []JobForecast // forecasts of the unfinished jobs, by JobID
	Calibration Calibration   // of earlier bands, as they were shown
	Notes       []string      // what people should know of the bands
}

// Of is the forecast of a job; nil where there is none.
func (f *Forecast) Of(id core.JobID) *JobForecast {
	at, found := slices.BinarySearchFunc(f.Jobs, id, func(j JobForecast, id core.JobID) int { return cmp.Compare(j.ID, id) })
	if !found {
		return nil
	}
	return &f.Jobs[at]
}

// Forecaster forecasts a run, and calibrates its bands by what became of jobs that it forecast earlier. It is an observer of the run. Forecast may be called by
// another goroutine than ObserveRound.
type Forecaster struct {
	// Beside has a forecast take half of the processors, since the run goes on meanwhile.
	Beside bool

	seed uint64

	mutex sync.Mutex
	calibrator
}

// NewForecaster is one that has forecast nothing yet. The seed is that of the draws.
func NewForecaster(seed uint64) *Forecaster {
	return &Forecaster{seed: seed, calibrator: newCalibrator(seed)}
}

// DrawsFor is how many draws are worth their time for so many jobs: the bands of a few are rough, and many jobs are like many draws.
func DrawsFor(jobs int) int { return max(4, min(16, 8*1000/max(jobs, 1))) }

// Forecast simulates so many draws of what is believed, in parallel; 0 for as many as DrawsFor says. Same arguments after the same rounds and forecasts, same answer.
func (f *Forecaster) Forecast(ctx context.Context, s *RunSnapshot, p Policies, b *WorkloadModel, draws int) (*Forecast, error) {
	v := s.View()
	jobs := s.Unfinished()
	if draws == 0 {
		draws = DrawsFor(len(jobs))
	}
	seed := core.NewStream(f.seed, "forecast/"+strconv.Itoa(v.Round)).Uint64()
	processors := runtime.GOMAXPROCS(0)
	if f.Beside {
		processors /= 2
	}
	futures, err := s.draw(ctx, p, b, seed, draws, processors)
	if err != nil {
		return nil, err
	}
	forecast := &Forecast{AtSeconds: v.NowSeconds, Draws: draws, Jobs: make([]JobForecast, len(jobs))}
	starts, ends := make([]float64, draws), make([]float64, draws)
	for i, j := range jobs {
		for k, future := range futures {
			starts[k], ends[k] = never(future.Jobs[i].StartSeconds), never(future.Jobs[i].EndSeconds)
		}
		forecast.Jobs[i] = JobForecast{
			ID: j.ID, Name: j.Name, Running: j.State == core.Running, rawStart: bandOf(starts), rawEnd: bandOf(ends),
		}
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.show(forecast, v)
	forecast.queue()
	return forecast, nil
}

// draw simulates the first draws of what is believed.
func (s *RunSnapshot) draw(ctx context.Context, p Policies, b *WorkloadModel, seed uint64, draws, processors int) ([]*Future, error) {
	futures := make([]*Future, draws)
	err := Each(draws, processors, func(i int) (err error) {
		w := b.Draw(s.View(), seed, i, math.Inf(1))
		w.Present = true
		futures[i], err = s.Future(ctx, p, w, math.Inf(1))
		return err
	})
	return futures, err
}

// never is a moment as a band has it.
func never(seconds float64) float64 {
	if math.IsNaN(seconds) {
		return math.Inf(1)
	}
	return seconds
}

// bandOf is the band of draws, which it sorts: the median, and the quantiles at rank (n+1)p, between which another draw lies with BandRatio (Weibull).
func bandOf(draws []float64) Band {
	slices.Sort(draws)
	const tail = (1 - BandRatio) / 2
	return Band{quantile(draws, tail), quantile(draws, 0.5), quantile(draws, 1-tail)}
}

// quantile is that of sorted values at rank (n+1)p, on straight lines between them.
func quantile(sorted []float64, p float64) float64 {
	rank := min(max(float64(len(sorted)+1)*p, 1), float64(len(sorted)))
	low := int(rank) - 1
	if high := min(low+1, len(sorted)-1); sorted[high] != sorted[low] {
		if part := rank - float64(low+1); part > 0 {
			return sorted[low] + part*(sorted[high]-sorted[low]) // +Inf where one is
		}
	}
	return sorted[low]
}

// queue tells of those that wait who is in front of whom.
func (f *Forecast) queue() {
	var waiting []int
	for i := range f.Jobs {
		if !f.Jobs[i].Running {
			waiting = append(waiting, i)
		}
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return cmp.Compare(f.Jobs[a].Start.Median, f.Jobs[b].Start.Median) })
	for place, i := range waiting {
		f.Jobs[i].Position = place + 1
		for _, k := range waiting[:min(place, mostAhead)] {
			f.Jobs[i].Ahead = append(f.Jobs[i].Ahead, f.Jobs[k].ID)
		}
	}
}
