package scaler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// rule decides how many nodes the pools of a ladder are to have together, and says why. There are jobs that count with them.
type rule interface {
	nodes(l *ladder) (nodes int, why string)
}

// scaled is what scalers share: which pools they size, and which jobs count with which of them.
//
// A type of devices is a kind of its own, for a job runs on devices of one type. Types on which jobs run together, as those do that mix types,
// are one kind. The pools of a kind are sized together. A job that can run on several kinds counts with that whose devices it gets in this round, or
// else holds. While it waits, it counts where there is room for its least number beside the others: on nodes that are not sized, or else where work costs least.
// Where more than whole devices is counted, jobs are counted by what they run out of first: see load. O(jobs × kinds), there times nodes.
type scaled struct {
	pool   string // the only one that is sized; "" for all
	kinds  []poolKind
	kindOf []int                      // by accelerator type
	open   []int                      // scratch: candidates that can run on several kinds
	placed map[core.JobID]core.NodeID // scratch: by job that is placed in this round, the first node; filled while some are open
	ladder ladder
}

// poolKind is a type of devices, or several on which jobs run together.
type poolKind struct {
	jobs  []*core.Response // that count with it
	need  int              // the least numbers of devices of these
	fixed int              // devices of nodes that are not sized
	pools []int            // that are sized, cheapest first

	sizes []size    // of the jobs, where more than whole devices is counted
	loads []float64 // there: which part of the nodes they take, of those that are not sized and with all nodes of one pool after the other
}

// scale sizes the pools of each kind by a rule. Where there are no pools it has no opinion.
func (s *scaled) scale(v *core.View, plan *core.Plan, r rule) (target core.ClusterTarget, err error) {
	c := v.Cluster
	if err := checkPool(s.pool, c).Err(); err != nil {
		return target, err
	}
	if len(c.Pools) == 0 {
		return target, nil
	}
	s.sort(v, plan)
	for k := range s.kinds {
		if len(s.kinds[k].pools) == 0 {
			continue
		}
		if c.CountsShares() {
			s.kinds[k].holdingFirst(c)
		}
		l := &s.ladder
		l.begin(v, &s.kinds[k])
		for i := range c.Nodes {
			if n := &c.Nodes[i]; n.Health != core.Gone && s.kindOf[n.Accelerator] == k && !s.sizes(n.Pool) {
				l.perNode = max(l.perNode, n.Devices)
			}
		}
		nodes, why := l.least, "there are no jobs"
		switch {
		case len(l.jobs) > 0:
			nodes, why = r.nodes(l)
			if n, devices := l.room(); n > nodes {
				if nodes, why = n, fmt.Sprintf("a job needs %d devices at once", devices); devices == 0 {
					why = fmt.Sprintf("a job fits on no fewer than %d nodes", n)
				}
			}
		case len(plan.Candidates) > 0:
			why = "no job is for its devices"
		}
		target.Pools = l.targets(target.Pools, nodes, why)
	}
	return target, nil
}

// checkPool refuses a pool that the cluster does not have, where it has some. "" is for all.
func checkPool(pool string, c *core.Cluster) core.Diagnostics {
	if pool == "" || len(c.Pools) == 0 || c.Pool(pool) != nil {
		return nil
	}
	names := make([]string, len(c.Pools))
	for i := range c.Pools {
		names[i] = c.Pools[i].Name
	}
	return core.Diagnostics{{Path: "pool", Summary: fmt.Sprintf("unknown pool %q", pool), Hint: core.SuggestHint(pool, "pools", names)}}
}

// sizes reports whether the nodes of a pool are sized.
func (s *scaled) sizes(pool string) bool { return pool != "" && (s.pool == "" || s.pool == pool) }

