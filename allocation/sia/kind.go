package sia

import "github.com/quartet-sched/quartet/core"

// kind is what the cluster has of an accelerator type.
type kind struct {
	devices int // ready
	perNode int // of the largest ready node
	nodes   int // ready ones of that size that a job may span
}

// survey counts what is ready of each type.
func (p *allocator) survey(c *core.Cluster) {
	p.types = append(p.types[:0], make([]kind, len(c.Accelerators))...)
	for i := range c.Nodes {
		k, usable := &p.types[c.Nodes[i].Accelerator], c.Nodes[i].Usable().Count()
		k.devices += usable
		switch {
		case usable > k.perNode:
			k.perNode, k.nodes = usable, 1
		case usable == k.perNode:
			k.nodes++
		}
	}
	for _, m := range p.config.MostNodes {
		for t, name := range c.Accelerators {
			if name == m.Accelerator {
				p.types[t].nodes = min(p.types[t].nodes, m.Nodes)
			}
		}
	}
	p.pinned.Reset(c)
	p.capacity = p.capacity[:0]
	for t := range p.types {
		p.capacity = append(p.capacity, p.types[t].devices)
	}
}

// each calls try with the sizes of a type's configurations from least to most devices: the powers of two that one node
// holds, then whole nodes. If none is within, but there are so many devices, the least is one.
func (k *kind) each(least, most int, try func(devices int)) {
	found := false
	offer := func(n int) {
		if n >= least && n <= most {
			found = true
			try(n)
		}
	}
	if least < most {
		for n := 1; n < k.perNode; n *= 2 {
			offer(n)
		}
		for nodes := 1; nodes <= k.nodes && k.perNode > 0; nodes++ {
			offer(nodes * k.perNode)
		}
	}
	if !found && least <= k.devices {
		try(least)
	}
}
