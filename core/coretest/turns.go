package coretest

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// group makes groups of grants that follow one another. Pinned jobs that stay are in one with those that stay on the same devices, at the beginning.
func (c *chaos) group(v *core.View, candidates []core.Candidate) {
	of := func(g *core.Grant) core.Candidate {
		return candidates[slices.IndexFunc(candidates, func(o core.Candidate) bool { return o.ID == g.Job })]
	}
	stays := func(g *core.Grant) bool { j := of(g); return j.MustStay(v.Cluster, j.Response) }
	slices.SortStableFunc(c.grants, func(a, b core.Grant) int {
		switch x, y := stays(&a), stays(&b); {
		case x && y:
			return firstHeld(of(&a).Job) - firstHeld(of(&b).Job)
		case x:
			return -1
		case y:
			return 1
		}
		return 0
	})
	number := 0
	for from, to := 0, 0; from < len(c.grants); from = to {
		first := &c.grants[from]
		most := intRange(1, v.Cluster.MaxOwners).Draw(c.t, "group")
		for to = from + 1; to < len(c.grants); to++ {
			g := &c.grants[to]
			j := of(g)
			if stays(first) || stays(g) {
				if !stays(first) || !stays(g) || !core.SameDevices(of(first).Seats, j.Seats) {
					break
				}
			} else if to-from == most || j.Response.MinReplicas > first.Replicas || j.Response.MaxReplicas < first.Replicas {
				break
			}
			g.Replicas = first.Replicas
		}
		if to-from == 1 && anyBool().Draw(c.t, "of one") {
			continue
		}
		number++
		for i := range c.grants[from:to] {
			g := &c.grants[from+i]
			g.Group, g.Accelerator = number, core.AnyAccelerator
			if len(g.Proposed) > 0 && core.Replicas(g.Proposed) != g.Replicas {
				g.Proposed = nil
			}
		}
	}
}

// firstHeld orders jobs by their devices.
func firstHeld(j *core.Job) int {
	first := j.Seats[0]
	for _, s := range j.Seats {
		if s.Node < first.Node {
			first = s
		}
	}
	return int(first.Node)*64 + first.Devices.First()
}

// placeGroups seats groups as Place seats single grants.
func (c *chaos) placeGroups(v *core.View, grants []core.Grant) (s core.Seating) {
	c.free.reset(v.Cluster)
	refused, kept := c.refusals(v), make(turns, len(v.Cluster.Accelerators))
	refuse := func(g *core.Grant) {
		refused[g.Job] = g.Replicas
		s.Unseated = append(s.Unseated, core.Verdict{Job: g.Job, Code: core.Defer, Reason: core.Fragmented})
	}
	seated := make([]bool, len(grants))
	for i := 0; i < len(grants); i += core.GroupOf(grants, i) {
		group := grants[i : i+core.GroupOf(grants, i)]
		if k := c.whoStays(v, group); k >= 0 {
			seated[i] = true
			c.join(v, group, k, v.Job(group[k].Job).Seats, &s, refuse)
		}
	}
	for i := 0; i < len(grants); i += core.GroupOf(grants, i) {
		group := grants[i : i+core.GroupOf(grants, i)]
		if seated[i] {
			continue
		}
		first := &group[0]
		no := c.refused[first.Job] == first.Replicas
		if !c.quiet {
			no = intRange(0, 7).Draw(c.t, "refuse") == 0
		}
		if !no {
			if seats := c.seat(v.Cluster, v.Job(first.Job), first, kept); seats != nil {
				c.join(v, group, 0, seats, &s, refuse)
				continue
			}
		}
		for k := range group {
			refuse(&group[k])
			kept.refuse(v.Cluster, v.Job(group[k].Job), &group[k])
		}
	}
	return s
}

// whoStays is a job of a group whose devices the group has, and which has them already; -1 for none.
func (c *chaos) whoStays(v *core.View, group []core.Grant) int {
	for _, pinned := range [...]bool{true, false} {
		for k := range group {
			j := v.Job(group[k].Job)
			if j.Pinned != pinned || !canStay(v.Cluster, j, &group[k]) {
				continue
			}
			if (c.quiet || pinned || intRange(0, 4).Draw(c.t, "move") > 0) && c.free.keep(j) {
				return k
			}
		}
	}
	return -1
}

// join seats a group, of which one has its seats, those that have them already before others.
func (c *chaos) join(v *core.View, group []core.Grant, one int, seats []core.Seat, s *core.Seating, refuse func(*core.Grant)) {
	t := v.Cluster.Nodes[seats[0].Node].Accelerator
	s.Placed = append(s.Placed, core.Placement{Job: group[one].Job, Seats: seats})
	together := []*core.JobSpec{v.Job(group[one].Job).JobSpec}
	for _, has := range [...]bool{true, false} {
		for k := range group {
			g, j := &group[k], v.Job(group[k].Job)
			if k == one || core.SameDevices(j.Seats, seats) != has {
				continue
			}
			at := seats
			if has {
				at = j.Seats
			}
			no := !has && c.refused[g.Job] == g.Replicas
			if !c.quiet && !has {
				no = intRange(0, 7).Draw(c.t, "refuse beside others") == 0
			}
			if no || seatsFault(v.Cluster, j, g.Accelerator, at) != "" || !v.Cluster.FitTogether(t, append(together, j.JobSpec)...) {
				refuse(g)
				continue
			}
			together = append(together, j.JobSpec)
			s.Placed = append(s.Placed, core.Placement{Job: g.Job, Seats: at})
		}
	}
}

// stayTogether reports whether the group of a grant need not move: its jobs that run do so on the same devices, of which nobody else holds one.
func stayTogether(v *core.View, grants []core.Grant, i int) bool {
	first := i
	for first > 0 && grants[i].Group != 0 && grants[first-1].Group == grants[i].Group {
		first--
	}
	seats := v.Job(grants[i].Job).Seats
	for k := range grants {
		j := v.Job(grants[k].Job)
		inside := k >= first && k < first+core.GroupOf(grants, first)
		switch {
		case inside && len(grants[k].Proposed) > 0:
			return false
		case j.State != core.Running:
		case inside && (!core.SameDevices(j.Seats, seats) || !canStay(v.Cluster, j, &grants[k])):
			return false
		case !inside && overlap(j.Seats, seats):
			return false
		}
	}
	return true
}

// hasMemory reports whether a device of a type has the memory of a job, where it is counted.
func hasMemory(c *core.Cluster, j *core.Job, t core.AcceleratorID) bool {
	return c.Sharing != core.TimeSlice || c.FitTogether(t, j.JobSpec)
}

// overlap reports whether two seatings have a device in common.
func overlap(a, b []core.Seat) bool {
	return slices.ContainsFunc(a, func(x core.Seat) bool {
		return slices.ContainsFunc(b, func(y core.Seat) bool { return x.Node == y.Node && x.Devices&y.Devices != 0 })
	})
}
