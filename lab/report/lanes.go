package report

import "slices"

// A lane is the part of the rows of its devices that a stay is drawn in: the at-th of so many, one above the other. One that nobody shares its devices
// with has all of them.
type lane struct{ at, of uint32 }

// visit is a stay on devices of a node.
type visit struct {
	node       int
	mask       uint64
	start, end float64
}

// lanesOf gives those that are on a device at a time lanes of their own, as few as will do: visits that overlap, or are tied by others that
// overlap both, divide their rows by the same number. It reports whether there are any such. Visits are in order of their start.
func lanesOf(visits []visit) (lanes []lane, shared bool) {
	lanes = make([]lane, len(visits))
	group := make([]int, len(visits)) // with whom a visit divides its rows, by the first of them
	of := func(i int) int {
		for group[i] != i {
			i = group[i]
		}
		return i
	}
	here := map[int][]int{} // by node: the visits that go on
	for i := range visits {
		v := &visits[i]
		group[i], lanes[i].of = i, 1
		others := slices.DeleteFunc(here[v.node], func(k int) bool { return !(visits[k].end > v.start) })
		var taken []uint32
		for _, k := range others {
			if visits[k].mask&v.mask == 0 {
				continue
			}
			shared = true
			taken = append(taken, lanes[k].at)
			if a, b := of(i), of(k); a != b {
				group[max(a, b)] = min(a, b)
				lanes[min(a, b)].of = max(lanes[a].of, lanes[b].of)
			}
		}
		for slices.Contains(taken, lanes[i].at) {
			lanes[i].at++
		}
		first := &lanes[of(i)]
		first.of = max(first.of, lanes[i].at+1)
		here[v.node] = append(others, i)
	}
	for i := range lanes {
		lanes[i].of = lanes[of(i)].of
	}
	return lanes, shared
}
