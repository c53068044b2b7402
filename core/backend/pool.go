package backend

import (
	"fmt"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Pool is what it takes for nodes of a pool to come and go, where a backend makes that up.
type Pool struct {
	Pool         string        `config:"pool" doc:"name of the pool" required:"true"`                                                                                                              // name of the pool
	Provisioning time.Duration `config:"provisioning" doc:"how long a node takes from the moment that it is asked for until it is ready; nothing is paid for meanwhile" min:"0s"`                  // time that a node takes to be ready
	Spread       time.Duration `config:"provisioning_spread" doc:"how much longer that takes at most; how much is drawn evenly for each node" min:"0s"`                                            // most that this takes longer
	Fails        float64       `config:"fails" doc:"part of the nodes that do not come after all, which is known when they were to be ready" min:"0" max:"1"`                                      // ratio of nodes that never come
	DrainTimeout time.Duration `config:"drain_timeout" doc:"how long a node that must leave waits for its jobs to be moved; then they are interrupted. 0 for as long as it takes" min:"0s"`        // time that jobs have to be moved away
	Evictions    time.Duration `config:"evictions" doc:"mean time until a node is taken away, exponentially distributed from the moment that it is ready, as of spot nodes; 0 for never" min:"0s"` // mean time until a node is taken away
	Notice       time.Duration `config:"notice" doc:"how long before that it is known: the node drains meanwhile" min:"0s"`                                                                        // time from a notice to an eviction
}

// CheckPools refuses pools that are listed twice, and a notice without anything to give it of.
func CheckPools(pools []Pool, evicted func(pool string) bool) (problems []error) {
	for i := range pools {
		w, at := &pools[i], fmt.Sprintf("pools[%d]", i)
		if w.Fails == 1 && w.Provisioning == 0 {
			problems = append(problems, fmt.Errorf("%s.fails: of nodes that come at once not all can fail: the next one would be asked for at once, for ever", at))
		}
		if w.Evictions > 0 && w.Notice > w.Evictions {
			problems = append(problems, fmt.Errorf("%s.notice: must be at most evictions, %v, or most nodes would drain before they are of use, got %v", at, w.Evictions, w.Notice))
		}
		if w.Notice > 0 && w.Evictions == 0 && !evicted(w.Pool) {
			problems = append(problems, fmt.Errorf("%s.notice: needs evictions", at))
		}
		if slices.ContainsFunc(pools[:i], func(o Pool) bool { return o.Pool == w.Pool }) {
			problems = append(problems, fmt.Errorf("%s.pool: pool %q is listed twice", at, w.Pool))
		}
	}
	return problems
}

// CheckPoolNames refuses pools that a cluster does not have.
func CheckPoolNames(pools []Pool, c *core.Cluster) (ds core.Diagnostics) {
	names := PoolNames(c)
	for i := range pools {
		if name := pools[i].Pool; !slices.Contains(names, name) {
			ds = append(ds, core.Diagnostic{
				Path: fmt.Sprintf("pools[%d].pool", i), Summary: fmt.Sprintf("unknown pool %q", name), Hint: core.SuggestHint(name, "pools", names),
			})
		}
	}
	return ds
}

// PoolNames are the names of the pools of a cluster.
func PoolNames(c *core.Cluster) (names []string) {
	for i := range c.Pools {
		names = append(names, c.Pools[i].Name)
	}
	return names
}

// Expected is how long a node takes to come as a rule.
func (p *Pool) Expected() time.Duration { return p.Provisioning + p.Spread/2 }

// DescribePools sets in a cluster what is known of its pools.
func DescribePools(c *core.Cluster, pools []Pool) {
	for i := range c.Pools {
		p := PoolOf(pools, c.Pools[i].Name)
		c.Pools[i].ProvisioningSeconds, c.Pools[i].Spot = p.Expected().Seconds(), p.Evictions > 0
	}
}

// PoolOf is how nodes of a pool come and go: at once and for good unless something is said of it.
func PoolOf(pools []Pool, name string) Pool {
	if at := slices.IndexFunc(pools, func(w Pool) bool { return w.Pool == name }); at >= 0 {
		return pools[at]
	}
	return Pool{Pool: name}
}
