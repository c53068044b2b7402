package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/engine"
)

// BenchmarkShared10kGPUs is the simulation of jobs that come to 10,000 devices and go, most of which ask for a part of one: pipeline, stages, simulator and
// metrics, in rounds at events. As many as run on average come at once; then it measures, while 100,000 come and as many go, or 5,000 with -short. Load is what they ask for
// over what there is: at 0.9 none waits. Times are those of the processor, of all threads.
func BenchmarkShared10kGPUs(b *testing.B) {
	for _, placement := range []string{"fgd", "best_fit"} {
		for _, load := range []float64{0.9, 1.02} {
			b.Run(fmt.Sprintf("%s/load=%v", placement, load), func(b *testing.B) {
				c, err := configs.Load(catalog(), configs.Options{Sets: []string{
					"cluster.nodes=[{name: n, count: 1250, accelerator: a100, devices: 8, cpus: 96, memory_gb: 768}]",
					"cluster.sharing=fractional", "cluster.count_resources=true", "round.interval=0s", "round.on_events=true",
					"pipeline.allocation={type: fifo, config: {queue: all}}", "pipeline.placement.type=" + placement, "pipeline.elasticity.job.type=fixed",
				}})
				if err != nil {
					b.Fatal(err)
				}
				measured := 100_000
				if testing.Short() {
					measured = 5_000
				}
				jobs, first := comeAndGo(load, measured)
				var t sharedTotal
				for b.Loop() {
					t.simulate(b, c, jobs, first)
				}
				placements, rounds := float64(t.placements), float64(t.rounds)
				b.ReportMetric(float64(t.spent.Nanoseconds())/placements, "cpu-ns/placement")
				b.ReportMetric(float64(t.mallocs)/rounds, "allocs/round")
				b.ReportMetric(t.running/rounds, "running")
				b.ReportMetric(t.waiting/rounds, "waiting")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// comeAndGo is jobs of which the first come at once, as many as make the load, and the others one by one: the times between them are of an exponential distribution, and so
// are those that they take. Nine of ten ask for a part of a device.
func comeAndGo(load float64, later int) (w *workload.Workload, first int) {
	random := rand.New(rand.NewPCG(1, 2))
	const devices, meanMilli = 10_000, 545
	milli := [...]int{50, 100, 200, 250, 300, 400, 500, 500, 700, 750}
	wholes := [...]int{1, 1, 1, 1, 1, 2, 2, 4, 8}
	first = int(load * devices * core.WholeDevice / meanMilli)
	w = &workload.Workload{Jobs: make([]workload.Job, first+later)}
	at := 0.0
	for i := range w.Jobs {
		if i >= first {
			at += random.ExpFloat64()
		}
		j := &w.Jobs[i]
		j.Spec = core.JobSpec{
			ID: core.JobID(i), Name: fmt.Sprint(i), Weight: 1, Requested: 1, CPUs: float64(1 + random.IntN(8)), MemoryGB: 16,
			SubmitSeconds: at, TotalWork: max(random.ExpFloat64()*float64(first), 1),
		}
		if random.IntN(10) > 0 {
			j.Spec.Share = &core.Share{Milli: milli[random.IntN(len(milli))]}
		} else {
			j.Spec.Requested = wholes[random.IntN(len(wholes))]
		}
		j.Spec.MinReplicas, j.Spec.MaxReplicas = j.Spec.Requested, j.Spec.Requested
		j.Model = workload.NewDurationModel(j.Spec.TotalWork, j.Spec.Requested)
	}
	return w, first
}

// sharedTotal is what was measured.
type sharedTotal struct {
	placements, rounds int
	mallocs            uint64
	spent              time.Duration
	running, waiting   float64 // summed up over the rounds

	submitted int
	begun     bool
}

// ObserveRound counts what a round comes to.
func (t *sharedTotal) ObserveRound(r *core.Report) error {
	for i := range r.Events {
		if r.Events[i].Kind == core.JobSubmitted {
			t.submitted++
		}
	}
	if !t.begun {
		return nil
	}
	t.rounds++
	t.waiting += float64(r.View.Waiting)
	t.running += float64(len(r.View.Active) - r.View.Waiting)
	for i := range r.Changes {
		if r.Changes[i].Action == core.Start {
			t.placements++
		}
	}
	return nil
}

// simulate runs jobs until the last was submitted, and measures from when the first ones were.
func (t *sharedTotal) simulate(b *testing.B, c *configs.Config, jobs *workload.Workload, first int) {
	b.Helper()
	stages, err := engine.BuildStages(c, nil)
	if err != nil {
		b.Fatal(err)
	}
	cluster, world := openWorld(b, c, jobs)
	collector := metrics.NewCollector(metrics.Components{}, metrics.Outputs{Jobs: io.Discard, Rounds: io.Discard, Decisions: io.Discard})
	collector.Expect(len(jobs.Jobs))
	p := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: c.Round.Options(), Observers: []core.Observer{collector, t}})
	t.submitted, t.begun = 0, false
	var before, after runtime.MemStats
	var from time.Duration
	for t.submitted < len(jobs.Jobs) {
		seen, err := world.Next(b.Context(), core.Wake{BySeconds: math.Inf(1), OnEvents: true})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Round(b.Context(), seen, world); err != nil {
			b.Fatal(err)
		}
		if !t.begun && t.submitted >= first {
			t.begun = true
			runtime.ReadMemStats(&before)
			from = cpu(b)
		}
	}
	t.spent += cpu(b) - from
	runtime.ReadMemStats(&after)
	t.mallocs += after.Mallocs - before.Mallocs
}
