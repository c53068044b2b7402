package core

import (
	"slices"
	"strings"
	"testing"
)

func poolState(pinned bool) *state {
	c := &Cluster{Accelerators: []string{"t4"}, Pools: []Pool{{Name: "p", Devices: 4, Max: 6}, {Name: "q", Devices: 4, Min: 1, Max: 2}}}
	for i, n := range []Node{{Pool: "p"}, {Pool: "p"}, {Pool: "p", Health: Provisioning}, {Pool: "p"}, {Pool: "p", Health: Gone}, {Pool: "q"}, {Pool: "p", Health: Draining}} {
		n.ID, n.Devices = NodeID(i), 4
		c.Nodes = append(c.Nodes, n)
	}
	s := &state{}
	s.init(c, RoundOptions{})
	s.running = []*Job{
		{JobSpec: &JobSpec{}, Seats: []Seat{{Node: 0, Devices: 0b11}}},
		{JobSpec: &JobSpec{Pinned: pinned}, Seats: []Seat{{Node: 3, Devices: 0b1}}},
	}
	return s
}

// Who leaves: those that a scaler names, those that are not ready, those with the fewest devices held, the last ones. No pinned job loses its node.
func TestNodesThatLeave(t *testing.T) {
	for name, tc := range map[string]struct {
		pinned bool
		count  int
		hinted []NodeID
		want   []NodeID
	}{
		"the one that is not ready":    {count: 1, want: []NodeID{2}},
		"then by devices held":         {count: 3, want: []NodeID{2, 1, 3}},
		"all":                          {count: 9, want: []NodeID{2, 1, 3, 0}},
		"a pinned job keeps its node":  {pinned: true, count: 9, want: []NodeID{2, 1, 0}},
		"hints come first":             {count: 2, hinted: []NodeID{0}, want: []NodeID{0, 2}},
		"hints that cannot":            {pinned: true, count: 1, hinted: []NodeID{3, 4, 5, 6}, want: []NodeID{2}},
		"a hint twice":                 {count: 2, hinted: []NodeID{1, 1}, want: []NodeID{1, 2}},
		"more hints than are to leave": {count: 1, hinted: []NodeID{3, 0}, want: []NodeID{3}},
	} {
		if got := poolState(tc.pinned).leaving("p", tc.count, tc.hinted); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestPoolTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		targets []PoolTarget
		want    string // empty for none
	}{
		"none":              {nil, ""},
		"within bounds":     {[]PoolTarget{{Pool: "p", Nodes: 6, Remove: []NodeID{1}}, {Pool: "q", Nodes: 1}}, ""},
		"of no pool":        {[]PoolTarget{{Pool: "r"}}, `pool "r", which there is not`},
		"too many":          {[]PoolTarget{{Pool: "p", Nodes: 7}}, "wants 7 nodes"},
		"too few":           {[]PoolTarget{{Pool: "q"}}, "wants 0 nodes"},
		"two of one pool":   {[]PoolTarget{{Pool: "p"}, {Pool: "p", Nodes: 1}}, "two sizes"},
		"a node of another": {[]PoolTarget{{Pool: "p", Remove: []NodeID{5}}}, "remove node 5"},
		"a node of nobody":  {[]PoolTarget{{Pool: "p", Remove: []NodeID{70}}}, "remove node 70"},
	} {
		err := poolState(false).checkPools("scaler/x", tc.targets)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// Cool-downs hold back changes, and say when they may be made.
func TestCooldowns(t *testing.T) {
	s := poolState(false)
	s.view.Cluster.Pools[0].UpCooldownSeconds, s.view.Cluster.Pools[0].DownCooldownSeconds = 100, 300
	ask := func(now float64, nodes int) (size int, again float64) {
		s.view.NowSeconds, s.pools.again = now, 1e9
		if got := s.allowed([]PoolTarget{{Pool: "p", Nodes: nodes}}); len(got) > 0 {
			return got[0].Nodes, s.pools.again
		}
		return -1, s.pools.again
	}
	for i, step := range []struct {
		now   float64
		nodes int
		size  int // -1 for none
		again float64
	}{
		{0, 4, -1, 1e9}, {0, 6, 6, 1e9}, {50, 5, -1, 100}, {100, 5, 5, 1e9}, {150, 2, -1, 400}, {399, 2, -1, 400}, {400, 2, 2, 1e9}, {450, 5, 5, 1e9},
	} {
		if size, again := ask(step.now, step.nodes); size != step.size || again != step.again {
			t.Errorf("%d: at %v, %d nodes: %d and again at %v, want %d and %v", i, step.now, step.nodes, size, again, step.size, step.again)
		}
	}
}

// A number of nodes alone sizes the only pool, within its bounds.
func TestNodesInAll(t *testing.T) {
	s := poolState(false)
	if got := s.sized(5); got != nil {
		t.Errorf("with two pools %v, want none", got)
	}
	c := s.view.Cluster
	c.Pools = []Pool{{Name: "p", Devices: 4, Min: 2, Max: 6}}
	c.Nodes = append(c.Nodes, Node{ID: 7, Devices: 8}, Node{ID: 8, Devices: 8, Health: Gone})
	for nodes, want := range map[int]int{0: -1, 1: 2, 5: 4, 7: 6, 100: 6} {
		got := s.sized(nodes)
		if want < 0 && got != nil || want >= 0 && (len(got) != 1 || got[0].Nodes != want || got[0].Pool != "p") {
			t.Errorf("%d nodes in all: %v, want %d of the pool", nodes, got, want)
		}
	}
}

// Prices change at their moments.
func TestPrices(t *testing.T) {
	p := Pool{PricePerHour: 3600, Prices: []Price{{100, 7200}, {200, 0}, {300, 1800}}}
	for at, want := range map[float64]float64{0: 3600, 99: 3600, 100: 7200, 199: 7200, 200: 0, 300: 1800, 1e9: 1800} {
		if got := p.PriceAt(at); got != want {
			t.Errorf("at %v s an hour costs %v, want %v", at, got, want)
		}
	}
	for _, tc := range []struct{ from, to, want float64 }{
		{0, 50, 50}, {0, 100, 100}, {50, 150, 50 + 100}, {100, 200, 200}, {0, 400, 100 + 200 + 0 + 50}, {150, 150, 0}, {210, 290, 0}, {310, 330, 10},
	} {
		if got := p.Cost(tc.from, tc.to); got != tc.want {
			t.Errorf("from %v to %v s it costs %v, want %v", tc.from, tc.to, got, tc.want)
		}
	}
}
