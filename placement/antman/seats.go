package antman

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// pool is the accelerator types that a job may be on at once.
type pool struct {
	types []bool             // by type
	only  core.AcceleratorID // the one that it is; AnyAccelerator for several
}

// among is the sum of a number by accelerator type over a pool.
func among(of []int, in pool) (sum int) {
	for t, n := range of {
		if in.types[t] {
			sum += n
		}
	}
	return sum
}

// eachPool tries one type after the other, and all together for a job that mixes types and is too large for each, until one will do.
func (p *antMan) eachPool(v *core.View, g *core.Grant, try func(pool) bool) bool {
	p.in = zeroed(p.in, len(p.Free))
	for t := range p.Free {
		only := core.AcceleratorID(t)
		p.in[t] = true
		if p.Open(v, g, only) && try(pool{p.in, only}) {
			return true
		}
		p.in[t] = false
	}
	j := v.Jobs[g.Job]
	if !j.MixesTypes {
		return false
	}
	one := *j.JobSpec
	one.MixesTypes = false
	if g.Replicas <= v.Cluster.CapacityFor(&one) {
		return false
	}
	for t := range p.in {
		p.in[t] = p.Open(v, g, core.AcceleratorID(t))
	}
	return try(pool{p.in, core.AnyAccelerator})
}

// own seats a guaranteed job, or has it keep nodes.
func (p *antMan) own(v *core.View, g *core.Grant) bool {
	if p.eachPool(v, g, func(in pool) bool { return p.take(v, g, in) }) {
		p.letGo(g.Job, true)
		return true
	}
	p.eachPool(v, g, func(in pool) bool { return p.reserve(v, g, in) })
	p.letGo(g.Job, false)
	return false
}

// letGo has a job keep no nodes any more, or only those that it kept in this round.
func (p *antMan) letGo(id core.JobID, all bool) {
	k, keeps := p.keeps[id]
	switch {
	case !keeps:
	case k.node >= 0:
		if all || !p.firm[k.node] {
			p.keepFor(k.node, nobody)
		}
	default:
		for n, j := range p.keeper {
			if j == id && (all || !p.firm[n]) {
				p.keepFor(core.NodeID(n), nobody)
			}
		}
	}
}

// room is the devices of a node that a guaranteed job could have.
func (p *antMan) room(j *core.Job, n core.NodeID) (room core.DeviceSet) {
	for rest := p.shares.Usable(n) &^ p.owned[n]; rest != 0; rest &= rest - 1 {
		if d := rest.First(); p.shares.FitsOn(j.JobSpec, n, d) {
			room |= 1 << d
		}
	}
	return room
}

// largest is how many devices the largest node of a pool has that may be placed on.
func (p *antMan) largest(in pool) (largest int) {
	for t, n := range p.largestOf {
		if in.types[t] {
			largest = max(largest, n)
		}
	}
	return largest
}

// take seats a guaranteed job in a pool: on the first node with enough that no earlier job keeps, or with keepsFirst on that which it keeps, else on one that
// nobody keeps; on several where no node is large enough.
func (p *antMan) take(v *core.View, g *core.Grant, in pool) bool {
	if among(p.vacant, in) < g.Replicas {
		return false
	}
	ask, vain := p.isInVain(v.Jobs[g.Job], g, in, toTake)
	if g.Replicas > p.largest(in) {
		if vain && p.keeps[g.Job].nodes == 0 {
			return false
		}
		nodes := p.idle(v, g, in)
		if nodes == nil {
			p.inVain[ask] = true
			return false
		}
		left := g.Replicas
		for _, n := range nodes {
			left -= p.takeOn(v.Jobs[g.Job], n, left)
		}
		return true
	}
	if p.Keeps == keepsFirst {
		if n := p.kept(v, g, in); n >= 0 {
			return p.takeNode(v, g, in, n)
		}
	}
	if vain { // the node that it keeps itself is none that those before it could not have
		return false
	}
	for i := range v.Cluster.Nodes {
		if p.takeNode(v, g, in, core.NodeID(i)) {
			return true
		}
	}
	p.inVain[ask] = true
	return false
}

// takeNode seats a guaranteed job on a node of a pool, if it may and there is room.
func (p *antMan) takeNode(v *core.View, g *core.Grant, in pool, n core.NodeID) bool {
	j := v.Jobs[g.Job]
	if !in.types[v.Cluster.Nodes[n].Accelerator] || !p.mayTake(g, n) || p.unowned(n) < g.Replicas || p.room(j, n).Count() < g.Replicas {
		return false
	}
	p.takeOn(j, n, g.Replicas)
	p.keepFor(n, nobody) // a later job chooses anew
	return true
}

// mayTake reports whether a job that fits on one node may start there: nobody else keeps it, or only a job behind it and not keepsFirst.
func (p *antMan) mayTake(g *core.Grant, n core.NodeID) bool {
	return p.keeper[n] == nobody || p.keeper[n] == g.Job || p.Keeps == keepsAny && !p.firm[n]
}

// unowned is how many devices of a node no guaranteed job has, whatever is on them besides.
func (p *antMan) unowned(n core.NodeID) int { return (p.shares.Usable(n) &^ p.owned[n]).Count() }

