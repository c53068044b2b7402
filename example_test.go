package quartet_test

import (
	"context"
	"fmt"
	"log"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
)

// A shipped composition, with one thing changed.
func ExampleSimulate() {
	r, err := quartet.Simulate(context.Background(), quartet.Builtins(), quartet.Options{
		Files: []string{"default.yaml"}, Sets: []string{"workload.config.jobs=20"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d of %d jobs completed\n", r.Summary.Jobs.Completed, r.Summary.Jobs.Submitted)
	// Output: 20 of 20 jobs completed
}

// A composition that is made in code. Results are values.
func ExampleCompose() {
	s := quartet.NewSpec()
	s.Cluster.Nodes = []quartet.NodeGroup{{Name: "n", Count: 2, Accelerator: "a100", Devices: 4}}
	s.Workload = quartet.Part{Type: "generated", Config: map[string]any{"jobs": 3, "replicas": "one", "span": "10m"}}
	s.Pipeline.Allocation = quartet.Policy{Type: "las"}
	c, err := quartet.Compose(quartet.Builtins(), s)
	if err != nil {
		log.Fatal(err)
	}
	r, err := c.Simulate(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, j := range r.Jobs {
		fmt.Println(j.Name, j.Outcome)
	}
	// Output:
	// job-000000 completed
	// job-000001 completed
	// job-000002 completed
}

// nobody grants nothing.
type nobody struct{}

func (nobody) Allocate(context.Context, *core.View, []core.Candidate) ([]core.Grant, error) {
	return nil, nil
}

// A policy that is there already takes the place of a built-in one.
func ExampleGiven() {
	catalog := quartet.Builtins().WithAllocation(quartet.Given[core.Allocator]("nobody", nobody{}))
	r, err := quartet.Simulate(context.Background(), catalog, quartet.Options{
		Sets: []string{"pipeline.allocation.type=nobody", "workload.config.jobs=3"},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(r.Unfinished), "jobs wait, for reason", r.Unfinished[0].WaitingReason)
	// Output: 3 jobs wait, for reason waiting_for_devices
}
