package scaler

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// ladder is the sizes that pools may have together, and how fast the jobs would be with each. From the present sizes on, a node more is
// of the cheapest pool that may have one, and a node fewer of the dearest: what is there does not move because prices do.
type ladder struct {
	pools []*core.Pool // cheapest first
	jobs  []*core.Response
	// Size is the nodes that there are or come, and at the same without those beyond the most of a pool. Least and most are those of all pools.
	size, at, least, most int

	rungs       []rung // by nodes
	others      int    // devices that are not of the pools
	perNode     int    // devices of the largest node
	accelerator core.AcceleratorID
	present     []int // by pool: its nodes, at most those that it may have
	sizes       []int // by pool, where a walk is
	division    optim.Division
	shares      [][]optim.Share

	cluster *core.Cluster
	of      []size    // of the jobs, where more than whole devices is counted
	weights []float64 // by job among the shares: the devices that a replica takes
}

// rung is a number of nodes of the pools.
type rung struct {
	devices int     // in all
	hours   float64 // node hours of an hour, in those of the dearest pool
	speedup float64 // the sum of all jobs; NaN where it is not known yet
	yield   float64 // the same where all replicas take a device each; see divide
}

// begin takes in a round.
func (l *ladder) begin(v *core.View, k *poolKind) {
	c := v.Cluster
	l.pools, l.present, l.jobs, l.others = l.pools[:0], l.present[:0], k.jobs, k.fixed
	l.cluster, l.of = c, k.sizes
	l.size, l.at, l.least, l.most, l.perNode = 0, 0, 0, 0, 0
	dearest := 0.0
	for _, i := range k.pools {
		p := &c.Pools[i]
		size := c.PoolSize(p.Name)
		l.pools, l.present = append(l.pools, p), append(l.present, min(size, p.Max))
		l.size, l.at = l.size+size, l.at+min(size, p.Max)
		l.least, l.most, l.perNode = l.least+p.Min, l.most+p.Max, max(l.perNode, p.Devices)
		dearest = max(dearest, p.PriceAt(v.NowSeconds))
	}
	l.accelerator = l.pools[0].Accelerator
	l.rungs = l.rungs[:0]
	for range l.most + 1 {
		l.rungs = append(l.rungs, rung{speedup: math.NaN()})
	}
	hours := func(p *core.Pool) float64 {
		if dearest == 0 {
			return 1
		}
		return p.PriceAt(v.NowSeconds) / dearest
	}
	here := &l.rungs[l.at]
	here.devices = l.others
	for i, p := range l.pools {
		here.devices += l.present[i] * p.Devices
		here.hours += float64(l.present[i]) * hours(p)
	}
	l.walk(l.most, func(n, i int) {
		p := l.pools[i]
		l.rungs[n].devices, l.rungs[n].hours = l.rungs[n-1].devices+p.Devices, l.rungs[n-1].hours+hours(p)
	})
	l.walk(0, func(n, i int) {
		p := l.pools[i]
		l.rungs[n].devices, l.rungs[n].hours = l.rungs[n+1].devices-p.Devices, l.rungs[n+1].hours-hours(p)
	})
}

// walk goes node by node from the present sizes to those with so many nodes, which it returns, and tells of which pool each node is.
func (l *ladder) walk(to int, step func(nodes, pool int)) []int {
	l.sizes = append(l.sizes[:0], l.present...)
	for n := l.at; n != to; {
		i, by := l.cheapest(), 1
		if to < n {
			i, by = l.dearest(), -1
		}
		n += by
		l.sizes[i] += by
		step(n, i)
	}
	return l.sizes
}

// cheapest is the pool that gets a node more: the first that has fewer than its least, or else than its most.
func (l *ladder) cheapest() int {
	for i, p := range l.pools {
		if l.sizes[i] < p.Min {
			return i
		}
	}
	for i, p := range l.pools {
		if l.sizes[i] < p.Max {
			return i
		}
	}
	return len(l.pools) - 1 // never: who asks stays within the most of all
}

