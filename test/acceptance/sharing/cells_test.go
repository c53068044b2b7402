package sharing_test

import (
	"fmt"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/internal/doortest"
)

// inPieces counts the jobs that an admission let in and that then waited because devices lie in pieces.
type inPieces struct{ jobs map[core.JobID]bool }

func (o *inPieces) ObserveRound(r *core.Report) error {
	for _, v := range r.Verdicts {
		if v.Reason == core.Fragmented {
			o.jobs[v.Job] = true
		}
	}
	return nil
}

// With quotas that are counted in devices, jobs of HiveD's sharing anomaly wait though their tenants have devices left. With the same
// quotas in cells nobody does, and no job starts later: each tenant's jobs are of one size, so that nothing else is in pieces.
func TestCellsEndTheSharingAnomaly(t *testing.T) {
	later, excess, waited := 0, 0.0, 0
	for seed := range 3 {
		run := func(name string) ([]metrics.Job, int) {
			c, err := quartet.Load(quartet.Builtins(), quartet.Options{
				Files: []string{"papers/hived-osdi20/" + name + ".yaml"}, Sets: []string{fmt.Sprintf("seed=%d", seed+1)},
			})
			if err != nil {
				t.Fatal(err)
			}
			seen := &inPieces{map[core.JobID]bool{}}
			c.Observers = append(c.Observers, seen)
			return doortest.Simulate(t, c).Jobs, len(seen.jobs)
		}
		counted, fragmented := run("quotas")
		celled, none := run("cells")
		if none > 0 {
			t.Errorf("seed %d: %d jobs wait for cells in pieces", seed+1, none)
		}
		waited += fragmented
		for i := range counted {
			switch excessive := float64(counted[i].QueueingSeconds - celled[i].QueueingSeconds); {
			case excessive < 0:
				t.Errorf("seed %d: job %d starts %v s later with cells", seed+1, i, -excessive)
			case excessive > 60:
				later++
				excess = max(excess, excessive)
			}
		}
	}
	t.Logf("%d jobs in pieces, %d start more than a minute later with quotas, at most %.0f min", waited, later, excess/60)
	if later == 0 || waited == 0 {
		t.Error("quotas show no sharing anomaly")
	}
}
