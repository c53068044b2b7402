package elasticity

import (
	"fmt"
	"math"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// scaled is what scalers share: which pool they size, and how fast the jobs would be on clusters of other sizes.
type scaled struct {
	pool        string
	division    optim.Division
	shares      [][]optim.Share
	values      []float64 // by nodes of the pool: the sum of the speed-ups of all jobs; NaN where it is not known yet
	jobs        []*core.Response
	others      int // devices that are not of the pool
	each        int // devices of a node of the pool
	perNode     int // devices of the largest node
	accelerator core.AcceleratorID
}

// look takes in a round. It is false where there is nothing to decide, for there is no pool.
func (s *scaled) look(v *core.View, plan *core.Plan) (*core.Pool, bool, error) {
	pool := s.of(v.Cluster)
	if pool == nil {
		if len(v.Cluster.Pools) == 0 {
			return nil, false, nil
		}
		var names []string
		for i := range v.Cluster.Pools {
			names = append(names, v.Cluster.Pools[i].Name)
		}
		return nil, false, fmt.Errorf("pool: unknown pool %q; valid pools: %s", s.pool, strings.Join(names, ", "))
	}
	s.others = 0
	s.each, s.perNode, s.accelerator = pool.Devices, pool.Devices, pool.Accelerator
	for i := range v.Cluster.Nodes {
		if n := &v.Cluster.Nodes[i]; n.Pool != pool.Name && n.Health != core.Gone {
			s.others += n.Usable().Count()
			s.perNode = max(s.perNode, n.Devices)
		}
	}
	s.values, s.jobs, s.shares = s.values[:0], s.jobs[:0], s.shares[:0]
	for range pool.Max + 1 {
		s.values = append(s.values, math.NaN())
	}
	for i := range plan.Candidates {
		if c := &plan.Candidates[i]; c.Response != nil {
			s.jobs = append(s.jobs, c.Response)
		}
	}
	return pool, true, nil
}

// of is the pool that is sized: the one that is named, or else the first.
func (s *scaled) of(c *core.Cluster) *core.Pool {
	if s.pool == "" && len(c.Pools) > 0 {
		return &c.Pools[0]
	}
	return c.Pool(s.pool)
}

// devices is how many there are with so many nodes in the pool.
func (s *scaled) devices(nodes int) int { return s.others + nodes*s.each }

// speedup is how many times as fast as alone on one device all jobs together would be with so many nodes in the pool: the largest sum that a
// division of the devices reaches.
func (s *scaled) speedup(nodes int) float64 {
	if known := s.values[nodes]; !math.IsNaN(known) {
		return known
	}
	devices := s.devices(nodes)
	s.shares = s.shares[:0]
	least := 0
	for _, r := range s.jobs {
		list := sharesOf(r, s.accelerator, devices, s.perNode)
		if len(list) == 0 || least+list[0].Devices > devices {
			continue // it waits
		}
		least += list[0].Devices
		s.shares = append(s.shares, list)
	}
	_, value, _ := s.division.Solve(devices, s.shares)
	s.values[nodes] = value
	return value
}

// enough is the least number of nodes on which any job runs, from size on: size itself where one does, or none would on more nodes either.
// Rules that compare what nodes add see nothing to gain before that.
func (s *scaled) enough(pool *core.Pool, size int) int {
	for n := max(size, pool.Min); n <= pool.Max; n++ {
		if s.speedup(n) > 0 {
			return n
		}
	}
	return size
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

// target is what is wanted of the pool.
func target(pool *core.Pool, nodes int, format string, args ...any) core.ClusterTarget {
	return core.ClusterTarget{Pools: []core.PoolTarget{{
		Pool: pool.Name, Nodes: min(max(nodes, pool.Min), pool.Max), Message: fmt.Sprintf(format, args...),
	}}}
}
