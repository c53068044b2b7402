package sim

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
	"github.com/quartet-sched/quartet/core/workload"
)

// timed is a profiled model whose steps take two seconds.
type timed struct{ profiled }

func (m timed) Measure(phase int, r workload.Running) (core.Measurement, core.Gradients, bool) {
	got, g, ok := m.profiled.Measure(phase, r)
	got.PassSeconds, got.StepSeconds = 1, 2
	return got, g, ok
}

// reports are the step times told over some rounds, by the moment of the round.
func reports(t *testing.T, c Config, w core.Wake, rounds int) map[float64][]float64 {
	t.Helper()
	s := open(t, c, 1, arrival{0, timed{profiled{phased{1000}}}})
	told := map[float64][]float64{}
	for i := range rounds {
		seen, err := s.Next(context.Background(), w)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range seen.Events {
			if e.Kind == core.JobMeasured {
				told[seen.NowSeconds] = append(told[seen.NowSeconds], e.Measurement.StepSeconds)
				if pass, step := e.Measurement.PassSeconds, e.Measurement.StepSeconds; pass != step/2 {
					t.Errorf("a pass of %v s in a step of %v s, want half of it", pass, step)
				}
			}
		}
		if i == 0 {
			if err := s.Apply(context.Background(), []core.Change{start(0, seats(0, 1))}); err != nil {
				t.Fatal(err)
			}
		}
		w.BySeconds += w.IntervalSeconds
	}
	return told
}

