package workload

// A placement of at most maxPackedNodes nodes is packed into one word, a byte for the replicas of each node.
const maxPackedNodes = 8

// packShape packs the replicas on each node, empty nodes dropped, in the lexicographically smallest of its rotations,
// as the profiles store placements. It returns 0 for a shape too large to be packed, or of no replicas.
func packShape(shape []int) uint64 {
	packed, nodes := uint64(0), 0
	for _, replicas := range shape {
		if replicas == 0 {
			continue
		}
		if nodes == maxPackedNodes || replicas < 0 || replicas > 0xff {
			return 0
		}
		packed = packed<<8 | uint64(replicas)
		nodes++
	}
	smallest := packed
	for range nodes - 1 {
		first := packed >> (8 * (nodes - 1))
		packed = (packed<<8 | first) &^ (0xff << (8 * nodes)) // shifting by 64 leaves nothing to clear
		smallest = min(smallest, packed)
	}
	return smallest
}

// unpack counts the nodes and the replicas of a packed shape.
func unpack(shape uint64) (nodes, replicas int) {
	for ; shape > 0; shape >>= 8 {
		nodes++
		replicas += int(shape & 0xff)
	}
	return nodes, replicas
}

// spread counts the nodes in use and the replicas of a shape.
func spread(shape []int) (nodes, replicas int) {
	for _, n := range shape {
		if n > 0 {
			nodes++
		}
		replicas += n
	}
	return nodes, replicas
}

// consolidated is the shape of replicas on as few nodes as possible, filled one after another.
func consolidated(replicas, devicesPerNode int) []int {
	var shape []int
	for ; replicas > devicesPerNode; replicas -= devicesPerNode {
		shape = append(shape, devicesPerNode)
	}
	return append(shape, replicas)
}
