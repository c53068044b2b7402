package local

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend/device"
	"github.com/quartet-sched/quartet/core/backend/journal"
)

// The ways to come by devices.
const (
	declaredDevices   = "declared"
	discoveredDevices = "discovered"
)

// devices are what a run has: a node keeps its id, and a device its name, for as long as the run lasts.
type devices struct {
	names [][]string            // by node: what CUDA_VISIBLE_DEVICES calls them
	spots map[string][][]string // by pool: those of the nodes that it can have at once
}

// flat lists the names by number.
func (d *devices) flat() []string { return slices.Concat(d.names...) }

// all lists every name that the run may use, once.
func (d *devices) all() (list []string) {
	list = d.flat()
	for _, pool := range slices.Sorted(maps.Keys(d.spots)) {
		list = append(list, slices.Concat(d.spots[pool]...)...)
	}
	known := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(name string) bool {
		twice := known[name]
		known[name] = true
		return twice
	})
}

// give notes the devices of a node that joined.
func (d *devices) give(id core.NodeID, names []string) {
	for int(id) >= len(d.names) {
		d.names = append(d.names, nil)
	}
	d.names[id] = names
}

// adopt makes a cluster that of a run so far: its nodes keep their ids, those that are gone stay as nodes without devices, and
// new ones come last. A device that is still there keeps its name; one that was added, or is there in the place of another, gets
// the next that is free. Nodes of pools that joined are not among them; kept says what they have.
func (o *Opener) adopt(ctx context.Context, c *core.Cluster, m *journal.Meta, kept *poolRecord) (*devices, error) {
	supply := supply{taken: map[string]bool{}, kept: kept}
	if o.config.Devices == discoveredDevices {
		found, err := device.Discover(ctx)
		if err != nil {
			return nil, err
		}
		supply.found = &found
	}
	return adopt(c, m, &supply)
}

func adopt(c *core.Cluster, m *journal.Meta, s *supply) (*devices, error) {
	before, err := namesOf(c, m)
	if err != nil {
		return nil, err
	}
	same := make([]bool, len(c.Nodes)) // by node of the config
	s.reserve()
	var nodes []core.Node
	d := new(devices)
	for id := range before {
		old := before[id]
		at := slices.IndexFunc(c.Nodes, func(n core.Node) bool { return n.Name == old.Name })
		n := core.Node{Name: old.Name, Health: core.Down, Accelerator: core.AcceleratorID(max(slices.Index(c.Accelerators, old.Accelerator), 0))}
		switch p := c.Pool(old.Pool); {
		case at >= 0:
			same[at], n = true, c.Nodes[at]
		case p != nil: // its pool begins with fewer nodes now, which no longer matters
			n = core.Node{Name: old.Name, Accelerator: p.Accelerator, CPUs: p.CPUs, MemoryGB: p.MemoryGB, Pool: p.Name}
		}
		if n.Pool != "" {
			n.Devices = old.Devices
		}
		kept := make([]string, n.Devices)
		for i, name := range old.names {
			if i < n.Devices && c.Accelerators[n.Accelerator] == old.Accelerator && s.has(name) {
				kept[i] = name
				s.taken[name] = true
			}
		}
		nodes, d.names = append(nodes, n), append(d.names, kept)
	}
	var problems core.Diagnostics
	for i := range c.Nodes {
		switch n := &c.Nodes[i]; {
		case same[i] || m != nil && n.Pool != "": // a run that goes on has the sizes that it has
		case s.kept != nil && int(s.kept.Next) > len(before):
			problems = append(problems, core.Diagnostic{
				Path: "cluster.nodes", Summary: fmt.Sprintf("node %q cannot join a run in which nodes of pools have joined", n.Name),
				Hint: "leave it out, or begin another run with --name",
			})
		default:
			nodes, d.names = append(nodes, *n), append(d.names, make([]string, n.Devices))
		}
	}
	for id := range nodes {
		nodes[id].ID = core.NodeID(id)
		have := s.left(c.Accelerators[nodes[id].Accelerator])
		for i, name := range d.names[id] {
			if name != "" {
				continue
			}
			if d.names[id][i] = s.next(c.Accelerators[nodes[id].Accelerator]); d.names[id][i] == "" {
				problems = append(problems, s.missing(&nodes[id], c.Accelerators[nodes[id].Accelerator], have))
				break
			}
		}
	}
	problems = append(problems, s.spots(c, nodes, d)...)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	c.Nodes = nodes
	return d, nil
}

// named is a node of earlier schedulers with the names of its devices.
type named struct {
	journal.Node
	names []string
}

