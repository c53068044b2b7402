package quartet

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/twin"
)

// A run on real machines is forecast while it goes on, in a goroutine of its own: what its pipeline does for it is to copy its state.
const (
	foretellEvery = 5 * time.Second // at the most often
	foretellPart  = 100             // times as long as a forecast took passes until the next
	copyPart      = 1000            // times as long as the pipeline copied its state
	foretellDraws = 8
)

// foretelling observes a run and forecasts it.
type foretelling struct {
	tell       func(*twin.Forecast)
	inForce    func() *configs.Config
	pipeline   *core.Pipeline
	stopwatch  func() time.Duration
	beliefs    *twin.Beliefs
	forecaster *twin.Forecaster
	failed     func(error)
	trouble    string // of the last forecast; of the goroutine that forecasts

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	mutex  sync.Mutex
	busy   bool
	due    time.Duration
}

// foretell begins to forecast a run; nil where nobody asks for it, or a policy lives in another process, of which a second instance would cost more than a forecast is worth.
func (e *execution) foretell(ctx context.Context, pipeline *core.Pipeline, parts *policies) *foretelling {
	if e.Foretell == nil || e.Stopwatch == nil || remote(e.Config) {
		return nil
	}
	config, simulated := e.Backend.Config.(*sim.Config)
	if !simulated {
		config = nil
	}
	f := &foretelling{
		tell: e.Foretell, inForce: parts.decides, pipeline: pipeline, stopwatch: e.stopwatch,
		beliefs: twin.NewBeliefs(twin.BeliefOptions{Arrivals: twin.ArrivalsRecent, Config: config}), forecaster: twin.NewForecaster(e.Seed),
		failed: func(err error) { e.log.Warn("no forecast", "error", err) },
	}
	f.ctx, f.cancel = context.WithCancel(ctx)
	return f
}

// remote reports whether a policy of a config lives in a process of its own.
func remote(c *configs.Config) bool {
	return c.Allocation.Remote != nil || c.Placement.Remote != nil || c.Elasticity.Remote != nil || c.Scaler.Remote != nil ||
		slices.ContainsFunc(c.Admission, func(s configs.Selected[core.Admitter]) bool { return s.Remote != nil })
}

// ObserveRound learns from a round, and begins to forecast when it is time.
func (f *foretelling) ObserveRound(r *core.Report) error {
	if err := f.beliefs.ObserveRound(r); err != nil {
		return err
	}
	if err := f.forecaster.ObserveRound(r); err != nil {
		return err
	}
	now := f.stopwatch()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if r.Repeated || f.busy || now < f.due || len(r.View.Active) == 0 {
		return nil
	}
	config := f.inForce()
	if f.busy = true; remote(config) {
		f.busy, f.due = false, now+foretellEvery
		return nil
	}
	still, beliefs := twin.Take(f.pipeline), f.beliefs.Clone()
	copied := f.stopwatch() - now
	f.group.Go(func() { f.forecast(still, beliefs, config, now, copied) })
	return nil
}

// forecast forecasts, and says when the next time is.
func (f *foretelling) forecast(still *twin.Still, beliefs *twin.Beliefs, config *configs.Config, begun, copied time.Duration) {
	forecast, err := f.forecaster.Forecast(f.ctx, still, PoliciesOf(config, true), beliefs, min(foretellDraws, twin.DrawsFor(len(still.View().Active))))
	switch {
	case f.ctx.Err() != nil:
	case err != nil:
		if f.trouble != err.Error() { // once
			f.trouble = err.Error()
			f.failed(err)
		}
	default:
		f.trouble = ""
		f.tell(forecast)
	}
	now := f.stopwatch()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.busy, f.due = false, now+max(foretellEvery, foretellPart*(now-begun), copyPart*copied)
}

// end waits until nothing is forecast any more.
func (f *foretelling) end() {
	if f != nil {
		f.cancel()
		f.group.Wait()
	}
}
