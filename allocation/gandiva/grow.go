package gandiva

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// grow gives jobs the idle devices of the node that they are on, once everybody runs: one after the other a device at a time, as long as they gain.
func (p *gandiva) grow(v *core.View, candidates []core.Candidate) {
	p.idle.ResetTo(v)
	for i := range candidates {
		c := &candidates[i]
		if c.State != core.Running {
			p.until = v.NowSeconds // where they are seated is known in the next round
			return
		}
		if p.beside[i] >= 0 {
			return
		}
		if !p.idle.Occupy(c.Seats) {
			p.until = v.NowSeconds
			return
		}
	}
	for k := range p.grants { // what a job took before it keeps
		c := &candidates[p.jobs[p.grants[k].Job].at]
		if c.Held > p.grants[k].Replicas && c.Held <= c.Response.MaxReplicas {
			p.grants[k].Replicas = c.Held
		}
	}
	for again := true; again; {
		again = false
		for k := range p.grants {
			g := &p.grants[k]
			c := &candidates[p.jobs[g.Job].at]
			n := g.Replicas
			if len(c.Seats) != 1 || n < c.Held || n >= c.Response.MaxReplicas || queue.Stays(v, c) || p.idle.Free(c.Seats[0].Node) == 0 {
				continue
			}
			t := v.Cluster.Nodes[c.Seats[0].Node].Accelerator
			perNode := v.Cluster.Nodes[c.Seats[0].Node].Devices
			if rate := c.Response.Rate(t, n, perNode); rate > 0 && c.Response.Rate(t, n+1, perNode) <= rate {
				continue
			}
			p.idle.Take(c.Seats[0].Node, 1)
			g.Replicas++
			again = true
		}
	}
	for k := range p.grants {
		c := &candidates[p.jobs[p.grants[k].Job].at]
		if n := p.grants[k].Replicas; n != c.Held || n < c.Response.MaxReplicas && p.idle.Total() > 0 {
			p.until = v.NowSeconds // the placement may come to move it where it can grow
		}
	}
}