// dearest is the pool that has a node less: the last that has more than its least, or else the first with any.
func (l *ladder) dearest() int {
	for i, p := range slices.Backward(l.pools) {
		if l.sizes[i] > p.Min {
			return i
		}
	}
	return max(slices.IndexFunc(l.sizes, func(size int) bool { return size > 0 }), 0)
}

// targets are the sizes of the pools with so many nodes, within their bounds.
func (l *ladder) targets(targets []core.PoolTarget, nodes int, why string) []core.PoolTarget {
	sizes := l.walk(min(max(nodes, l.least), l.most), func(int, int) {})
	for i, p := range l.pools {
		targets = append(targets, core.PoolTarget{Pool: p.Name, Nodes: max(sizes[i], p.Min), Message: why})
	}
	return targets
}

// devices is how many there are with so many nodes of the pools.
func (l *ladder) devices(nodes int) int { return l.rungs[nodes].devices }

// hours is the node hours of an hour of so many nodes, in those of the dearest pool.
func (l *ladder) hours(nodes int) float64 { return l.rungs[nodes].hours }

// speedup is how many times as fast as alone on one device all jobs together would be with so many nodes of the pools: the largest sum that
// a division of the devices reaches.
func (l *ladder) speedup(nodes int) float64 {
	if known := l.rungs[nodes].speedup; !math.IsNaN(known) {
		return known
	}
	if l.counts() {
		l.rungs[nodes].speedup, l.rungs[nodes].yield = l.divide(nodes)
		return l.rungs[nodes].speedup
	}
	devices := l.devices(nodes)
	l.shares = l.shares[:0]
	least := 0
	for _, r := range l.jobs {
		list := sharesOf(r, l.accelerator, devices, l.perNode)
		if len(list) == 0 || least+list[0].Devices > devices {
			continue // it waits
		}
		least += list[0].Devices
		l.shares = append(l.shares, list)
	}
	_, value, _ := l.division.Solve(devices, l.shares)
	l.rungs[nodes].speedup, l.rungs[nodes].yield = value, value
	return value
}

// yields is what a device yields of what one alone does, with so many nodes of the pools that there is a device.
func (l *ladder) yields(nodes int) float64 {
	l.speedup(nodes)
	return l.rungs[nodes].yield / float64(l.devices(nodes))
}

// enough is the least number of nodes on which any job runs, from the present one on: that where one does, or none would on more nodes either.
// Rules that compare what nodes add see nothing to gain before that.
func (l *ladder) enough() int {
	for n := max(l.at, l.least); n <= l.most; n++ {
		if l.speedup(n) > 0 {
			return n
		}
	}
	return l.at
}

// room is the least number of nodes with which there are as many devices as the largest job needs, of those that can run on all nodes. A rule
// that weighs what nodes yield may want fewer for good, and such a job, and those that may not pass it, would never begin.
// Where more than whole devices is counted it tells no devices.
func (l *ladder) room() (nodes, devices int) {
	if l.counts() {
		return l.each(), 0
	}
	for _, r := range l.jobs {
		if list := sharesOf(r, l.accelerator, l.devices(l.most), l.perNode); len(list) > 0 {
			devices = max(devices, list[0].Devices)
		}
	}
	for nodes < l.most && l.devices(nodes) < devices {
		nodes++
	}
	return nodes, devices
}

// sharesOf are the numbers of devices that a job can run on, and its speed-up on each.
func sharesOf(r *core.Response, on core.AcceleratorID, most, perNode int) (list []optim.Share) {
	base := r.Rate(on, 1, perNode)
	for k := r.MinReplicas; k <= min(most, r.MaxReplicas); k++ {
		rate := r.Rate(on, k, perNode)
		if !(rate > 0) || math.IsInf(rate, 1) {
			continue
		}
		if !(base > 0) {
			base = rate / float64(k)
		}
		list = append(list, optim.Share{Devices: k, Value: rate / base})
	}
	if len(list) == 0 && r.MinReplicas <= most && len(r.Curves) == 0 {
		list = append(list, optim.Share{Devices: r.MinReplicas, Value: float64(r.MinReplicas)}) // nothing is known of it
	}
	return list
}
