package placement

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// NewBuddy seats jobs on aligned blocks of devices, and moves running ones where blocks are in pieces.
//
// A block is 2^k devices of a node that begin at a multiple of 2^k. A job takes as few nodes as it would if all were idle:
// whole ones first, and for the rest one block, or for a size that is no power of two one for each of its binary digits, on one
// node. Grants are given devices in their order, by count alone; then they are seated by size, the largest first, each block
// split off the smallest free one that holds it. So, on nodes of one size that is a power of two, jobs of such sizes all fit
// when their sum does, and nobody moves where they fit without.
//
// A job that does not fit so takes a block in which smaller ones run, who move: that with the fewest running jobs, then with
// the fewest devices of theirs, then the lowest. They are seated in the same way, the largest first, and may make smaller ones
// move in turn, which ends as sizes fall. Where it comes to that, the four best blocks of different nodes are tried, and the one
// that moves the fewest in the end is taken. Jobs that are pinned never move, and nobody moves where that would not bring the
// job to its fewest nodes: it then takes free devices like consolidated. The rule is greedy from job to job and so not exact:
// on 2,000 random clusters of up to four nodes it moves 0.5 % more than the least that would do, and the least in 99.4 % of them.
//
// Source: ElasticFlow (ASPLOS'23), buddy allocation with migration. Deviations: it knows nodes of one size, and powers of
// two, only. Here devices that are broken, or held by others, make their node smaller, to the largest size that its blocks
// add up to. O(types) for each grant, O(nodes / 64) for each seat, and O(nodes) for each block that others leave.
func NewBuddy() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "buddy",
		Summary: "seats jobs on aligned blocks, and moves running ones where the blocks are in pieces",
		Description: "Blocks are powers of two and aligned in their node. A job takes as few nodes as it would on an idle cluster; where free devices are in pieces, running jobs that are not pinned and smaller move together, as few as a greedy rule finds. " +
			"On equal nodes of a power of two, any jobs of such sizes fit when their sum does. Where moves do not help, a job takes free devices like consolidated. " +
			"O(types) for each grant, O(nodes / 64) for each seat, O(nodes) for each block that others leave.",
		Source: "ElasticFlow, ASPLOS'23: buddy allocation with migration",
	}, core.None{}, func(core.None, core.Settings) (core.Placer, error) { return &buddy{}, nil })
}

// tries is how many rooms are tried for a grant. Twice as many move no fewer jobs in the test, at twice the time.
const tries = 4

// levels is how many sizes of blocks there are: 1, 2, 4, …, core.MaxDevicesPerNode.
const levels = 7

type buddy struct {
	seating.Seater
	sizes    [][core.MaxDevicesPerNode + 1]int // nodes by accelerator type, and by the most devices that a job can have in blocks
	blocks   [][levels][]uint64                // by accelerator type and size of block: the nodes with such a block free, as a bit set
	machines []machine
	holders  []holder
	parts    []part
	split    []int // the sizes of the parts of the job that is being seated

	moved  int      // running jobs that are not where they were
	undo   []undone // what was done since the job before was seated
	rooms  []room   // a stack: those that are tried
	lifted []int    // a stack: parts that are made to move
}

// machine is a node: who holds what of it, and which blocks are free.
type machine struct {
	accelerator core.AcceleratorID
	devices     int
	levels      uint8 // bit k: a block of 2^k is free whose double is not
	tenants     []tenant
	rooms       [levels]room // the best for a block of 2^k, if known
	known       uint8        // bit k: rooms[k] still holds
}

// tenant is a part as its node sees it.
type tenant struct {
	part    int
	devices core.DeviceSet
	pinned  bool
}

// holder is a job that is granted devices.
type holder struct {
	grant       int
	accelerator core.AcceleratorID // of one that gets new seats
	first, end  int                // its parts
	runs        bool               // where its parts have their home
	pinned      bool
	away        int // parts that are not at home
}

// part is what a job holds of one node.
type part struct {
	holder int
	size   int
	seat   core.Seat // no devices while it looks for some
	home   core.Seat // what it held before the round, if it runs
}

// undone is a part that was elsewhere before.
type undone struct {
	part int
	seat core.Seat
}

// room is devices of a node on which others may run, who would have to move.
type room struct {
	node    core.NodeID
	devices core.DeviceSet
	jobs    int // running jobs that have not moved yet
	moving  int // devices of all who would move
}

