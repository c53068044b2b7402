package cells

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// The levels that there always are. LevelRack is there where nodes name their racks.
const (
	LevelDevice = "device"
	LevelNode   = "node"
	LevelRack   = "rack"
)

// chain is the cells of one accelerator type, and where they are.
type chain struct {
	*Forest
	node  int           // the level of nodes
	seats []core.Seat   // of each device
	first map[int32]ID  // of each node, its first device
	at    []core.NodeID // the nodes of the chain
}

// Shape is the levels of the cells of an accelerator type. An error names a level that does not divide the one above it.
func Shape(c *core.Cluster, t core.AcceleratorID, extra []GroupConfig) ([]Level, error) {
	devices, inRack := 0, 0
	racks := map[string]int{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Accelerator != t || n.Health == core.Gone {
			continue
		}
		devices = max(devices, n.Devices)
		if n.Rack != "" {
			racks[n.Rack]++
			inRack = max(inRack, racks[n.Rack])
		}
	}
	if devices == 0 {
		return nil, nil
	}
	levels := []Level{{LevelDevice, 1}}
	if devices > 1 {
		levels = append(levels, Level{LevelNode, devices})
	}
	if inRack > 1 {
		levels = append(levels, Level{LevelRack, inRack * devices})
	}
	for _, g := range extra {
		size := g.Devices
		if size == 0 {
			size = g.Nodes * devices
		} else if size >= devices {
			continue // these nodes are too small for it
		}
		levels = append(levels, Level{g.Name, size})
	}
	slices.SortStableFunc(levels, func(a, b Level) int { return cmp.Compare(a.Devices, b.Devices) })
	for k := 1; k < len(levels); k++ {
		below, level := levels[k-1], levels[k]
		if level.Devices == below.Devices || level.Devices%below.Devices != 0 {
			return nil, fmt.Errorf("on %s a %s of %d devices cannot be divided into several of level %s, of %d", c.Accelerators[t], level.Name, level.Devices, below.Name, below.Devices)
		}
	}
	return levels, nil
}

// newChain makes the cells of an accelerator type, of the nodes that are not gone. All of them are free.
func newChain(c *core.Cluster, t core.AcceleratorID, levels []Level) chain {
	k := chain{first: map[int32]ID{}, node: max(slices.IndexFunc(levels, func(l Level) bool { return l.Name == LevelNode }), 0)}
	racks := map[string]int{"": -1}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Accelerator != t || n.Health == core.Gone {
			continue
		}
		if _, known := racks[n.Rack]; !known {
			racks[n.Rack] = len(racks) - 1
		}
		k.at = append(k.at, n.ID)
	}
	slices.SortStableFunc(k.at, func(a, b core.NodeID) int { return cmp.Compare(racks[c.Nodes[a].Rack], racks[c.Nodes[b].Rack]) })
	for _, id := range k.at {
		k.first[int32(id)] = ID(len(k.seats))
		for d := range c.Nodes[id].Devices {
			k.seats = append(k.seats, core.Seat{Node: id, Devices: 1 << d})
		}
	}
	// Groups lie within a node, within a rack, or anywhere, by their size.
	rackOf := func(device ID) int { return racks[c.Nodes[k.seats[device].Node].Rack] }
	rack := slices.IndexFunc(levels, func(l Level) bool { return l.Name == LevelRack })
	within := func(level int) func(a, b ID) bool {
		switch {
		case level <= k.node:
			return func(a, b ID) bool { return k.seats[a].Node == k.seats[b].Node }
		case rack >= 0 && level <= rack:
			return func(a, b ID) bool { return rackOf(a) == rackOf(b) && (level < rack || rackOf(a) >= 0) }
		default:
			return func(ID, ID) bool { return true }
		}
	}
	grouped := make([][]ID, max(len(levels)-1, 0))
	below := make([]ID, len(k.seats)) // the first device of each cell of the level below
	for i := range below {
		below[i] = ID(i)
	}
	start := ID(0) // of the cells of the level below
	for level := 1; level < len(levels); level++ {
		fan, together := levels[level].Devices/levels[level-1].Devices, within(level)
		var firsts []ID
		for i := 0; i+fan <= len(below); {
			n := 1
			for n < fan && together(below[i], below[i+n]) {
				n++
			}
			if n == fan {
				grouped[level-1] = append(grouped[level-1], start+ID(i))
				firsts = append(firsts, below[i])
			}
			i += n
		}
		start += ID(len(below))
		below = firsts
	}
	k.Forest = newForest(levels, len(k.seats), grouped)
	return k
}

// device is a device of a node in the chain.
func (k *chain) device(node core.NodeID, index int) ID { return k.first[int32(node)] + ID(index) }

// use says which devices of the nodes are usable.
func (k *chain) use(c *core.Cluster) {
	for _, id := range k.at {
		usable, first := c.Nodes[id].Usable(), k.first[int32(id)]
		for d := range c.Nodes[id].Devices {
			k.Usable(first+ID(d), usable>>d&1 == 1)
		}
	}
}

// each calls do for the devices of a seat.
func (k *chain) each(s core.Seat, do func(ID)) {
	for rest := s.Devices; rest != 0; rest &= rest - 1 {
		do(k.device(s.Node, bits.TrailingZeros64(uint64(rest))))
	}
}
