package operate

import (
	"context"
	"log/slog"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// roundLog logs what happens to jobs and nodes at info, and every round at debug.
type roundLog struct {
	log *slog.Logger
	now func() bool // whether rounds are new; those of an earlier scheduler, replayed, were logged by it
}

func (l *roundLog) ObserveRound(r *core.Report) error {
	ctx := context.Background()
	if !l.log.Enabled(ctx, slog.LevelInfo) || !l.now() {
		return nil
	}
	log := l.log.With("round", r.View.Round)
	for i := range r.Events {
		logEvent(log, r.View, &r.Events[i])
	}
	for _, j := range r.Ended {
		logEnd(log, j, r)
	}
	for i := range r.Changes {
		logChange(log, r.View, &r.Changes[i])
	}
	for _, t := range r.Scaled {
		log.Info("pool scaled", "pool", t.Pool, "nodes", t.Nodes, "component", r.ScaledBy, why(t.Message))
	}
	if !l.log.Enabled(ctx, slog.LevelDebug) {
		return nil
	}
	active := len(r.View.Active)
	log.Debug("round held", "time_seconds", r.View.NowSeconds, "active", active, "waiting", r.View.Waiting,
		"running", active-r.View.Waiting, "devices_used", r.DevicesUsed, "devices_usable", r.View.Devices, "changes", len(r.Changes))
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		log.Debug("verdict", "job", nameOf(r, v.Job), "verdict", v.Code.String(), "why", v.Explain(), "component", v.By)
	}
	return nil
}

// logEvent logs an event that is not the end of a job.
func logEvent(log *slog.Logger, v *core.View, e *core.Event) {
	switch e.Kind {
	case core.JobSubmitted:
		log.Info("job submitted", "job", e.Spec.Name, "replicas", e.Spec.Requested)
	case core.JobInterrupted:
		if j := v.Job(e.Job); j != nil {
			log.Info("job interrupted", "job", j.Name, "restarts", j.Restarts, why(e.Message))
		}
	case core.NodeChanged:
		log.Info("node changed", "node", v.Cluster.Nodes[e.Node].Name, "health", e.Health.String())
	case core.NodeAdded:
		log.Info("node added", "node", e.Added.Name, "accelerator", e.Added.Accelerator, "devices", e.Added.Devices, "health", e.Added.Health.String())
	case core.NodeRemoved:
		log.Info("node removed", "node", v.Cluster.Nodes[e.Node].Name)
	case core.JobStarting, core.JobStarted, core.JobShrunk, core.DevicesReleased, core.JobChanged:
		if j := v.Job(e.Job); j != nil {
			logStart(log, v, e, j)
		}
	}
}

// logStart logs how far a job is with devices that it was given or lost, and that its owner edited it.
func logStart(log *slog.Logger, v *core.View, e *core.Event, j *core.Job) {
	switch e.Kind {
	case core.JobStarting:
		log.Info("job starting", "job", j.Name, why(e.Message))
	case core.JobStarted:
		log.Info("job runs", "job", j.Name)
	case core.JobShrunk:
		log.Info("job lost devices", "job", j.Name, "replicas", core.Replicas(e.Seats), "nodes", nodeNamesOf(v.Cluster, e.Seats), why(e.Message))
	case core.DevicesReleased:
		log.Info("devices released", "job", j.Name, "devices", core.Replicas(e.Seats), "nodes", nodeNamesOf(v.Cluster, e.Seats))
	case core.JobChanged:
		log.Info("job edited", "job", j.Name, "min_replicas", e.Spec.MinReplicas, "max_replicas", e.Spec.MaxReplicas, "suspended", e.Spec.Suspended)
	}
}

func logEnd(log *slog.Logger, j *core.Job, r *core.Report) {
	switch j.State {
	case core.Completed:
		log.Info("job finished", "job", j.Name, "jct_seconds", j.FinishSeconds-j.SubmitSeconds, "restarts", j.Restarts)
	case core.Rejected:
		log.Info("job rejected", "job", j.Name, "reason", j.WaitingReason.String())
	case core.Failed:
		log.Info("job failed", "job", j.Name, "restarts", j.Restarts, why(failureOf(r, j.ID)))
	case core.Cancelled:
		log.Info("job cancelled", "job", j.Name)
	}
}

// why is nothing where nobody knows.
func why(message string) slog.Attr {
	if message == "" {
		return slog.Attr{}
	}
	return slog.String("why", message)
}

// failureOf is why a job failed in this round.
func failureOf(r *core.Report, id core.JobID) string {
	for i := range r.Events {
		if e := &r.Events[i]; e.Kind == core.JobFailed && e.Job == id {
			return e.Message
		}
	}
	return ""
}

func logChange(log *slog.Logger, v *core.View, c *core.Change) {
	j := v.Job(c.Job)
	if j == nil { // rejected: it ended
		return
	}
	switch c.Action {
	case core.Stop, core.Pause:
		log.Info("job stopped", "job", j.Name, "reason", c.Reason.String(), "component", c.By)
	case core.Start:
		log.Info("job started", append([]any{"job", j.Name, "replicas", core.Replicas(c.Seats), "nodes", nodeNamesOf(v.Cluster, c.Seats), "component", c.By}, loggedResources(c)...)...)
	case core.Move:
		log.Info("job moved", append([]any{"job", j.Name, "replicas", core.Replicas(c.Seats), "nodes", nodeNamesOf(v.Cluster, c.Seats), "component", c.By}, loggedResources(c)...)...)
	case core.Tune:
		log.Info("job tuned", append([]any{"job", j.Name, "batch_per_device", c.Tuning.BatchPerDevice, "component", c.By}, loggedResources(c)...)...)
	}
}

// loggedResources is the CPUs and the memory of each replica, where they are not what the job asks for.
func loggedResources(c *core.Change) []any {
	if c.Resources == nil {
		return nil
	}
	return []any{"cpus", c.Resources.CPUs, "memory_gb", c.Resources.MemoryGB}
}

// nodeNamesOf names the nodes of seats, each once, in their order.
func nodeNamesOf(c *core.Cluster, seats []core.Seat) []string {
	var names []string
	for _, s := range seats {
		if name := c.Nodes[s.Node].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// nameOf is the name of a job that is there or ended in this round.
func nameOf(r *core.Report, id core.JobID) string {
	if j := r.View.Job(id); j != nil {
		return j.Name
	}
	for _, j := range r.Ended {
		if j.ID == id {
			return j.Name
		}
	}
	return ""
}
