package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

// comesTo is a node of pool "p" that is on its way, and should be ready at a moment; 0 when nobody knows.
func comesTo(id core.NodeID, at, expected float64) core.Event {
	return core.Event{Kind: core.NodeAdded, AtSeconds: at, Node: id, Added: &core.AddedNode{
		Name: fmt.Sprintf("p-%d", id), Accelerator: "t4", Devices: 4, Pool: "p", Health: core.Provisioning, ExpectedSeconds: expected,
	}}
}

// Jobs are told that they wait for nodes of a pool, and when these should be ready. One node with four devices is there, and the pool
// has up to three more.
func TestJobsAwaitNodes(t *testing.T) {
	ready := func(id core.NodeID, at float64) core.Event {
		return core.Event{Kind: core.NodeChanged, AtSeconds: at, Node: id}
	}
	never := func(id core.NodeID, at float64) core.Event {
		return core.Event{Kind: core.NodeRemoved, AtSeconds: at, Node: id}
	}
	down := core.Event{Kind: core.NodeChanged, Health: core.Down}
	bound := submit(0, 0, 8)
	bound.Spec.Accelerators = []string{"h100"}
	type rounds [][]core.Event
	for name, tc := range map[string]struct {
		rounds rounds
		fixed  bool // nobody has the pool grow
		want   string
	}{
		"nodes that nobody asked for yet": {rounds{{submit(0, 0, 8)}, {}}, false, `
			1: job 0 defer awaiting_nodes (wants 8 devices, 4 available)`},
		"a node that comes": {rounds{{submit(0, 0, 8)}, {comesTo(1, 60, 150)}, {}}, false, `
			1: job 0 defer awaiting_nodes (wants 8 devices, 4 available)
			2: job 0 defer awaiting_nodes (wants 8 devices, 4 available), nodes expected at 2m30s`},
		"nobody knows when": {rounds{{comesTo(1, 0, 0), submit(0, 0, 8)}, {}}, false, `
			1: job 0 defer awaiting_nodes (wants 8 devices, 4 available)`},
		"as many nodes as it takes": {rounds{{comesTo(1, 0, 300), comesTo(2, 0, 0), comesTo(3, 0, 100), submit(0, 0, 12), submit(1, 0, 16)}}, false, `
			1: job 0 defer awaiting_nodes (wants 12 devices, 4 available), nodes expected at 5m0s
			1: job 1 defer awaiting_nodes (wants 16 devices, 4 available)`},
		"the node does not come": {rounds{{comesTo(1, 0, 100), submit(0, 0, 8)}, {never(1, 60)}, {comesTo(2, 120, 220)}}, false, `
			1: job 0 defer awaiting_nodes (wants 8 devices, 4 available), nodes expected at 1m40s
			2: job 0 defer awaiting_nodes (wants 8 devices, 4 available)
			3: job 0 defer awaiting_nodes (wants 8 devices, 4 available), nodes expected at 3m40s`},
		"the devices that there are go to others": {rounds{{comesTo(1, 0, 100), submit(0, 0, 3), submit(1, 0, 4)}}, false, `
			1: job 1 defer awaiting_nodes (wants 4 devices, 1 available), nodes expected at 1m40s`},
		"others hold them, and nothing comes": {rounds{{submit(0, 0, 3), submit(1, 0, 4)}}, false, `
			1: job 1 defer waiting_for_devices`},
		"others take what came, and more comes": {rounds{{comesTo(1, 0, 100), submit(0, 0, 4), submit(1, 0, 3), submit(2, 0, 4)}, {ready(1, 60)}, {comesTo(2, 120, 200)}}, false, `
			1: job 1 defer awaiting_nodes (wants 3 devices, 0 available), nodes expected at 1m40s
			1: job 2 defer waiting_for_devices
			3: job 2 defer awaiting_nodes (wants 4 devices, 1 available), nodes expected at 3m20s`},
		"a node that is down comes first": {rounds{{down, submit(0, 0, 4)}, {comesTo(1, 60, 100)}}, false, `
			1: job 0 defer node_unavailable: 4 of the devices that it can use are on nodes that are down or draining (wants 4 devices, 0 available)`},
		"larger than it all can be": {rounds{{submit(0, 0, 17)}, {comesTo(1, 60, 100)}, {comesTo(2, 120, 90)}}, false, `
			1: job 0 reject exceeds_cluster (wants 17 devices, 16 available)`},
		"of a type that does not come": {rounds{{bound}, {comesTo(1, 60, 100)}}, false, `
			1: job 0 reject accelerator_missing (wants 8 devices, 0 available)`},
		"all that the pool can have": {rounds{{submit(0, 0, 16)}}, false, `
			1: job 0 defer awaiting_nodes (wants 16 devices, 4 available)`},
		"the pool does not grow": {rounds{{submit(0, 0, 3), submit(1, 0, 4)}}, true, `
			1: job 1 defer waiting_for_devices`},
	} {
		t.Run(name, func(t *testing.T) {
			c := &core.Cluster{
				Accelerators: []string{"t4"}, MayGrow: !tc.fixed,
				Nodes: []core.Node{{Name: "fixed", Devices: 4}}, Pools: []core.Pool{{Name: "p", Devices: 4, Max: 3}},
			}
			b := &script{}
			for i, events := range tc.rounds {
				b.observations = append(b.observations, core.Observation{NowSeconds: 60 * float64(i), Events: events})
			}
			var told verdicts
			if err := core.NewPipeline(c, fakes{}.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}}).Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimPrefix(strings.ReplaceAll(tc.want, "\t", ""), "\n"), "\n")
			if diff := cmp.Diff(want, []string(told)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// verdicts are what jobs were told, in words.
type verdicts []string

func (v *verdicts) ObserveRound(r *core.Report) error {
	for i := range r.Verdicts {
		*v = append(*v, fmt.Sprintf("%d: job %d %v %s", r.View.Round, r.Verdicts[i].Job, r.Verdicts[i].Code, r.Verdicts[i].Explain()))
	}
	return nil
}

// A moment that is none is refused, of a node and of a verdict.
func TestExpectedMomentsAreMoments(t *testing.T) {
	run := func(f fakes, events ...core.Event) error {
		b := &script{observations: []core.Observation{{Events: events}}}
		return core.NewPipeline(twoNodes(), f.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}}).Run(context.Background(), b)
	}
	n := joins(0, core.Provisioning)
	n.Added.ExpectedSeconds = -1
	if err := run(fakes{}, n); err == nil || !strings.Contains(err.Error(), "that is expected at -1") {
		t.Errorf("a node expected before the start: %v", err)
	}
	f := fakes{seat: seatFirst{func(core.Seating) core.Seating {
		return core.Seating{Unseated: []core.Verdict{{Code: core.Defer, Reason: core.AwaitingNodes, ExpectedSeconds: -5}}}
	}}}
	if err := run(f, submit(0, 0, 1)); err == nil || !strings.Contains(err.Error(), "expects nodes at -5") {
		t.Errorf("a verdict that expects nodes before the start: %v", err)
	}
}

