package pollux

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
)

// TestHorizonGrowsWithTheOverhead holds that up to 30 s nothing changes, and that beyond a change keeps being worth its price.
func TestHorizonGrowsWithTheOverhead(t *testing.T) {
	for overhead, want := range map[time.Duration]float64{
		0: 200, 15 * time.Second: 200, 30 * time.Second: 200, 240 * time.Second: 800, 810 * time.Second: 1800,
	} {
		c := Config{Horizon: 200 * time.Second, Cost: restart.Cost{RestartOverhead: overhead}}
		if got := c.span(); math.Abs(got-want) > 1e-9 {
			t.Errorf("an overhead of %v makes a horizon of %v s, want %v s", overhead, got, want)
		}
	}
}

func TestHorizonMustOutlastTheOverhead(t *testing.T) {
	for name, tc := range map[string]struct {
		config  map[string]any
		problem string
	}{
		"as shipped":                {map[string]any{"restart": "horizon"}, ""},
		"no overhead":               {map[string]any{"restart": "horizon", "restart_overhead": "0s"}, ""},
		"longer than the option":    {map[string]any{"restart": "horizon", "restart_overhead": "600s"}, ""},
		"an hour":                   {map[string]any{"restart": "horizon", "restart_overhead": "1h"}, ""},
		"a horizon of a few rounds": {map[string]any{"restart": "horizon", "horizon": "20s"}, "horizon: spans 20 s at this restart_overhead, and must be longer than it"},
		"not read with age":         {map[string]any{"restart": "age", "horizon": "20s"}, ""},
		"genetic and efficient":     {map[string]any{"search": "genetic", "efficiency_weight": 0.1}, "efficiency_weight: needs search exact"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := New().Decode(tc.config)
			text := ""
			for _, p := range problems {
				text += p.String()
			}
			if !strings.Contains(text, tc.problem) || (tc.problem == "") != (text == "") {
				t.Errorf("problems %q, want %q", text, tc.problem)
			}
		})
	}
}

// TestChangesStayWorthwhile asks whether a job that could do four times as much would move, at any price of a restart.
func TestChangesStayWorthwhile(t *testing.T) {
	for _, overhead := range []string{"0s", "30s", "120s", "200s", "300s", "600s"} {
		t.Run(overhead, func(t *testing.T) {
			v, candidates := busy(t, 8, 1)
			j := candidates[0].Job
			j.State, j.Seats, j.Held = core.Running, []core.Seat{{Devices: 1}}, 1
			rates := []float64{1, 2, 3, 4}
			candidates[0].Response.MaxReplicas = 4
			candidates[0].Response.Curves[0] = core.Curve{OneNode: rates, ManyNodes: rates}
			grants, err := component(t, New(), map[string]any{
				"restart": "horizon", "reference": "best", "fairness_p": 0.5, "restart_overhead": overhead,
			}).Allocate(t.Context(), v, candidates)
			if err != nil {
				t.Fatal(err)
			}
			if len(grants) != 1 || grants[0].Replicas != 4 {
				t.Errorf("granted %+v, want four replicas", grants)
			}
		})
	}
}
