package main

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/engine"
)

// BenchmarkRound10kGPUs5kJobs is a round of the default composition, from respond to the changes taken in, over 5,000 jobs
// on 10,000 GPUs: the mean of the rounds 10 to 40 after the last submission, and the longest of them.
func BenchmarkRound10kGPUs5kJobs(b *testing.B) {
	c, err := configs.Load(catalog(), configs.Options{
		Files: []string{filepath.Join("..", "..", "configs", "default.yaml")},
		Sets: []string{
			"cluster.nodes=[{name: t4, count: 2500, accelerator: t4, devices: 4}]", "workload.config={jobs: 5000, span: 1m, applications: true}",
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	jobs, err := quartet.LoadWorkload(context.Background(), c, nil)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var t roundTimer
		stages, err := engine.BuildStages(c, nil)
		if err != nil {
			b.Fatal(err)
		}
		cluster, world := openWorld(b, c, jobs)
		begin := time.Now()
		p := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: c.Round.Options(), Stopwatch: func() time.Duration { return time.Since(begin) }, Observers: []core.Observer{&t}})
		for range 40 {
			seen, err := world.Next(b.Context(), core.Wake{BySeconds: p.NowSeconds() + 60, IntervalSeconds: 60})
			if err != nil {
				b.Fatal(err)
			}
			from := time.Now()
			if err := p.Round(b.Context(), seen, world); err != nil {
				b.Fatal(err)
			}
			t.took(time.Since(from))
		}
		b.ReportMetric(t.sum.Seconds()*1000/float64(t.rounds), "ms/round")
		b.ReportMetric(t.respond.Seconds()*1000/float64(t.rounds), "respond-ms/round")
		b.ReportMetric(t.longest.Seconds()*1000, "ms/longest")
		b.ReportMetric(100*t.gap/float64(t.rounds), "gap-%")
	}
}

// roundTimer adds up rounds from the tenth on.
type roundTimer struct {
	seen, rounds          int
	sum, longest, respond time.Duration
	gap                   float64
	last                  core.Report
}

func (t *roundTimer) ObserveRound(r *core.Report) error {
	t.last = *r
	return nil
}

func (t *roundTimer) took(d time.Duration) {
	if t.seen++; t.seen < 10 {
		return
	}
	t.rounds++
	t.sum, t.longest, t.respond, t.gap = t.sum+d, max(t.longest, d), t.respond+t.last.StageTime[0], t.gap+t.last.GapRatio
}
