package fake_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/fake"
	"github.com/quartet-sched/quartet/core/workload"
)

func pooled() *core.Cluster {
	return &core.Cluster{
		Accelerators: []string{"gpu"}, Nodes: []core.Node{{ID: 0, Name: "n0", Devices: 1}},
		Pools: []core.Pool{{Name: "p", Devices: 2, Max: 3}},
	}
}

func scale(t *testing.T, b *fake.Backend, round, nodes int, remove ...core.NodeID) {
	t.Helper()
	if err := b.Scale(t.Context(), round, []core.PoolTarget{{Pool: "p", Nodes: nodes, Remove: remove}}); err != nil {
		t.Fatal(err)
	}
}

// changes are what is told of nodes until a moment, with seconds to two digits.
func changes(t *testing.T, b *fake.Backend, until float64) (list []string) {
	t.Helper()
	for {
		o, err := b.Next(t.Context(), core.Wake{BySeconds: until, OnEvents: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range o.Events {
			switch {
			case e.Kind == core.NodeAdded:
				list = append(list, fmt.Sprintf("%.2f: %s is %v until %.2f", e.AtSeconds, e.Added.Name, e.Added.Health, e.Added.ExpectedSeconds))
			case e.Kind == core.NodeRemoved:
				list = append(list, fmt.Sprintf("%.2f: node %d is gone", e.AtSeconds, e.Node))
			case e.Kind == core.NodeChanged:
				list = append(list, fmt.Sprintf("%.2f: node %d is %v", e.AtSeconds, e.Node, e.Health))
			}
		}
		apply(t, b)
		if o.NowSeconds >= until {
			return list
		}
	}
}

// What is left to chance follows from the seed, and nobody is told of it before.
func TestChanceFollowsFromTheSeed(t *testing.T) {
	pool := backend.Pool{Pool: "p", Provisioning: 10 * time.Second, Spread: 20 * time.Second, Fails: 0.4, Evictions: time.Minute, Notice: 5 * time.Second}
	run := func(seed uint64) (list []string) {
		w := &workload.Workload{Open: true}
		b := fake.Open(pooled(), w, fake.Options{Pools: []backend.Pool{pool}, Seed: seed, StallSeconds: math.Inf(1)})
		list = changes(t, b, 1)
		for round := 1; round < 20; round++ {
			scale(t, b, round, 3)
			list = append(list, changes(t, b, 30*float64(round))...)
		}
		return list
	}
	first := run(1)
	if diff := cmp.Diff(first, run(1)); diff != "" {
		t.Errorf("(-first +again)\n%s", diff)
	}
	if cmp.Equal(first, run(2)) {
		t.Error("another seed makes no difference")
	}
	for _, line := range first {
		var at, until float64
		if _, err := fmt.Sscanf(strings.Join(strings.Fields(line)[5:], ""), "%f", &until); err != nil || !strings.Contains(line, "provisioning") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%f:", &at); err != nil || math.Abs(until-at-20) > 0.011 {
			t.Errorf("%q: want it expected after 10 s and half of the 20 s that it may take longer", line)
		}
	}
	for _, word := range []string{"provisioning until", "is ready", "is draining", "is gone"} {
		if !strings.Contains(strings.Join(first, "\n"), word) {
			t.Errorf("no node %s: the test shows nothing\n%s", word, strings.Join(first, "\n"))
		}
	}
}

// The cluster may grow while its pool has fewer nodes than it may have, as far as the pipeline knows.
func TestTheClusterMayGrow(t *testing.T) {
	c := pooled()
	b := fake.Open(c, &workload.Workload{Open: true}, fake.Options{Pools: []backend.Pool{{Pool: "p", Provisioning: time.Second, Evictions: time.Hour}}})
	if p := c.Pools[0]; !c.MayGrow || p.ProvisioningSeconds != 1 || !p.Spot {
		t.Errorf("it may grow: %v; the pool is told as %+v", c.MayGrow, p)
	}
	changes(t, b, 1)
	scale(t, b, 1, 3)
	if !c.MayGrow {
		t.Error("it may not grow before the pipeline is told of the nodes")
	}
	changes(t, b, 2)
	if c.MayGrow {
		t.Error("it may grow with all the nodes that it may have")
	}
	scale(t, b, 2, 2, 3)
	changes(t, b, 3)
	if !c.MayGrow {
		t.Error("it may not grow after a node left")
	}
}

func TestNodesOfPoolsAndOrders(t *testing.T) {
	b := fake.Open(pooled(), jobs(100), fake.Options{})
	told(t, b)
	apply(t, b, on(0, 0))
	scale(t, b, 1, 2)
	changes(t, b, 1)
	if err := b.Scale(t.Context(), 2, []core.PoolTarget{{Pool: "q", Nodes: 1}}); err == nil || !strings.Contains(err.Error(), `pool "q"`) {
		t.Errorf("a pool that there is not: %v", err)
	}
	if err := b.SetHealth(t.Context(), "p-1", core.Draining); err != nil {
		t.Fatal(err)
	}
	scale(t, b, 2, 2) // one of them takes no jobs
	want := []string{"1.00: node 2 is draining", "1.00: p-2 is provisioning until 1.00", "1.00: node 3 is ready"}
	if diff := cmp.Diff(want, changes(t, b, 2)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	apply(t, b, core.Change{Round: 3, Action: core.Move, Job: 0, Seats: []core.Seat{{Node: 1, Devices: 0b10}}})
	scale(t, b, 3, 1, 1)
	if err := b.SetHealth(t.Context(), "p-0", core.Ready); err == nil || !strings.Contains(err.Error(), "leaves its pool") {
		t.Errorf("a node that leaves is made ready: %v", err)
	}
	if err := b.SetHealth(t.Context(), "p-0", core.Down); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2.00: node 1 is draining", "2.00: node 1 is down", "2.00: node 1 is gone"}, changes(t, b, 3)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := b.SetHealth(t.Context(), "p-0", core.Ready); err == nil || !strings.Contains(err.Error(), `no node "p-0"`) {
		t.Errorf("a node that is gone is made ready: %v", err)
	}
}
