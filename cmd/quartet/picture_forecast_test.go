package main

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/internal/engine"
	"github.com/quartet-sched/quartet/lab/report"
)

// pictureOfAForecast is when jobs were expected to end at a moment of a run, and when they did.
const pictureOfAForecast = "forecast.svg"

func TestPictureOfAForecast(t *testing.T) {
	const at, every = 9 * 3600, 900
	c, err := quartet.Parse(catalog(), "site.yaml", `
version: 1
name: site
seed: 2
cluster: {nodes: [{name: n, count: 4, accelerator: v100, devices: 8}]}
workload: {type: generated, config: {jobs: 300, span: 12h}}
estimate: {source: noisy, sigma: 0.7}
round: {interval: 60s, on_events: true}
pipeline: {allocation: {type: fifo}, placement: {type: consolidated}}
backend: {type: simulator, config: {restart_overhead: 30s}}
`, configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := *c.Backend.Config.(*sim.Config)
	beliefs, forecaster := twin.NewWorkloadModel(twin.WorkloadModelOptions{Arrivals: twin.ArrivalsRecent, Config: &config}), twin.NewForecaster(c.Seed)
	policies := engine.PoliciesOf(c.Config, true)
	var forecast *twin.Forecast
	ends := map[core.JobID]float64{}
	due := 0.0
	c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
		return observerFunc(func(r *core.Report) error {
			if err := errors.Join(beliefs.ObserveRound(r), forecaster.ObserveRound(r)); err != nil {
				return err
			}
			for _, j := range r.Ended {
				ends[j.ID] = j.FinishSeconds
			}
			now := r.View.NowSeconds
			if now < due || due > at {
				return nil
			}
			due = now + every
			forecast, err = forecaster.Forecast(t.Context(), twin.Take(p), policies, beliefs, 16)
			return err
		})
	}
	if _, err := c.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(forecast.Jobs, func(a, b twin.JobForecast) int { return cmp.Compare(a.End.Median, b.End.Median) })
	expected, happened := report.Line{Label: "expected (80 %)"}, report.Line{Label: "what happened", Colour: 1, Points: true}
	for i := range forecast.Jobs {
		j := &forecast.Jobs[i]
		x := float64(i + 1)
		expected.X, expected.Y = append(expected.X, x), append(expected.Y, j.End.Median-forecast.AtSeconds)
		expected.Low, expected.High = append(expected.Low, j.End.Low-forecast.AtSeconds), append(expected.High, j.End.High-forecast.AtSeconds)
		happened.X, happened.Y = append(happened.X, x), append(happened.Y, ends[j.ID]-forecast.AtSeconds)
	}
	if len(expected.X) < 10 {
		t.Fatalf("%d jobs", len(expected.X))
	}
	var picture bytes.Buffer
	if err := report.Draw(&picture, &report.Figure{
		Name: "forecast", Title: "When jobs are expected to end", XLabel: "jobs at a moment of a run, by expected end", YLabel: "time to come", X: report.Plain, Y: report.Seconds,
		Lines: []report.Line{expected, happened},
	}, "svg"); err != nil {
		t.Fatal(err)
	}
	checkPicture(t, pictureOfAForecast, picture.Bytes())
}

type observerFunc func(*core.Report) error

func (f observerFunc) ObserveRound(r *core.Report) error { return f(r) }