// sort finds the kinds, what they have, and which jobs count with them.
func (s *scaled) sort(v *core.View, plan *core.Plan) {
	c, candidates := v.Cluster, plan.Candidates
	s.divide(c, candidates)
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Health != core.Gone && !s.sizes(n.Pool) {
			s.kinds[s.kindOf[n.Accelerator]].fixed += n.Usable().Count()
		}
	}
	for i := range c.Pools {
		if p := &c.Pools[i]; s.sizes(p.Name) {
			k := &s.kinds[s.kindOf[p.Accelerator]]
			k.pools = append(k.pools, i)
		}
	}
	for k := range s.kinds {
		slices.SortStableFunc(s.kinds[k].pools, func(a, b int) int { return cmp.Compare(price(v, &c.Pools[a]), price(v, &c.Pools[b])) })
	}
	s.open = s.open[:0]
	for i := range candidates {
		j := &candidates[i]
		switch only, several := s.fits(c, j); {
		case j.Response == nil || only < 0:
		case several:
			s.open = append(s.open, i)
		default:
			s.count(c, only, j)
		}
	}
	if len(s.open) == 0 {
		return
	}
	if s.placed == nil {
		s.placed = map[core.JobID]core.NodeID{}
	}
	clear(s.placed)
	for i := range plan.Placements {
		s.placed[plan.Placements[i].Job] = plan.Placements[i].Seats[0].Node
	}
	for _, i := range s.open {
		s.count(c, s.choose(v, &candidates[i]), &candidates[i])
	}
}

// count has a job count with a kind.
func (s *scaled) count(c *core.Cluster, kind int, j *core.Candidate) {
	k := &s.kinds[kind]
	k.jobs = append(k.jobs, j.Response)
	k.need += j.Response.MinReplicas
	if c.CountsShares() {
		k.sizes = append(k.sizes, s.sizeOf(c, kind, j.JobSpec))
		s.addLoads(c, k, j.Response, k.sizes[len(k.sizes)-1])
	}
}

// divide finds the kinds of the types that the cluster has.
func (s *scaled) divide(c *core.Cluster, candidates []core.Candidate) {
	s.kindOf, s.kinds = s.kindOf[:0], s.kinds[:0]
	for t := range c.Accelerators {
		of := -1
		for u := 0; u < t && of < 0; u++ {
			a, b := core.AcceleratorID(t), core.AcceleratorID(u)
			if !slices.ContainsFunc(candidates, func(j core.Candidate) bool {
				onA, onB := j.CanRunOn(c, a), j.CanRunOn(c, b)
				return onA != onB || onA && !j.MixesTypes
			}) {
				of = s.kindOf[u]
			}
		}
		if of < 0 {
			of = len(s.kinds)
			s.kinds = append(s.kinds, poolKind{})
		}
		s.kindOf = append(s.kindOf, of)
	}
}

// fits is the first kind that a job can run on, -1 for none, and whether there are several.
func (s *scaled) fits(c *core.Cluster, j *core.Candidate) (first int, several bool) {
	first = -1
	for t, k := range s.kindOf {
		switch {
		case !j.CanRunOn(c, core.AcceleratorID(t)):
		case first < 0:
			first = k
		case k != first:
			return first, true
		}
	}
	return first, false
}

// choose is the kind with which a job counts that can run on several.
func (s *scaled) choose(v *core.View, j *core.Candidate) int {
	c := v.Cluster
	node, on := s.placed[j.ID]
	if !on && len(j.Seats) > 0 {
		node, on = j.Seats[0].Node, true
	}
	if on {
		return s.kindOf[c.Nodes[node].Accelerator]
	}
	best, least := -1, 0.0
	largest, most := -1, -1
	for t, k := range s.kindOf {
		if !j.CanRunOn(c, core.AcceleratorID(t)) {
			continue
		}
		of := &s.kinds[k]
		if c.CountsShares() {
			i, room := s.chooseCounted(c, k, j)
			switch {
			case i == 0:
				return k
			case i > 0:
				if cost := costOf(v, &c.Pools[of.pools[i-1]], j.Response); best < 0 || cost < least {
					best, least = k, cost
				}
			}
			if room > most {
				largest, most = k, room
			}
			continue
		}
		need, room := of.need+j.Response.MinReplicas, of.fixed
		if need <= room {
			return k
		}
		for _, i := range of.pools {
			p := &c.Pools[i]
			before := room
			room += p.Max * p.Devices
			if cost := costOf(v, p, j.Response); need > before && need <= room && (best < 0 || cost < least) {
				best, least = k, cost
			}
		}
		if room > most {
			largest, most = k, room
		}
	}
	if best < 0 {
		return largest // where it waits
	}
	return best
}

// price is what an hour of a device of a pool costs.
func price(v *core.View, p *core.Pool) float64 { return p.PriceAt(v.NowSeconds) / float64(p.Devices) }

// costOf is that price over how fast a job is on a device.
func costOf(v *core.View, p *core.Pool, r *core.Response) float64 {
	if rate := r.Rate(p.Accelerator, r.MinReplicas, p.Devices); rate > 0 {
		return price(v, p) / rate * float64(r.MinReplicas)
	}
	return price(v, p)
}