func (p *buddy) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	p.Begin(v)
	p.holders = p.holders[:0]
	for i := range grants {
		g := &grants[i]
		if !p.Occupy(v, g) {
			p.Rest = append(p.Rest, i)
			continue
		}
		p.Keep(v, g)
		p.holders = append(p.holders, holder{grant: i, runs: true, pinned: v.Jobs[g.Job].Pinned})
	}
	if len(p.Rest) == 0 {
		return p.Seating(), nil
	}
	kept := len(p.holders)
	p.measure(v)
	for _, i := range p.Rest {
		g := &grants[i]
		if t := p.chooseType(v, g); t != core.AnyAccelerator {
			p.Free[t] -= g.Replicas
			p.holders = append(p.holders, holder{grant: i, accelerator: t})
		} else if !p.AcrossTypes(v, g, seating.Consolidated) {
			p.Refuse(v, g, false)
			p.Close(v, g)
		}
	}
	started := p.holders[kept:]
	slices.SortStableFunc(started, func(a, b holder) int { return cmp.Compare(grants[b.grant].Replicas, grants[a.grant].Replicas) })
	p.survey(v, kept)
	for h := kept; h < len(p.holders); h++ {
		p.settle(v, grants, h)
	}
	p.answer(grants, kept)
	return p.Seating(), nil
}

// measure counts the nodes of each type by size.
func (p *buddy) measure(v *core.View) {
	p.sizes = slices.Grow(p.sizes[:0], len(p.Free))[:len(p.Free)]
	clear(p.sizes)
	for i := range v.Cluster.Nodes {
		node := &v.Cluster.Nodes[i]
		usable := node.Usable()
		for size := usable.Count(); size > 0; size-- {
			if _, fits := carve(usable, size); fits {
				p.sizes[node.Accelerator][size]++
				break
			}
		}
	}
}

// chooseType is the type with enough free devices on which a grant would need the fewest nodes if all were idle, the lowest of several.
func (p *buddy) chooseType(v *core.View, g *core.Grant) core.AcceleratorID {
	best, fewest := core.AnyAccelerator, 0
	for t := range p.Free {
		if p.Free[t] < g.Replicas || !p.Open(v, g, core.AcceleratorID(t)) {
			continue
		}
		if nodes := p.divide(core.AcceleratorID(t), g.Replicas); best == core.AnyAccelerator || nodes < fewest {
			best, fewest = core.AcceleratorID(t), nodes
		}
	}
	return best
}

// divide splits n replicas over the fewest nodes of a type, as if all were idle, and returns how many these are: more than there
// are nodes when n is too large for what their blocks add up to.
func (p *buddy) divide(t core.AcceleratorID, n int) int {
	p.split = p.split[:0]
	for size := core.MaxDevicesPerNode; size > 0 && n > 0; size-- {
		nodes := p.sizes[t][size]
		for ; nodes > 0 && n >= size; nodes-- {
			p.split = append(p.split, size)
			n -= size
		}
		if nodes > 0 && n > 0 {
			p.split = append(p.split, n)
			n = 0
		}
	}
	if n > 0 {
		p.split = p.split[:0]
		return p.Nodes[t] + 1
	}
	return len(p.split)
}

// survey notes who holds which devices, and which blocks are free.
func (p *buddy) survey(v *core.View, kept int) {
	p.blocks = slices.Grow(p.blocks[:0], len(p.Free))[:len(p.Free)]
	words := (len(v.Cluster.Nodes) + 63) / 64
	for t := range p.blocks {
		for k := range levels {
			p.blocks[t][k] = slices.Grow(p.blocks[t][k][:0], words)[:words]
			clear(p.blocks[t][k])
		}
	}
	p.machines = slices.Grow(p.machines[:0], len(v.Cluster.Nodes))[:len(v.Cluster.Nodes)]
	for i := range p.machines {
		n := &p.machines[i]
		n.accelerator, n.devices, n.levels, n.tenants = v.Cluster.Nodes[i].Accelerator, v.Cluster.Nodes[i].Devices, 0, n.tenants[:0]
		p.relist(core.NodeID(i))
	}
	p.parts, p.moved = p.parts[:0], 0
	for h := range p.holders[:kept] {
		p.holders[h].first = len(p.parts)
		for _, seat := range p.Placed[h].Seats {
			node := &p.machines[seat.Node]
			node.tenants = append(node.tenants, tenant{len(p.parts), seat.Devices, p.holders[h].pinned})
			p.parts = append(p.parts, part{holder: h, size: seat.Devices.Count(), seat: seat, home: seat})
		}
		p.holders[h].end = len(p.parts)
	}
}

