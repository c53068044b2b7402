package twin_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/sim"
	"github.com/quartet-sched/quartet/core/twin"
)

const forecastConfig = "version: 1\nname: twin\nseed: 3\ncluster: {nodes: [{name: n, count: 4, accelerator: v100, devices: 4}]}\n" +
	"workload: {type: generated, config: {jobs: 80, span: 4h}}\nround: {interval: 60s}\nbackend: {type: simulator, config: {restart_overhead: 30s}}\n" +
	"pipeline: {allocation: {type: las}}"

// judgeRun simulates a composition with a judge.
func judgeRun(t *testing.T, c *quartet.Composition, o twin.WorkloadModelOptions, every float64) *twin.ForecastEvaluator {
	t.Helper()
	config := *c.Backend.Config.(*sim.Config)
	o.Config = &config
	j := &twin.ForecastEvaluator{
		Model: twin.NewWorkloadModel(o), Forecaster: twin.NewForecaster(1), Policies: policies(c, true), Draws: 8,
		Next: func(seconds float64) float64 { return seconds + every },
	}
	c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
		j.Pipeline = p
		return j
	}
	if _, err := c.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return j
}

func parsed(t testing.TB, config string) *quartet.Composition {
	t.Helper()
	c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", config, quartet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Forecasts are the same on one processor as on many, and a forecaster that learned the same tells the same.
func TestForecastsRepeat(t *testing.T) {
	forecasts := func(processors int) (list []*twin.Forecast) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		c := parsed(t, strings.Replace(forecastConfig, "jobs: 80", "jobs: 40", 1))
		beliefs, forecaster := twin.NewWorkloadModel(twin.WorkloadModelOptions{Arrivals: twin.ArrivalsRecent}), twin.NewForecaster(1)
		c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
			return observer(func(r *core.Report) error {
				if err := beliefs.ObserveRound(r); err != nil {
					return err
				}
				if err := forecaster.ObserveRound(r); err != nil || r.View.Round%60 != 0 {
					return err
				}
				f, err := forecaster.Forecast(t.Context(), twin.Take(p), policies(c, true), beliefs, 8)
				list = append(list, f)
				return err
			})
		}
		if _, err := c.Simulate(t.Context()); err != nil {
			t.Fatal(err)
		}
		return list
	}
	one := forecasts(1)
	for _, processors := range []int{2, 7} {
		if diff := cmp.Diff(one, forecasts(processors), cmpopts.IgnoreUnexported(twin.JobForecast{}), cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("on %d processors (-1 +%d):\n%.3000s", processors, processors, diff)
		}
	}
	waiting := 0
	for _, f := range one {
		for _, j := range f.Jobs {
			if !j.Running {
				waiting++
			}
			if !(f.AtSeconds <= j.End.Low && j.End.Low <= j.End.Median && j.End.Median <= j.End.High && j.End.Low < j.End.High) {
				t.Errorf("at %v s: job %d ends %+v", f.AtSeconds, j.ID, j.End)
			}
			if !j.Running && !(f.AtSeconds <= j.Start.Low && j.Start.Low <= j.Start.Median && j.Start.Median <= j.Start.High && j.Start.Low < j.Start.High) {
				t.Errorf("at %v s: job %d starts %+v", f.AtSeconds, j.ID, j.Start)
			}
		}
	}
	if len(one) < 4 || waiting < 5 {
		t.Errorf("%d forecasts of %d waiting jobs", len(one), waiting)
	}
}

// The judge counts every forecast, and the forecaster says nearly the same of itself.
func TestJudge(t *testing.T) {
	j := judgeRun(t, parsed(t, forecastConfig), twin.WorkloadModelOptions{}, 600)
	told := j.Calibration()
	for name, got := range map[string]struct {
		held   func() (twin.Held, []twin.Held)
		itself twin.Coverage
	}{"starts": {j.Starts, told.Starts}, "ends": {j.Ends, told.Ends}} {
		all, tenths := got.held()
		t.Logf("%s: %+v %.3f, itself %+v %.3f", name, all, all.Ratio(), got.itself, got.itself.Ratio())
		if all.Forecasts < 100 || all.Forecasts != got.itself.Resolved {
			t.Errorf("%s: %d forecasts are judged, and the forecaster knows of %d", name, all.Forecasts, got.itself.Resolved)
		}
		if math.Abs(all.Ratio()-got.itself.Ratio()) > 0.05 {
			t.Errorf("%s: %.3f hold, and the forecaster says %.3f", name, all.Ratio(), got.itself.Ratio())
		}
		sum, lead := twin.Held{}, math.Inf(-1)
		for _, part := range tenths {
			sum.Forecasts, sum.Inside = sum.Forecasts+part.Forecasts, sum.Inside+part.Inside
			if part.LeadSeconds < lead {
				t.Errorf("%s: a lead of %v s after %v s", name, part.LeadSeconds, lead)
			}
			lead = part.LeadSeconds
		}
		if len(tenths) != 10 || sum.Forecasts != all.Forecasts || sum.Inside != all.Inside {
			t.Errorf("%s: the tenths are of %+v", name, sum)
		}
	}
}

// BenchmarkForecast is a forecast of 1,000 jobs on 1,024 devices, and of 10,000, with as many draws as are worth their time.
func BenchmarkForecast(b *testing.B) {
	for _, allocation := range []string{"fifo", "las", "srtf"} {
		for _, jobs := range []int{1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", allocation, jobs), func(b *testing.B) {
				c := parsed(b, fmt.Sprintf("version: 1\nname: twin\nseed: 3\ncluster: {nodes: [{name: n, count: 128, accelerator: v100, devices: 8}]}\n"+
					"workload: {type: generated, config: {jobs: %d, span: 1m}}\nround: {interval: 60s}\nbackend: {type: simulator, config: {restart_overhead: 30s}}\n"+
					"pipeline: {allocation: {type: %s}}", jobs, allocation))
				beliefs, forecaster := twin.NewWorkloadModel(twin.WorkloadModelOptions{Arrivals: twin.ArrivalsRecent}), twin.NewForecaster(1)
				var still *twin.RunSnapshot
				var believed *twin.WorkloadModel
				c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
					return observer(func(r *core.Report) error {
						if r.View.Round == 3 {
							still, believed = twin.Take(p), beliefs.Clone()
						}
						if r.View.Round > 3 {
							return nil
						}
						return beliefs.ObserveRound(r)
					})
				}
				if _, err := c.Simulate(b.Context()); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, err := forecaster.Forecast(b.Context(), still, policies(c, true), believed, 0); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(twin.DrawsFor(jobs)), "draws")
			})
		}
	}
}
