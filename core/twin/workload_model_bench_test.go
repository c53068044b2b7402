package twin_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// BenchmarkDraw draws a world of many jobs: the first after a round, which finds out about each, and others after it. Draw 0 is computed, others are drawn.
func BenchmarkDraw(b *testing.B) {
	for name, pipeline := range map[string]string{
		"duration": "workload: {type: generated, config: {jobs: %d, span: 1m}}\npipeline: {allocation: {type: las}}",
		"training": "workload: {type: generated, config: {jobs: %d, span: 1m, applications: true}}\npipeline: {allocation: {type: las}, elasticity: {job: {type: goodput}}}",
	} {
		for _, jobs := range []int{1000, 10000} {
			config := fmt.Sprintf("version: 1\nname: twin\nseed: 3\ncluster: {nodes: [{name: n, count: 128, accelerator: v100, devices: 8}]}\nround: {interval: 60s}\n"+pipeline, jobs)
			c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", config, quartet.Options{})
			if err != nil {
				b.Fatal(err)
			}
			var still *twin.RunSnapshot
			beliefs := twin.NewWorkloadModel(twin.WorkloadModelOptions{})
			c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
				return observer(func(r *core.Report) error {
					if still != nil {
						return nil
					}
					if r.View.Round == 60 {
						still = twin.Take(p)
					}
					return beliefs.ObserveRound(r)
				})
			}
			if _, err := c.Simulate(b.Context()); err != nil {
				b.Fatal(err)
			}
			v := still.View()
			for _, draw := range []int{0, 1} {
				b.Run(fmt.Sprintf("%s/%d/first/%d", name, jobs, draw), func(b *testing.B) {
					for b.Loop() {
						other := *v // is not known
						beliefs.Draw(&other, 1, draw, math.Inf(1))
					}
				})
				b.Run(fmt.Sprintf("%s/%d/next/%d", name, jobs, draw), func(b *testing.B) {
					for b.Loop() {
						beliefs.Draw(v, 1, draw, math.Inf(1))
					}
				})
			}
			b.Run(fmt.Sprintf("%s/%d/clone", name, jobs), func(b *testing.B) {
				for b.Loop() {
					beliefs.Clone()
				}
			})
		}
	}
}
