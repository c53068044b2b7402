package cells

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Tenant is the index of a tenant in Config.Tenants.
type Tenant int32

// Guest is who has no virtual cluster.
const Guest Tenant = -1

// Clusters are the virtual clusters of tenants on the nodes of a physical one, and who uses which devices of them. The zero value
// has no nodes.
type Clusters struct {
	// Config is what the clusters are made of.
	Config Config

	ranks   map[string]Tenant
	nodes   []core.Node // as last seen
	chains  []chain     // by accelerator type
	tenants []virtual   // len(Config.Tenants) × types, by tenant and then type
	chosen  []ID        // devices of the job that is being seated
}

// virtual is the cells of a tenant of one accelerator type.
type virtual struct {
	quota   []int // cells by level; nil for none
	unbound []int // of these, those without a physical cell
	bound   []ID  // physical cells, in the order in which they were bound
}

// NewClusters makes the virtual clusters of a valid config. See gives them nodes.
func NewClusters(c Config) *Clusters {
	v := &Clusters{Config: c, ranks: make(map[string]Tenant, len(c.Tenants))}
	for i, t := range c.Tenants {
		v.ranks[t.Name] = Tenant(i)
	}
	return v
}

// Tenant is whose cells a job may use; Guest for a job that is best effort, or of a tenant without cells.
func (v *Clusters) Tenant(j *core.JobSpec) Tenant {
	if rank, known := v.ranks[j.Tenant]; known && !j.BestEffort {
		return rank
	}
	return Guest
}

// Join rebuilds the cells where nodes joined, or are other ones. It reports whether it did: nobody uses a device then, and no
// virtual cell is bound. Otherwise it takes note of the health of the nodes.
func (v *Clusters) Join(c *core.Cluster) bool {
	same := func(a, b core.Node) bool {
		return a.Accelerator == b.Accelerator && a.Devices == b.Devices && a.Rack == b.Rack
	}
	if len(v.nodes) > 0 && slices.EqualFunc(v.nodes, c.Nodes, same) {
		for t := range v.chains {
			v.chains[t].use(c)
		}
		return false
	}
	v.nodes = append(v.nodes[:0], c.Nodes...)
	v.chains = make([]chain, len(c.Accelerators))
	v.tenants = make([]virtual, len(v.Config.Tenants)*len(c.Accelerators))
	for t := range v.chains {
		levels, err := Shape(c, core.AcceleratorID(t), v.Config.Levels)
		if err != nil { // nodes came that the config was not checked for
			levels, _ = Shape(c, core.AcceleratorID(t), nil)
		}
		v.chains[t] = newChain(c, core.AcceleratorID(t), levels)
		v.chains[t].use(c)
		for i := range v.Config.Tenants {
			of := v.virtual(Tenant(i), core.AcceleratorID(t))
			of.quota = quotaOf(&v.Config.Tenants[i], c, core.AcceleratorID(t), levels)
			of.unbound = slices.Clone(of.quota)
		}
	}
	return true
}

// quotaOf is the cells of a tenant on an accelerator type, by level; nil for none. Cells of a level that there is not are left out.
func quotaOf(tenant *TenantConfig, c *core.Cluster, t core.AcceleratorID, levels []Level) (quota []int) {
	for _, cell := range tenant.Cells {
		of, ok := cell.chain(c)
		level := levelNamed(levels, cell.Level)
		if !ok || of != t || level < 0 || level >= len(levels) {
			continue
		}
		if quota == nil {
			quota = make([]int, len(levels))
		}
		quota[level] += cell.Count
	}
	return quota
}

func (v *Clusters) virtual(of Tenant, t core.AcceleratorID) *virtual {
	return &v.tenants[int(of)*len(v.chains)+int(t)]
}

// Carried reports whether a node carries an accelerator type.
func (v *Clusters) Carried(t core.AcceleratorID) bool { return len(v.chains[t].at) > 0 }

// Devices is how many devices of an accelerator type the virtual cluster of a tenant has; 0 for none.
func (v *Clusters) Devices(of Tenant, t core.AcceleratorID) int {
	sum := 0
	for k, n := range v.virtual(of, t).quota {
		sum += n * v.chains[t].levels[k].Devices
	}
	return sum
}

