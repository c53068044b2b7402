package elastic_test

import (
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// widest keeps the largest number of devices that a job held above what it requested.
type widest struct{ above int }

func (w *widest) ObserveRound(r *core.Report) error {
	for _, id := range r.View.Active {
		j := r.View.Jobs[id]
		w.above = max(w.above, j.Held-j.Requested)
	}
	return nil
}

// Every allocation that gives elastic jobs what is left works with every elasticity, whose pipeline holds it to the rules of a round:
// all jobs complete, and some hold more than they requested.
func TestElasticAllocationsWorkWithEachElasticity(t *testing.T) {
	for name, allocation := range map[string]quartet.Policy{
		"afs":                         {Type: "afs"},
		"afs one by one":              {Type: "afs", Config: map[string]any{"steps": "one"}},
		"elastic_dp":                  {Type: "elastic_dp"},
		"elastic_fifo":                {Type: "elastic_fifo"},
		"elastic_srtf":                {Type: "elastic_srtf"},
		"elastic_tiresias":            {Type: "elastic_tiresias"},
		"elastic_tiresias, compact":   {Type: "elastic_tiresias", Config: map[string]any{"thresholds": []any{600, 3600}, "promote_factor": 8, "compact_above": 2}},
		"elastic_tiresias one by one": {Type: "elastic_tiresias", Config: map[string]any{"steps": "one"}},
		"optimus":                     {Type: "optimus"},
	} {
		for elasticity, policy := range map[string]quartet.Policy{
			"fixed":      {Type: "fixed", Config: map[string]any{"replicas": "elastic"}},
			"goodput":    {Type: "goodput"},
			"throughput": {Type: "throughput"},
		} {
			t.Run(name+" by "+elasticity, func(t *testing.T) {
				s := doortest.Small()
				s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: 4, Accelerator: "t4", Devices: 4}}
				s.Workload.Config = map[string]any{"jobs": 12, "span": "1h", "applications": true}
				s.Pipeline.Allocation, s.Pipeline.Placement.Type, s.Pipeline.Elasticity.Job = allocation, "consolidated", policy
				c := doortest.Compose(t, quartet.Builtins(), s)
				seen := &widest{}
				c.Observers = append(c.Observers, seen)
				r := doortest.Simulate(t, c)
				if len(r.Unfinished) > 0 || r.Summary.Jobs.Completed != 12 {
					t.Errorf("%d of 12 jobs completed", r.Summary.Jobs.Completed)
				}
				if seen.above < 1 {
					t.Error("no job ever held more devices than it requested")
				}
			})
		}
	}
}
