package coretest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

func TestBuilders(t *testing.T) {
	cluster := MakeCluster().Nodes(2, "t4", 4).Nodes(1, "v100", 8).Nodes(1, "t4", 2).Health(2, core.Down).Obj()
	var names []string
	for _, n := range cluster.Nodes {
		names = append(names, n.Name)
	}
	if d := cmp.Diff([]string{"t4-0", "t4-1", "v100-0", "t4-2"}, names); d != "" {
		t.Errorf("node names (-want +got):\n%s", d)
	}
	if got := cluster.UsableDevices(); got != 10 {
		t.Errorf("usable devices: got %d, want 10", got)
	}

	v := MakeView(cluster).Now(120).Round(3).Jobs(
		MakeJob("pending").Submit(90).Elastic(1, 2, 4),
		MakeJob("waiting").Waiting(),
		MakeJob("running").Replicas(3).Running(60, Seat(0, 1, 3), Seat(1, 0)).Executed(10, 30).Progress(5, 2),
	).Obj()
	if d := cmp.Diff([]core.JobID{1, 2}, v.Active); d != "" {
		t.Errorf("active jobs (-want +got):\n%s", d)
	}
	running := v.Job(2)
	got := []float64{
		float64(v.Waiting), float64(v.Devices), float64(running.Held),
		running.ExecutedSeconds(120), running.AttainedService(120), running.WorkDone(120),
	}
	if d := cmp.Diff([]float64{1, 10, 3, 70, 30 + 3*60, 5 + 2*60}, got); d != "" {
		t.Errorf("waiting, devices, held, executed, attained, progress (-want +got):\n%s", d)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	inWorlds(t, func(t *T) {
		v, candidates := DrawView(t)
		q := question{View: v, inputs: inputs{Candidates: candidates, Plan: &core.Plan{}}}
		for _, c := range candidates {
			q.Jobs = append(q.Jobs, c.Job)
			q.Grants = append(q.Grants, core.Grant{Job: c.ID, Proposed: c.Seats})
			q.Placements = append(q.Placements, core.Placement{Job: c.ID, Seats: c.Seats})
		}
		pristine, destroyed := q.clone(), q.clone()
		if !same(q, pristine) {
			t.Fatalf("a clone differs (-original +clone):\n%s", diff(q, pristine))
		}
		destroyed.hide(nil)
		destroyed.scribble()
		if !same(q, pristine) {
			t.Fatalf("destroying a clone changed the original (-before +after):\n%s", diff(pristine, q))
		}
		if len(v.Active) > 0 && same(q, destroyed) {
			t.Fatalf("a destroyed question is still the same")
		}
	})
}

func TestSame(t *testing.T) {
	type pair struct {
		X float64
		P *int
	}
	one, other := 1, 1
	cases := map[string]struct {
		a, b any
		want bool
	}{
		"NaN equals NaN":         {pair{X: unknown}, pair{X: unknown}, true},
		"NaN differs from 0":     {pair{X: unknown}, pair{}, false},
		"pointers are followed":  {pair{P: &one}, pair{P: &other}, true},
		"nil differs from a 1":   {pair{}, pair{P: &one}, false},
		"nil is an empty slice":  {[]int(nil), []int{}, true},
		"slices differ at the 2": {[]int{1, 2}, []int{1, 3}, false},
		"slices differ in size":  {[]int{1}, []int{1, 3}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := same(tc.a, tc.b); got != tc.want {
				t.Errorf("same(%v, %v) = %v, want %v", tc.a, tc.b, got, tc.want)
			}
		})
	}
}
