package core

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Pool is equal nodes that come and go as a scaler decides, within bounds.
type Pool struct {
	Name           string        // unique in the cluster
	Accelerator    AcceleratorID // type of the devices of its nodes
	Devices        int           // of each node
	CPUs           float64       // cores of each node; 0 when unknown
	MemoryGB       float64       // main memory of each node in GB; 0 when unknown
	DeviceMemoryGB float64       // of each device; 0 when unknown
	Min, Max       int           // fewest and most nodes of the pool
	// PricePerHour is that of a node, in whatever money, until the first of the later prices, which are in order of their moments.
	PricePerHour float64
	Prices       []Price // later prices, by FromSeconds
	// No two changes upwards lie nearer together than UpCooldownSeconds, and no change downwards follows another change within
	// DownCooldownSeconds. The pipeline sees to it, whatever a scaler wants; and to it that a pool does not turn round within a moment.
	UpCooldownSeconds, DownCooldownSeconds float64
	// ProvisioningSeconds is how long a node takes to come as a rule, and Spot says that nodes may be taken away, as far as the backend
	// knows.
	ProvisioningSeconds float64
	Spot                bool // its nodes may be taken away
}

// Price is what a node costs from a moment on.
type Price struct {
	FromSeconds float64 // moment from which it holds, in seconds of the run
	PerHour     float64 // of one node, in whatever money
}

// PriceAt is what a node costs by the hour at a moment.
func (p *Pool) PriceAt(seconds float64) float64 {
	price := p.PricePerHour
	for _, later := range p.Prices {
		if later.FromSeconds <= seconds {
			price = later.PerHour
		}
	}
	return price
}

// Cost is what a node costs between two moments.
func (p *Pool) Cost(from, to float64) float64 {
	cost, price := 0.0, p.PriceAt(from)
	for _, later := range p.Prices {
		if later.FromSeconds > from && later.FromSeconds < to {
			cost += (later.FromSeconds - from) / 3600 * price
			from, price = later.FromSeconds, later.PerHour
		}
	}
	return cost + (to-from)/3600*price
}

// PoolTarget is how many nodes a pool is to have, those under way included.
type PoolTarget struct {
	Pool  string // name of the pool
	Nodes int    // wanted, those under way included
	// Remove are the nodes that go when there are too many, first ones first. Of a scaler they are a hint: the pipeline completes them.
	Remove []NodeID
	// Message says why in one sentence, for people.
	Message string
}

// ClampedTarget is a size of a pool that a scaler wants by a number of nodes in all, and that the bounds of the pool do not allow; or a number of
// nodes in all where there are several pools, of which nobody knows how many are to be of which.
type ClampedTarget struct {
	By   string // id of the scaler
	Pool *Pool  // nil where there are several
	Want int    // nodes of the pool, or in all
}

// String words what the scaler wants and which bounds it is held to.
func (c *ClampedTarget) String() string {
	if c.Pool == nil {
		return fmt.Sprintf("%s wants %d nodes in all, and there are several pools: they stay as they are, for a scaler must say how many nodes each gets", c.By, c.Want)
	}
	return fmt.Sprintf("%s wants %d nodes of pool %q, which has %d to %d: it is held to these bounds", c.By, c.Want, c.Pool.Name, c.Pool.Min, c.Pool.Max)
}

// Scaling is implemented by a backend whose pools grow and shrink.
type Scaling interface {
	// Scale takes in the sizes that pools are to have from a round on. Nodes that will join are reported as NodeAdded, being
	// provisioned, and when they are ready; those that are to leave as draining, and as NodeRemoved once no job is on them. A node
	// that does not come after all is reported as NodeRemoved. The sizes of a round taken in again have no further effect.
	Scale(ctx context.Context, round int, targets []PoolTarget) error
}

// Pool is the pool of a name; nil for none.
func (c *Cluster) Pool(name string) *Pool {
	at := slices.IndexFunc(c.Pools, func(p Pool) bool { return p.Name == name })
	if at < 0 {
		return nil
	}
	return &c.Pools[at]
}

