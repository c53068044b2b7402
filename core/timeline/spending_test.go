package timeline_test

import (
	"testing"

	"github.com/quartet-sched/quartet/core"
)

// A node of a pool is paid for from the moment that it is ready until it is gone, by the price of each moment.
func TestSpendingOnPools(t *testing.T) {
	t.Parallel()
	c := &core.Cluster{
		Accelerators: []string{"t4"},
		Pools: []core.Pool{
			{Name: "own", Devices: 4, Max: 9, PricePerHour: 3600},
			{Name: "spot", Devices: 4, Max: 9, PricePerHour: 360, Prices: []core.Price{{FromSeconds: 50, PerHour: 720}}},
		},
		Nodes: []core.Node{
			{ID: 0, Name: "fixed", Devices: 2},
			{ID: 1, Name: "own-1", Devices: 4, Pool: "own"},
			{ID: 2, Name: "spot-1", Devices: 4, Pool: "spot", Health: core.Provisioning},
		},
	}
	s := storyOf(t, nil, c)
	c.Nodes = append(c.Nodes, core.Node{ID: 3, Name: "own-2", Devices: 4, Pool: "own"})
	s.round(30, nil, []core.Event{
		{Kind: core.NodeChanged, AtSeconds: 10, Node: 2, Health: core.Ready},
		{Kind: core.NodeAdded, AtSeconds: 20, Node: 3, Added: &core.AddedNode{Name: "own-2", Devices: 4, Pool: "own", Health: core.Provisioning}},
		{Kind: core.NodeChanged, AtSeconds: 25, Node: 3, Health: core.Ready},
		{Kind: core.NodeChanged, AtSeconds: 26, Node: 1, Health: core.Draining},
	})
	s.round(80, nil, []core.Event{
		{Kind: core.NodeChanged, AtSeconds: 30, Node: 0, Health: core.Down},
		{Kind: core.NodeChanged, AtSeconds: 40, Node: 3, Health: core.Down},
		{Kind: core.NodeRemoved, AtSeconds: 45, Node: 1},
		{Kind: core.NodeRemoved, AtSeconds: 60, Node: 2},
		{Kind: core.NodeRemoved, AtSeconds: 60, Node: 2},
	})
	s.finish(100)
	expect(t, "usage.csv", lines(usageHeader+",pool_nodes,pool_cost",
		"0,6,0,0,0,0,0,,,1,0",
		"10,10,0,0,0,0,0,,,2,10",
		"25,14,0,0,0,0,0,,,3,26.5",
		"26,10,0,0,0,0,0,,,3,28.6",
		"30,8,0,0,0,0,0,,,3,37",
		"40,4,0,0,0,0,0,,,3,58",
		"45,4,0,0,0,0,0,,,2,68.5",
		"60,0,0,0,0,0,0,,,1,86",
		"100,0,0,0,0,0,0,,,1,126",
	), &s.files.usage)
}
