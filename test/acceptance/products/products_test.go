// Package products_test tries every allocation with every placement, elasticity and way of sharing devices, through the door.
package products_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/doortest"
)

var all = flag.Bool("products.all", false, "try every product, and not one of each hundred")

// A product is one choice for each of the parts that must go together.
type product struct {
	nodes, sharing, allocation, placement, elasticity string
}

const (
	small = "[{name: n, count: 2, accelerator: t4, devices: 4}]"
	mixed = "[{name: n, count: 2, accelerator: t4, devices: 4}, {name: m, accelerator: v100, devices: 2}]"
)

// products lists all that the built-in policies make: of two clusters, one of equal nodes and one of two types.
func products() (list []product) {
	builtins := quartet.Builtins()
	for _, nodes := range []string{small, mixed} {
		for _, sharing := range []core.Sharing{core.Exclusive, core.Fractional, core.TimeSlice, core.Mig} {
			for _, a := range builtins.Allocation {
				for _, p := range builtins.Placement {
					for _, e := range builtins.Elasticity {
						list = append(list, product{nodes, sharing.String(), a.Type, p.Type, e.Type})
					}
				}
			}
		}
	}
	return list
}

func (p product) String() string {
	return fmt.Sprintf("%s, %s, %s, %s on %s", p.sharing, p.allocation, p.placement, p.elasticity, p.nodes)
}

// config is a run of twelve training jobs; two of them want more devices than there are, where elasticity is rigid.
func (p product) config() string {
	return fmt.Sprintf("version: 1\nname: product\ncluster: {sharing: %s, nodes: %s}\n"+
		"workload: {type: generated, config: {jobs: 12, span: 1h, applications: true}}\nround: {interval: 60s, on_events: true}\n"+
		"pipeline: {allocation: {type: %s}, placement: {type: %s}, elasticity: {job: {type: %s}}}\n",
		p.sharing, p.nodes, p.allocation, p.placement, p.elasticity)
}

// Every product runs until each of its jobs has ended, in few rounds and with few restarts, or is refused with what goes instead.
func TestEveryProductRunsOrIsRefused(t *testing.T) {
	const mostRounds = 2000 // some 100 are usual
	ran, refused := 0, 0
	for i, p := range products() {
		if !*all && i%100 != 37 { // a prime to the numbers of policies
			continue
		}
		c, err := quartet.Parse(quartet.Builtins(), "product.yaml", p.config(), configs.Options{})
		if err != nil {
			refused++
			if text := err.Error(); !strings.Contains(text, "that do: ") && !strings.Contains(text, "; set ") {
				t.Errorf("%s is refused without what goes instead: %s", p, text)
			}
			continue
		}
		ran++
		rounds, notes := 0, ""
		c.Note = func(note string) { notes += note + "\n" }
		c.Observers = append(c.Observers, doortest.ObserverFunc(func(*core.Report) { rounds++ }))
		r, err := c.Simulate(t.Context())
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		if n := r.Summary.Jobs; n.Completed+n.Rejected != n.Submitted || n.Completed < 10 || rounds > mostRounds {
			t.Errorf("%s: of %d jobs %d completed and %d were rejected, in %d rounds", p, n.Submitted, n.Completed, n.Rejected, rounds)
		}
		if mean := float64(r.Summary.Restarts.Mean); mean > 20 && !strings.Contains(notes, "jobs restarted ") {
			t.Errorf("%s: %v restarts a job, and no note of it", p, mean)
		}
	}
	if ran == 0 || refused == 0 {
		t.Errorf("%d ran and %d were refused: nothing was tried", ran, refused)
	}
	t.Logf("%d ran, %d were refused", ran, refused)
}
