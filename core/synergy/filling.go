package synergy

import "github.com/quartet-sched/quartet/core"

// Tenant shares a cluster with others by weight, and has tasks that are all alike.
type Tenant struct {
	Weight  float64 // above 0
	Tasks   int     // that want to run
	Devices int     // of one
	Demand  core.Resources
}

// Filling divides a cluster by dominant resource fairness (Ghodsi et al., NSDI'11): again and again the tenant with the smallest
// dominant share by weight is given a task, until nobody's fits any more. It appends the tasks of each tenant to given. Equal
// shares go to the first. It takes time in proportion to the tenants for each task.
func Filling(given []int, of Capacity, tenants []Tenant) []int {
	first := len(given)
	for range tenants {
		given = append(given, 0)
	}
	running := given[first:]
	devices, left := of.Devices, of.Resources
	for {
		best, least := -1, 0.0
		for u := range tenants {
			t := &tenants[u]
			if running[u] == t.Tasks || t.Devices > devices || t.Demand.CPUs > left.CPUs+slack || t.Demand.MemoryGB > left.MemoryGB+slack {
				continue
			}
			one := State{Devices: t.Devices, Demand: t.Demand}
			if share := DRF(&one, 0, of) * float64(running[u]) / t.Weight; best < 0 || share < least {
				best, least = u, share
			}
		}
		if best < 0 {
			return given
		}
		running[best]++
		devices -= tenants[best].Devices
		left = add(left, tenants[best].Demand, -1)
	}
}
