package wire

import (
	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

func poolsTo(pools []core.Pool) []*stagev1.Pool {
	var m []*stagev1.Pool
	for i := range pools {
		p := &pools[i]
		pool := &stagev1.Pool{
			Name: p.Name, Accelerator: int32(p.Accelerator), Devices: int32(p.Devices), Cpus: p.CPUs, MemoryGb: p.MemoryGB,
			MinNodes: int32(p.Min), MaxNodes: int32(p.Max), PricePerHour: p.PricePerHour,
			UpCooldownSeconds: p.UpCooldownSeconds, DownCooldownSeconds: p.DownCooldownSeconds,
			ProvisioningSeconds: p.ProvisioningSeconds, Spot: p.Spot, DeviceMemoryGb: p.DeviceMemoryGB,
		}
		for _, price := range p.Prices {
			pool.Prices = append(pool.Prices, &stagev1.Price{FromSeconds: price.FromSeconds, PerHour: price.PerHour})
		}
		m = append(m, pool)
	}
	return m
}

func poolsFrom(m []*stagev1.Pool) []core.Pool {
	var pools []core.Pool
	for _, p := range m {
		pool := core.Pool{
			Name: p.GetName(), Accelerator: acceleratorFrom(p.GetAccelerator()), Devices: int(p.GetDevices()), CPUs: p.GetCpus(), MemoryGB: p.GetMemoryGb(),
			Min: int(p.GetMinNodes()), Max: int(p.GetMaxNodes()), PricePerHour: p.GetPricePerHour(),
			UpCooldownSeconds: p.GetUpCooldownSeconds(), DownCooldownSeconds: p.GetDownCooldownSeconds(),
			ProvisioningSeconds: p.GetProvisioningSeconds(), Spot: p.GetSpot(), DeviceMemoryGB: p.GetDeviceMemoryGb(),
		}
		for _, price := range p.GetPrices() {
			pool.Prices = append(pool.Prices, core.Price{FromSeconds: price.GetFromSeconds(), PerHour: price.GetPerHour()})
		}
		pools = append(pools, pool)
	}
	return pools
}

// PoolTargets converts the sizes that a scaler wants for the wire.
func PoolTargets(targets []core.PoolTarget) []*stagev1.PoolTarget {
	return each(targets, func(t core.PoolTarget) *stagev1.PoolTarget {
		return &stagev1.PoolTarget{
			Pool: t.Pool, Nodes: int32(t.Nodes), Remove: each(t.Remove, func(id core.NodeID) int32 { return int32(id) }), Message: t.Message,
		}
	})
}

// PoolTargetsFrom converts them from the wire.
func PoolTargetsFrom(m []*stagev1.PoolTarget) []core.PoolTarget {
	if len(m) == 0 {
		return nil
	}
	return each(m, func(t *stagev1.PoolTarget) core.PoolTarget {
		target := core.PoolTarget{Pool: t.GetPool(), Nodes: int(t.GetNodes()), Message: t.GetMessage()}
		for _, id := range t.GetRemove() {
			target.Remove = append(target.Remove, core.NodeID(id))
		}
		return target
	})
}