// Idle is how many devices of an accelerator type a tenant does not use of its virtual cluster, as far as the cells are bound to
// sound ones.
func (v *Clusters) Idle(of Tenant, t core.AcceleratorID) int {
	own, k := v.virtual(of, t), &v.chains[t]
	sum := 0
	for level, n := range own.unbound {
		sum += n * k.levels[level].Devices
	}
	for _, c := range own.bound {
		sum += int(k.cells[c].idle)
	}
	return sum
}

// Seat takes devices of the virtual cluster of a tenant and appends them to seats. The job gets whole cells of the highest level that
// is not larger than it is, and for the rest a part of the smallest cell that holds it: in a cell that is in use if there is one, that
// with the fewest idle devices, so that others stay whole. With strict it gets none where it would lie in more pieces than in the
// idle virtual cluster; otherwise it then takes what is idle. What it is given depends on the tenant's own jobs only, but for the
// physical cells that virtual ones are bound to. O(cells in use × levels).
func (v *Clusters) Seat(of Tenant, t core.AcceleratorID, n int, strict bool, seats []core.Seat) ([]core.Seat, bool) {
	s := seating{virtual: v.virtual(of, t), chain: &v.chains[t], tenant: of, chosen: v.chosen[:0]}
	ok := s.seat(n, strict)
	v.chosen = s.chosen
	if !ok {
		s.undo()
		return seats, false
	}
	slices.Sort(s.chosen)
	for _, d := range s.chosen {
		seat := s.seats[d]
		if end := len(seats); end > 0 && seats[end-1].Node == seat.Node {
			seats[end-1].Devices |= seat.Devices
		} else {
			seats = append(seats, seat)
		}
	}
	return seats, true
}

// seating is the search for devices of one job.
type seating struct {
	*virtual
	*chain
	tenant Tenant
	chosen []ID
}

func (s *seating) seat(left int, strict bool) bool {
	for k := len(s.quota) - 1; k >= 0 && left > 0; k-- {
		spare := s.quota[k] // cells that the idle virtual cluster has beside what the job takes of it; none of the levels above
		size := s.levels[k].Devices
		for left >= size && spare > 0 {
			c := s.best(k, size)
			if c == None {
				if strict {
					return false
				}
				return s.scatter(left)
			}
			s.take(c, size)
			left -= size
			spare--
		}
		if spare > 0 && left > 0 {
			return s.fit(left) || !strict && s.scatter(left)
		}
	}
	return left == 0
}

// fit takes devices of one cell, the smallest that holds so many.
func (s *seating) fit(n int) bool {
	level := 0
	for s.levels[level].Devices < n {
		level++
	}
	c := s.best(level, n)
	if c == None {
		return false
	}
	s.take(c, n)
	return true
}

// scatter takes what is idle: of the cells with the most, while none holds all.
func (s *seating) scatter(left int) bool {
	for left > 0 {
		c := s.roomiest()
		if c == None {
			for k := 0; k < len(s.unbound) && c == None; k++ {
				if s.levels[k].Devices >= left {
					c = s.bind(k)
				}
			}
			for k := len(s.unbound) - 1; k >= 0 && c == None; k-- {
				c = s.bindOf(k)
			}
		}
		if c == None {
			return false
		}
		n := min(left, int(s.cells[c].idle))
		s.take(c, n)
		left -= n
	}
	return true
}

// roomiest is the bound cell, none larger than a node, with the most idle devices; None when there are none.
func (s *seating) roomiest() ID {
	best := None
	var look func(ID)
	look = func(c ID) {
		switch idle := s.cells[c].idle; {
		case idle == 0 || best != None && idle <= s.cells[best].idle && int(s.cells[c].level) <= s.node:
		case int(s.cells[c].level) <= s.node:
			best = c
		default:
			first, end := s.children(c)
			for child := first; child < end; child++ {
				look(child)
			}
		}
	}
	for _, c := range s.bound {
		look(c)
	}
	return best
}

