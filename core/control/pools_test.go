package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/control/controlv1"
)

// The nodes are listed with their pools, and with when those on their way should be ready, as long as that lies ahead.
func TestNodesOfPools(t *testing.T) {
	c := cluster()
	c.Pools = []core.Pool{{Name: "p", Devices: 4, Max: 3, ProvisioningSeconds: 90}}
	c.Nodes[1].Pool, c.MayGrow = "p", true
	b := NewBoard(c)
	w := newWorldOf(t, c, b)
	_, path := serve(t, &fake{}, b, discard)
	client := dial(t, path)
	listed := func() *controlv1.NodesResponse {
		t.Helper()
		m, err := client.Cluster(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	fixed := &controlv1.Node{Name: c.Nodes[0].Name, Accelerator: "t4", Devices: 4, Health: "ready"}
	first := &controlv1.Node{Name: c.Nodes[1].Name, Accelerator: "t4", Devices: 4, Health: "ready", Pool: "p"}
	coming := &controlv1.Node{Name: "p-1", Accelerator: "t4", Devices: 4, Health: "provisioning", Pool: "p", ExpectedSeconds: 20}
	want := &controlv1.NodesResponse{
		Nodes: []*controlv1.Node{fixed, first}, MayGrow: true,
		Pools: []*controlv1.Pool{{Name: "p", Accelerator: "t4", Devices: 4, MaxNodes: 3, ProvisioningSeconds: 90}},
	}
	differs := func(when string) {
		t.Helper()
		if diff := cmp.Diff(want, listed(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: -want +got\n%s", when, diff)
		}
	}
	differs("before the first round")

	w.report(core.Event{Kind: core.NodeAdded, Node: 2, Added: &core.AddedNode{
		Name: "p-1", Accelerator: "t4", Devices: 4, Pool: "p", Health: core.Provisioning, ExpectedSeconds: 20,
	}})
	c.MayGrow = false
	w.round()
	want.Nodes, want.MayGrow = append(want.GetNodes(), coming), false
	differs("it is on its way")

	w.round()
	w.round() // at 20 s
	coming.ExpectedSeconds = 0
	differs("it is late")

	w.report(core.Event{Kind: core.NodeChanged, Node: 2, Health: core.Ready})
	w.round()
	coming.Health = "ready"
	differs("it is ready")
}
