package core

// narrow bounds what an elastic job may be granted by what idle nodes hold of it, where more than whole devices is counted: an allocator counts devices, and
// where a job's CPUs run out before them it would grant replicas that never find seats. Curves end where the nodes of their type do. O(nodes).
func (s *state) narrow(j *Job, r *Response) {
	c := s.view.Cluster
	if !c.CountsShares() || r.MaxReplicas == r.MinReplicas {
		return
	}
	s.countCapacity()
	most, _ := s.capacity.For(c, j.JobSpec)
	r.MaxReplicas = max(min(r.MaxReplicas, most), r.MinReplicas)
	if len(r.Curves) == 0 || j.MixesTypes {
		return
	}
	seats := s.capacity.seatsFor(c, j.JobSpec)
	for _, n := range seats {
		if n < r.MaxReplicas {
			r.Curves = cut(r.Curves, seats)
			return
		}
	}
}

// cut is curves, one for each type, that end at a number of replicas.
func cut(curves []Curve, most []int) []Curve {
	first := func(rates []float64, n int) []float64 { return rates[:min(len(rates), n)] }
	short := make([]Curve, len(most))
	for t, n := range most {
		of := &curves[min(t, len(curves)-1)]
		short[t] = Curve{OneNode: first(of.OneNode, n), ManyNodes: first(of.ManyNodes, n)}
	}
	return short
}

// CanRunOn is JobSpec.CanRunOn for the least number of replicas that the job's elasticity gives.
func (c *Candidate) CanRunOn(cluster *Cluster, t AcceleratorID) bool {
	return len(c.Accelerators) == 0 && cluster.Sharing == Exclusive && !cluster.CountsResources || c.canRunOn(cluster, t) // small enough to cost no call
}

func (c *Candidate) canRunOn(cluster *Cluster, t AcceleratorID) bool {
	switch {
	case !cluster.CountsShares():
		return c.Accepts(cluster, t)
	case c.Response == nil || c.MixesTypes:
		return c.JobSpec.CanRunOn(cluster, t)
	}
	return c.Accepts(cluster, t) && cluster.holds(c.JobSpec, t, c.Response.MinReplicas)
}
