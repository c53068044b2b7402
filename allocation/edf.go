package allocation

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/elastic"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// The numbers of devices that edf gives a job.
const (
	edfMost      = "most"
	edfFastest   = "fastest"
	edfRequested = "requested"
)

// EDFConfig configures NewEDF.
type EDFConfig struct {
	// Devices says what a job gets: the most it can run with, what it is fastest with, or what it requested.
	Devices string `config:"devices" doc:"what a job is given: the most that it can run with, what it is fastest with, or what its user asked for; where fewer are left, the most of them that it can run with" enum:"most|fastest|requested"`
}

// NewEDF gives jobs their devices in the order of their deadlines.
//
// Source: earliest deadline first (Liu and Layland, 1973), as the baseline of Gu et al., ElasticFlow (ASPLOS'23), runs it: each job gets the
// most devices that it was measured with, though it may be slower with them, or the most of those that are left; a job that
// runs has no precedence, and one that is late keeps its place. Jobs without a deadline and best effort ones come last, ties in JobID
// order.
//
// Deviations: none known. Devices of all types count alike. O(candidates × levels) when few change places.
func NewEDF() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "edf",
		Summary: "earliest deadline first, each with as many devices as it can use",
		Description: "Gives jobs devices in the order of their deadlines, late ones included; a job gets the most that it can run with, what it is fastest with, or what it asked for, and less where less is left. " +
			"Running jobs have no precedence. Jobs without a deadline and best effort ones come last, in submission order. O(candidates × levels) a round when few change places.",
		Source: "earliest deadline first, as in ElasticFlow, ASPLOS'23",
	}, EDFConfig{Devices: edfFastest}, func(c EDFConfig, _ core.Settings) (core.Allocator, error) {
		return &edf{devices: c.Devices, Shares: elastic.NewShares()}, nil
	})
}

type edf struct {
	elastic.Shares

	devices string
	order   queue.Order
}

// Allocate depends on neither the time nor on who runs, pins aside.
func (p *edf) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.Begin(v, candidates)
	ranks := p.order.ArrangeChanged(v, candidates, func(c *core.Candidate) float64 {
		if c.BestEffort {
			return math.Inf(1)
		}
		return c.Deadline()
	})
	p.GiveInOrder(ranks, func(i int32, k *elastic.Share) int { return p.wanted(&candidates[i], k) })
	return p.Settle(v, candidates), nil
}

// wanted is what a job is to have of those left, at least as many as it needs to run.
func (p *edf) wanted(c *core.Candidate, k *elastic.Share) int {
	most, best, fastest := min(k.Most, max(p.Left, k.Least)), k.Least, 0.0
	if p.devices == edfRequested {
		most = min(most, queue.Requested(c))
	}
	for n := k.Least; n <= most; n++ {
		rate := c.Response.Rate(core.AnyAccelerator, n, p.PerNode)
		if k.Known && rate <= 0 || p.devices == edfFastest && k.Known && rate <= fastest {
			continue
		}
		best, fastest = n, rate
	}
	return best
}

// Precedes is true: a job may take the devices of those behind it.
func (p *edf) Precedes() bool { return true }
