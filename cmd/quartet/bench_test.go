package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/engine"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// loaded is a shipped composition with its workload, ready to be run again and again.
func loaded(b *testing.B, file string, sets ...string) (*configs.Config, *workload.Workload) {
	b.Helper()
	c, err := configs.Load(catalog(), configs.Options{
		Files: []string{filepath.Join("..", "..", "configs", "papers", file)}, Sets: sets, Env: os.LookupEnv,
	})
	if err != nil {
		b.Fatal(err)
	}
	jobs, err := quartet.LoadWorkload(context.Background(), c, nil)
	if err != nil {
		b.Fatal(err)
	}
	return c, jobs
}

// simulateOnly runs stages, pipeline, simulator and metrics, and nothing else. It returns the number of rounds.
func simulateOnly(b *testing.B, c *configs.Config, jobs *workload.Workload) int {
	b.Helper()
	ctx := context.Background()
	stages, err := engine.BuildStages(c, nil)
	if err != nil {
		b.Fatal(err)
	}
	cluster, world := openWorld(b, c, jobs)
	collector := metrics.NewCollector(metrics.Components{}, metrics.Outputs{Jobs: io.Discard, Rounds: io.Discard, Decisions: io.Discard})
	p := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: c.Round.Options(), Observers: []core.Observer{collector}})
	if err := p.Run(ctx, world); err != nil {
		b.Fatal(err)
	}
	summary, err := collector.Finish(p.Unfinished(), p.NowSeconds())
	if err != nil {
		b.Fatal(err)
	}
	return summary.Rounds
}

// cpu is the processor time of this process so far.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// measure runs f b.N times, and reports its CPU time and, when the reference's CPU seconds are known, the ratio.
func measure(b *testing.B, referenceSeconds float64, f func() (rounds int)) {
	b.Helper()
	b.ReportAllocs()
	rounds := 0
	before := cpu(b)
	for b.Loop() {
		rounds = f()
	}
	used := (cpu(b) - before).Seconds() / float64(b.N)
	b.ReportMetric(used*1e3, "cpu-ms/run")
	b.ReportMetric(float64(rounds), "rounds")
	if referenceSeconds > 0 {
		b.ReportMetric(referenceSeconds/used, "x-less-cpu")
	}
}

// BenchmarkBlox is the simulation alone against the CPU seconds of the released simulator (spec/blox.md, section 5).
func BenchmarkBlox(b *testing.B) {
	for _, bc := range []struct {
		name, config     string
		referenceSeconds float64
	}{
		{"s1000_Fifo", "fifo", 14.7}, {"s1000_Las", "las", 17.4}, {"s1000_Srtf", "srtf", 16.0},
	} {
		b.Run(bc.name, func(b *testing.B) {
			c, jobs := loaded(b, "blox-eurosys24/"+bc.config+".yaml",
				"workload.config.path="+refdata.Path(b, "reference", "blox", "ref_"+bc.name+".csv"))
			measure(b, bc.referenceSeconds, func() int { return simulateOnly(b, c, jobs) })
		})
	}
}

// BenchmarkGavel is a whole run of the 6,000 jobs of a stream, against the 115 to 180 s that the published simulator takes for
// 5,000 of them (spec/heterogeneity.md, 5.2).
func BenchmarkGavel(b *testing.B) {
	const referenceSeconds = 115
	for name, sets := range map[string][]string{
		"fifo_perf": {"pipeline.allocation={type: fifo_perf}"}, "max_min": nil, "best_normalised_sum": {"pipeline.allocation={type: best_normalised_sum}"},
	} {
		b.Run(name, func(b *testing.B) {
			c, jobs := loaded(b, "gavel-osdi20/max-min.yaml", sets...)
			measure(b, referenceSeconds, func() int { return simulateOnly(b, c, jobs) })
		})
	}
}

// BenchmarkPhilly shows how the cost grows with jobs, at the share of devices of the whole trace, and with devices.
func BenchmarkPhilly(b *testing.B) {
	for _, bc := range []struct {
		jobs, nodes int // of 8 devices
	}{
		{1000, 300}, {10000, 300}, {82247, 300}, {82247, 16}, {82247, 125}, {82247, 1250},
	} {
		b.Run(fmt.Sprintf("jobs=%d/devices=%d", bc.jobs, 8*bc.nodes), func(b *testing.B) {
			c, jobs := loaded(b, "philly/las.yaml", "workload.config.path="+refdata.Path(b, "data", "pollux-osdi21", "philly.csv.gz"),
				fmt.Sprintf("cluster.nodes=[{name: gpu, count: %d, accelerator: p100, devices: 8}]", bc.nodes))
			first := *jobs
			first.Jobs = jobs.Jobs[:bc.jobs]
			measure(b, 0, func() int { return simulateOnly(b, c, &first) })
		})
	}
}

// BenchmarkSemantics pairs the default semantics with those of a publication, on the same policy and trace.
func BenchmarkSemantics(b *testing.B) {
	path := "workload.config.path=" + refdata.Path(b, "reference", "blox", "ref_s1000_Las.csv")
	for name, sets := range map[string][]string{
		"published": {path},
		"default": {
			path, "backend={type: simulator}", "pipeline.placement={type: consolidated}",
			"pipeline.allocation={type: las, config: {service: wall_time}}",
		},
	} {
		b.Run(name, func(b *testing.B) {
			c, jobs := loaded(b, "blox-eurosys24/las.yaml", sets...)
			measure(b, 0, func() int { return simulateOnly(b, c, jobs) })
		})
	}
}
