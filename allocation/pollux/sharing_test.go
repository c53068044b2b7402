package pollux

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/coretest/drawn"
)

// drawShared is a view in which some running jobs are on devices of others, all or some of them.
func drawShared(t *rapid.T) (*core.View, []core.Candidate) {
	v, candidates := drawn.View(t)
	v.Cluster.Sharing = core.Fractional
	for i := range candidates {
		for k := range candidates[:i] {
			a, b := &candidates[k], &candidates[i]
			if a.Held == 0 || b.Held == 0 || !rapid.Bool().Draw(t, "together") {
				continue
			}
			n := rapid.IntRange(1, min(len(a.Seats), len(b.Seats))).Draw(t, "nodes that they share")
			for at, s := range b.Seats[:n] {
				if on := a.Seats[at]; on.Node == s.Node {
					b.Seats[at].Devices = on.Devices.Lowest(s.Devices.Count())
				}
			}
			b.Held = core.Replicas(b.Seats)
		}
	}
	return v, candidates
}

// Whoever shares a device stays, and what others are proposed is theirs alone: a whole device each.
func TestSharedDevicesAreNotShared(t *testing.T) {
	for name, config := range map[string]map[string]any{
		"exact":            nil,
		"blind":            {"types": "blind"},
		"in place":         {"resize": map[string]any{"in_place": true}},
		"genetic":          {"search": "genetic", "generations": 3, "population": 6},
		"genetic in place": {"search": "genetic", "generations": 3, "population": 6, "resize": map[string]any{"in_place": true}},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				v, candidates := drawShared(rt)
				p := component(t, New(), config)
				for range 2 { // the genetic search starts from what it found before
					grants, err := p.Allocate(t.Context(), v, candidates)
					if err != nil {
						rt.Fatal(err)
					}
					checkApart(rt, v, grants)
				}
			})
		})
	}
}

func checkApart(t *rapid.T, v *core.View, grants []core.Grant) {
	holders := map[core.NodeID]map[int][]core.JobID{}
	for i := range grants {
		for _, s := range grants[i].Proposed {
			if holders[s.Node] == nil {
				holders[s.Node] = map[int][]core.JobID{}
			}
			for rest := s.Devices; rest != 0; rest &= rest - 1 {
				holders[s.Node][rest.First()] = append(holders[s.Node][rest.First()], grants[i].Job)
			}
		}
	}
	for i := range grants {
		g := &grants[i]
		stays := core.SameSeats(g.Proposed, v.Jobs[g.Job].Seats)
		for _, s := range g.Proposed {
			if s.Devices&^v.Cluster.Nodes[s.Node].Usable() != 0 {
				t.Fatalf("job %d is proposed devices %s of node %d, which has %s", g.Job, s.Devices, s.Node, v.Cluster.Nodes[s.Node].Usable())
			}
			for rest := s.Devices; rest != 0 && !stays; rest &= rest - 1 {
				if on := holders[s.Node][rest.First()]; len(on) > 1 {
					t.Fatalf("job %d moves to device %d of node %d, which is proposed to %v", g.Job, rest.First(), s.Node, on)
				}
			}
		}
	}
}

// Two jobs on one device keep it, and a third gets the other; where all are shared, it waits.
func TestJobsThatShareADeviceStay(t *testing.T) {
	for name, tc := range map[string]struct {
		search string
		nodes  int
		want   map[core.JobID]core.NodeID
	}{
		"exact":              {"exact", 2, map[core.JobID]core.NodeID{0: 0, 1: 0, 2: 1}},
		"genetic":            {"genetic", 2, map[core.JobID]core.NodeID{0: 0, 1: 0, 2: 1}},
		"exact, no room":     {"exact", 1, map[core.JobID]core.NodeID{0: 0, 1: 0}},
		"genetic, no room":   {"genetic", 1, map[core.JobID]core.NodeID{0: 0, 1: 0}},
		"exact, ten devices": {"exact", 10, map[core.JobID]core.NodeID{0: 0, 1: 0, 2: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := coretest.MakeCluster().Nodes(tc.nodes, "t4", 1).Obj()
			cluster.Sharing = core.Fractional
			on := core.Seat{Node: 0, Devices: 1}
			v := coretest.MakeView(cluster).Jobs(
				coretest.MakeJob("a").ID(0).Running(0, on), coretest.MakeJob("b").ID(1).Running(0, on), coretest.MakeJob("c").ID(2),
			).Obj()
			v.NowSeconds, v.IntervalSeconds, v.OnEvents = 600, 60, true
			var candidates []core.Candidate
			for _, j := range v.Jobs {
				candidates = append(candidates, core.Candidate{Job: j, Response: &core.Response{Job: j.ID, MinReplicas: 1, MaxReplicas: 1}})
			}
			grants, err := component(t, New(), map[string]any{"search": tc.search}).Allocate(t.Context(), v, candidates)
			if err != nil {
				t.Fatal(err)
			}
			got := map[core.JobID]core.NodeID{}
			for _, g := range grants {
				got[g.Job] = g.Proposed[0].Node
			}
			for id, want := range tc.want {
				if node, granted := got[id]; !granted || node != want && id < 2 || node == 0 && id == 2 {
					t.Errorf("jobs are granted nodes %v, want %v", got, tc.want)
				}
			}
			if len(got) != len(tc.want) {
				t.Errorf("jobs are granted nodes %v, want %v", got, tc.want)
			}
		})
	}
}
