package twin_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

func TestEach(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	for name, tc := range map[string]struct {
		n, processors int
		fails         map[int]error
		panics        int // -1 for none
		want          string
	}{
		"none":                 {0, 2, nil, -1, ""},
		"all":                  {9, 2, nil, -1, ""},
		"on no processor":      {3, 0, nil, -1, ""},
		"the lowest is told":   {9, 3, map[int]error{7: second, 2: first}, -1, "first"},
		"a panic":              {9, 3, nil, 4, "a panic in a future: four"},
		"an error and a panic": {9, 3, map[int]error{2: first}, 4, "first"},
		"a panic and an error": {9, 3, map[int]error{5: first}, 4, "a panic in a future: four"},
		"more processors than": {2, 9, nil, -1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var done, at, most atomic.Int32
			err := twin.Each(tc.n, tc.processors, func(i int) error {
				for now := at.Add(1); ; {
					was := most.Load()
					if now <= was || most.CompareAndSwap(was, now) {
						break
					}
				}
				defer at.Add(-1)
				done.Add(1)
				if i == tc.panics {
					panic("four")
				}
				return tc.fails[i]
			})
			if got := ""; err == nil && tc.want != got || err != nil && (tc.want == "" || !strings.HasPrefix(err.Error(), tc.want)) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if int(done.Load()) != tc.n || int(most.Load()) > max(tc.processors, 1) {
				t.Errorf("%d were done, %d at a time", done.Load(), most.Load())
			}
		})
	}
}

// broken is an allocation that panics.
type broken struct{ core.Allocator }

func (broken) Allocate(context.Context, *core.View, []core.Candidate) ([]core.Grant, error) {
	panic("on its own in a future")
}

// A policy that panics in a future, where it meets what the run never had, fails the forecast, and the run goes on.
func TestAPanicInAFutureIsNoHarmToTheRun(t *testing.T) {
	c := parsed(t, strings.Replace(forecastConfig, "jobs: 80", "jobs: 20", 1))
	beliefs, forecaster := twin.NewWorkloadModel(twin.WorkloadModelOptions{}), twin.NewForecaster(1)
	forecaster.Beside = true
	good := policies(c, true)
	bad := good
	bad.NewInstances = func() (core.Stages, error) {
		s, err := good.NewInstances()
		s.Allocation.Policy = broken{s.Allocation.Policy}
		return s, err
	}
	bad.Same = false
	failed := 0
	c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
		return observer(func(r *core.Report) error {
			if err := beliefs.ObserveRound(r); err != nil || r.View.Round%100 != 10 {
				return err
			}
			if _, err := forecaster.Forecast(t.Context(), twin.Take(p), bad, beliefs, 4); err == nil || !strings.Contains(err.Error(), "on its own in a future") {
				t.Errorf("error %v", err)
			}
			failed++
			_, err := forecaster.Forecast(t.Context(), twin.Take(p), good, beliefs, 4)
			return err
		})
	}
	if _, err := c.Simulate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if failed == 0 {
		t.Error("nothing was forecast")
	}
}
