package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// BenchmarkLiveForecast is what the goroutine of the pipeline does for forecasts in a run of 1,000 jobs on 1,024 devices with a round a second: parts of its time that the
// observations and the copies take. Forecasts, which other goroutines make, are left out.
func BenchmarkLiveForecast(b *testing.B) {
	for name, pipeline := range map[string]string{
		"fifo":     "{allocation: {type: fifo}}",
		"las":      "{allocation: {type: las}}",
		"tiresias": "{allocation: {type: tiresias}}",
		"goodput":  "{allocation: {type: pollux}, placement: {type: proposed}, elasticity: {job: {type: goodput}}}",
	} {
		b.Run(name, func(b *testing.B) {
			c, err := Parse(catalog(), "forecast.yaml", fmt.Sprintf("version: 1\nname: forecast\nseed: 3\n"+
				"cluster: {nodes: [{name: n, count: 128, accelerator: v100, devices: 8}]}\nworkload: {type: generated, config: {jobs: 1000, span: 1m, applications: true}}\n"+
				"round: {interval: 1s}\nbackend: {type: simulator}\npipeline: %s", pipeline), configs.Options{})
			if err != nil {
				b.Fatal(err)
			}
			over, end := context.WithCancel(b.Context())
			end() // so that no forecast goes on
			var all forecastTime
			for b.Loop() {
				t := &forecastTime{clock: b.Elapsed}
				c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
					t.liveForecast = &liveForecast{
						inForce: func() *configs.Config { return c.Config }, pipeline: p, ctx: over,
						stopwatch: func() time.Duration { return time.Duration(t.rounds) * time.Second },
						model:     twin.NewWorkloadModel(twin.WorkloadModelOptions{Arrivals: twin.ArrivalsRecent}), forecaster: twin.NewForecaster(3),
						failed: func(err error) { b.Error(err) },
					}
					return t
				}
				if _, err := c.Simulate(b.Context()); err != nil && !errors.Is(err, errReached) {
					b.Fatal(err)
				}
				all.add(t)
			}
			all.report(b)
		})
	}
}

// forecastTime adds up what the rounds of two minutes take, after one and a half.
type forecastTime struct {
	*liveForecast
	clock                   func() time.Duration
	rounds, counted, copies int
	observed, copied, held  time.Duration
	began                   time.Duration // of the round
}

const forecastFrom, forecastTo = 90, 210

func (t *forecastTime) add(o *forecastTime) {
	t.counted, t.copies = t.counted+o.counted, t.copies+o.copies
	t.observed, t.copied, t.held = t.observed+o.observed, t.copied+o.copied, t.held+o.held
}

// ObserveRound has the round observed.
func (t *forecastTime) ObserveRound(r *core.Report) error {
	t.rounds++
	counts := t.rounds > forecastFrom
	if counts {
		t.held += t.clock() - t.began
		t.counted++
	}
	from := t.clock()
	due := t.due
	if err := t.liveForecast.ObserveRound(r); err != nil {
		return err
	}
	took := t.clock() - from
	t.group.Wait()
	switch {
	case !counts:
	case t.due != due:
		t.copies++
		t.copied += took
	default:
		t.observed += took
	}
	if t.rounds == forecastTo {
		return errReached
	}
	t.began = t.clock()
	return nil
}

// report tells the means. As in a run, there is no copy before a thousand times as long as one took has passed.
func (t *forecastTime) report(b *testing.B) {
	each, copied := t.observed.Seconds()/float64(t.counted-t.copies), t.copied.Seconds()/float64(t.copies)
	b.ReportMetric(1e3*t.held.Seconds()/float64(t.counted), "ms/round")
	b.ReportMetric(1e6*each, "us/observation")
	b.ReportMetric(1e3*copied, "ms/copy")
	b.ReportMetric(100*(each+copied/max(forecastEvery.Seconds(), copyPart*copied)), "%-of-a-second")
	b.ReportMetric(100*each/(t.held.Seconds()/float64(t.counted)), "%-of-a-round")
}
