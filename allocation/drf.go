package allocation

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/queue"
	"github.com/quartet-sched/quartet/policykit/synergy"
)

// Whose dominant shares DRF looks at.
const (
	drfByJob    = "job"
	drfByTenant = "tenant"
)

// DRFConfig configures NewDRF.
type DRFConfig struct {
	// By says whose dominant shares are compared: those of tenants, or of single jobs.
	By string `config:"by" doc:"tenant: the tenant with the smallest dominant share by its weight has its next job served, again and again; job: the job that wants the smallest dominant share comes first, regardless of what jobs hold" enum:"job|tenant"`
	// Tenants are weights of single tenants; all others have weight 1.
	Tenants []TenantWeight `config:"tenants" doc:"weights of single tenants; all others have weight 1"`
	// Queue says what happens to the jobs behind one that does not fit; see package queue.
	Queue string `config:"queue" doc:"what happens to the jobs behind one that does not fit: backfill lets them pass, blocking makes them wait, all leaves it to placement" enum:"backfill|blocking|all"`
}

// CountsFractions says that its walk does.
func (DRFConfig) CountsFractions() {}

// TenantWeight is the weight of one tenant.
type TenantWeight struct {
	// Name is the tenant.
	Name string `config:"name" doc:"the tenant" required:"true"`
	// Weight is its share against other tenants.
	Weight float64 `config:"weight" doc:"its share against others" min:"1e-6" max:"1e6"`
}

// Validate refuses tenants that are listed twice.
func (c DRFConfig) Validate() error {
	var problems []error
	seen := map[string]bool{}
	for i, t := range c.Tenants {
		if seen[t.Name] {
			problems = append(problems, fmt.Errorf("tenants[%d].name: tenant %q is listed twice", i, t.Name))
		}
		seen[t.Name] = true
	}
	if len(c.Tenants) > 0 && c.By != drfByTenant {
		problems = append(problems, errors.New("tenants: needs by: tenant"))
	}
	return errors.Join(problems...)
}

// NewDRF is dominant resource fairness: the dominant share of a job or a tenant is the largest part of the devices, the CPUs or the memory of the cluster that
// it has.
//
// Source: Ghodsi et al., DRF (NSDI'11), with by: tenant. With by: job it is the order of the simulator of Synergy (OSDI'22), of the share that each job wants,
// whatever it or its tenant has had. What a job wants of CPUs and memory is what it runs best with by its sensitivity if it has one, else what it asks for. A job
// counts for all that it wants, whatever placement gives it. A tenant whose next job does not fit what is left goes on with the one after. Preemptive.
// O(candidates) a round when few change places; by tenant O(candidates × tenants).
func NewDRF() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "drf",
		Summary: "dominant resource fairness, by tenant or by job",
		Description: "The dominant share is the largest part of the cluster's devices, CPUs or memory, of those that are counted. By tenant, the tenant with the smallest one by its weight has its " +
			"next job served until nothing is left; by job, who wants the smallest one comes first, regardless of what jobs hold. Preemptive; ties go to the job submitted first.",
		Source: "DRF, NSDI'11; Synergy, OSDI'22 (by job)",
	}, DRFConfig{By: drfByTenant, Queue: queue.Backfill}, func(c DRFConfig, _ core.Settings) (core.Allocator, error) {
		p := &drf{byTenant: c.By == drfByTenant, weights: map[string]float64{}, ranks: map[string]int{}, walk: queue.Walk{Discipline: c.Queue}, standing: core.Standing{UntilSeconds: math.Inf(1)}}
		for _, t := range c.Tenants {
			p.weights[t.Name] = t.Weight
		}
		return p, nil
	})
}

type drf struct {
	byTenant bool
	weights  map[string]float64
	fleet    synergy.Fleet
	order    queue.Order
	walk     queue.Walk

	ranks    map[string]int // of tenants
	tenants  []drfTenant
	standing core.Standing
}

// drfTenant is a tenant in a round.
type drfTenant struct {
	weight  float64
	uses    synergy.State // devices, CPUs and memory
	waiting []int         // indices of candidates that hold no place by being pinned, by JobID
	next    int           // of waiting, who is served next
}

