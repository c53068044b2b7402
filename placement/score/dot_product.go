package score

// DotProduct takes the node whose rest is least like the task: the smallest product of what is left and what is needed.
//
// Source: baseline of FGD (ATC'23), where it is said to be like Tetris, whose product it inverts. No deviation. O(1) for each score; the
// tightest devices.
type DotProduct struct{ tightest }

// Score is 0 to 100.
func (DotProduct) Score(n *Node, t *Task) int32 {
	cpu := float64(n.CPU) / largestCPU * (float64(t.CPU) / largestCPU)
	devices := float64(n.total) / largestDevices * (float64(t.milli()) / largestDevices)
	return hundredths(1 - (float64(0.5*cpu) + float64(0.5*devices)))
}
