package placement

import (
	"context"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// The rules by which tail_eviction takes free devices.
const (
	scattered = "scattered"
	prefixSum = "prefix_sum"
)

// TailEvictionConfig configures NewTailEviction.
type TailEvictionConfig struct {
	// Fit says how free devices are taken node by node: scattered or prefix_sum.
	Fit string `config:"fit" doc:"how free devices are taken node by node: scattered takes as many as are missing, prefix_sum up to all the job needs from each node and succeeds only if the running total meets the need exactly, as released" enum:"scattered|prefix_sum"`
}

// NewTailEviction is the walk of Blox, for reproducing its figures: it needs a grant for every candidate, in order.
//
// Running jobs keep their devices. A waiting job tries the free ones, and while it does not fit, the last running job
// of the order that is not pinned is evicted, never one ahead of it. When nobody is left to evict the walk stops, but the evictions stand.
// An evicted job may be seated again later in the walk. Other placers take no devices from a granted job without giving it others.
//
// Source: Blox (EuroSys'24). Its release looks for a prefix of the nodes whose free devices add up to the need, so that
// "need 4, free 3 and 3" fails: fit prefix_sum keeps that fault, scattered mends it. Blox knows one accelerator type; of
// several, the lowest with room is taken. O(nodes × (new seatings + evictions)) a round.
func NewTailEviction() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "tail_eviction",
		Summary: "evicts from the tail of the order until the head fits, and stops at the first job that does not",
		Description: "Seats grants in order; a job that finds no room evicts running jobs that are not pinned from the tail of the order upward. The walk stops at the first job for which even that is not enough. " +
			"Meant for reproducing Blox, with an allocator whose queue is all. Other than there, fit scattered takes any devices that add up, and of several accelerator types, which Blox does not know, the first with room is taken. " +
			"O(nodes × (new seatings + evictions)) a round.",
		Source: "Blox, EuroSys'24: released placement, and the same with its sum mended",
	}, TailEvictionConfig{Fit: scattered}, func(c TailEvictionConfig, _ core.Settings) (core.Placer, error) {
		p := &tailEviction{choose: chooseFirstFit}
		if c.Fit == prefixSum {
			p.choose = choosePrefixSum
		}
		return p, nil
	})
}

type tailEviction struct {
	seating.Seater
	choose seating.Choice
	kept   []bool // by grant: its job runs and was not evicted
}

func (p *tailEviction) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	p.Begin(v)
	p.kept = p.kept[:0]
	for i := range grants {
		p.kept = append(p.kept, p.Occupy(v, &grants[i]))
	}
	tail, stopped := len(grants), false
	for i := range grants {
		g := &grants[i]
		if p.kept[i] {
			p.Keep(v, g)
			continue
		}
		if stopped {
			p.Refuse(v, g, true)
			continue
		}
		seated := p.OnLowestType(v, g, p.choose)
		for !seated && tail > i+1 {
			tail--
			if p.kept[tail] && !v.Jobs[grants[tail].Job].Pinned {
				p.kept[tail] = false
				p.Vacate(v, &grants[tail])
				seated = p.OnLowestType(v, g, p.choose)
			}
		}
		if !seated {
			p.Refuse(v, g, false)
			stopped = true
		} else if v.Jobs[g.Job].State == core.Running {
			p.Placed[len(p.Placed)-1].Evicted = true
		}
	}
	return p.Seating(), nil
}

// choosePrefixSum takes, from each node in order, what is free up to the whole need, and fails unless the sum meets
// the need exactly.
func choosePrefixSum(s *seating.Seater, v *core.View, _ *core.Job, t core.AcceleratorID, n int) bool {
	sum, end := 0, 0
	for ; end < len(v.Cluster.Nodes) && sum < n; end++ {
		if v.Cluster.Nodes[end].Accelerator == t {
			sum += min(s.Ledger.Free(core.NodeID(end)), n)
		}
	}
	if sum != n {
		return false
	}
	for i := range end {
		if v.Cluster.Nodes[i].Accelerator == t {
			s.Take(core.NodeID(i), n)
		}
	}
	return true
}
