package twin_test

import (
	"fmt"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/twin"
)

// BenchmarkTake takes a run of 1,000 jobs on 1,024 devices as it stands, with stages that fork themselves.
func BenchmarkTake(b *testing.B) {
	for name, pipeline := range map[string]string{
		"fifo":     "{allocation: {type: fifo}}",
		"tiresias": "{allocation: {type: tiresias}}",
		"goodput":  "{allocation: {type: pollux}, elasticity: {job: {type: goodput}}}",
		"history":  "{allocation: {type: pollux}, elasticity: {job: {type: goodput, config: {knowledge: history}}}}",
		"genetic":  "{allocation: {type: pollux, config: {search: genetic, generations: 3}}, elasticity: {job: {type: goodput}}}",
		"fgd":      "{allocation: {type: fifo}, placement: {type: fgd}}",
	} {
		b.Run(name, func(b *testing.B) {
			config := fmt.Sprintf("version: 1\nname: twin\nseed: 3\ncluster: {nodes: [{name: n, count: 128, accelerator: v100, devices: 8}]}\n"+
				"workload: {type: generated, config: {jobs: 1000, span: 1m, applications: true}}\nround: {interval: 60s}\nbackend: {type: simulator}\npipeline: %s", pipeline)
			c, err := quartet.Parse(quartet.Builtins(), "twin.yaml", config, quartet.Options{})
			if err != nil {
				b.Fatal(err)
			}
			taken := false
			c.Watch = func(p *core.Pipeline, _ core.Backend) core.Observer {
				return observer(func(r *core.Report) error {
					if r.View.Round == 10 {
						taken = true
						for b.Loop() {
							twin.Take(p)
						}
						return errEnough
					}
					return nil
				})
			}
			if _, err := c.Simulate(b.Context()); err != nil && !taken {
				b.Fatal(err)
			}
		})
	}
}

const errEnough = enough("enough")

type enough string

func (e enough) Error() string { return string(e) }
