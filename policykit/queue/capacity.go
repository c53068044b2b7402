package queue

import "github.com/quartet-sched/quartet/core"

// Capacity is how many devices a job could hold if it were alone: those of ready nodes of one type.
type Capacity struct {
	ByType  []int // devices of ready nodes, by accelerator type
	Largest []int // devices of the largest ready node, by accelerator type

	least int // devices of the type with the fewest

	cluster       *core.Cluster // of the last CountIn
	healthChanges int
}

// CountIn counts the devices of the ready nodes of a view's cluster. It looks at the nodes only when the health of one changed
// since the last time.
func (k *Capacity) CountIn(v *core.View) {
	if k.cluster == v.Cluster && k.healthChanges == v.HealthChanges {
		return
	}
	k.Count(v.Cluster)
	k.cluster, k.healthChanges = v.Cluster, v.HealthChanges
}

// Count counts the devices of the ready nodes of a cluster.
func (k *Capacity) Count(c *core.Cluster) {
	k.cluster = nil
	if len(k.ByType) != len(c.Accelerators) {
		k.ByType, k.Largest = make([]int, len(c.Accelerators)), make([]int, len(c.Accelerators))
	}
	clear(k.ByType)
	clear(k.Largest)
	for i := range c.Nodes {
		t, devices := c.Nodes[i].Accelerator, c.Nodes[i].Usable().Count()
		k.ByType[t] += devices
		k.Largest[t] = max(k.Largest[t], devices)
	}
	k.least = 0
	for t, devices := range k.ByType {
		if t == 0 || devices < k.least {
			k.least = devices
		}
	}
}

// Limit lowers n to what the candidate could hold, though never below its least number of replicas.
func (k *Capacity) Limit(c *core.Candidate, cluster *core.Cluster, n int) int {
	if n <= k.least || n <= c.Response.MinReplicas {
		return n
	}
	most := c.Response.MinReplicas
	for t, devices := range k.ByType {
		if devices > most && c.CanRunOn(cluster, core.AcceleratorID(t)) {
			most = devices
		}
	}
	return min(n, most)
}
