package gavel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// WaterFillingConfig configures NewWaterFilling.
type WaterFillingConfig struct {
	Rounds
	// Tenants divide the cluster among themselves first, then each its part among its jobs.
	Tenants []Tenant `config:"tenants" doc:"tenants that divide the cluster among themselves first, then each its part among its jobs; one that is not listed has weight 1 and is fair. None to divide among all jobs at once"`
}

// Tenant is one that jobs belong to.
type Tenant struct {
	// Name is the name of the tenant.
	Name string `config:"name" doc:"name of the tenant"`
	// Weight is its part against those of others; 0 stands for 1.
	Weight float64 `config:"weight" doc:"its part against those of others; 0, as when it is left out, stands for 1" min:"0" max:"1e6"`
	// Inside says how its jobs divide its part: fair or fifo.
	Inside string `config:"inside" doc:"how its jobs divide its part: fair by weight, also when it is left out, or fifo" enum:"fair|fifo|"`
}

const fifo = "fifo"

// Validate reports tenants listed twice.
func (c WaterFillingConfig) Validate() error {
	var problems []error
	for i, t := range c.Tenants {
		if slices.ContainsFunc(c.Tenants[:i], func(earlier Tenant) bool { return earlier.Name == t.Name }) {
			problems = append(problems, fmt.Errorf("tenants[%d].name: tenant %q is listed twice", i, t.Name))
		}
	}
	return errors.Join(problems...)
}

// NewWaterFilling raises all jobs together, as gavel_max_min does, and goes on with the others when some can rise no
// more. With tenants, each rises by its weight, and its jobs by theirs or one after the other.
//
// Source: Gavel (OSDI'20), section 4.3, whose integer programs find the jobs that can rise no more; here the duals of
// the linear one show them. A dozen max-min problems at most for jobs of a few kinds.
func NewWaterFilling() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "gavel_water_filling",
		OneType: true,
		Summary: "max-min fairness at every level, for jobs or for tenants and their jobs",
		Description: "Raises the throughput of all jobs together, each against its equal share, freezes those that can rise no more, and continues with the others. " +
			"Tenants divide the cluster by weight, and their jobs a tenant's part by weight or in order of submission.",
		Source: source + ", section 4.3",
	}, WaterFillingConfig{Rounds: defaults}, func(c WaterFillingConfig, s core.Settings) (core.Allocator, error) {
		return newMechanism(c.Rounds, &waterFilling{tenants: c.Tenants}, s), nil
	})
}

type waterFilling struct {
	tenants []Tenant
	solver  optim.SharesSolver
}

func (p *waterFilling) strict() bool { return false }

func (p *waterFilling) divide(ctx context.Context, d *problem) error {
	slopes := d.fairSlopes()
	of := p.tenantsOf(d)
	small, groups := d.polytope().Group(slopes, of.alike)
	r, err := p.solver.WaterFill(ctx, small, nil, func(frozen []bool, slope []float64) {
		of.divide(groups, frozen, slope, d.jobs)
		for row, members := range groups.Members {
			slope[row] *= slopes[members[0]]
		}
	})
	if err != nil {
		return err
	}
	d.take(groups.Spread(r.Shares))
	return nil
}

// tenancy is who belongs to whom.
type tenancy struct {
	names []string
	terms []Tenant  // by tenant
	of    []int     // tenant of each job
	alike []float64 // equal for jobs that a tenant treats alike
}

func (p *waterFilling) tenantsOf(d *problem) *tenancy {
	y := &tenancy{of: make([]int, len(d.jobs)), alike: make([]float64, len(d.jobs))}
	if len(p.tenants) == 0 {
		return y
	}
	for i, m := range d.jobs {
		e := slices.Index(y.names, m.tenant)
		if e < 0 {
			e = len(y.names)
			terms := Tenant{Weight: 1}
			if k := slices.IndexFunc(p.tenants, func(t Tenant) bool { return t.Name == m.tenant }); k >= 0 {
				terms = p.tenants[k]
				terms.Weight = cmp.Or(terms.Weight, 1)
			}
			y.names, y.terms = append(y.names, m.tenant), append(y.terms, terms)
		}
		y.of[i], y.alike[i] = e, float64(e)
		if y.terms[e].Inside == fifo {
			y.alike[i] = -1 - float64(i)
		}
	}
	return y
}

// divide sets how fast each row rises against its own weight: a tenant's weight, over the weight of those of its jobs
// that still rise, or of the first of them alone.
func (y *tenancy) divide(groups optim.Groups, frozen []bool, slope []float64, jobs []*member) {
	for row := range slope {
		slope[row] = 1
	}
	rising := make([]float64, len(y.terms)) // weight of the jobs that rise
	for row, members := range groups.Members {
		if frozen[row] || len(y.terms) == 0 {
			continue
		}
		e := y.of[members[0]]
		if y.terms[e].Inside == fifo {
			if rising[e] > 0 {
				slope[row] = 0
				continue
			}
			rising[e] = jobs[members[0]].weight
			continue
		}
		for _, i := range members {
			rising[e] += jobs[i].weight
		}
	}
	for row, members := range groups.Members {
		if len(y.terms) > 0 && slope[row] > 0 && !frozen[row] {
			e := y.of[members[0]]
			slope[row] = y.terms[e].Weight / rising[e]
		}
	}
}
