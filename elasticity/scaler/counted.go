package scaler

import (
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// size is how much of a job the nodes hold that are not sized: seats of it alone, and replicas of jobs like it.
type size struct {
	spec  *core.JobSpec
	seats int
	alike float64
}

// roundoff is what sums of parts may be off by.
const roundoff = 1e-9

// sizeOf is the size of a job on the nodes of a kind. O(nodes).
func (s *scaled) sizeOf(c *core.Cluster, kind int, spec *core.JobSpec) size {
	of := size{spec: spec}
	for i := range c.Nodes {
		if n := &c.Nodes[i]; s.kindOf[n.Accelerator] == kind && !s.sizes(n.Pool) {
			seats, alike := c.Holds(spec, n, n.Usable().Count())
			of.seats, of.alike = of.seats+seats, of.alike+alike
		}
	}
	return of
}

// and is that with so many nodes of a pool besides.
func (z size) and(c *core.Cluster, p *core.Pool, nodes int) size {
	if nodes > 0 { // of none there is nothing, of whatever
		seats, alike := c.PoolHolds(z.spec, p)
		z.seats, z.alike = z.seats+nodes*seats, z.alike+float64(nodes)*alike
	}
	return z
}

// load is the part of all these nodes that a job takes with its least number of replicas: over how many like them the nodes hold together, by whatever runs out first,
// devices or parts of them, their memory, CPUs or memory. Jobs whose parts add up to one fill the nodes. +Inf where they do not hold the job.
func (z size) load(r *core.Response) float64 {
	if z.seats < r.MinReplicas {
		return math.Inf(1)
	}
	return float64(r.MinReplicas) / z.alike
}

// stages are the sizes of a job on the nodes that are not sized, and with all nodes of one pool of a kind after the other.
func (s *scaled) stages(c *core.Cluster, k *poolKind, of size, each func(stage int, of size)) {
	each(0, of)
	for i, pool := range k.pools {
		p := &c.Pools[pool]
		of = of.and(c, p, p.Max)
		each(i+1, of)
	}
}

// addLoads has a job count among those of a kind, unless its nodes never hold it.
func (s *scaled) addLoads(c *core.Cluster, k *poolKind, r *core.Response, of size) {
	if len(k.loads) == 0 {
		k.loads = make([]float64, len(k.pools)+1)
	}
	held := false
	s.stages(c, k, of, func(_ int, of size) { held = held || of.seats >= r.MinReplicas })
	if held {
		s.stages(c, k, of, func(stage int, of size) { k.loads[stage] += of.load(r) })
	}
}

// chooseCounted is how many of the pools of a kind there have to be for a job to have room beside those that count with it, -1 where all are not enough, and how
// many replicas of jobs like it they hold then.
func (s *scaled) chooseCounted(c *core.Cluster, kind int, j *core.Candidate) (pools int, room int) {
	k := &s.kinds[kind]
	pools = -1
	s.stages(c, k, s.sizeOf(c, kind, j.JobSpec), func(stage int, of size) {
		before := 0.0
		if len(k.loads) > 0 {
			before = k.loads[stage]
		}
		if room = of.seats; pools < 0 && before+of.load(j.Response) <= 1+roundoff {
			pools = stage
		}
	})
	return pools, room
}

// holdingFirst puts the pools last whose nodes hold none of the jobs: they grow when nothing else is left.
func (k *poolKind) holdingFirst(c *core.Cluster) {
	slices.SortStableFunc(k.pools, func(a, b int) int { return k.holdsNone(c, a) - k.holdsNone(c, b) })
}

// holdsNone is 1 for a pool whose nodes hold none of the jobs.
func (k *poolKind) holdsNone(c *core.Cluster, pool int) int {
	if slices.ContainsFunc(k.sizes, func(z size) bool { return z.and(c, &c.Pools[pool], 1).seats > z.seats }) {
		return 0
	}
	return 1
}

// counts reports whether more than whole devices is counted.
func (l *ladder) counts() bool { return l.cluster.CountsShares() }

// on is how much of a job is held by the nodes that are not sized and by such sizes of the pools.
func (l *ladder) on(job int, sizes []int) size {
	of := l.of[job]
	for i, p := range l.pools {
		of = of.and(l.cluster, p, sizes[i])
	}
	return of
}

// sizesAt are the sizes of the pools with so many nodes. They last until the next walk.
func (l *ladder) sizesAt(nodes int) []int { return l.walk(nodes, func(int, int) {}) }

// hold is the least number of nodes that hold what the jobs need at least, of those that are held by all nodes.
func (l *ladder) hold() int {
	held := make([]bool, len(l.jobs))
	sizes := l.sizesAt(l.most)
	for i, r := range l.jobs {
		held[i] = l.on(i, sizes).seats >= r.MinReplicas
	}
	for n := range l.most {
		load, sizes := 0.0, l.sizesAt(n)
		for i, r := range l.jobs {
			if held[i] {
				load += l.on(i, sizes).load(r)
			}
		}
		if load <= 1+roundoff {
			return n
		}
	}
	return l.most
}

// each is the least number of nodes that hold each of the jobs alone, of those that are held by all nodes.
func (l *ladder) each() (nodes int) {
	holds := func(job, nodes int) bool { return l.on(job, l.sizesAt(nodes)).seats >= l.jobs[job].MinReplicas }
	for i := range l.jobs {
		for holds(i, l.most) && !holds(i, nodes) {
			nodes++
		}
	}
	return nodes
}

// divide is speedup where more than whole devices is counted, and the same sum with each job for as many devices as one replica of it takes, so that one of
// a device yields as much whoever is on it.
//
// A replica takes the devices over how many replicas like it the nodes hold. The parts are rounded in such a way that they add up.
func (l *ladder) divide(nodes int) (speedup, yield float64) {
	devices, sizes := l.devices(nodes), l.sizesAt(nodes)
	l.shares, l.weights = l.shares[:0], l.weights[:0]
	used := 0.0
	for i, r := range l.jobs {
		of := l.on(i, sizes)
		weight := float64(devices) / of.alike
		list := sharesOf(r, l.accelerator, int(min(float64(of.seats), of.alike)), l.perNode)
		if len(list) == 0 {
			continue
		}
		least := used + weight*float64(list[0].Devices)
		if least > float64(devices)+roundoff {
			continue // it waits
		}
		l.shares, l.weights = append(l.shares, rounded(list, used, weight)), append(l.weights, weight)
		used = least
	}
	chosen, speedup, _ := l.division.Solve(devices+len(l.shares), l.shares)
	for i, list := range l.shares {
		for _, s := range list {
			if s.Devices == chosen[i] {
				yield += s.Value * l.weights[i]
			}
		}
	}
	return speedup, yield
}

// rounded has replicas of a job take whole devices, the first of them behind those that are used, and one more, for Division knows no job without a device. Of numbers of replicas
// that take as many the best is left.
func rounded(list []optim.Share, used, weight float64) []optim.Share {
	up := func(devices float64) int { return int(math.Ceil(devices - roundoff)) }
	left := list[:0]
	for _, s := range list {
		s.Devices = 1 + up(used+weight*float64(s.Devices)) - up(used)
		last := len(left) - 1
		switch {
		case last < 0 || left[last].Devices < s.Devices:
			left = append(left, s)
		case left[last].Value < s.Value:
			left[last] = s
		}
	}
	return left
}
