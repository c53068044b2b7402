package pollux

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestPatternsBoundTheOptimum compares with every seating on two nodes: no prices, of any step, prove more than that.
func TestPatternsBoundTheOptimum(t *testing.T) {
	for _, power := range powers {
		t.Run(fmt.Sprint(power), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v, candidates := drawJobs(t, rapid.IntRange(2, 3).Draw(t, "jobs"), 2, rapid.IntRange(1, 3).Draw(t, "devices of a node"))
				p := search(t, power, v, candidates)
				optimum := leastOnTwo(p.jobs, [2]int32{int32(p.usable[0]), int32(p.usable[1])}, [2]bool(p.claimed))
				p.config.InterferenceAvoiding = rapid.IntRange(0, 3).Draw(t, "interference") > 0 // the optimum with it bounds less, not more
				p.listHeld()
				b := &p.search.patterns
				p.search.counts.price = rapid.Float64Range(0, 5).Draw(t, "price")
				b.start(p)
				if bound := b.raise(p, math.Inf(-1)); bound > optimum && !near(bound, optimum) {
					t.Errorf("bound %v, the best of all seatings costs %v", bound, optimum)
				}
			})
		})
	}
}

// TestPatternsProveMoreThanAPriceForADevice seats three gangs of three on three nodes of four: nobody can use the devices
// that are left, and only prices of pieces prove that.
func TestPatternsProveMoreThanAPriceForADevice(t *testing.T) {
	p := &allocator{config: Default, devices: 12, nodes: 3, perNode: 4, usable: []int{4, 4, 4}, claimed: make([]bool, 3)}
	for i := range 4 { // gains 1 each from three replicas on a node, nothing from fewer or across
		costs := [2][]float64{{1, 1, 1, 0}, {1, 1, 1, 1}}
		p.jobs = append(p.jobs, job{index: i, least: 3, most: 3, costs: costs, resized: costs, stays: math.Inf(1)})
	}
	bound := p.search.counts.find(p)
	if bound > 1e-9 {
		t.Fatalf("a price for a device proves %v already", bound)
	}
	p.search.counts.priced(p.devices)
	p.plan.cost = 1 // one job has no node
	p.listHeld()
	p.search.patterns.start(p)
	if got := p.search.patterns.raise(p, bound); got < 0.95 {
		t.Errorf("bound %v, want nearly 1: a node holds one of four gangs, and there are three", got)
	}
}
