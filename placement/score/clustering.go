package score

// Clustering keeps tasks of a kind together: parts of devices, and those with 1, 2, 4, 8 and so on. Among equals it takes the fuller node.
//
// Source: baseline GpuClustering of FGD (ATC'23), after the affinity of Gandiva (OSDI'18). No deviation. O(1) for each score; the tightest
// devices.
type Clustering struct{ tightest }

// Score is 0 to 100 on nodes of up to 8 devices.
func (Clustering) Score(n *Node, t *Task) int32 {
	k := kind(t)
	if k < 0 {
		return 0
	}
	score := max(0, 25*(largestDevices-n.total)/largestDevices)
	switch {
	case n.running[k] > 0 && n.kinds == 1:
		return score + 75
	case n.running[k] > 0:
		return score + 50
	case n.kinds == 0:
		return score + 25
	}
	return score
}
