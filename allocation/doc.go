// Package allocation holds the built-in allocators: how many devices each job gets, and in which order jobs are
// seated. One file is one policy.
//
// Most policies are an order of the candidates and a walk along it, see walk. They leave the accelerator type to the
// placer and count the devices of all ready nodes alike.
package allocation

import "github.com/quartet-sched/quartet/core"

// replicas is what an order-based policy grants: the requested number, within what the job can use.
func replicas(c *core.Candidate) int {
	return min(max(c.Requested, c.Response.MinReplicas), c.Response.MaxReplicas)
}