// takeOn takes up to so many devices of a node for a guaranteed job, those that are lent last, and returns how many.
func (p *antMan) takeOn(j *core.Job, n core.NodeID, most int) int {
	room := p.room(j, n)
	devices := (room &^ p.lent[n]).Lowest(min(most, (room &^ p.lent[n]).Count()))
	if short := most - devices.Count(); short > 0 {
		rest := room & p.lent[n]
		devices |= rest.Lowest(min(short, rest.Count()))
	}
	if devices != 0 {
		p.Seats = append(p.Seats, core.Seat{Node: n, Devices: devices})
	}
	return devices.Count()
}

// kept is the node of a pool that a job which fits on one keeps, if that is still large enough; -1 for none.
func (p *antMan) kept(v *core.View, g *core.Grant, in pool) core.NodeID {
	suits := func(n core.NodeID) bool {
		return p.keeper[n] == g.Job && !p.firm[n] && in.types[v.Cluster.Nodes[n].Accelerator] && p.shares.Usable(n).Count() >= g.Replicas
	}
	k, keeps := p.keeps[g.Job]
	if keeps && k.node >= 0 && suits(k.node) {
		return k.node
	}
	for n := core.NodeID(0); keeps && k.node < 0 && int(n) < len(p.keeper); n++ {
		if suits(n) {
			return n
		}
	}
	return -1
}

// idle is enough nodes without guaranteed jobs for one that is larger than a node, those that it keeps first; nil where there are not enough. They lie in p.nodes,
// fewer than needed too.
func (p *antMan) idle(v *core.View, g *core.Grant, in pool) []core.NodeID {
	p.nodes = p.nodes[:0]
	found := 0
	for pass := range 3 {
		for i := range v.Cluster.Nodes {
			of := 3
			switch {
			case p.keeper[i] == g.Job:
				of = 0
			case p.keeper[i] == nobody:
				of = 1
			case p.whole[i] && !p.firm[i]: // a later job keeps it, which is as large
				of = 2
			}
			n := core.NodeID(i)
			if of != pass || !in.types[v.Cluster.Nodes[i].Accelerator] || p.shares.Usable(n) == 0 || p.room(v.Jobs[g.Job], n) != p.shares.Usable(n) {
				continue
			}
			p.nodes = append(p.nodes, n)
			if found += p.shares.Usable(n).Count(); found >= g.Replicas {
				return p.nodes
			}
		}
	}
	return nil
}

// reserve has a guaranteed job keep nodes of a pool, and reports whether the pool is large enough for it.
func (p *antMan) reserve(v *core.View, g *core.Grant, in pool) bool {
	if g.Replicas > among(p.allOf, in) {
		return false
	}
	j := v.Jobs[g.Job]
	ask, vain := p.isInVain(j, g, in, toReserve)
	if g.Replicas > p.largest(in) {
		if vain && p.keeps[g.Job].nodes == 0 {
			return true
		}
		kept := false
		p.idle(v, g, in)
		for _, n := range p.nodes {
			if p.keeper[n] == nobody || p.keeper[n] == g.Job {
				p.keepFor(n, g.Job)
				p.firm[n], p.whole[n], kept = true, true, true
			}
		}
		if !kept {
			p.inVain[ask] = true
		}
		return true
	}
	best := p.kept(v, g, in)
	if best < 0 && !vain {
		most := 0
		for i := range v.Cluster.Nodes {
			n := core.NodeID(i)
			if p.keeper[i] != nobody || !in.types[v.Cluster.Nodes[i].Accelerator] || p.shares.Usable(n).Count() < g.Replicas || p.unowned(n) <= most {
				continue
			}
			if room := p.room(j, n).Count(); room > most {
				best, most = n, room
			}
		}
		if best < 0 {
			p.inVain[ask] = true
		}
	}
	if best >= 0 {
		p.keepFor(best, g.Job)
		p.firm[best], p.whole[best] = true, false
	}
	return true
}

// joinOthers seats an opportunistic job on the devices of a pool on which least is.
func (p *antMan) joinOthers(v *core.View, g *core.Grant, in pool) bool {
	if among(p.spare, in) < g.Replicas {
		return false
	}
	j := v.Jobs[g.Job]
	ask, vain := p.isInVain(j, g, in, toJoin)
	if vain {
		return false
	}
	p.choices = p.choices[:0]
	for i := range v.Cluster.Nodes {
		n := core.NodeID(i)
		if !in.types[v.Cluster.Nodes[i].Accelerator] {
			continue
		}
		for rest := p.shares.Usable(n); rest != 0; rest &= rest - 1 {
			d := rest.First()
			others := p.beside[p.hosts[i]+d]
			if others >= p.most || !p.shares.FitsOn(j.JobSpec, n, d) {
				continue
			}
			load := float64(2 * others)
			if p.owned[n]&(1<<d) != 0 {
				load++
			}
			if p.Loads == loadsSummed {
				load = p.sums[p.hosts[i]+d]
			}
			p.choices = append(p.choices, antManDevice{load, n, d})
		}
	}
	if len(p.choices) < g.Replicas {
		p.inVain[ask] = true
		return false
	}
	slices.SortStableFunc(p.choices, func(a, b antManDevice) int { return cmp.Compare(a.load, b.load) })
	p.choices = p.choices[:g.Replicas]
	slices.SortFunc(p.choices, func(a, b antManDevice) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.device, b.device))
	})
	for k, at := range p.choices {
		if k == 0 || at.node != p.choices[k-1].node {
			p.Seats = append(p.Seats, core.Seat{Node: at.node})
		}
		p.Seats[len(p.Seats)-1].Devices |= 1 << at.device
	}
	return true
}
