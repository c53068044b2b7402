package cells

import "slices"

// ID is the index of a cell of a Forest. The cells of level 0, which are devices, come first.
type ID int32

// None is no cell.
const None ID = -1

// Level is the cells of one size.
type Level struct {
	// Name is the name of the level.
	Name    string
	Devices int // of each cell; a multiple of that of the level below
}

type state uint8

// The states of a cell.
const (
	inside state = iota // part of a larger cell that is free or taken
	free                // in the free list of its level
	split               // some cell in it is free, taken or broken by itself
	taken               // allocated as a whole
	broken              // a device that must not be used, in no taken cell
)

type cell struct {
	parent, first ID // None for a root, and for a device
	next, prev    ID // in the free list
	level         int8
	state         state
	free          int32 // children in the free list
	idle          int32 // devices of it that are sound and not busy
	bad           int32 // devices of it that are broken
	busy          int32 // devices in use, of a taken cell
	guests        int32 // devices that guests use
	owner         int32 // tenant, of a taken cell
}

// Forest is the cells of one accelerator type and their buddy allocation: a free list for each level. All operations are
// O(levels × buddies of a cell), but for those that look for the fewest guests, which walk a free list.
type Forest struct {
	levels []Level
	cells  []cell
	heads  []ID // of the free lists, by level
	guests int  // devices that guests use
	withheld,
	unusable []bool // by device
}

// newForest makes a forest whose cells are all free. Grouped tells for each level but the first the first child of each cell, in
// ascending order.
func newForest(levels []Level, devices int, grouped [][]ID) *Forest {
	f := &Forest{levels: levels, heads: make([]ID, len(levels)), withheld: make([]bool, devices), unusable: make([]bool, devices)}
	for range devices {
		f.cells = append(f.cells, cell{parent: None, first: None, idle: 1})
	}
	for k := 1; k < len(levels); k++ {
		for _, first := range grouped[k-1] {
			id := ID(len(f.cells))
			f.cells = append(f.cells, cell{parent: None, first: first, level: int8(k), idle: int32(levels[k].Devices)})
			for child := first; child < first+ID(f.fan(k)); child++ {
				f.cells[child].parent = id
			}
		}
	}
	for k := range f.heads {
		f.heads[k] = None
	}
	for id, c := range slices.Backward(f.cells) { // the lowest comes first
		if c.parent == None {
			f.push(ID(id))
		}
	}
	return f
}

// fan is the number of cells of the level below in one of level k.
func (f *Forest) fan(k int) int { return f.levels[k].Devices / f.levels[k-1].Devices }

// children are the first child of a cell and the one behind the last.
func (f *Forest) children(c ID) (first, end ID) {
	first = f.cells[c].first
	return first, first + ID(f.fan(int(f.cells[c].level)))
}

// devices are the first device of a cell and the one behind the last.
func (f *Forest) devices(c ID) (first, end ID) {
	first = c
	for f.cells[first].first != None {
		first = f.cells[first].first
	}
	return first, first + ID(f.levels[f.cells[c].level].Devices)
}

// Alloc takes a free cell of a level, the smallest free one split until it is of that. It takes the one in which guests use the
// fewest devices. None when no cell of that level is free.
func (f *Forest) Alloc(level int) ID {
	k := level
	for k < len(f.heads) && f.heads[k] == None {
		k++
	}
	if k == len(f.heads) {
		return None
	}
	c := f.heads[k]
	if f.guests > 0 {
		for other := f.cells[c].next; other != None && f.cells[c].guests > 0; other = f.cells[other].next {
			if f.cells[other].guests < f.cells[c].guests {
				c = other
			}
		}
	}
	for ; k > level; k-- {
		first, end := f.divide(c)
		c = first
		for other := first + 1; other < end && f.cells[c].guests > 0; other++ {
			if f.cells[other].guests < f.cells[c].guests {
				c = other
			}
		}
	}
	f.remove(c)
	f.cells[c].state = taken
	return c
}

// Free gives back a cell that was taken. Free buddies become the cell that they are part of.
func (f *Forest) Free(c ID) {
	if f.cells[c].bad > 0 {
		f.shatter(c)
		return
	}
	f.push(c)
	f.merge(c)
}

// merge makes the cell that a free one is part of free, if all its buddies are, and so on upward.
func (f *Forest) merge(c ID) {
	for p := f.cells[c].parent; p != None && int(f.cells[p].free) == f.fan(int(f.cells[p].level)); p = f.cells[p].parent {
		first, end := f.children(p)
		for child := first; child < end; child++ {
			f.remove(child)
		}
		f.push(p)
	}
}

// shatter frees what is sound of a cell that is not free.
func (f *Forest) shatter(c ID) {
	if f.cells[c].first == None {
		f.cells[c].state = broken
		return
	}
	f.cells[c].state = split
	first, end := f.children(c)
	for child := end - 1; child >= first; child-- {
		if f.cells[child].bad == 0 {
			f.push(child)
		} else {
			f.shatter(child)
		}
	}
}

// divide replaces a free cell by its children.
func (f *Forest) divide(c ID) (first, end ID) {
	f.remove(c)
	f.cells[c].state = split
	first, end = f.children(c)
	for child := end - 1; child >= first; child-- {
		f.push(child)
	}
	return first, end
}

