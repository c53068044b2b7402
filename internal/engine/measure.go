package engine

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
)

// measured is the window of a run over a workload.
func measured(c *configs.Config, w *workload.Workload) (metrics.Window, error) {
	m := &c.Measure
	if w.React != nil && !m.Whole() {
		return metrics.Window{}, core.Diagnostics{{Path: "measure", Summary: "the workload submits jobs by what becomes of earlier ones: how many there will be is unknown", Hint: "leave it out"}}
	}
	jobs := len(w.Jobs)
	window := metrics.Window{First: core.JobID(m.FirstJob), Last: core.JobID(m.LastJob)}
	if m.WarmUpRatio > 0 || m.CoolDownRatio > 0 {
		const rounding = 1e-9 // 0.07 of 100 jobs are 7
		window.First = core.JobID(math.Ceil(m.WarmUpRatio*float64(jobs) - rounding))
		window.Last = core.JobID(jobs-1) - core.JobID(math.Ceil(m.CoolDownRatio*float64(jobs)-rounding))
		if window.Last < window.First {
			return metrics.Window{}, core.Diagnostics{{Path: "measure", Summary: fmt.Sprintf("leaves none of %d jobs", jobs)}}
		}
	}
	if last := max(window.First, window.Last); last > 0 && int(last) >= jobs {
		return metrics.Window{}, core.Diagnostics{{
			Path: "measure", Summary: fmt.Sprintf("covers job %d, and the workload ends with job %d", last, jobs-1),
		}}
	}
	return window, nil
}

// measuredJobs is a backend that ends the run when the jobs that are measured have ended: what the others come to is nobody's concern.
type measuredJobs struct {
	core.Backend
	window metrics.Window
	left   int
}

// ObserveRound counts the jobs of the window that ended.
func (m *measuredJobs) ObserveRound(r *core.Report) error {
	m.left -= len(m.window.Among(r.Ended))
	return nil
}

// Next returns what happened, until nothing more matters.
func (m *measuredJobs) Next(ctx context.Context, w core.Wake) (core.Observation, error) {
	if m.left <= 0 && m.window != metrics.AllJobs {
		return core.Observation{}, io.EOF
	}
	return m.Backend.Next(ctx, w)
}