// namesOf are the nodes that a run had; none for a new run.
func namesOf(c *core.Cluster, m *journal.Meta) (list []named, err error) {
	if m == nil {
		return nil, nil
	}
	nodes, names := m.Nodes, m.Devices
	if len(nodes) == 0 { // its scheduler did not tell them: they are those of the config, which it was identified by
		nodes = nodesOf(c)
	}
	for _, n := range nodes {
		if n.Devices > len(names) {
			return nil, core.Diagnostics{{Path: "backend.config.devices", Summary: fmt.Sprintf("the unfinished run has %d devices, the cluster declares %d", len(m.Devices), c.Devices()), Hint: "declare the devices that it has, or begin another run with --name"}}
		}
		list = append(list, named{n, names[:n.Devices]})
		names = names[n.Devices:]
	}
	return list, nil
}

func nodesOf(c *core.Cluster) (list []journal.Node) {
	for i := range c.Nodes {
		n := &c.Nodes[i]
		list = append(list, journal.Node{Name: n.Name, Accelerator: c.Accelerators[n.Accelerator], Devices: n.Devices, Pool: n.Pool})
	}
	return list
}

// supply is the names that devices may have: numbers, or the UUIDs of those that were found on this machine.
type supply struct {
	found *device.Found // nil for numbers
	taken map[string]bool
	kept  *poolRecord // of a run that goes on; nil for none
}

// reserve takes the devices of the nodes of pools that are there.
func (s *supply) reserve() {
	if s.kept != nil {
		for i := range s.kept.Slots {
			for _, name := range s.kept.Slots[i].Names {
				s.taken[name] = true
			}
		}
	}
}

// spots sets devices aside for as many nodes as pools can have at once: those of the nodes that there are, and others up to the most.
func (s *supply) spots(c *core.Cluster, nodes []core.Node, d *devices) (problems core.Diagnostics) {
	d.spots = map[string][][]string{}
	for i := range c.Pools {
		p := &c.Pools[i]
		var list [][]string
		add := func(names []string) {
			if len(names) == p.Devices && !slices.ContainsFunc(list, func(o []string) bool { return o[0] == names[0] }) {
				list = append(list, names)
			}
		}
		for id := range nodes {
			if nodes[id].Pool == p.Name {
				add(d.names[id])
			}
		}
		if s.kept != nil {
			for k := range s.kept.Slots {
				if s.kept.Slots[k].Pool == p.Name {
					add(s.kept.Slots[k].Names)
				}
			}
		}
		kind := c.Accelerators[p.Accelerator]
		have := s.left(kind)
		for len(list) < p.Max {
			names := make([]string, p.Devices)
			for k := range names {
				if names[k] = s.next(kind); names[k] == "" {
					problems = append(problems, core.Diagnostic{
						Path: fmt.Sprintf("cluster.pools[%d].max", i),
						Summary: fmt.Sprintf("pool %q wants up to %d nodes of %d of type %q, and this machine has devices for %d of them, of which %d are left for those that it does not begin with",
							p.Name, p.Max, p.Devices, kind, len(list)+have/p.Devices, have),
						Hint: "found on this machine: " + s.found.String(),
					})
					break
				}
			}
			if names[p.Devices-1] == "" {
				break
			}
			list, have = append(list, names), have-p.Devices
		}
		d.spots[p.Name] = list
	}
	return problems
}

func (s *supply) has(name string) bool {
	return s.found == nil || slices.ContainsFunc(s.found.Devices, func(d device.Device) bool { return d.UUID == name && !d.MIG })
}

// next is the next free device of a type; empty for none.
func (s *supply) next(kind string) string {
	if s.found == nil {
		for i := 0; ; i++ {
			if name := strconv.Itoa(i); !s.taken[name] {
				s.taken[name] = true
				return name
			}
		}
	}
	for _, g := range s.found.Groups() {
		for _, d := range g.Devices {
			if g.Type == kind && !s.taken[d.UUID] {
				s.taken[d.UUID] = true
				return d.UUID
			}
		}
	}
	return ""
}

// left is how many devices of a type are free; 0 where devices are numbers, which never end.
func (s *supply) left(kind string) (n int) {
	if s.found == nil {
		return 0
	}
	for _, g := range s.found.Groups() {
		for _, d := range g.Devices {
			if g.Type == kind && !s.taken[d.UUID] {
				n++
			}
		}
	}
	return n
}

func (s *supply) missing(n *core.Node, kind string, have int) core.Diagnostic {
	return core.Diagnostic{
		Path:    "cluster.nodes",
		Summary: fmt.Sprintf("node %q wants %d of type %q, this machine has %d left", n.Name, n.Devices, kind, have),
		Hint:    "found on this machine: " + s.found.String(),
	}
}
