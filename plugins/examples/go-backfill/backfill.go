package main

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// Config configures New.
type Config struct {
	// Slack multiplies the time in s that a job is expected to take, before it may pass the first in line.
	Slack float64 `config:"slack" doc:"Factor on the time that a job is expected to take, before it may pass the first in line." min:"0"`
	// Depth is how many jobs behind the first in line are looked at; 0 for all.
	Depth int `config:"depth" doc:"Jobs behind the first in line that are looked at; 0 for all." min:"0"`
}

// New serves jobs in order of submission without preemption, and lets later ones pass the first in line as long as they
// do not delay it: EASY backfilling.
//
// Source: Lifka, The ANL/IBM SP scheduling system, JSSPP 1995. O(n log n) for n candidates.
func New() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "easy_backfill",
		Summary: "first come, first served; later jobs pass while they do not delay the first in line",
		Description: "The first job that does not fit gets a reservation: the moment at which the running jobs are expected to " +
			"have left enough devices. A later job starts if it fits now and either ends by then or takes devices that the " +
			"reservation leaves over. Devices of all types count alike, so on a mixed cluster a reservation may come late.",
		Source:       "Lifka, JSSPP 1995",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, Config{Slack: 1}, func(c Config, _ core.Settings) (core.Allocator, error) {
		return &backfill{config: c}, nil
	})
}

type backfill struct {
	config   Config
	grants   []core.Grant
	leaving  []leaving // those who will have devices after the round
	capacity queue.Capacity
	now      float64
	timed    bool // whether somebody may pass was a matter of time
}

// leaving is a job that is expected to give its devices back.
type leaving struct {
	atSeconds float64
	devices   int
}

// Allocate keeps what runs, starts waiting jobs in order up to the first that does not fit, and fills in behind it.
func (p *backfill) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.grants, p.leaving, p.now, p.timed = p.grants[:0], p.leaving[:0], v.NowSeconds, false
	p.capacity.Count(v.Cluster)
	free := v.Devices
	for i := range candidates {
		if c := &candidates[i]; c.State == core.Running {
			n := within(c, c.Held)
			free -= n
			p.give(c, n, expectedEnd(v, c, n))
		}
	}
	var reservation *reservation
	looked := 0
	for i := range candidates {
		c := &candidates[i]
		if c.State == core.Running {
			continue
		}
		n := p.capacity.Limit(c, v.Cluster, within(c, c.Requested))
		if reservation == nil {
			if n > free {
				reservation = p.reserve(free, n)
				continue
			}
		} else {
			if looked++; p.config.Depth > 0 && looked > p.config.Depth {
				break
			}
			if n > free {
				continue
			}
			p.timed = true
			if !reservation.lets(v.NowSeconds+p.config.Slack*secondsLeft(v, c, n), n) {
				continue
			}
		}
		free -= n
		p.give(c, n, v.NowSeconds+secondsLeft(v, c, n))
	}
	return p.grants, nil
}

// Standing is for ever when all who wait need more devices than are left: then nothing depends on the time, as long as
// those who were granted devices get them.
func (p *backfill) Standing() core.Standing {
	if p.timed {
		return core.Standing{UntilSeconds: p.now}
	}
	return core.Standing{UntilSeconds: math.Inf(1), IfSeated: len(p.grants)}
}

func (p *backfill) give(c *core.Candidate, n int, end float64) {
	p.grants = append(p.grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: n})
	p.leaving = append(p.leaving, leaving{atSeconds: end, devices: n})
}

// reservation is the promise to the first in line.
type reservation struct {
	atSeconds float64
	spare     int // devices that it leaves over
}

// reserve finds the moment at which n devices will be free.
func (p *backfill) reserve(free, n int) *reservation {
	slices.SortFunc(p.leaving, func(a, b leaving) int { return cmp.Compare(a.atSeconds, b.atSeconds) })
	at := math.Inf(1)
	for _, l := range p.leaving {
		if free >= n && l.atSeconds > at {
			break
		}
		free, at = free+l.devices, l.atSeconds
	}
	return &reservation{atSeconds: at, spare: max(free-n, 0)}
}

// lets reports whether a job of n devices may pass, and takes from what is spare if it needs that.
func (r *reservation) lets(end float64, n int) bool {
	switch {
	case end <= r.atSeconds:
		return true
	case n <= r.spare:
		r.spare -= n
		return true
	default:
		return false
	}
}

// within is the number of replicas nearest to n that the job can use.
func within(c *core.Candidate, n int) int {
	return min(max(n, c.Response.MinReplicas), c.Response.MaxReplicas)
}

// expectedEnd is when a running job is expected to end; +Inf when unknown.
func expectedEnd(v *core.View, c *core.Candidate, n int) float64 {
	if c.ProgressRate > 0 && c.TotalWork > 0 {
		return c.ProgressAsOf + (c.TotalWork-c.Progress)/c.ProgressRate
	}
	return c.LastChange + secondsLeft(v, c, n)
}

// secondsLeft is the time that a job is expected to take on n devices; +Inf when unknown.
func secondsLeft(v *core.View, c *core.Candidate, n int) float64 {
	rate := c.Response.Rate(core.AnyAccelerator, n, v.Cluster.LargestNode())
	if seconds := c.Response.RemainingWork / rate; rate > 0 && seconds >= 0 {
		return seconds
	}
	return math.Inf(1)
}