// A job that was started reports after its first step, also when only events make rounds: it may grow by what it reports.
func TestAFirstReportMakesARound(t *testing.T) {
	c := Config{Cost: restart.Cost{RestartOverhead: 30 * time.Second}, Publication: Publication{FirstRound: atStart, Progress: exact}}
	got := reports(t, c, core.Wake{BySeconds: 1e9, OnEvents: true}, 2)
	if diff := cmp.Diff(map[float64][]float64{32: {2}}, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// With noise a job reports at each round, the first time of a configuration too slow by a factor; without, once.
func TestMeasurementNoise(t *testing.T) {
	cases := map[string]struct {
		noise MeasurementNoise
		want  map[float64][]float64
	}{
		"none":                  {MeasurementNoise{OutlierFactor: 3, FirstFactor: 1}, map[float64][]float64{60: {2}}},
		"the first":             {MeasurementNoise{OutlierFactor: 3, FirstFactor: 2}, map[float64][]float64{60: {4}, 120: {2}, 180: {2}}},
		"slow by a factor of 1": {MeasurementNoise{Outliers: 1, OutlierFactor: 1, FirstFactor: 1}, map[float64][]float64{60: {2}}},
		"all outliers":          {MeasurementNoise{Outliers: 1, OutlierFactor: 3, FirstFactor: 1}, map[float64][]float64{60: {6}, 120: {6}, 180: {6}}},
	}
	for name, tc := range cases {
		for _, progress := range []string{exact, perRound} {
			t.Run(name+", "+progress, func(t *testing.T) {
				c := Config{MeasurementNoise: tc.noise, StallAfter: time.Hour, Publication: Publication{FirstRound: atStart, Progress: progress}}
				got := reports(t, c, core.Wake{IntervalSeconds: 60}, 4)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("reports (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// The logarithms of the reports are normal around the truth.
func TestTheSpreadOfReports(t *testing.T) {
	const n, spread = 2000, 0.25
	c := Config{MeasurementNoise: MeasurementNoise{Spread: spread, FirstFactor: 1}}
	sum, squares := 0.0, 0.0
	for _, told := range reports(t, c, core.Wake{IntervalSeconds: 0.25}, n) {
		for _, seconds := range told {
			off := math.Log(seconds / 2)
			sum, squares = sum+off, squares+off*off
		}
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean) > 0.02 || math.Abs(deviation-spread) > 0.02 {
		t.Errorf("mean %v and deviation %v of the logarithms, want 0 and %v", mean, deviation, spread)
	}
}

// silent is a model that measures nothing yet, and instant one whose steps take no time that it knows.
type silent struct{ timed }

func (m silent) Measure(phase int, r workload.Running) (core.Measurement, core.Gradients, bool) {
	got, g, _ := m.timed.Measure(phase, r)
	return got, g, false
}

type instant struct{ profiled }

// Only a first step makes a round of its own: what comes next is the end of the job, after a pause of 30 s and 100 s of work.
func TestNoFurtherReportMakesARound(t *testing.T) {
	for name, tc := range map[string]struct {
		model workload.Model
		want  []float64
	}{
		"it reports":            {timed{profiled{phased{100}}}, []float64{0, 32, 130}},
		"it never reports":      {phased{100}, []float64{0, 130}},
		"it does not report":    {silent{timed{profiled{phased{100}}}}, []float64{0, 130}},
		"its steps are unknown": {instant{profiled{phased{100}}}, []float64{0, 130}},
	} {
		t.Run(name, func(t *testing.T) {
			// Job 1 makes the simulator ask for reports.
			s := open(t, Config{Cost: restart.Cost{RestartOverhead: 30 * time.Second}}, 1, arrival{0, tc.model}, arrival{1000, timed{profiled{phased{100}}}})
			var got []float64
			for range tc.want {
				seen, err := s.Next(t.Context(), core.Wake{BySeconds: 1e9, OnEvents: true})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, seen.NowSeconds)
				if seen.NowSeconds > 0 {
					continue
				}
				if err := s.Apply(t.Context(), []core.Change{start(0, seats(0, 1))}); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rounds (-want +got):\n%s", diff)
			}
		})
	}
}

// A job that pauses for a whole round has nothing to report.
func TestNothingIsReportedOfAPause(t *testing.T) {
	for _, progress := range []string{exact, perRound} {
		c := Config{Cost: restart.Cost{RestartOverhead: time.Minute}, Publication: Publication{FirstRound: atStart, Progress: progress}}
		got := reports(t, c, core.Wake{IntervalSeconds: 60}, 4)
		if diff := cmp.Diff(map[float64][]float64{120: {2}}, got); diff != "" {
			t.Errorf("%s: reports (-want +got):\n%s", progress, diff)
		}
	}
}

// still is a model that could measure, and that does not progress.
type still struct{ timed }

func (still) Rate(int, workload.Running) float64 { return 0 }

// A job reports of a round in which it did some work.
func TestARoundWithoutWorkReportsNothing(t *testing.T) {
	model := timed{profiled{phased{1000}}}
	for name, tc := range map[string]struct {
		model   workload.Model
		pause   float64
		seconds float64
		want    int // reports
		last    float64
	}{
		"it works":              {model, 0, 60, 1, 60},
		"after a pause":         {model, 59, 60, 1, 1},
		"all pause":             {model, 60, 60, 0, 0},
		"a longer pause":        {model, 90, 60, 0, 0},
		"it does not progress":  {still{model}, 0, 60, 0, 0},
		"it has no time to":     {model, 0, 0, 0, 0},
		"the end of its phase":  {timed{profiled{phased{60, 1000}}}, 0, 60, 1, 60},
		"and into the next one": {timed{profiled{phased{60, 100}}}, 0, 61, 2, 60.5},
	} {
		t.Run(name, func(t *testing.T) {
			c := Config{Cost: restart.Cost{RestartOverhead: time.Duration(tc.pause) * time.Second}, Publication: Publication{FirstRound: atStart, Progress: perRound}}
			s := open(t, c, 1, arrival{0, tc.model})
			if _, err := s.Next(context.Background(), core.Wake{IntervalSeconds: 60}); err != nil {
				t.Fatal(err)
			}
			if err := s.Apply(context.Background(), []core.Change{start(0, seats(0, 1))}); err != nil {
				t.Fatal(err)
			}
			s.clock.events = s.clock.events[:0]
			j := s.jobs.running[0]
			s.advanceRound(j, s.clock.now, tc.seconds)
			got := 0
			for _, e := range s.clock.events {
				if e.Kind == core.JobMeasured {
					got++
				}
			}
			if got != tc.want || j.progress != tc.last {
				t.Errorf("%d reports, progress %v; want %d, %v", got, j.progress, tc.want, tc.last)
			}
		})
	}
}
