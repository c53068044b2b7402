package core

// CapacityFor is the greatest number of devices of one accelerator type that a job can run on, whatever the health of
// their nodes: what the job could get of an idle, healthy cluster. 0 when no node carries a type it can run on. O(types ×
// nodes), without allocating.
func (c *Cluster) CapacityFor(spec *JobSpec) int {
	most := 0
	for t := range c.Accelerators {
		if accelerator := AcceleratorID(t); spec.CanRunOn(c, accelerator) {
			most = max(most, c.devicesOf(accelerator))
		}
	}
	return most
}

func (c *Cluster) devicesOf(accelerator AcceleratorID) int {
	total := 0
	for i := range c.Nodes {
		if c.Nodes[i].Accelerator == accelerator {
			total += c.Nodes[i].Devices
		}
	}
	return total
}
