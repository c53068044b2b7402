package synergy

import (
	"context"
	"errors"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// Reached is what tune makes of jobs that are there at once, against what no division of CPUs and memory among them exceeds. Speeds are sums over
// those that run, each relative to its base.
type Reached struct {
	Running, Waiting, Devices int                   // jobs that run, jobs that wait, and devices of those that run
	Fair, Tune                float64               // with the proportional shares, and with what tune gives
	Best                      optim.BundleSelection // the best division found on one machine with all that the nodes have, and the bound
}

// Reach seats jobs in their order on idle nodes, with what they request, and divides CPUs and memory among those that found room: as tune does, and as Optimum.
// Every job is offered its proportional share, its base, its ideal, and every share that was measured; its speed on a line between two of these is below
// the bound as well. It fails where a ready node does not declare its CPUs and its memory, and when the context ends.
func Reach(ctx context.Context, c *core.Cluster, specs []*core.JobSpec) (r Reached, err error) {
	if !c.CountsResources {
		return r, errors.New("CPUs and memory are not counted")
	}
	var fleet Fleet
	fleet.CountIn(&core.View{Cluster: c})
	servers := make([]Server, len(c.Nodes))
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Health == core.Ready && (n.CPUs == 0 || n.MemoryGB == 0) {
			return r, errors.New("a node does not report its CPUs or its memory, so that there is no bound")
		}
		servers[i] = fleet.Server(n)
	}
	jobs := make([]Job, len(specs))
	for i, s := range specs {
		if jobs[i] = fleet.Job(s, s.Requested, core.AnyAccelerator); jobs[i].Kinds == 0 {
			jobs[i].Devices = 0 // no node is ready that it can run on
		}
	}
	packer := Packer{Mode: Tune}
	var menus [][]optim.Bundle
	for i, g := range packer.Round(servers, jobs) {
		if len(g.Seats) == 0 {
			r.Waiting++
			continue
		}
		each := func(of core.Resources) float64 { return SpeedOf(specs[i], of.Times(1/float64(specs[i].Requested))) }
		r.Running, r.Devices = r.Running+1, r.Devices+specs[i].Requested
		r.Fair, r.Tune = r.Fair+each(jobs[i].Fair), r.Tune+each(g.Resources)
		menus = append(menus, menuOf(specs[i], &jobs[i], g.Resources, each))
	}
	if r.Running == 0 {
		return r, nil
	}
	var solver optim.Bundles
	r.Best, err = solver.Solve(ctx, [2]float64{fleet.CPUs, fleet.MemoryGB}, menus)
	return r, err
}

// menuOf is what a job can be given that is no slower than its proportional share.
func menuOf(spec *core.JobSpec, j *Job, given core.Resources, speed func(core.Resources) float64) []optim.Bundle {
	fair := speed(j.Fair)
	menu := []optim.Bundle{{Uses: [2]float64{j.Fair.CPUs, j.Fair.MemoryGB}, Value: fair}}
	offer := func(of core.Resources) {
		if value := speed(of); value >= fair {
			menu = append(menu, optim.Bundle{Uses: [2]float64{of.CPUs, of.MemoryGB}, Value: value})
		}
	}
	offer(j.Fair.Least(j.Demand.Resources))
	offer(j.Demand.Resources)
	offer(given)
	if t := spec.Sensitivity; t != nil {
		n := float64(spec.Requested)
		offer(t.Base.Times(n))
		offer(t.Base.Least(t.Ideal).Times(n))
		for _, cpus := range t.CPUs {
			for _, memory := range t.MemoryGB {
				offer(core.Resources{CPUs: cpus, MemoryGB: memory}.Times(n))
			}
		}
	}
	return menu
}
