// Command embed simulates an allocator of its own against two that come with Quartet.
package main

import (
	"context"
	"fmt"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
)

type lastFirst struct{} // serves whoever came last

func (lastFirst) Allocate(_ context.Context, _ *core.View, jobs []core.Candidate) (grants []core.Grant, _ error) {
	for i := len(jobs) - 1; i >= 0; i-- {
		grants = append(grants, core.Grant{Job: jobs[i].ID, Accelerator: core.AnyAccelerator, Replicas: jobs[i].Response.MinReplicas})
	}
	return grants, nil
}

func main() {
	catalog := quartet.Builtins().WithAllocation(quartet.Given[core.Allocator]("last_first", lastFirst{}))
	for _, allocation := range []string{"fifo", "las", "last_first"} {
		r, err := quartet.Simulate(context.Background(), catalog, quartet.Options{Sets: []string{"pipeline.allocation.type=" + allocation}})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%-10s  mean JCT %5.0f s  makespan %5.0f s\n", allocation, r.Summary.JCTSeconds.Mean, r.Summary.MakespanSeconds)
	}
}