// PoolSize is how many nodes a pool has or gets: ready, down, or being provisioned, and not those that leave.
func (c *Cluster) PoolSize(name string) int {
	size := 0
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Pool == name && n.Health != Gone && n.Health != Draining {
			size++
		}
	}
	return size
}

// pools is what the pipeline remembers of the pools.
type pools struct {
	changed []float64 // by pool: the last change of its size; -Inf before the first
	grown   []float64 // by pool: the last upwards
	targets []PoolTarget
	again   float64 // when a size may change that may not yet; +Inf for never
	remove  []NodeID
}

// rescale has the backend bring the pools to what the scaler wants, as far as bounds and cool-downs allow.
func (p *Pipeline) rescale(ctx context.Context) error {
	s, wanted := &p.state, p.plan.Cluster.Pools
	s.pools.again = math.Inf(1)
	s.report.Scaled, s.report.ScaledBy, s.report.Clamped = nil, p.stages.Scaler.ID, nil
	if p.scaling == nil {
		return nil
	}
	if len(wanted) == 0 {
		wanted = s.sized(p.plan.Cluster.Nodes)
	}
	targets := s.allowed(s.atLeast(wanted))
	if len(targets) == 0 {
		return nil
	}
	if !slices.ContainsFunc(targets, func(t PoolTarget) bool { return sizes(wanted, t.Pool) }) {
		s.report.ScaledBy = "pipeline"
	}
	for failures := 0; ; failures++ {
		if again, err := p.retry(ctx, failures, p.scaling.Scale(ctx, s.view.Round, targets)); !again {
			if err == nil {
				s.report.Scaled = targets
			}
			return err
		}
	}
}

// sizes reports whether targets have one of a pool.
func sizes(targets []PoolTarget, pool string) bool {
	return slices.ContainsFunc(targets, func(t PoolTarget) bool { return t.Pool == pool })
}

// atLeast is what a scaler wants, and the least size of each pool that has fewer nodes, as after one was taken away, and of which it says nothing.
func (s *state) atLeast(wanted []PoolTarget) []PoolTarget {
	c := s.view.Cluster
	for i := range c.Pools {
		if p := &c.Pools[i]; !sizes(wanted, p.Name) && c.PoolSize(p.Name) < p.Min {
			wanted = append(slices.Clip(wanted), PoolTarget{Pool: p.Name, Nodes: p.Min, Message: fmt.Sprintf("it must have %d nodes at least", p.Min)})
		}
	}
	return wanted
}

// sized is what a number of nodes in all, 0 for no opinion, comes to where there is one pool: nodes of no pool stay.
func (s *state) sized(nodes int) []PoolTarget {
	c := s.view.Cluster
	switch {
	case nodes == 0 || len(c.Pools) == 0:
		return nil
	case len(c.Pools) > 1:
		s.report.Clamped = &ClampedTarget{By: s.report.ScaledBy, Want: nodes}
		return nil
	}
	pool, want := &c.Pools[0], nodes-c.PoolSize("")
	allowed := min(max(want, pool.Min), pool.Max)
	if allowed != want {
		s.report.Clamped = &ClampedTarget{By: s.report.ScaledBy, Pool: pool, Want: want}
	}
	return []PoolTarget{{Pool: pool.Name, Nodes: allowed}}
}

// turnSeconds is how long a pool that grew or shrank does not turn round at least: where nodes come and go at once, a scaler that takes back what it
// decided would otherwise be asked again and again at one moment.
const turnSeconds = 1

