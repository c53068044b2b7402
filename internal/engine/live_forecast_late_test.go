package engine

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// A round for which it was no time, because of the forecast before it or because it repeated one of an earlier scheduler, is forecast once it is time, though nothing happens
// after it; never while a round is held.
func TestLateForecasts(t *testing.T) {
	const last = 40 // round
	for name, tc := range map[string]struct {
		seconds func(round int) int // of the stopwatch
		until   []int               // seconds after the last round
		again   func(round int) bool
		held    bool // a round is being held
		want    []int
	}{
		"each in time":              {func(round int) int { return 10 * round }, []int{9}, nil, false, []int{1, 10, 20, 30, 40}},
		"the last ones too early":   {func(round int) int { return min(10*round, 381) }, []int{3, 9, 20}, nil, false, []int{1, 10, 20, 30, 40}},
		"not yet":                   {func(round int) int { return min(10*round, 301) }, []int{1, 3}, nil, false, []int{1, 10, 20, 30}},
		"rounds that were repeated": {func(round int) int { return 10 * round }, []int{1, 9}, func(round int) bool { return round > 20 }, false, []int{1, 10, 20, 40}},
		"while a round is held":     {func(round int) int { return 10 * round }, []int{1, 9}, func(round int) bool { return round > 20 }, true, []int{1, 10, 20}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse(catalog(), "late.yaml", "version: 1\nname: late\nseed: 3\ncluster: {nodes: [{name: n, count: 2, accelerator: v100, devices: 4}]}\n"+
				"workload: {type: generated, config: {jobs: 90, span: 1m}}\nround: {interval: 60s}\nbackend: {type: simulator}\npipeline: {allocation: {type: fifo}}\n", configs.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var told []int // rounds
			seconds, round := 0, 0
			rounds := map[float64]int{} // by moment
			c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
				f := &liveForecast{
					report: func(f *twin.Forecast) { told = append(told, rounds[f.AtSeconds]) }, reportNone: func(string) {}, inForce: func() *configs.Config { return c.Config },
					pipeline: p, stopwatch: func() time.Duration { return time.Duration(seconds) * time.Second },
					model: twin.NewWorkloadModel(twin.WorkloadModelOptions{}), forecaster: newForecaster(3), seed: 3, failed: func(err error) { t.Error(err) },
				}
				f.ctx, f.cancel = context.WithCancel(t.Context())
				f.idle.Lock()
				return observerFunc(func(r *core.Report) error {
					if round = r.View.Round; round > last {
						return nil
					}
					rounds[r.View.NowSeconds], seconds = round, tc.seconds(round)
					again := *r
					again.Repeated = tc.again != nil && tc.again(round)
					if round%10 != 0 && round != 1 && round != last { // who is forecast is known then
						f.due = max(f.due, time.Duration(seconds+1)*time.Second)
					}
					if err := f.ObserveRound(&again); err != nil {
						return err
					}
					f.group.Wait()
					if round < last {
						return nil
					}
					if !tc.held {
						f.idle.Unlock()
						defer f.idle.Lock()
					}
					for _, later := range tc.until {
						seconds = tc.seconds(last) + later
						f.beginLate()
						f.group.Wait()
					}
					return nil
				})
			}
			if _, err := c.Simulate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(told, tc.want) {
				t.Errorf("rounds %v are forecast, want %v", told, tc.want)
			}
		})
	}
}