// settle seats a grant to which devices were given.
func (p *buddy) settle(v *core.View, grants []core.Grant, h int) {
	holder, n := &p.holders[h], grants[p.holders[h].grant].Replicas
	t := holder.accelerator
	p.undo = p.undo[:0]
	holder.first = len(p.parts)
	if !p.settleOn(h, t, n, false) && !p.settleElsewhere(v, &grants[holder.grant], h, n) && !p.settleOn(h, t, n, true) {
		first := len(p.Seats)
		seating.Consolidated(&p.Seater, v, nil, t, n)
		seats := p.Seats[first:]
		p.Untake(first)
		for _, seat := range seats {
			p.put(p.newPart(h, seat.Devices.Count()), seat)
		}
	}
	p.holders[h].end = len(p.parts)
}

// settleElsewhere seats a grant on another type where that moves nobody. While others wait, it does not: they were refused what it would
// leave.
func (p *buddy) settleElsewhere(v *core.View, g *core.Grant, h, n int) bool {
	if len(p.Unseated) > 0 {
		return false
	}
	given := p.holders[h].accelerator
	nodes := p.divide(given, n)
	for i := range p.Free {
		t := core.AcceleratorID(i)
		if t == given || p.Free[t] < n || !p.Open(v, g, t) || p.divide(t, n) > nodes || !p.settleOn(h, t, n, false) {
			continue
		}
		p.Free[given] += n
		p.Free[t] -= n
		return true
	}
	return false
}

// settleOn seats a job on the fewest nodes of a type, if that can be done.
func (p *buddy) settleOn(h int, t core.AcceleratorID, n int, moving bool) bool {
	parts, done := len(p.parts), len(p.undo)
	p.divide(t, n)
	for _, size := range p.split {
		i := p.newPart(h, size)
		if !p.seatFree(i, t) && !(moving && p.makeRoom(i, t, tries)) {
			p.takeBack(done)
			p.parts = p.parts[:parts]
			return false
		}
	}
	return len(p.split) > 0
}

func (p *buddy) newPart(h, size int) int {
	p.parts = append(p.parts, part{holder: h, size: size})
	return len(p.parts) - 1
}

// seatFree seats a part on free blocks of a node, of which the first is the smallest.
func (p *buddy) seatFree(i int, t core.AcceleratorID) bool {
	size := p.parts[i].size
	for k := log2(size); k < levels; k++ {
		for w, word := range p.blocks[t][k] {
			for ; word != 0; word &= word - 1 {
				node := core.NodeID(64*w + bits.TrailingZeros64(word))
				if devices, fits := carve(p.Ledger.FreeDevices(node), size); fits {
					p.put(i, core.Seat{Node: node, Devices: devices})
					return true
				}
			}
		}
	}
	return false
}

// makeRoom seats a part where others run, who move. It tries so many blocks at most, and takes the one that moves the fewest jobs.
func (p *buddy) makeRoom(i int, t core.AcceleratorID, tries int) bool {
	first := len(p.rooms)
	p.findRooms(p.parts[i].size, t, tries)
	end, done, before := len(p.rooms), len(p.undo), p.moved
	best, fewest, at := -1, 0, -1
	for r := first; r < end && (best < 0 || before+p.rooms[r].jobs < fewest); r++ {
		fits := p.enter(i, p.rooms[r], t)
		if at = r; fits && (best < 0 || p.moved < fewest) {
			best, fewest = r, p.moved
		}
		if best == r && p.moved == before+p.rooms[r].jobs {
			break // no later one is better
		}
		p.takeBack(done)
		at = -1
	}
	if best >= 0 && at != best {
		p.enter(i, p.rooms[best], t)
	}
	p.rooms = p.rooms[:first]
	return best >= 0
}