// allowed are the changes of sizes that may be made now.
func (s *state) allowed(wanted []PoolTarget) []PoolTarget {
	c, k, now := s.view.Cluster, &s.pools, s.view.NowSeconds
	for len(k.changed) < len(c.Pools) {
		k.changed, k.grown = append(k.changed, math.Inf(-1)), append(k.grown, math.Inf(-1))
	}
	k.targets, k.remove = k.targets[:0], k.remove[:0]
	for _, t := range wanted {
		at := slices.IndexFunc(c.Pools, func(p Pool) bool { return p.Name == t.Pool })
		pool, size := &c.Pools[at], c.PoolSize(t.Pool)
		free := k.grown[at] + pool.UpCooldownSeconds
		if t.Nodes < size {
			free = k.changed[at] + pool.DownCooldownSeconds
		}
		if grew := k.grown[at] == k.changed[at]; k.changed[at] == now && grew != (t.Nodes > size) {
			free = max(free, now+turnSeconds)
		}
		switch {
		case t.Nodes == size:
			continue
		case now < free:
			k.again = min(k.again, free)
			continue
		case t.Nodes > size:
			k.grown[at] = now
			t.Remove = nil
		default:
			if t.Remove = s.leaving(t.Pool, size-t.Nodes, t.Remove); len(t.Remove) == 0 {
				continue
			}
			t.Nodes = size - len(t.Remove)
		}
		k.changed[at] = now
		k.targets = append(k.targets, t)
	}
	return k.targets
}

// leaving are the nodes of a pool that are to leave: those that a scaler named, then those that are not ready, and then those with
// the fewest devices held, of several the last ones. A node with a pinned job stays.
func (s *state) leaving(pool string, count int, hinted []NodeID) []NodeID {
	c, k := s.view.Cluster, &s.pools
	held := make(map[NodeID]int)
	pinned := map[NodeID]bool{}
	for _, j := range s.running {
		for _, seat := range j.Seats {
			held[seat.Node] += seat.Devices.Count()
			pinned[seat.Node] = pinned[seat.Node] || j.Pinned
		}
	}
	stays := func(id NodeID) bool {
		n := &c.Nodes[id]
		return n.Pool != pool || n.Health == Gone || n.Health == Draining || pinned[id]
	}
	from := len(k.remove)
	for _, id := range hinted {
		if !stays(id) && !slices.Contains(k.remove[from:], id) {
			k.remove = append(k.remove, id)
		}
	}
	hints := len(k.remove)
	for i := range c.Nodes {
		if id := NodeID(i); !stays(id) && !slices.Contains(k.remove[from:hints], id) {
			k.remove = append(k.remove, id)
		}
	}
	slices.SortFunc(k.remove[hints:], func(a, b NodeID) int { return compareLeaving(c, held, a, b) })
	k.remove = k.remove[:min(from+count, len(k.remove))]
	return slices.Clone(k.remove[from:])
}

// compareLeaving orders nodes that may leave: those that are not ready first, then those with the fewest devices held, then the last ones.
func compareLeaving(c *Cluster, held map[NodeID]int, a, b NodeID) int {
	readyA, readyB := c.Nodes[a].Health == Ready, c.Nodes[b].Health == Ready
	switch {
	case readyA != readyB && readyB:
		return -1
	case readyA != readyB:
		return 1
	case held[a] != held[b]:
		return held[a] - held[b]
	default:
		return int(b - a)
	}
}

// checkPools holds the targets of a scaler to the pools that there are, and to their bounds.
func (s *state) checkPools(component string, targets []PoolTarget) error {
	for i, t := range targets {
		p := s.view.Cluster.Pool(t.Pool)
		if p == nil {
			return s.broken(component, -1, RuleTargetSane, "wants nodes of pool %q, which there is not", t.Pool)
		}
		if t.Nodes < p.Min || t.Nodes > p.Max {
			return s.broken(component, -1, RuleTargetSane, "wants %d nodes of pool %q, which has %d to %d", t.Nodes, t.Pool, p.Min, p.Max)
		}
		if slices.ContainsFunc(targets[:i], func(o PoolTarget) bool { return o.Pool == t.Pool }) {
			return s.broken(component, -1, RuleTargetSane, "wants two sizes of pool %q", t.Pool)
		}
		for _, id := range t.Remove {
			if id < 0 || int(id) >= len(s.view.Cluster.Nodes) || s.view.Cluster.Nodes[id].Pool != t.Pool {
				return s.broken(component, -1, RuleTargetSane, "wants to remove node %d from pool %q, which has no such node", id, t.Pool)
			}
		}
	}
	return nil
}