// How much a job waits for is what it was granted; a job that mixes types waits for what makes up the sum. A placer that refuses a job
// for which enough is free says itself why, and so does an admitter, unless it says that nodes are awaited.
func TestWhatAJobAwaits(t *testing.T) {
	elastic := submit(0, 0, 8)
	elastic.Spec.MinReplicas, elastic.Spec.MaxReplicas = 2, 8
	mixing := submit(0, 0, 8)
	mixing.Spec.MixesTypes = true
	refuses := fakes{seat: seatFirst{func(core.Seating) core.Seating {
		return core.Seating{Unseated: []core.Verdict{{Code: core.Defer, Reason: core.Fragmented}}}
	}}}
	grants := fakes{grant: grantAll{change: func(g []core.Grant) []core.Grant {
		g[0].Replicas = 8
		return g
	}}}
	grants.fixed = rigid{respond: func(r []core.Response) []core.Response {
		for i := range r {
			r[i].MinReplicas = 2
		}
		return r
	}}
	defers := func(v core.Verdict) fakes {
		v.Code = core.Defer
		return fakes{admit: admitAll{[]core.Verdict{v}}}
	}
	for name, tc := range map[string]struct {
		fakes fakes
		job   core.Event
		want  string
	}{
		"what it was granted":         {grants, elastic, "awaiting_nodes (wants 8 devices, 4 available), nodes expected at 3m20s"},
		"a sum of types":              {fakes{}, mixing, "awaiting_nodes (wants 8 devices, 5 available), nodes expected at 1m40s"},
		"one type is not enough":      {fakes{}, submit(0, 0, 8), "awaiting_nodes (wants 8 devices, 4 available), nodes expected at 3m20s"},
		"enough is free":              {refuses, submit(0, 0, 4), "fragmented"},
		"held back for the load":      {defers(core.Verdict{Reason: core.LoadLimit}), submit(0, 0, 4), "load_limit"},
		"held back for nodes":         {defers(core.Verdict{Reason: core.AwaitingNodes}), submit(0, 0, 4), "awaiting_nodes, nodes expected at 1m40s"},
		"held back until a moment":    {defers(core.Verdict{Reason: core.AwaitingNodes, ExpectedSeconds: 600}), submit(0, 0, 4), "awaiting_nodes, nodes expected at 10m0s"},
		"held back for days at least": {defers(core.Verdict{Reason: core.AwaitingNodes, ExpectedSeconds: 1e300}), submit(0, 0, 4), "awaiting_nodes, nodes expected at 277777h46m40s"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &core.Cluster{
				Accelerators: []string{"t4", "h100"}, MayGrow: true,
				Nodes: []core.Node{{Name: "fixed", Devices: 4}, {ID: 1, Name: "one", Devices: 1, Accelerator: 1}},
				Pools: []core.Pool{{Name: "p", Devices: 4, Max: 3}, {Name: "q", Devices: 4, Max: 1, Accelerator: 1}},
			}
			other := comesTo(2, 0, 100)
			other.Added.Accelerator, other.Added.Pool = "h100", "q"
			b := &script{observations: []core.Observation{{Events: []core.Event{other, comesTo(3, 0, 200), tc.job}}}}
			var told verdicts
			if err := core.NewPipeline(c, tc.fakes.stages(), core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 60}, Observers: []core.Observer{&told}}).Run(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"1: job 0 defer " + tc.want}, []string(told)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
