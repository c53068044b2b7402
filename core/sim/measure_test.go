package sim

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
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
	c := Config{RestartOverhead: 30 * time.Second, Publication: Publication{FirstRound: atStart, Progress: exact}}
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
		"none":         {MeasurementNoise{OutlierFactor: 3, FirstFactor: 1}, map[float64][]float64{60: {2}}},
		"the first":    {MeasurementNoise{OutlierFactor: 3, FirstFactor: 2}, map[float64][]float64{60: {4}, 120: {2}, 180: {2}}},
		"all outliers": {MeasurementNoise{Outliers: 1, OutlierFactor: 3, FirstFactor: 1}, map[float64][]float64{60: {6}, 120: {6}, 180: {6}}},
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