func (p *drf) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	p.standing = core.Standing{UntilSeconds: math.Inf(1)}
	if p.byTenant && !v.NonePinned() {
		p.standing.UntilSeconds = v.NowSeconds
	}
	p.fleet.CountIn(v)
	p.walk.Begin(v)
	p.walk.KeepPinned(v, candidates)
	if p.byTenant {
		p.fill(v, candidates)
		return p.walk.Grants(), nil
	}
	for _, r := range p.order.ArrangeChanged(v, candidates, func(c *core.Candidate) float64 {
		wants := p.wants(v, c)
		return synergy.DRF(&wants, 0, p.fleet.Capacity)
	}) {
		if !p.walk.Offer(v, &candidates[r.Index]) {
			break
		}
	}
	return p.walk.Grants(), nil
}

// wants is what a candidate wants with the replicas that it would be granted.
func (p *drf) wants(v *core.View, c *core.Candidate) synergy.State {
	return p.fleet.Wanted(c.JobSpec, p.walk.Replicas(v, c))
}

// fill serves the tenants one after the other, the one with the smallest share first.
func (p *drf) fill(v *core.View, candidates []core.Candidate) {
	for i := range p.tenants {
		t := &p.tenants[i]
		t.uses, t.waiting, t.next = synergy.State{}, t.waiting[:0], 0
	}
	var t *drfTenant
	for i := range candidates {
		c := &candidates[i]
		if i == 0 || c.Tenant != candidates[i-1].Tenant {
			t = p.tenant(c.Tenant)
		}
		if queue.Stays(v, c) { // it was granted what it holds
			t.add(p.fleet.Wanted(c.JobSpec, c.Held))
			continue
		}
		t.waiting = append(t.waiting, i)
	}
	left := p.fleet.Capacity
	for i := range p.tenants {
		left.Devices -= p.tenants[i].uses.Devices
		left.Resources = left.Plus(p.tenants[i].uses.Demand.Times(-1))
	}
	for {
		best, least := -1, 0.0
		for i := range p.tenants {
			if t := &p.tenants[i]; t.next < len(t.waiting) {
				if share := synergy.DRF(&t.uses, 0, p.fleet.Capacity) / t.weight; best < 0 || share < least {
					best, least = i, share
				}
			}
		}
		if best < 0 {
			return
		}
		t := &p.tenants[best]
		c := &candidates[t.waiting[t.next]]
		t.next++
		wants := p.wants(v, c)
		devices := wants.Devices <= left.Devices
		if v.Cluster.Sharing.Parts() {
			devices = p.walk.Fits(v, c)
		}
		if p.walk.Discipline == queue.Backfill && !(devices && fitsIn(&wants, left, p.fleet.Capacity)) {
			continue
		}
		if !p.walk.Offer(v, c) {
			return
		}
		t.add(wants)
		left.Devices -= wants.Devices
		left.Resources = left.Plus(wants.Demand.Times(-1))
	}
}

// fitsIn reports whether the CPUs and the memory that somebody wants are left, as far as they are counted.
func fitsIn(wants *synergy.State, left, of synergy.Capacity) bool {
	const slack = 1e-9
	return (of.CPUs == 0 || wants.Demand.CPUs <= left.CPUs+slack) && (of.MemoryGB == 0 || wants.Demand.MemoryGB <= left.MemoryGB+slack)
}

func (t *drfTenant) add(s synergy.State) {
	t.uses.Devices += s.Devices
	t.uses.Demand = t.uses.Demand.Plus(s.Demand)
}

// tenant is the one of a name. Those of equal shares are served in the order in which they were seen first.
func (p *drf) tenant(name string) *drfTenant {
	rank, known := p.ranks[name]
	if !known {
		rank = len(p.tenants)
		p.ranks[name] = rank
		weight := p.weights[name]
		if weight == 0 {
			weight = 1
		}
		p.tenants = append(p.tenants, drfTenant{weight: weight})
	}
	return &p.tenants[rank]
}

// Standing is for ever: shares are of what jobs want, and that changes by events only. By tenant a pinned job that is seated in the round counts before all
// others in the next.
func (p *drf) Standing() core.Standing { return p.walk.Standing(p.standing) }

// Precedes is true: a job may take the devices of those behind it.
func (p *drf) Precedes() bool { return true }
