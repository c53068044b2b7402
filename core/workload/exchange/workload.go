package exchange

import (
	"fmt"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// FromWorkload is a workload as a trace. A job whose length is not a known number of seconds is a core.Diagnostics error.
func FromWorkload(w *workload.Workload) (*Trace, error) {
	t := &Trace{}
	for i := range w.Jobs {
		job := &w.Jobs[i]
		if !job.CountsSeconds() {
			return nil, core.Diagnostics{{
				Position: job.At,
				Summary:  fmt.Sprintf("job %q has no fixed duration", job.Spec.Name),
				Hint:     "a trace holds jobs of known duration only; how fast this one runs depends on its placement and batch",
			}}
		}
		s := &job.Spec
		r := Record{
			Name: s.Name, Tenant: s.Tenant, Application: s.Application, Accelerators: strings.Join(s.Accelerators, "|"), Outcome: job.Observed.Outcome,
			Submit: s.SubmitSeconds, Start: nan, Duration: job.Model.PhaseEnd(0), Limit: nan, Estimate: nan, Replicas: int32(s.Requested),
			line: int32(i),
		}
		if job.Observed.Started {
			r.Start = job.Observed.StartOn(s.SubmitSeconds)
		}
		if job.LimitSeconds > 0 {
			r.Limit = job.LimitSeconds
		}
		if job.EstimateSeconds > 0 {
			r.Estimate = job.EstimateSeconds
		}
		d := Details{CPUs: s.CPUs, MemoryGB: s.MemoryGB, Pinned: s.Pinned, Deadline: s.DeadlineSeconds, BestEffort: s.BestEffort, Tier: s.Tier, Experiment: s.Experiment}
		d.Shares = s.Share != nil || s.Utilisation != 0 || s.DeviceMemoryGB != 0 || s.SlowdownTolerance != 0 || s.Iteration != core.Iteration{} || s.Sensitivity != nil
		if s.Weight != 1 {
			d.Weight = s.Weight
		}
		if s.MinReplicas != s.Requested {
			d.MinReplicas = int32(s.MinReplicas)
		}
		if s.MaxReplicas != s.Requested {
			d.MaxReplicas = int32(s.MaxReplicas)
		}
		t.Add(r, d)
	}
	return t, nil
}