// findRooms stacks the rooms for so many devices that promise to move the fewest jobs, at most one of each node, the best first.
func (p *buddy) findRooms(size int, t core.AcceleratorID, most int) {
	first := len(p.rooms)
	for i := range p.machines {
		if p.machines[i].accelerator != t {
			continue
		}
		r := p.roomOf(core.NodeID(i), size)
		if r.devices == 0 {
			continue
		}
		at := len(p.rooms)
		for at > first && r.less(&p.rooms[at-1]) {
			at--
		}
		if at-first < most {
			p.rooms = slices.Insert(p.rooms, at, r)
			p.rooms = p.rooms[:min(len(p.rooms), first+most)]
		}
	}
}

func (r *room) less(o *room) bool {
	return r.jobs < o.jobs || r.jobs == o.jobs && r.moving < o.moving
}

// roomOf is the best room of a node, without devices if there is none. For a single block it is remembered.
func (p *buddy) roomOf(id core.NodeID, size int) room {
	node, k := &p.machines[id], log2(size)
	if size != 1<<k {
		return p.findRoom(id, size)
	}
	if node.known>>k&1 == 0 {
		node.known |= 1 << k
		node.rooms[k] = p.findRoom(id, size)
	}
	return node.rooms[k]
}

// findRoom takes for each block the window with the fewest running jobs, then devices, then the lowest.
func (p *buddy) findRoom(id core.NodeID, size int) room {
	node, r := &p.machines[id], room{node: id}
	open := p.Ledger.FreeDevices(id)
	for i := range node.tenants {
		if tenant := &node.tenants[i]; tenant.devices.Count() < size && !tenant.pinned && tenant.devices&p.Ledger.Reserved(id) == 0 {
			open |= tenant.devices
		}
	}
	if open.Count() < size {
		return room{}
	}
	for left := size; left > 0; {
		block := 1 << log2(left)
		best, found := r, false
		for start := 0; start+block <= node.devices; start += block {
			window := core.FirstDevices(block) << start
			if window&^open != 0 || window&r.devices != 0 {
				continue
			}
			next := r
			for i := range node.tenants {
				if tenant := &node.tenants[i]; tenant.devices&window != 0 && tenant.devices&r.devices == 0 {
					next.moving += tenant.devices.Count()
					if h := &p.holders[p.parts[tenant.part].holder]; h.runs && h.away == 0 {
						next.jobs++
					}
				}
			}
			if next.devices |= window; !found || next.less(&best) {
				best, found = next, true
			}
		}
		if !found {
			return room{}
		}
		r, left = best, left-block
	}
	return r
}

// enter seats a part in a room, and those who were there elsewhere. When that fails some of it is done.
func (p *buddy) enter(i int, r room, t core.AcceleratorID) bool {
	first := len(p.lifted)
	for i := range p.machines[r.node].tenants {
		if tenant := &p.machines[r.node].tenants[i]; tenant.devices&r.devices != 0 {
			p.lifted = append(p.lifted, tenant.part)
		}
	}
	slices.SortFunc(p.lifted[first:], func(a, b int) int {
		return cmp.Or(cmp.Compare(p.parts[b].size, p.parts[a].size), cmp.Compare(a, b))
	})
	end := len(p.lifted)
	for k := first; k < end; k++ {
		p.put(p.lifted[k], core.Seat{})
	}
	p.put(i, core.Seat{Node: r.node, Devices: r.devices})
	all := true
	for k := first; k < end && all; k++ {
		all = p.seatFree(p.lifted[k], t) || p.makeRoom(p.lifted[k], t, 1)
	}
	p.lifted = p.lifted[:first]
	return all
}

// put seats a part, or takes its devices if the seat has none, so that it can be taken back.
func (p *buddy) put(i int, seat core.Seat) {
	p.undo = append(p.undo, undone{i, p.parts[i].seat})
	p.reseat(i, seat)
}

// takeBack undoes all but the first so many puts.
func (p *buddy) takeBack(done int) {
	for k := len(p.undo) - 1; k >= done; k-- {
		p.reseat(p.undo[k].part, p.undo[k].seat)
	}
	p.undo = p.undo[:done]
}

