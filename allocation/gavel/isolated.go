package gavel

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// NewIsolated gives every job its part of each type for itself: what it would have in a partition of its own. O(jobs
// × types).
//
// Source: Gavel (OSDI'20), the baseline that sharing is measured against.
func NewIsolated() core.Factory[core.Allocator] {
	return newFactory(core.Info{
		Type:        "isolated",
		Summary:     "an equal part of each accelerator type for every job",
		Description: "Divides each type evenly among the jobs, as if each had a cluster of its own; the devices that this leaves free go to any job that can use them. O(jobs × types).",
		Source:      source,
	}, func(Rounds, core.Settings) policy { return isolated{} })
}

type isolated struct{}

func (isolated) strict() bool { return false }

func (isolated) divide(_ context.Context, d *problem) error {
	for _, m := range d.jobs {
		d.isolated(m, m.x)
	}
	return nil
}