// best is a cell of a level with at least n idle devices: of those that are bound the one with the fewest, the first of several, and
// otherwise one that is bound for it. None when there is none.
func (s *seating) best(level, n int) ID {
	best := None
	for _, c := range s.bound {
		if int(s.cells[c].level) >= level {
			best = s.tightest(c, level, int32(n), best)
		}
	}
	if best != None {
		return best
	}
	c := s.bind(level)
	for c != None && int(s.cells[c].level) > level {
		c = s.cells[c].first
	}
	return c
}

func (s *seating) tightest(c ID, level int, n int32, best ID) ID {
	x := &s.cells[c]
	if x.idle < n {
		return best
	}
	if int(x.level) == level {
		if best == None || x.idle < s.cells[best].idle {
			return c
		}
		return best
	}
	first, end := s.children(c)
	for child := first; child < end; child++ {
		best = s.tightest(child, level, n, best)
	}
	return best
}

// bind binds the smallest virtual cell of at least a level to a free physical one. None when there is none.
func (s *seating) bind(level int) ID {
	for k := level; k < len(s.unbound); k++ {
		if c := s.bindOf(k); c != None {
			return c
		}
	}
	return None
}

func (s *seating) bindOf(level int) ID {
	if s.unbound[level] == 0 {
		return None
	}
	c := s.Alloc(level)
	if c != None {
		s.own(c)
	}
	return c
}

// own makes a taken cell one of the tenant's.
func (s *seating) own(c ID) {
	x := &s.cells[c]
	x.owner = int32(s.tenant)
	s.unbound[x.level]--
	s.bound = append(s.bound, c)
}

// take chooses n of the idle devices of a cell: of the smallest cell in it that holds them.
func (s *seating) take(c ID, n int) {
	x := &s.cells[c]
	if x.first == None {
		s.occupy(c, true)
		s.chosen = append(s.chosen, c)
		return
	}
	for n > 0 {
		first, end := s.children(c)
		chosen := None // the fewest that suffice, or else the most
		for child := first; child < end; child++ {
			idle := s.cells[child].idle
			if idle == 0 {
				continue
			}
			if chosen == None {
				chosen = child
				continue
			}
			most := s.cells[chosen].idle
			if int(most) >= n && int(idle) >= n && idle < most || int(most) < n && idle > most {
				chosen = child
			}
		}
		part := min(n, int(s.cells[chosen].idle))
		s.take(chosen, part)
		n -= part
	}
}

func (s *seating) undo() {
	for _, d := range s.chosen {
		s.leave(d)
	}
}

// leave gives back a device, and unbinds its cell if that is idle now.
func (s *seating) leave(d ID) {
	holder := s.holder(d)
	s.occupy(d, false)
	if s.cells[holder].busy == 0 {
		s.unbind(slices.Index(s.bound, holder))
	}
}

func (s *seating) unbind(at int) {
	c := s.bound[at]
	s.bound = slices.Delete(s.bound, at, at+1)
	s.unbound[s.cells[c].level]++
	s.Free(c)
}

// Leave gives back what a job of a tenant had. Virtual cells that nobody uses are unbound.
func (v *Clusters) Leave(of Tenant, seats []core.Seat) {
	for _, seat := range seats {
		t := v.nodes[seat.Node].Accelerator
		s := seating{virtual: v.virtual(of, t), chain: &v.chains[t], tenant: of}
		s.each(seat, s.leave)
	}
}

// Adopt takes note of devices that a job of a tenant has, such as after a restart. Those that lie in none of the tenant's cells get
// one bound that holds as many of them as it can. It reports false, and does nothing, when they cannot be had within the virtual
// cluster.
func (v *Clusters) Adopt(of Tenant, seats []core.Seat) bool {
	for i, seat := range seats {
		t := v.nodes[seat.Node].Accelerator
		s := seating{virtual: v.virtual(of, t), chain: &v.chains[t], tenant: of}
		ok := true
		s.each(seat, func(d ID) { ok = ok && s.adopt(d, seat.Devices.Count()) })
		if !ok {
			s.undo()
			v.Leave(of, seats[:i])
			return false
		}
	}
	return true
}

