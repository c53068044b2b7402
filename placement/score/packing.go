package score

// Packing fills devices that are shared already, then idle devices of nodes in use, then idle nodes, the smallest first.
//
// Source: baseline GpuPacking of FGD (ATC'23). No deviation. O(devices) for each score; the tightest devices.
type Packing struct{ tightest }

// Score is 0 to 100.
func (Packing) Score(n *Node, t *Task) int32 {
	if !t.needsDevices() {
		return 0
	}
	if all := int32(len(n.Left)); n.idle == all {
		return max(33-all, all)
	}
	chosen := n.tightest(t)
	idle, left := int32(0), int32(0)
	for i, l := range n.Left {
		if chosen>>uint(i)&1 == 0 {
			continue
		}
		if l == Whole {
			idle++
		}
		left += l / 10
	}
	if idle > 0 {
		return max(50-idle, 33)
	}
	return max(100-left/10, 50)
}
