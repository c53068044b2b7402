package sim

import (
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// tenant is a job on shared devices: its work in seconds alone, what it is, and where it runs from second 0 on.
type tenant struct {
	work  float64
	spec  core.JobSpec
	seats []core.Seat
}

// endsOf is when jobs end that all run from second 0 on.
func endsOf(t *testing.T, c Config, tenants []tenant) map[core.JobID]float64 {
	t.Helper()
	c.StallAfter = time.Hour
	cluster := &core.Cluster{Accelerators: []string{"t4"}, Sharing: core.Fractional, Nodes: []core.Node{{Name: "n", Devices: 4, DeviceMemoryGB: 16}}}
	w := &workload.Workload{}
	var changes []core.Change
	for i := range tenants {
		spec := tenants[i].spec
		spec.ID, spec.Name, spec.TotalWork = core.JobID(i), fmt.Sprintf("j%d", i), tenants[i].work
		if spec.Weight == 0 {
			spec.Weight = 1
		}
		w.Jobs = append(w.Jobs, workload.Job{Spec: spec, Model: phased{spec.TotalWork}})
		changes = append(changes, start(spec.ID, tenants[i].seats...))
	}
	backend, err := (&opener{config: c, settings: core.Settings{ID: "backend/simulator"}}).Open(t.Context(), cluster, w)
	if err != nil {
		t.Fatal(err)
	}
	s := backend.(*Simulator)
	if _, err := s.Next(t.Context(), by(0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	ends := map[core.JobID]float64{}
	for {
		seen, err := s.Next(t.Context(), core.Wake{BySeconds: math.Inf(1), OnEvents: true})
		if errors.Is(err, io.EOF) {
			return ends
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range seen.Events {
			if e.Kind == core.JobFinished {
				ends[e.Job] = e.AtSeconds
			}
		}
	}
}

func TestJobsOnSharedDevices(t *testing.T) {
	t.Parallel()
	on := func(devices core.DeviceSet) []core.Seat { return []core.Seat{seats(0, devices)} }
	pairs := core.NewPairTable([]core.Pair{
		{Accelerator: "t4", Applications: [2]string{"x", "y"}, Replicas: 1, Parts: [2]float64{0.8, 0.5}},
	})
	known := func(application string) core.JobSpec {
		return core.JobSpec{Application: application, Requested: 1, Pairs: pairs}
	}
	busy := func(utilisation float64) core.JobSpec { return core.JobSpec{Utilisation: utilisation} }
	for name, tc := range map[string]struct {
		model CoLocation
		jobs  []tenant
		want  map[core.JobID]float64
	}{
		"turns, and alone when the other is done": {CoLocation{Model: "turns"}, []tenant{{50, core.JobSpec{}, on(1)}, {100, core.JobSpec{}, on(1)}}, map[core.JobID]float64{0: 100, 1: 150}},
		"switches cost":                          {CoLocation{Model: "turns", SwitchRatio: 0.1}, []tenant{{45, core.JobSpec{}, on(1)}, {90, core.JobSpec{}, on(1)}}, map[core.JobID]float64{0: 100, 1: 145}},
		"turns by weight":                        {CoLocation{Model: "turns"}, []tenant{{75, core.JobSpec{Weight: 3}, on(1)}, {100, core.JobSpec{}, on(1)}}, map[core.JobID]float64{0: 100, 1: 175}},
		"three take turns":                       {CoLocation{Model: "turns"}, []tenant{{10, core.JobSpec{}, on(1)}, {10, core.JobSpec{}, on(1)}, {20, core.JobSpec{}, on(1)}}, map[core.JobID]float64{0: 30, 1: 30, 2: 40}},
		"others on other devices":                {CoLocation{Model: "turns"}, []tenant{{50, core.JobSpec{}, on(1)}, {100, core.JobSpec{}, on(2)}}, map[core.JobID]float64{0: 50, 1: 100}},
		"a gang is as fast as its slowest":       {CoLocation{Model: "turns"}, []tenant{{200, core.JobSpec{}, on(3)}, {50, core.JobSpec{}, on(2)}}, map[core.JobID]float64{0: 150, 1: 100}},
		"who computes on CPUs slows nobody down": {CoLocation{Model: "turns"}, []tenant{{100, core.JobSpec{}, on(1)}, {50, core.JobSpec{Share: &core.Share{}}, on(1)}}, map[core.JobID]float64{0: 100, 1: 50}},
		"parts of their own":                     {CoLocation{Model: "none"}, []tenant{{50, core.JobSpec{}, on(1)}, {100, core.JobSpec{}, on(1)}}, map[core.JobID]float64{0: 50, 1: 100}},
		"stages that do not meet":                {CoLocation{Model: "interleave", Period: "ideal"}, []tenant{{50, core.JobSpec{Iteration: core.Iteration{Load: 4}}, on(1)}, {100, core.JobSpec{Iteration: core.Iteration{Compute: 4}}, on(1)}}, map[core.JobID]float64{0: 50, 1: 100}},
		"stages as measured":                     {CoLocation{Model: "interleave", Period: "measured"}, []tenant{{50, core.JobSpec{Iteration: core.Iteration{Load: 4}}, on(1)}, {100, core.JobSpec{Iteration: core.Iteration{Compute: 4}}, on(1)}}, map[core.JobID]float64{0: 50 * 1.33 / 1.015, 1: 50*1.33/1.015 + 50}},
		"stages of one are not told":             {CoLocation{Model: "interleave", Period: "ideal"}, []tenant{{50, core.JobSpec{Iteration: core.Iteration{Load: 4}}, on(1)}, {100, core.JobSpec{}, on(1)}}, map[core.JobID]float64{0: 100, 1: 150}},
		"room for both":                          {CoLocation{Model: "hinge"}, []tenant{{50, busy(0.4), on(1)}, {100, busy(0.45), on(1)}}, map[core.JobID]float64{0: 50, 1: 100}},
		"more than the device has":               {CoLocation{Model: "hinge"}, []tenant{{87.76, busy(0.6), on(1)}, {100, busy(0.65), on(1)}}, map[core.JobID]float64{0: 100, 1: 112.24}},
		"an owner loses nothing":                 {CoLocation{Model: "guarantee"}, []tenant{{100, busy(0.5), on(1)}, {70, core.JobSpec{BestEffort: true}, on(1)}}, map[core.JobID]float64{0: 100, 1: 120}},
		"an owner loses":                         {CoLocation{Model: "guarantee", OwnerLoss: 0.1}, []tenant{{90, busy(0.5), on(1)}, {70, core.JobSpec{BestEffort: true}, on(1)}}, map[core.JobID]float64{0: 100, 1: 120}},
		"half of the memory is on the host":      {CoLocation{Model: "guarantee", SpillLoss: 0.5}, []tenant{{100, core.JobSpec{Utilisation: 0.5, DeviceMemoryGB: 12}, on(1)}, {57.5, core.JobSpec{BestEffort: true, DeviceMemoryGB: 8}, on(1)}}, map[core.JobID]float64{0: 100, 1: 120}},
		"as the pair was measured":               {CoLocation{Model: "table"}, []tenant{{80, known("x"), on(1)}, {100, known("y"), on(1)}}, map[core.JobID]float64{0: 100, 1: 150}},
		"a pair that was not":                    {CoLocation{Model: "table", Unknown: "turns"}, []tenant{{50, known("x"), on(1)}, {100, known("z"), on(1)}}, map[core.JobID]float64{0: 100, 1: 150}},
		"a table of the user's own":              {CoLocation{Model: "table", Table: "testdata/pairs.csv"}, []tenant{{60, known("x"), on(1)}, {100, known("y"), on(1)}}, map[core.JobID]float64{0: 100, 1: 175}},
		"nobody knows how busy they are":         {CoLocation{Model: "hinge"}, []tenant{{64.81, core.JobSpec{}, on(1)}, {64.81, core.JobSpec{}, on(1)}}, map[core.JobID]float64{0: 100, 1: 100}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, endsOf(t, Config{CoLocation: tc.model}, tc.jobs), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
		})
	}
}

// Two jobs are known by the table that each has: on a type that the cluster has, of as many replicas, and not a job beside itself.
func TestKnowsAny(t *testing.T) {
	table := core.NewPairTable([]core.Pair{
		{Accelerator: "v100", Applications: [2]string{"x", "y"}, Replicas: 1, Parts: [2]float64{0.8, 0.6}}, {Accelerator: "v100", Applications: [2]string{"z", "z"}, Replicas: 2, Parts: [2]float64{0, 0}},
	})
	job := func(application string, replicas int, pairs *core.PairTable) *core.JobSpec {
		return &core.JobSpec{Application: application, Requested: replicas, Pairs: pairs}
	}
	for name, tc := range map[string]struct {
		jobs []*core.JobSpec
		on   []string
		want bool
	}{
		"a pair":                               {[]*core.JobSpec{job("x", 1, table), job("y", 1, table)}, []string{"t4", "v100"}, true},
		"far apart":                            {[]*core.JobSpec{job("x", 1, table), job("z", 1, table), job("x", 1, table), job("x", 1, table), job("y", 1, table)}, []string{"v100"}, true},
		"on another type":                      {[]*core.JobSpec{job("x", 1, table), job("y", 1, table)}, []string{"t4"}, false},
		"of other replicas":                    {[]*core.JobSpec{job("x", 2, table), job("y", 1, table)}, []string{"v100"}, false},
		"two of a kind":                        {[]*core.JobSpec{job("z", 2, table), job("x", 1, table), job("z", 2, table)}, []string{"v100"}, true},
		"one of a kind":                        {[]*core.JobSpec{job("z", 2, table), job("x", 1, table)}, []string{"v100"}, false},
		"a kind with no pair":                  {[]*core.JobSpec{job("x", 1, table), job("x", 1, table)}, []string{"v100"}, false},
		"no table":                             {[]*core.JobSpec{job("x", 1, nil), job("y", 1, nil)}, []string{"v100"}, false},
		"an empty table":                       {[]*core.JobSpec{job("x", 1, core.NewPairTable(nil)), job("y", 1, core.NewPairTable(nil))}, []string{"v100"}, false},
		"nobody, and no device":                {nil, nil, false},
		"far apart, after one without a table": {[]*core.JobSpec{job("x", 1, nil), job("x", 1, table), job("z", 1, nil), job("y", 1, table)}, []string{"v100"}, true},
		"one without a table comes first":      {[]*core.JobSpec{job("x", 1, nil), job("y", 1, table)}, []string{"v100"}, false},
		"by the table of one alone":            {[]*core.JobSpec{job("y", 1, table), job("x", 1, nil)}, []string{"v100"}, false},
	} {
		if got := knowsAny(tc.jobs, tc.on); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
