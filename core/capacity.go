package core

// CapacityFor is the greatest number of devices that a job can run on at once, whatever the health of their nodes: what
// the job could get of an idle, healthy cluster. They are of one accelerator type, unless the job mixes types. 0 when no
// node carries a type it can run on. O(types × nodes), without allocating.
func (c *Cluster) CapacityFor(spec *JobSpec) int {
	most, all := 0, 0
	for t := range c.Accelerators {
		if accelerator := AcceleratorID(t); spec.CanRunOn(c, accelerator) {
			n := c.devicesOf(accelerator)
			most, all = max(most, n), all+n
		}
	}
	if spec.MixesTypes {
		return all
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
