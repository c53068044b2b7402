package quartet

import (
	"context"
	"fmt"
	"io"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

// measured is the window of a run over so many jobs.
func measured(c *configs.Config, jobs int) (metrics.Window, error) {
	last := max(c.Measure.FirstJob, c.Measure.LastJob)
	if last > 0 && last >= jobs {
		return metrics.Window{}, core.Diagnostics{{
			Path: "measure", Summary: fmt.Sprintf("covers job %d, and the workload ends with job %d", last, jobs-1),
		}}
	}
	return metrics.Window{First: core.JobID(c.Measure.FirstJob), Last: core.JobID(c.Measure.LastJob)}, nil
}

// ending ends a run when the jobs have ended that it is about: what the others come to is nobody's concern.
type ending struct {
	core.Backend
	window metrics.Window
	left   int
}

// ObserveRound counts the jobs of the window that ended.
func (e *ending) ObserveRound(r *core.Report) error {
	e.left -= len(e.window.Among(r.Ended))
	return nil
}

// Next tells what happened, until nothing more matters.
func (e *ending) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if e.left <= 0 && e.window != metrics.AllJobs {
		return core.Observation{}, io.EOF
	}
	return e.Backend.Next(ctx, w)
}
