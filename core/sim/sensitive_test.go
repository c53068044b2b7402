package sim

import (
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
	"github.com/quartet-sched/quartet/core/workload"
)

// A job of 100 s of work that is three times as fast with 8 CPUs, and half as fast with 1 as with 2, changes what it has at second 20 while it stays.
func TestSensitiveJobs(t *testing.T) {
	t.Parallel()
	of := &core.Sensitivity{Base: core.Resources{CPUs: 2, MemoryGB: 10}, Ideal: core.Resources{CPUs: 8, MemoryGB: 10}, Speedup: 3}
	each := func(cpus float64) *core.Resources { return &core.Resources{CPUs: cpus, MemoryGB: 10} }
	for name, tc := range map[string]struct {
		asks        float64 // CPUs
		first, then *core.Resources
		insensitive bool
		uncounted   bool
		want        float64 // when it ends
	}{
		"nothing asked for is the base":            {want: 100},
		"what it asks for":                         {asks: 8, then: nil, want: 100.0 / 3},
		"less than the base":                       {asks: 1, want: 200},
		"given more":                               {first: each(8), then: each(8), want: 100.0 / 3},
		"taken back":                               {first: each(8), then: each(2), want: 20 + 40},
		"given what it asks for":                   {asks: 2, first: each(8), want: 20 + 40},
		"on the line":                              {first: each(5), then: each(5), want: 50},
		"where nobody counts, the base":            {asks: 8, uncounted: true, want: 100},
		"one that is not sensitive":                {asks: 1, first: each(8), then: each(1), insensitive: true, want: 100},
		"ten times the ideal is no better than it": {first: each(80), then: each(80), want: 100.0 / 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := core.JobSpec{Name: "j", Weight: 1, TotalWork: 100, CPUs: tc.asks, Sensitivity: of}
			if tc.insensitive {
				spec.Sensitivity = nil
			}
			cluster := &core.Cluster{Accelerators: []string{"t4"}, CountsResources: !tc.uncounted, Nodes: []core.Node{{Name: "n", Devices: 4}}}
			w := &workload.Workload{Jobs: []workload.Job{{Spec: spec, Model: phased{100}}}}
			c := Config{StallAfter: time.Hour, Cost: restart.Cost{RestartOverhead: time.Minute}, FreeFirstStart: true, TuneOverhead: time.Minute}
			b, err := (&opener{config: c, settings: core.Settings{ID: "backend/simulator"}}).Open(t.Context(), cluster, w)
			if err != nil {
				t.Fatal(err)
			}
			next := func(at float64) (ended float64) {
				seen, err := b.Next(t.Context(), core.Wake{BySeconds: at, OnEvents: true})
				if err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				for _, e := range seen.Events {
					if e.Kind == core.JobFinished {
						return e.AtSeconds
					}
				}
				return math.NaN()
			}
			apply := func(change core.Change) {
				if err := b.Apply(t.Context(), []core.Change{change, change}); err != nil { // twice has the effect of once
					t.Fatal(err)
				}
			}
			next(0)
			begin := start(0, core.Seat{Devices: 1})
			begin.Resources = tc.first
			apply(begin)
			next(20)
			apply(core.Change{Action: core.Tune, Resources: tc.then})
			if got := next(math.Inf(1)); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("ends at %v s, want %v", got, tc.want)
			}
		})
	}
}

// With whole steps a round of 10 s holds three of 3 s, and a job that is done ends with its round. A step that is longer goes on in the next.
func TestWholeSteps(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seconds float64 // of a step
		steps   float64
		want    float64 // when it ends
	}{
		"a part of a round is lost": {3, 7, 30},
		"a whole round":             {3, 6, 20},
		"steps that fit exactly":    {0.1, 200, 20},
		"one step":                  {3, 1, 10},
		"as long as a round":        {10, 2, 20},
		"longer than a round":       {11, 1, 20},
		"a part of one":             {3, 3.5, 20},
		"half of one":               {3, 0.5, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := core.JobSpec{Name: "j", Weight: 1, TotalWork: tc.steps}
			w := &workload.Workload{Jobs: []workload.Job{{Spec: spec, Model: steady{tc.steps, 1 / tc.seconds}}}}
			cluster := &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "n", Devices: 4}}}
			c := Config{StallAfter: time.Hour, Publication: Publication{FirstRound: atStart, Progress: wholeSteps}}
			b, err := (&opener{config: c, settings: core.Settings{ID: "backend/simulator"}}).Open(t.Context(), cluster, w)
			if err != nil {
				t.Fatal(err)
			}
			got := math.Inf(1)
			for {
				seen, err := b.Next(t.Context(), core.Wake{BySeconds: math.Inf(1), IntervalSeconds: 10})
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range seen.Events {
					switch e.Kind {
					case core.JobSubmitted:
						if err := b.Apply(t.Context(), []core.Change{start(0, core.Seat{Devices: 1})}); err != nil {
							t.Fatal(err)
						}
					case core.JobFinished:
						if got = e.AtSeconds; got != seen.NowSeconds {
							t.Errorf("ends at %v s, told at %v s", got, seen.NowSeconds)
						}
					case core.JobProgressed:
						if tc.seconds < 10 && math.Floor(e.Progress) != e.Progress {
							t.Errorf("%v steps are done", e.Progress)
						}
					}
				}
			}
			if got != tc.want {
				t.Errorf("ends at %v s, want %v", got, tc.want)
			}
		})
	}
}

// steady is a job that does so much work a second, until all is done.
type steady struct{ work, rate float64 }

func (s steady) Phases() int                        { return 1 }
func (s steady) PhaseEnd(int) float64               { return s.work }
func (s steady) Rate(int, workload.Running) float64 { return s.rate }
func (s steady) StepsLeft(int) float64              { return math.NaN() }
