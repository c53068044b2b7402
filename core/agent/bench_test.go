package agent

import "testing"

// BenchmarkStep is what the agent costs a training step: a report and a look for orders. A Nil client is that of a job
// without a scheduler.
func BenchmarkStep(b *testing.B) {
	path := socket(b)
	s := listen(b, path, "train")
	go func() {
		for range s.Events() { //nolint:revive // taken, and that is all
		}
	}()
	for name, c := range map[string]*Client{"Scheduler": dial(b, path, "train", 0), "Nil": nil} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				if err := c.Report(Report{Replicas: 4, Nodes: 1, BatchPerDevice: 32, StepSeconds: 0.1, Progress: float64(i)}); err != nil {
					b.Fatal(err)
				}
				c.Poll()
			}
		})
	}
}
