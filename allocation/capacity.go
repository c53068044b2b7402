package allocation

import "github.com/quartet-sched/quartet/core"

// capacity is how many devices a job could hold if it were alone: those of ready nodes of one type.
type capacity struct {
	byType  []int
	largest []int // devices of the largest ready node by type
	least   int   // devices of the type with the fewest
}

func (k *capacity) count(c *core.Cluster) {
	if len(k.byType) != len(c.Accelerators) {
		k.byType, k.largest = make([]int, len(c.Accelerators)), make([]int, len(c.Accelerators))
	}
	clear(k.byType)
	clear(k.largest)
	for i := range c.Nodes {
		t, devices := c.Nodes[i].Accelerator, c.Nodes[i].Usable().Count()
		k.byType[t] += devices
		k.largest[t] = max(k.largest[t], devices)
	}
	k.least = 0
	for t, devices := range k.byType {
		if t == 0 || devices < k.least {
			k.least = devices
		}
	}
}

// limit lowers n to what the candidate could hold, though never below its least number of replicas.
func (k *capacity) limit(c *core.Candidate, cluster *core.Cluster, n int) int {
	if n <= k.least || n <= c.Response.MinReplicas {
		return n
	}
	most := c.Response.MinReplicas
	for t, devices := range k.byType {
		if devices > most && c.CanRunOn(cluster, core.AcceleratorID(t)) {
			most = devices
		}
	}
	return min(n, most)
}
