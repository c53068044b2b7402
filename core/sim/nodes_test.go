package sim

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

func threeNodes() *core.Cluster {
	c := &core.Cluster{Accelerators: []string{"t4"}}
	for i := range 3 {
		c.Nodes = append(c.Nodes, core.Node{ID: core.NodeID(i), Name: fmt.Sprintf("n%d", i), Devices: 4})
	}
	return c
}

// eventsUpTo lists what becomes of nodes up to a moment, as "node state@moment".
func eventsUpTo(e *nodeEvents, upTo float64) []string {
	var changes []string
	for {
		change, ok := e.take(upTo)
		if !ok {
			return changes
		}
		changes = append(changes, fmt.Sprintf("%d %v@%v", change.node, change.to, change.at))
	}
}

// What chance does up to 60 s is given; what it draws after that comes later.
func TestTheScheduleAndChanceDoNotUndoEachOther(t *testing.T) {
	at := func(node string, seconds int, to string) NodeEvent {
		return NodeEvent{Node: node, At: time.Duration(seconds) * time.Second, To: to}
	}
	const never = 1e9
	for name, tc := range map[string]struct {
		schedule []NodeEvent
		chance   nodeHeap
		want     []string
	}{
		"a repair ends no scheduled outage": {
			[]NodeEvent{at("n0", 10, "down"), at("n0", 40, "ready")},
			nodeHeap{{at: 5, node: 0, to: core.Down}, {at: 20, node: 0, to: core.Ready}},
			[]string{"0 down@5", "0 ready@40"},
		},
		"nor a drain, which it uncovers": {
			[]NodeEvent{at("n0", 10, "draining"), at("n0", 40, "ready")},
			nodeHeap{{at: 15, node: 0, to: core.Down}, {at: 20, node: 0, to: core.Ready}},
			[]string{"0 draining@10", "0 down@15", "0 draining@20", "0 ready@40"},
		},
		"the schedule repairs nothing": {
			[]NodeEvent{at("n0", 10, "down"), at("n0", 40, "ready")},
			nodeHeap{{at: 20, node: 0, to: core.Down}},
			[]string{"0 down@10"},
		},
		"a failure of a draining node is told": {
			[]NodeEvent{at("n0", 10, "draining"), at("n0", 40, "ready")},
			nodeHeap{{at: 20, node: 0, to: core.Down}},
			[]string{"0 draining@10", "0 down@20"},
		},
		"both causes are told in order of time, then node": {
			[]NodeEvent{at("n2", 50, "down"), at("n0", 30, "down"), at("n0", 20, "draining")},
			nodeHeap{{at: 20, node: 1, to: core.Down}, {at: 50, node: 1, to: core.Ready}, {at: 40, node: 2, to: core.Down}},
			[]string{"0 draining@20", "1 down@20", "0 down@30", "2 down@40", "1 ready@50"},
		},
		"of one moment, the lower node comes first, whatever the cause": {
			[]NodeEvent{at("n2", 20, "down"), at("n0", 20, "down"), at("n1", 40, "draining")},
			nodeHeap{{at: 20, node: 1, to: core.Down}, {at: 40, node: 0, to: core.Down}, {at: 40, node: 2, to: core.Down}},
			[]string{"0 down@20", "1 down@20", "2 down@20"},
		},
		"of one moment and node, the schedule comes before chance": {
			[]NodeEvent{at("n0", 20, "draining")},
			nodeHeap{{at: 20, node: 0, to: core.Down}},
			[]string{"0 draining@20", "0 down@20"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newNodeEvents(Config{NodeEvents: tc.schedule}, threeNodes(), newStream(1, "nodes"))
			e.chance, e.mtbf, e.repair = tc.chance, never, never
			if diff := cmp.Diff(tc.want, eventsUpTo(&e, 60)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodeEventsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Config{Failures: Failures{MTBF: 100 * time.Second, Repair: 20 * time.Second}}
		for range rapid.IntRange(0, 12).Draw(t, "scheduled") {
			c.NodeEvents = append(c.NodeEvents, NodeEvent{
				Node: fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(t, "node")),
				At:   time.Duration(rapid.IntRange(0, 500).Draw(t, "at")) * time.Second,
				To:   rapid.SampledFrom(states[:core.Down+1]).Draw(t, "to"),
			})
		}
		e := newNodeEvents(c, threeNodes(), newStream(rapid.Uint64().Draw(t, "seed"), "nodes"))
		schedule := e.schedule // sorted
		var health [3]core.Health
		last := math.Inf(-1)
		for upTo := 0.0; upTo <= 600; upTo += 50 {
			for {
				change, ok := e.take(upTo)
				if !ok {
					break
				}
				if change.at < last || change.at > upTo {
					t.Fatalf("a change at %v s, told after one at %v s and up to %v s", change.at, last, upTo)
				}
				last = change.at
				if change.to == health[change.node] {
					t.Fatalf("node %d becomes %v again at %v s", change.node, change.to, change.at)
				}
				health[change.node] = change.to
			}
			for _, at := range [...]core.NodeID{0, 1, 2} {
				planned := core.Ready
				for _, s := range schedule {
					if s.node == at && s.at <= upTo {
						planned = s.to
					}
				}
				if health[at] != planned && health[at] != core.Down {
					t.Fatalf("node %d is %v at %v s, scheduled as %v", at, health[at], upTo, planned)
				}
			}
		}
		if e.next() <= 600 {
			t.Fatalf("an event at %v s is left", e.next())
		}
	})
}

// What a cluster says of its nodes holds until something happens to them.
func TestANodeThatIsNotReadyBecomesSo(t *testing.T) {
	c := threeNodes()
	c.Nodes[0].Health, c.Nodes[1].Health = core.Draining, core.Down
	e := newNodeEvents(Config{NodeEvents: []NodeEvent{
		{"n0", 10 * time.Second, "ready"}, {"n1", 20 * time.Second, "down"}, {"n1", 30 * time.Second, "ready"}, {"n2", 40 * time.Second, "ready"},
	}}, c, newStream(1, "nodes"))
	if diff := cmp.Diff([]string{"0 ready@10", "1 ready@30"}, eventsUpTo(&e, 60)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// Of many nodes, the mean time to the first failure and from there to the repair is as configured, within 5 %.
func TestMeanTimesOfFailures(t *testing.T) {
	const nodes = 10_000
	c := &core.Cluster{Nodes: make([]core.Node, nodes)}
	e := newNodeEvents(Config{Failures: Failures{MTBF: time.Hour, Repair: time.Minute}}, c, newStream(1, "nodes"))
	var failed, repaired [nodes]float64
	for left := nodes; left > 0; {
		change, _ := e.take(e.next())
		switch n := change.node; {
		case change.to == core.Down && failed[n] == 0:
			failed[n] = change.at
		case change.to == core.Ready && repaired[n] == 0:
			repaired[n] = change.at
			left--
		}
	}
	first, repair := 0.0, 0.0
	for n := range nodes {
		first, repair = first+failed[n]/nodes, repair+(repaired[n]-failed[n])/nodes
	}
	if math.Abs(first/3600-1) > 0.05 || math.Abs(repair/60-1) > 0.05 {
		t.Errorf("fail after %v s and are repaired in %v s on average, want 3600 s and 60 s", first, repair)
	}
}

// Both nodes change within a round; the earlier change is one of chance.
func TestPerRoundTellsNodesInOrderOfTime(t *testing.T) {
	s := open(t, Config{
		NodeEvents:  []NodeEvent{{"n0", 50 * time.Second, "down"}},
		Publication: Publication{FirstRound: oneInterval, Progress: perRound},
	}, 2, arrival{0, phased{100}})
	s.devices.nodes.chance, s.devices.nodes.repair = nodeHeap{{at: 40, node: 1, to: core.Down}}, 1e9
	seen, err := s.Next(context.Background(), by(60, 60))
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	for _, e := range seen.Events {
		if e.Kind == core.NodeChanged {
			changes = append(changes, fmt.Sprintf("%d %v@%v", e.Node, e.Health, e.AtSeconds))
		}
	}
	if diff := cmp.Diff([]string{"1 down@40", "0 down@50"}, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

// Each event costs the logarithm of the number of nodes.
func BenchmarkFailures(b *testing.B) {
	for _, nodes := range []int{100, 10_000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			c := &core.Cluster{Nodes: make([]core.Node, nodes)}
			e := newNodeEvents(Config{Failures: Failures{MTBF: time.Hour, Repair: time.Minute}}, c, newStream(1, "nodes"))
			b.ReportAllocs()
			for b.Loop() {
				e.take(e.next())
			}
		})
	}
}
