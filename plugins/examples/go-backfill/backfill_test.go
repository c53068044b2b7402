package main

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
)

func TestConformance(t *testing.T) {
	for name, settings := range map[string]map[string]any{
		"defaults": nil, "careful": {"slack": 2.5, "depth": 1}, "careless": {"slack": 0},
	} {
		t.Run(name, func(t *testing.T) { coretest.RunAllocator(t, New(), coretest.WithConfig(settings)) })
	}
}

// TestBackfill is a cluster of 8 devices on which "wide", of 6, runs until second 1000. "head" needs all 8, so it is
// promised second 1000; 2 devices are free until then, and none is spare at that moment.
func TestBackfill(t *testing.T) {
	cases := map[string]struct {
		settings map[string]any
		head     int // replicas
		want     []string
	}{
		"only who ends in time passes":        {nil, 8, []string{"wide", "short"}},
		"spare devices let the long one pass": {nil, 6, []string{"wide", "long"}},
		"slack makes the short one too long":  {map[string]any{"slack": 2}, 8, []string{"wide"}},
		"nobody passes who is not looked at":  {map[string]any{"depth": 1}, 8, []string{"wide"}},
		"nobody is reserved for who fits":     {nil, 2, []string{"wide", "head"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			view := coretest.MakeView(coretest.MakeCluster().Nodes(2, "t4", 4).Obj()).Now(400).Jobs(
				coretest.MakeJob("wide").Replicas(6).Work(1000).Running(0, coretest.Seat(0, 0, 1, 2, 3), coretest.Seat(1, 0, 1)),
				coretest.MakeJob("head").Replicas(tc.head).Work(100).Waiting(),
				coretest.MakeJob("long").Replicas(2).Work(700).Waiting(),
				coretest.MakeJob("short").Replicas(2).Work(600).Waiting(),
			).Obj()
			factory := New()
			config, problems := factory.Decode(tc.settings)
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			policy, err := factory.New(config, core.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			grants, err := policy.Allocate(t.Context(), view, coretest.Candidates(view, atUnitRate))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range grants {
				got = append(got, view.Job(g.Job).Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("granted (-want +got):\n%s", diff)
			}
			wantUntil := 400.0
			if tc.head == 2 { // nobody is left to pass it
				wantUntil = math.Inf(1)
			}
			if standing := policy.(core.Steady).Standing(); standing.UntilSeconds != wantUntil {
				t.Errorf("stands until %v, want %v", standing.UntilSeconds, wantUntil)
			}
		})
	}
}

// atUnitRate does one unit of work a second, on whatever the job asks for.
func atUnitRate(j *core.Job) core.Response {
	r := coretest.Rigid(j)
	rates := make([]float64, 8)
	for i := range rates {
		rates[i] = 1
	}
	r.Curves = []core.Curve{{OneNode: rates, ManyNodes: rates}}
	r.RemainingWork = j.TotalWork
	return r
}
