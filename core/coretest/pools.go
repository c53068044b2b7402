package coretest

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// drawPools makes pools of some of the nodes, and others that are empty. It is called before the pipeline sees the cluster.
func (w *world) drawPools() {
	c := w.cluster
	for i := range intRange(0, 2).Draw(w.t, "pools") {
		p := core.Pool{
			Name: fmt.Sprintf("pool-%d", i), Accelerator: core.AcceleratorID(intRange(0, len(c.Accelerators)-1).Draw(w.t, "type of a pool")),
			Devices: intRange(1, 8).Draw(w.t, "devices of a node"), CPUs: 64, MemoryGB: 256, PricePerHour: 2.5,
			Max:               intRange(1, maxWorldNodes).Draw(w.t, "largest size"),
			UpCooldownSeconds: sampledFrom([]float64{0, 90.5}).Draw(w.t, "cool-down"), DownCooldownSeconds: 600,
			ProvisioningSeconds: sampledFrom([]float64{0, 75.25}).Draw(w.t, "provisioning"), Spot: anyBool().Draw(w.t, "spot"),
		}
		p.Min = intRange(0, p.Max).Draw(w.t, "least size")
		if anyBool().Draw(w.t, "its price changes") {
			p.Prices = []core.Price{{FromSeconds: 60, PerHour: 0.1}, {FromSeconds: 333.25, PerHour: 4}}
		}
		for k := range c.Nodes {
			if n := &c.Nodes[k]; n.Pool == "" && n.Accelerator == p.Accelerator && c.PoolSize(p.Name) < p.Max && anyBool().Draw(w.t, "is of the pool") {
				n.Pool, n.Devices = p.Name, p.Devices
			}
		}
		c.Pools = append(c.Pools, p)
	}
	w.view = &core.View{Cluster: cloneCluster(c)}
}

// enter makes a node that joins one of a pool, if that may have another one, and says when it should be ready.
func (w *world) enter(n *core.AddedNode, from float64) {
	c := w.cluster
	at := slices.IndexFunc(c.Pools, func(p core.Pool) bool {
		return c.Accelerators[p.Accelerator] == n.Accelerator && c.PoolSize(p.Name) < p.Max
	})
	if at < 0 || !anyBool().Draw(w.t, "joins a pool") {
		return
	}
	n.Pool, n.Devices = c.Pools[at].Name, c.Pools[at].Devices
	if n.Health == core.Provisioning {
		n.ExpectedSeconds = sampledFrom([]float64{0, from, from + 75.25}).Draw(w.t, "expected")
	}
}