// Claim takes a certain cell. It reports false, and takes nothing, if a part of it is taken, or belongs to a taken cell.
func (f *Forest) Claim(c ID) bool {
	holder := f.holder(c)
	switch f.cells[holder].state {
	case free:
		f.carve(holder, c)
		f.remove(c)
	case split:
		if f.anyTaken(c) {
			return false
		}
		f.gather(c)
	case broken:
		f.cells[c].state = taken
	default:
		return false
	}
	f.cells[c].state = taken
	return true
}

// holder is the cell that a cell is inside of, or itself.
func (f *Forest) holder(c ID) ID {
	for f.cells[c].state == inside {
		c = f.cells[c].parent
	}
	return c
}

// carve divides a free cell until a cell in it is free by itself.
func (f *Forest) carve(from, c ID) {
	for from != c {
		f.divide(from)
		for from = c; f.cells[from].state != free; {
			from = f.cells[from].parent
		}
	}
}

func (f *Forest) anyTaken(c ID) bool {
	switch f.cells[c].state {
	case taken:
		return true
	case split:
		first, end := f.children(c)
		for child := first; child < end; child++ {
			if f.anyTaken(child) {
				return true
			}
		}
	}
	return false
}

// gather takes the parts of a cell out of the free lists.
func (f *Forest) gather(c ID) {
	switch f.cells[c].state {
	case free:
		f.remove(c)
	case split:
		first, end := f.children(c)
		for child := first; child < end; child++ {
			f.gather(child)
		}
	}
	f.cells[c].state = inside
}

// Usable says whether a device is sound. One that is not leaves the free list, with the rest of its cell divided; in a taken
// cell it is not used again.
func (f *Forest) Usable(device ID, usable bool) {
	was := f.bad(device)
	f.unusable[device] = !usable
	f.rebreak(device, was)
}

// withhold keeps a device from all tenants while a guest has it that cannot be sent away.
func (f *Forest) withhold(device ID, withheld bool) {
	was := f.bad(device)
	f.withheld[device] = withheld
	f.rebreak(device, was)
}

func (f *Forest) bad(device ID) bool { return f.unusable[device] || f.withheld[device] }

func (f *Forest) rebreak(device ID, was bool) {
	is := f.bad(device)
	if is == was {
		return
	}
	idle := f.cells[device].busy == 0
	by := int32(1)
	if !is {
		by = -1
	}
	for c := device; c != None; c = f.cells[c].parent {
		f.cells[c].bad += by
		if idle {
			f.cells[c].idle -= by
		}
	}
	switch holder := f.holder(device); {
	case f.cells[holder].state == free:
		f.carve(holder, device)
		f.remove(device)
		f.cells[device].state = broken
	case f.cells[holder].state == broken:
		f.push(device)
		f.merge(device)
	}
}

// occupy says whether a device of a taken cell is busy.
func (f *Forest) occupy(device ID, busy bool) {
	by := int32(1)
	if !busy {
		by = -1
	}
	f.cells[device].busy += by
	if !f.bad(device) {
		for c := device; c != None; c = f.cells[c].parent {
			f.cells[c].idle -= by
		}
	}
	if holder := f.holder(device); holder != device {
		f.cells[holder].busy += by
	}
}

// lodge says whether a guest uses a device.
func (f *Forest) lodge(device ID, used bool) {
	by := int32(1)
	if !used {
		by = -1
	}
	f.guests += int(by)
	for c := device; c != None; c = f.cells[c].parent {
		f.cells[c].guests += by
	}
}

func (f *Forest) push(c ID) {
	x := &f.cells[c]
	x.state, x.prev, x.next = free, None, f.heads[x.level]
	if x.next != None {
		f.cells[x.next].prev = c
	}
	f.heads[x.level] = c
	if x.parent != None {
		f.cells[x.parent].free++
	}
}

// remove takes a cell out of its free list.
func (f *Forest) remove(c ID) {
	x := &f.cells[c]
	if x.prev == None {
		f.heads[x.level] = x.next
	} else {
		f.cells[x.prev].next = x.next
	}
	if x.next != None {
		f.cells[x.next].prev = x.prev
	}
	x.state = inside
	if x.parent != None {
		f.cells[x.parent].free--
	}
}

// ancestor is the cell of a level that a device lies in; None where its group is no cell.
func (f *Forest) ancestor(device ID, level int) ID {
	c := device
	for c != None && int(f.cells[c].level) < level {
		c = f.cells[c].parent
	}
	return c
}

// Sound is the number of cells of each level without a broken device, whether free or not.
func (f *Forest) Sound(into []int) []int {
	into = append(into[:0], make([]int, len(f.levels))...)
	for i := range f.cells {
		if f.cells[i].bad == 0 {
			into[f.cells[i].level]++
		}
	}
	return into
}

// Missing reports whether cells wanted of each level can be had all at once of sound ones, and otherwise of which level, the
// highest, how many are missing. Which cells are chosen makes no difference, for all of a level are alike; so it is enough to
// count, for each level, the cells of it that are wanted, alone or as parts of higher ones.
func Missing(levels []Level, sound, wanted []int) (level, missing int) {
	total := 0
	for k, l := range slices.Backward(levels) {
		if k+1 < len(levels) {
			total *= levels[k+1].Devices / l.Devices
		}
		if total += wanted[k]; total > sound[k] {
			return k, total - sound[k]
		}
	}
	return 0, 0
}
