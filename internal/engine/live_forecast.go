package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// A run on real machines is forecast while it goes on, in a goroutine of its own: what its pipeline does for it is to copy its state.
const (
	forecastEvery = 5 * time.Second // at the most often
	forecastPart  = 100             // times as long as a forecast took passes until the next
	copyPart      = 1000            // times as long as the pipeline copied its state
	forecastDraws = 8
	lateEvery     = time.Second // that it is looked whether a round is still to be forecast
)

// liveForecast observes a live run and forecasts it.
type liveForecast struct {
	report     func(*twin.Forecast)
	inForce    func() *configs.Config
	pipeline   *core.Pipeline
	stopwatch  func() time.Duration
	model      *twin.WorkloadModel
	forecaster *twin.Forecaster
	seed       uint64
	kept       *calibrationFile // nil for nothing that is kept
	failed     func(error)
	trouble    string // of the last forecast; of the goroutine that forecasts
	reason     string // why nothing is forecast, as it was reported last; of the goroutine of the pipeline
	reportNone func(why string)

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	mutex  sync.Mutex
	busy   bool
	late   bool // a round was held since the state was copied last
	due    time.Duration

	idle sync.Mutex // the pipeline has it, but while it waits for what happens next
}

// forecastLive begins to forecast a run. One with a policy in a process of its own is not forecast: a second process would cost more than a forecast is worth.
func (e *execution) forecastLive(ctx context.Context, pipeline *core.Pipeline) *liveForecast {
	reportNone := e.NoForecastReason
	if reportNone == nil {
		reportNone = func(string) {}
	}
	f := &liveForecast{
		report: e.OnForecast, inForce: e.policies.decides, pipeline: pipeline, stopwatch: e.stopwatch,
		model: twin.NewWorkloadModel(twin.WorkloadModelOptions{Arrivals: twin.ArrivalsRecent}), forecaster: newForecaster(e.Seed), seed: e.Seed,
		failed: func(err error) { e.log.Warn("no forecast", "error", err) }, reportNone: reportNone,
	}
	if f.kept = e.calibrationFile(); f.kept != nil {
		f.kept.take(f.forecaster)
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	f.idle.Lock()
	f.group.Go(f.catchUp)
	return f
}

// remote are the policies of a config that live in processes of their own.
func remote(c *configs.Config) (ids []string) {
	add := func(id string, is bool) {
		if is {
			ids = append(ids, id)
		}
	}
	for i := range c.Admission {
		add(c.Admission[i].ID, c.Admission[i].Remote != nil)
	}
	add(c.Allocation.ID, c.Allocation.Remote != nil)
	add(c.Placement.ID, c.Placement.Remote != nil)
	add(c.Elasticity.ID, c.Elasticity.Remote != nil)
	add(c.Scaler.ID, c.Scaler.Remote != nil)
	return ids
}

// noForecastReason says why a run by a config is not forecast while it goes on; empty where it is.
func noForecastReason(c *configs.Config) string {
	switch ids := remote(c); len(ids) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("not forecast while it runs: %s is a process of its own; quartet forecast starts a second one", ids[0])
	default:
		return fmt.Sprintf("not forecast while it runs: %s are processes of their own; quartet forecast starts second ones", strings.Join(ids, " and "))
	}
}

// newForecaster forecasts beside the rounds.
func newForecaster(seed uint64) *twin.Forecaster {
	f := twin.NewForecaster(seed)
	f.Beside = true
	return f
}

// ObserveRound learns from a round, and begins to forecast when it is time.
func (f *liveForecast) ObserveRound(r *core.Report) error {
	if err := f.model.ObserveRound(r); err != nil {
		return err
	}
	if err := f.learn(r); err != nil {
		return err
	}
	now := f.stopwatch()
	config := f.inForce()
	reason := noForecastReason(config)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.kept != nil {
		f.kept.round = max(f.kept.round, r.View.Round)
	}
	if reason != f.reason {
		f.reason = reason
		f.reportNone(reason)
	}
	if f.late = reason == "" && len(r.View.Active)+len(f.pipeline.Pending()) > 0; f.late && !r.Repeated {
		f.begin(now, config)
	}
	return nil
}

// begin begins to forecast the last round, if it is time and nothing is being forecast. The caller has the mutex, and the pipeline is between two rounds.
func (f *liveForecast) begin(now time.Duration, config *configs.Config) {
	if f.busy || now < f.due {
		return
	}
	f.busy, f.late = true, false
	still, beliefs := twin.Take(f.pipeline), f.model.Clone()
	copied := f.stopwatch() - now
	f.group.Go(func() { f.forecast(still, beliefs, config, now, copied) })
}

// catchUp forecasts rounds for which it was no time when they were held, and after which nothing happens: until the context is done.
func (f *liveForecast) catchUp() {
	ticker := time.NewTicker(lateEvery)
	defer ticker.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-ticker.C:
			f.beginLate()
		}
	}
}

// beginLate begins to forecast the last round if nobody did, unless another one is being held.
func (f *liveForecast) beginLate() {
	if !f.idle.TryLock() {
		return
	}
	defer f.idle.Unlock()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.late {
		f.begin(f.stopwatch(), f.inForce())
	}
}

// between are the waits between rounds, in which the state of the pipeline may be copied.
type between struct {
	core.Backend
	idle *sync.Mutex
}

// Next waits for what happens next.
func (b between) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	b.idle.Unlock()
	defer b.idle.Lock()
	return b.Backend.Next(ctx, w)
}

// forecast forecasts, and says when the next time is.
func (f *liveForecast) forecast(still *twin.RunSnapshot, beliefs *twin.WorkloadModel, config *configs.Config, begun, copied time.Duration) {
	forecast, err := f.forecaster.Forecast(f.ctx, still, PoliciesOf(config, true), beliefs, min(forecastDraws, twin.DrawsFor(len(still.Unfinished()))))
	switch {
	case f.ctx.Err() != nil:
	case err != nil:
		if f.trouble != err.Error() { // once
			f.trouble = err.Error()
			f.failed(err)
		}
	default:
		f.trouble = ""
		if f.kept != nil {
			f.kept.some = true
		}
	}
	f.keepNow(f.stopwatch(), false)
	now := f.stopwatch()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err == nil && f.ctx.Err() == nil && f.reason == "" { // no other policies took over meanwhile of which nothing is expected
		f.report(forecast)
	}
	f.busy, f.due = false, now+max(forecastEvery, forecastPart*(now-begun), copyPart*copied)
}

// end waits until nothing is forecast any more.
func (f *liveForecast) end() {
	f.cancel()
	f.group.Wait()
	f.keepNow(0, true)
}
