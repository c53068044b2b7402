package twin_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// BenchmarkFuture is one future of 1,000 jobs on 1,024 devices, and of 10,000 jobs.
func BenchmarkFuture(b *testing.B) {
	for _, allocation := range []string{"fifo", "las", "srtf", "tiresias"} {
		for _, jobs := range []int{1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", allocation, jobs), func(b *testing.B) {
				config := fmt.Sprintf("version: 1\nname: twin\nseed: 3\ncluster: {nodes: [{name: n, count: 128, accelerator: v100, devices: 8}]}\n"+
					"workload: {type: generated, config: {jobs: %d, span: 1m}}\nround: {interval: 60s}\nbackend: {type: simulator, config: {restart_overhead: 30s}}\n"+
					"pipeline: {allocation: {type: %s}}", jobs, allocation)
				c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", config, quartet.Options{})
				if err != nil {
					b.Fatal(err)
				}
				if c.Jobs, err = quartet.LoadWorkload(b.Context(), c.Config, nil); err != nil {
					b.Fatal(err)
				}
				var still *twin.RunSnapshot
				c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
					return observer(func(r *core.Report) error {
						if r.View.Round == 3 {
							still = twin.Take(p)
						}
						return nil
					})
				}
				if _, err := c.Simulate(b.Context()); err != nil {
					b.Fatal(err)
				}
				w, p := truth(c, still, c.Jobs), policies(c, true)
				rounds := 0
				for b.Loop() {
					f, err := still.Future(b.Context(), p, w, math.Inf(1))
					if err != nil {
						b.Fatal(err)
					}
					rounds = f.Rounds
				}
				b.ReportMetric(float64(rounds), "rounds")
			})
		}
	}
}

type observer func(*core.Report) error

func (o observer) ObserveRound(r *core.Report) error { return o(r) }