func (p *buddy) reseat(i int, seat core.Seat) {
	part := &p.parts[i]
	h := &p.holders[part.holder]
	was := h.away > 0
	if old := [1]core.Seat{part.seat}; part.seat.Devices != 0 {
		p.Ledger.Release(old[:])
		node := &p.machines[part.seat.Node]
		at := slices.IndexFunc(node.tenants, func(t tenant) bool { return t.part == i })
		node.tenants = slices.Delete(node.tenants, at, at+1)
		p.relist(part.seat.Node)
		if h.runs && part.seat == part.home {
			h.away++
		}
	}
	part.seat = seat
	if taken := [1]core.Seat{seat}; seat.Devices != 0 {
		p.Ledger.Occupy(taken[:])
		node := &p.machines[seat.Node]
		node.tenants = append(node.tenants, tenant{i, seat.Devices, h.pinned})
		p.relist(seat.Node)
		if h.runs && seat == part.home {
			h.away--
		}
	}
	is := h.away > 0
	if is == was {
		return
	}
	if is {
		p.moved++
	} else {
		p.moved--
	}
	for _, other := range p.parts[h.first:h.end] { // whose moves cost nothing more now, or do again
		p.machines[other.home.Node].known = 0
		p.machines[other.seat.Node].known = 0
	}
}

// relist notes which blocks of a node are free, and forgets its rooms.
func (p *buddy) relist(id core.NodeID) {
	node, now := &p.machines[id], uint8(0)
	runs := runsOf(p.Ledger.FreeDevices(id))
	for k := range levels {
		if runs.largest(k) != 0 {
			now |= 1 << k
		}
	}
	for changed := now ^ node.levels; changed != 0; changed &= changed - 1 {
		p.blocks[node.accelerator][bits.TrailingZeros8(changed)][id/64] ^= 1 << (id % 64)
	}
	node.levels, node.known = now, 0
}

// answer says where those are who moved, and those who were seated anew.
func (p *buddy) answer(grants []core.Grant, kept int) {
	for h := range p.holders {
		switch {
		case h >= kept:
			p.Placed = append(p.Placed, core.Placement{Job: grants[p.holders[h].grant].Job, Seats: p.seatsOf(h)})
		case p.holders[h].away > 0:
			p.Placed[h].Seats = p.seatsOf(h)
		}
	}
}

// seatsOf is where a job is, with one seat for each node.
func (p *buddy) seatsOf(h int) []core.Seat {
	first := len(p.Seats)
	for _, part := range p.parts[p.holders[h].first:p.holders[h].end] {
		same := func(s core.Seat) bool { return s.Node == part.seat.Node }
		if at := slices.IndexFunc(p.Seats[first:], same); at >= 0 {
			p.Seats[first+at].Devices |= part.seat.Devices
		} else {
			p.Seats = append(p.Seats, part.seat)
		}
	}
	return p.Seats[first:len(p.Seats):len(p.Seats)]
}

// runs is where the blocks of a set of devices begin, by size: those of 2^k at k.
type runs [levels + 1]core.DeviceSet

func runsOf(free core.DeviceSet) (r runs) {
	r[0] = free
	for k := range levels - 1 {
		r[k+1] = r[k] & (r[k] >> (1 << k)) & aligned[k+1]
	}
	return r
}

// largest is where the blocks of 2^k begin that are not part of one of twice the size.
func (r *runs) largest(k int) core.DeviceSet { return r[k] &^ (r[k+1] | r[k+1]<<(1<<k)) }

// aligned is the multiples of 2^k, by k.
var aligned = [levels]core.DeviceSet{
	0xffff_ffff_ffff_ffff, 0x5555_5555_5555_5555, 0x1111_1111_1111_1111, 0x0101_0101_0101_0101,
	0x0001_0001_0001_0001, 0x0000_0001_0000_0001, 0x0000_0000_0000_0001,
}

// carve is n of the free devices of a node in one block for each binary digit of n, the largest first, each split off the
// smallest that holds it, the lowest of several.
func carve(free core.DeviceSet, n int) (core.DeviceSet, bool) {
	all := free
	for n > 0 {
		digit := log2(n)
		r, k := runsOf(free), digit
		for k < levels && r.largest(k) == 0 {
			k++
		}
		if k == levels {
			return 0, false
		}
		free &^= core.FirstDevices(1<<digit) << bits.TrailingZeros64(uint64(r.largest(k)))
		n -= 1 << digit
	}
	return all &^ free, true
}

// log2 of a positive number, rounded down.
func log2(n int) int { return bits.Len(uint(n)) - 1 }
