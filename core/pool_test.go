package core

import (
	"cmp"
	"context"
	"errors"
	"math"
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
		"the first node":    {[]PoolTarget{{Pool: "p", Remove: []NodeID{0}}}, ""},
		"one after all":     {[]PoolTarget{{Pool: "p", Remove: []NodeID{7}}}, "remove node 7"},
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
		{0, 4, -1, 1e9},
		{0, 6, 6, 1e9},
		{50, 5, -1, 100},
		{100, 5, 5, 1e9},
		{150, 2, -1, 400},
		{399, 2, -1, 400},
		{400, 2, 2, 1e9},
		// A shrink waits for the last change, whether that grew or shrank the pool; growth waits for the last growth only.
		{450, 1, -1, 700},
		{450, 5, 5, 1e9},
	} {
		if size, again := ask(step.now, step.nodes); size != step.size || again != step.again {
			t.Errorf("%d: at %v, %d nodes: %d and again at %v, want %d and %v", i, step.now, step.nodes, size, again, step.size, step.again)
		}
	}
}

// A pool does not turn round within a moment, even without cool-downs: it goes on as it began.
func TestPoolsDoNotTurnAtOnce(t *testing.T) {
	s := poolState(false)
	for i, step := range []struct {
		now   float64
		nodes int
		want  bool
		again float64
	}{
		{10, 6, true, 1e9}, {10, 3, false, 11}, {10, 8, true, 1e9}, {10.5, 3, true, 1e9}, {10.5, 2, true, 1e9}, {10.5, 8, false, 11.5}, {11.5, 8, true, 1e9},
	} {
		s.view.NowSeconds, s.pools.again = step.now, 1e9
		if got := s.allowed([]PoolTarget{{Pool: "p", Nodes: step.nodes}}); len(got) > 0 != step.want || s.pools.again != step.again {
			t.Errorf("%d: %v and again at %v, want %v and %v", i, got, s.pools.again, step.want, step.again)
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

// ordered notes the sizes that a backend is asked for, and fails once if there is an error.
type ordered struct {
	got   []PoolTarget
	calls int
	err   error
}

func (o *ordered) Scale(_ context.Context, _ int, targets []PoolTarget) error {
	o.calls++
	o.got = slices.Clone(targets)
	err := o.err
	o.err = nil
	return err
}

// The backend is asked for what is wanted and allowed, and not asked where nothing changes.
func TestRescale(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted ClusterTarget
		pinned bool // all jobs
		alone  bool // there is one pool
		others int  // nodes of no pool, besides those of the state
		nobody bool // carries it out
		least  [2]int
		want   []PoolTarget
		by     string // "scaler/s" if empty
		cut    string
	}{
		"it grows, whoever is to leave": {wanted: ClusterTarget{Pools: []PoolTarget{{Pool: "p", Nodes: 6, Remove: []NodeID{1}, Message: "why"}}}, want: []PoolTarget{{Pool: "p", Nodes: 6, Message: "why"}}},
		"it shrinks":                    {wanted: ClusterTarget{Pools: []PoolTarget{{Pool: "p", Nodes: 2}}}, want: []PoolTarget{{Pool: "p", Nodes: 2, Remove: []NodeID{2, 1}}}},
		"fewer can leave":               {wanted: ClusterTarget{Pools: []PoolTarget{{Pool: "p"}}}, pinned: true, want: []PoolTarget{{Pool: "p", Nodes: 2, Remove: []NodeID{2, 1}}}},
		"none can":                      {wanted: ClusterTarget{Pools: []PoolTarget{{Pool: "q"}}}, pinned: true},
		"it stays":                      {wanted: ClusterTarget{Pools: []PoolTarget{{Pool: "p", Nodes: 4}}}},
		"no opinion":                    {},
		"a number of nodes":             {wanted: ClusterTarget{Nodes: 6}, alone: true, want: []PoolTarget{{Pool: "p", Nodes: 6}}},
		"more than the pool may have":   {wanted: ClusterTarget{Nodes: 9}, alone: true, want: []PoolTarget{{Pool: "p", Nodes: 6}}, cut: `scaler/s wants 9 nodes of pool "p", which has 0 to 6: it is held to these bounds`},
		"fewer than none":               {wanted: ClusterTarget{Nodes: 2}, others: 3, alone: true, want: []PoolTarget{{Pool: "p", Remove: []NodeID{2, 1, 3, 0}}}, cut: `scaler/s wants -1 nodes of pool "p", which has 0 to 6: it is held to these bounds`},
		"more, and nobody carries it":   {wanted: ClusterTarget{Nodes: 9}, alone: true, nobody: true},
		"of which pool":                 {wanted: ClusterTarget{Nodes: 6}, cut: "scaler/s wants 6 nodes in all, and there are several pools: they stay as they are, for a scaler must say how many nodes each gets"},
		"both":                          {wanted: ClusterTarget{Nodes: 6, Pools: []PoolTarget{{Pool: "p", Nodes: 5}}}, alone: true, want: []PoolTarget{{Pool: "p", Nodes: 5}}},
		"nobody carries it out":         {wanted: ClusterTarget{Pools: []PoolTarget{{Pool: "p", Nodes: 6}}}, nobody: true},

		"no opinion, and there are as many as there must be": {least: [2]int{4, 0}},
		"no opinion, and there are fewer":                    {least: [2]int{5, 0}, want: []PoolTarget{{Pool: "p", Nodes: 5, Message: "it must have 5 nodes at least"}}, by: "pipeline"},
		"of another pool":                                    {wanted: ClusterTarget{Pools: []PoolTarget{{Pool: "q", Nodes: 2}}}, least: [2]int{5, 0}, want: []PoolTarget{{Pool: "q", Nodes: 2}, {Pool: "p", Nodes: 5, Message: "it must have 5 nodes at least"}}},
		"of another pool that stays":                         {wanted: ClusterTarget{Pools: []PoolTarget{{Pool: "q", Nodes: 1}}}, least: [2]int{5, 0}, want: []PoolTarget{{Pool: "p", Nodes: 5, Message: "it must have 5 nodes at least"}}, by: "pipeline"},
		"of all pools":                                       {least: [2]int{5, 2}, want: []PoolTarget{{Pool: "p", Nodes: 5, Message: "it must have 5 nodes at least"}, {Pool: "q", Nodes: 2, Message: "it must have 2 nodes at least"}}, by: "pipeline"},
		"fewer, and nobody carries it out":                   {least: [2]int{5, 0}, nobody: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := poolState(tc.pinned)
			for i, least := range tc.least {
				s.view.Cluster.Pools[i].Min = least
			}
			s.running[0].Pinned = tc.pinned
			s.running = append(s.running, &Job{JobSpec: &JobSpec{Pinned: tc.pinned}, Seats: []Seat{{Node: 5, Devices: 0b1}}})
			if tc.alone {
				s.view.Cluster.Pools, s.view.Cluster.Nodes[5].Health = s.view.Cluster.Pools[:1], Gone
			}
			for range tc.others {
				s.view.Cluster.Nodes = append(s.view.Cluster.Nodes, Node{ID: NodeID(len(s.view.Cluster.Nodes)), Devices: 4})
			}
			p := &Pipeline{state: *s, plan: Plan{Cluster: tc.wanted}, stages: Stages{Scaler: Component[ClusterScaler]{ID: "scaler/s"}}}
			p.state.pools.again, p.state.report.Scaled = 5, make([]PoolTarget, 1)
			backend := &ordered{}
			if !tc.nobody {
				p.scaling = backend
			}
			if err := p.rescale(t.Context()); err != nil {
				t.Fatal(err)
			}
			same := func(a, b PoolTarget) bool {
				return a.Pool == b.Pool && a.Nodes == b.Nodes && slices.Equal(a.Remove, b.Remove) && a.Message == b.Message
			}
			if !slices.EqualFunc(backend.got, tc.want, same) || backend.calls != min(1, len(tc.want)) {
				t.Errorf("asked %d times, for %+v, want %+v", backend.calls, backend.got, tc.want)
			}
			if r := &p.state.report; !slices.EqualFunc(r.Scaled, tc.want, same) || r.ScaledBy != cmp.Or(tc.by, "scaler/s") {
				t.Errorf("the report tells %+v of %q, want %+v", r.Scaled, r.ScaledBy, tc.want)
			}
			cut := ""
			if c := p.state.report.Clamped; c != nil {
				cut = c.String()
			}
			if cut != tc.cut {
				t.Errorf("cut: %q, want %q", cut, tc.cut)
			}
			if !math.IsInf(p.state.pools.again, 1) {
				t.Errorf("to be asked again at %v, want never", p.state.pools.again)
			}
		})
	}
}

// A backend that cannot scale ends the run, and is asked again where its trouble passes.
func TestRescaleInTrouble(t *testing.T) {
	bad := errors.New("no quota")
	for name, tc := range map[string]struct {
		err     error
		retries bool
		calls   int
		fails   bool
	}{
		"it fails":                    {bad, true, 1, true},
		"it is away for a while":      {&Unavailable{Cause: bad}, true, 2, false},
		"it is away, without retries": {&Unavailable{Cause: bad}, false, 1, true},
	} {
		p := &Pipeline{state: *poolState(false), plan: Plan{Cluster: ClusterTarget{Pools: []PoolTarget{{Pool: "p", Nodes: 6}}}}}
		if tc.retries {
			p.retryBackend = func(context.Context, int, error) error { return nil }
		}
		backend := &ordered{err: tc.err}
		p.scaling = backend
		if err := p.rescale(t.Context()); backend.calls != tc.calls || (err != nil) != tc.fails || tc.fails && !errors.Is(err, bad) {
			t.Errorf("%s: %v after %d calls", name, err, backend.calls)
		}
		if told := len(p.state.report.Scaled); tc.fails != (told == 0) {
			t.Errorf("%s: the report tells of %d sizes", name, told)
		}
	}
}

// Of nodes that hold as many devices the last ones leave first.
func TestTheLastNodesLeaveFirst(t *testing.T) {
	s := poolState(false)
	s.view.Cluster.Nodes = append(s.view.Cluster.Nodes, Node{ID: 7, Devices: 4, Pool: "p"}, Node{ID: 8, Devices: 4, Pool: "p"})
	if got, want := s.leaving("p", 9, nil), []NodeID{2, 8, 7, 1, 3, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