// adopt takes a device, in a cell that should hold n.
func (s *seating) adopt(d ID, n int) bool {
	if s.cells[d].guests != 0 {
		return false
	}
	switch holder := s.holder(d); {
	case s.cells[holder].state == taken && s.cells[holder].owner == int32(s.tenant):
		if s.cells[d].busy != 0 {
			return false
		}
	case s.cells[holder].state == taken || !s.claim(d, n):
		return false
	}
	s.occupy(d, true)
	s.chosen = append(s.chosen, d)
	return true
}

// claim binds a virtual cell to one that holds a device.
func (s *seating) claim(d ID, n int) bool {
	for pass := range 2 { // large enough, or else any
		for k := range s.unbound {
			if s.unbound[k] == 0 || (s.levels[k].Devices >= n) != (pass == 0) {
				continue
			}
			if c := s.ancestor(d, k); c != None && s.Claim(c) {
				s.own(c)
				return true
			}
		}
	}
	return false
}

// CellBinding is where a virtual cell of a tenant is bound: what a restart needs to know besides who uses which devices.
type CellBinding struct {
	// Tenant is whose cell it is.
	Tenant string `json:"tenant"`
	// Level is the name of the level of the cell.
	Level string `json:"level"`
	Node  string `json:"node"` // of its first device
	// Device is its first device on the node.
	Device int `json:"device"`
}

// Bindings lists the virtual cells that are bound, tenant by tenant, in the order in which they were.
func (v *Clusters) Bindings() []CellBinding {
	var list []CellBinding
	for i, t := range v.Config.Tenants {
		for a := range v.chains {
			k := &v.chains[a]
			for _, c := range v.virtual(Tenant(i), core.AcceleratorID(a)).bound {
				first, _ := k.devices(c)
				seat := k.seats[first]
				list = append(list, CellBinding{t.Name, k.levels[k.cells[c].level].Name, v.nodes[seat.Node].Name, seat.Devices.List()[0]})
			}
		}
	}
	return list
}

// Bind binds a virtual cell as CellBinding listed it, if there is such a cell and nobody has it. Until a device of it is adopted it is idle;
// Settle unbinds those that still are.
func (v *Clusters) Bind(b CellBinding) error {
	of, known := v.ranks[b.Tenant]
	node := slices.IndexFunc(v.nodes, func(n core.Node) bool { return n.Name == b.Node })
	if !known || node < 0 || b.Device < 0 || b.Device >= v.nodes[node].Devices || v.nodes[node].Health == core.Gone {
		return fmt.Errorf("bind a cell of tenant %q at node %q: there is no such tenant or device", b.Tenant, b.Node)
	}
	t := v.nodes[node].Accelerator
	s := seating{virtual: v.virtual(of, t), chain: &v.chains[t], tenant: of}
	level := levelNamed(s.levels, b.Level)
	if level < 0 || level >= len(s.unbound) || s.unbound[level] == 0 {
		return fmt.Errorf("bind a cell of tenant %q at node %q: it has no more cells of level %q", b.Tenant, b.Node, b.Level)
	}
	d := s.device(core.NodeID(node), b.Device)
	c := s.ancestor(d, level)
	if c == None {
		return fmt.Errorf("bind a cell of tenant %q at node %q: its devices are no cell of level %q", b.Tenant, b.Node, b.Level)
	}
	if first, _ := s.devices(c); first != d || !s.Claim(c) {
		return fmt.Errorf("bind a cell of tenant %q at node %q: it is not free", b.Tenant, b.Node)
	}
	s.own(c)
	return nil
}

// Settle unbinds virtual cells that nobody uses.
func (v *Clusters) Settle() {
	for i := range v.Config.Tenants {
		for t := range v.chains {
			s := seating{virtual: v.virtual(Tenant(i), core.AcceleratorID(t)), chain: &v.chains[t], tenant: Tenant(i)}
			for k, c := range slices.Backward(s.bound) {
				if s.cells[c].busy == 0 {
					s.unbind(k)
				}
			}
		}
	}
}
