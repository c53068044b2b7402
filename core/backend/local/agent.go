package local

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/journal"
)

// report is what a job said since its replicas began, of which the pipeline was not told.
type report struct {
	latest       agent.Report
	fresh        bool // latest was not told
	at           float64
	checkpointed bool // ever
	checkpoint   float64
	told         core.Measurement // last configuration that was told
	metrics      []agent.Metric   // the latest value of each
}

// hear notes the latest value of a metric. It reports whether that is news.
func (r *report) hear(m agent.Metric) bool {
	known := slices.IndexFunc(r.metrics, func(o agent.Metric) bool { return o.Name == m.Name })
	switch {
	case known < 0:
		r.metrics = append(r.metrics, m)
	case r.metrics[known].Equal(m):
		return false
	default:
		r.metrics[known] = m
	}
	return true
}

// listen collects what jobs said, without waiting.
func (b *Backend) listen(now float64) {
	for {
		select {
		case e := <-b.agent.Events():
			b.collect(&e, now)
		default:
			return
		}
	}
}

// collect takes in what a replica said. Those of rank 0 speak for the job.
func (b *Backend) collect(e *agent.Event, now float64) {
	id, known := b.byName[e.Job]
	if e.Err != nil {
		b.log.Warn("a job broke the agent's protocol", "job", e.Job, "rank", e.Rank, "error", e.Err)
	}
	if !known || e.Rank != 0 || !b.jobs[id].live() {
		return
	}
	j := b.jobs[id]
	j.connected = !e.Gone
	if !e.Gone {
		if !j.spoke {
			j.news = j.run.Number
		}
		j.spoke, j.spokeAt = true, now
	}
	j.done = j.done || e.Done != nil
	if e.Checkpointed != nil {
		j.kept = j.kept || !j.reported.checkpointed || e.Checkpointed.Progress > j.deepest
		j.deepest = max(j.deepest, e.Checkpointed.Progress)
		j.reported.checkpointed, j.reported.checkpoint, j.news = true, e.Checkpointed.Progress, j.run.Number
	}
	said := e.Metrics
	if e.Hello != nil {
		said = j.unheard(said)
	}
	for _, m := range said {
		if !j.reported.hear(m) {
			continue // said again to a scheduler that it thought was new
		}
		b.events = append(b.events, core.Event{Kind: core.JobReported, AtSeconds: now, Job: id, Metric: m.Name, Step: m.Step, Value: m.Value})
	}
	if e.Report != nil && j.wanted() && e.Report.Replicas == core.Replicas(j.seats) {
		if now > j.asOf && e.Report.Progress > j.progress {
			j.rate = (e.Report.Progress - j.progress) / (now - j.asOf)
			j.progress, j.asOf = e.Report.Progress, now
		}
		j.reported.latest, j.reported.fresh, j.reported.at = *e.Report, true, now
		if !sameConfiguration(b.measurement(j), j.reported.told) {
			b.reportMeasured(j)
		}
	}
}

// unheard leaves those metrics out that the run said before to this scheduler or to one before it.
func (j *job) unheard(metrics []agent.Metric) []agent.Metric {
	return slices.DeleteFunc(slices.Clone(metrics), func(m agent.Metric) bool {
		return slices.ContainsFunc(j.reported.metrics, func(o agent.Metric) bool { return o.Name == m.Name && m.Step <= o.Step && !o.Equal(m) })
	})
}

// takeFinalReport takes in what a run said last that is gone, as far as nobody heard it. Its end is told after that.
func (b *Backend) takeFinalReport(j *job, at float64) {
	words, left, err := agent.FinalReport(filepath.Join(b.runFolder(j, j.run.Number), peersFolder))
	if err != nil {
		b.log.Warn("what a run said last could not be read", "job", j.Spec.Name, "run", j.run.Number, "error", err)
	}
	if left {
		words.Hello = &agent.Hello{} // it may say again what was heard
		b.collect(&agent.Event{Job: j.Spec.Name, FromJob: words}, at)
		j.connected = false
	}
	for i := range b.events {
		if e := &b.events[i]; e.Kind == core.JobReported && e.Job == j.Spec.ID {
			e.AtSeconds = min(e.AtSeconds, at)
		}
	}
}

// unrecorded lists what jobs said since it was last recorded.
func (b *Backend) unrecorded() (list []journal.Said) {
	for _, j := range b.jobs {
		if j.news > 0 {
			list = append(list, journal.Said{Job: j.Spec.ID, Run: j.news, Checkpointed: j.reported.checkpointed, Checkpoint: j.reported.checkpoint})
			j.news = 0
		}
	}
	return list
}

// recollect takes in what jobs said to a scheduler before this one.
func (b *Backend) recollect(list []journal.Said) {
	for _, h := range list {
		j := b.jobs[h.Job]
		j.spokeIn, j.reported.checkpointed, j.reported.checkpoint = h.Run, h.Checkpointed, h.Checkpoint
		j.deepest = max(j.deepest, h.Checkpoint)
	}
}

// reportMeasured says what a job measured and how far it is.
func (b *Backend) reportMeasured(j *job) {
	r := &j.reported
	r.fresh = false
	b.events = append(b.events, j.progressed(r.at))
	m := b.measurement(j)
	if m.PassSeconds == 0 || m.StepSeconds == 0 {
		return
	}
	r.told = m
	b.events = append(b.events, core.Event{
		Kind: core.JobMeasured, AtSeconds: r.at, Job: j.Spec.ID, Measurement: m,
		Gradients: core.Gradients{SquaredNorm: r.latest.GradientSquare, Variance: r.latest.GradientVariance},
	})
}

// silence is how long a job may take between reports before its progress is no longer taken to go on.
const silence = time.Minute

// reportMetrics says what jobs said since the last round, and which jobs no longer report.
func (b *Backend) reportMetrics(now float64) {
	for _, j := range b.jobs {
		if j.live() && j.spoke && j.rate > 0 && now-j.spokeAt > b.seconds(silence) {
			j.rate = 0
			b.events = append(b.events, j.progressed(now))
		}
		if j.reported.fresh && j.seats != nil {
			b.reportMeasured(j)
		}
	}
}

// measurement is the latest report in the terms of the pipeline.
func (b *Backend) measurement(j *job) core.Measurement {
	r := &j.reported.latest
	m := core.Measurement{
		Nodes: r.Nodes, Replicas: r.Replicas, PerDevice: r.BatchPerDevice,
		PassSeconds: r.PassSeconds * b.config.Speedup, StepSeconds: r.StepSeconds * b.config.Speedup,
	}
	if len(b.cluster.Accelerators) > 1 {
		m.Accelerator = b.cluster.Accelerators[b.cluster.Nodes[j.seats[0].Node].Accelerator]
	}
	return m
}

// sameConfiguration reports whether two measurements are of the same replicas and batch.
func sameConfiguration(a, b core.Measurement) bool {
	a.PassSeconds, a.StepSeconds = b.PassSeconds, b.StepSeconds
	return a == b
}
