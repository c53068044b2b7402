package synergy

import (
	"context"
	"fmt"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// Measured is a job and what was measured of its model; without speeds it has its demand and its proportional share only.
type Measured struct {
	Job
	// Table is how fast the job runs by CPUs and memory.
	Table *core.Sensitivity
}

// Optimum chooses CPUs and memory for jobs that run together, on one machine with all that the servers have, for the largest sum
// of speeds with nobody below the proportional share. Its bound holds for every division of the servers. Where all servers have as
// much for each device the choice can be carried out by splitting: every server takes the part of each job that it has of the
// devices. How few splits are enough is unknown.
//
// Source: the bound OPT of Mohan et al., Synergy (OSDI'22), which is an integer program there. Picks are indices of Bundles.
// It fails when the proportional shares of the jobs do not fit together, and when the context ends.
func Optimum(ctx context.Context, solver *optim.Bundles, of Capacity, jobs []Measured) (optim.BundleSelection, error) {
	menus := make([][]optim.Bundle, len(jobs))
	for i := range jobs {
		menus[i] = jobs[i].Bundles()
	}
	s, err := solver.Solve(ctx, [2]float64{of.CPUs, of.MemoryGB}, menus)
	if err != nil {
		return s, fmt.Errorf("divide CPUs and memory among %d jobs: %w", len(jobs), err)
	}
	return s, nil
}

// Bundles is what a job can be given: the proportional share, of which nothing beyond its demand, its demand, and every share
// measured that is as fast as the first at least. Uses are CPUs and memory in GB of the whole job, and the value is the speed.
func (j *Measured) Bundles() []optim.Bundle {
	bundle := func(s core.Resources, speed float64) optim.Bundle {
		return optim.Bundle{Uses: [2]float64{s.CPUs, s.MemoryGB}, Value: speed}
	}
	menu := []optim.Bundle{bundle(j.Fair.Least(j.Demand.Resources), 1), bundle(j.Demand.Resources, j.Demand.Speed)}
	if j.Table == nil {
		return menu
	}
	for c, row := range j.Table.Speeds {
		for m, speed := range row {
			if speed >= 1 {
				each := core.Resources{CPUs: j.Table.CPUs[c], MemoryGB: j.Table.MemoryGB[m]}
				menu = append(menu, bundle(each.Times(float64(j.Devices)), speed))
			}
		}
	}
	return menu
}
