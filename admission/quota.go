package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// QuotaConfig configures NewQuota.
type QuotaConfig struct {
	// Tenants are limits of single tenants; all others have the default ones.
	Tenants []TenantQuota `config:"tenants" doc:"limits of single tenants; all others have the default ones"`
	// DefaultDevices is how many devices the active jobs of any other tenant may demand; 0 for no limit.
	DefaultDevices int `config:"default_devices" doc:"devices that the active jobs of a tenant not listed may demand; 0 for no limit" min:"0"`
	// DefaultJobs is how many jobs any other tenant may have active; 0 for no limit.
	DefaultJobs int `config:"default_jobs" doc:"jobs that a tenant not listed may have active; 0 for no limit" min:"0"`
	// DefaultShare is the part (0 to 1) of the cluster's devices, CPUs and memory that any other tenant may demand.
	DefaultShare float64 `config:"default_share" doc:"part of the cluster's devices, CPUs and memory, each, that the active jobs of a tenant not listed may demand; 0 for no limit" min:"0" max:"1"`
}

// TenantQuota limits one tenant.
type TenantQuota struct {
	// Name is the tenant that the limits are for.
	Name string `config:"name" doc:"tenant the limits are for" required:"true"`
	// Devices is how many devices its active jobs may demand together; nil for no limit. With 0 and no other limit it may hold nothing.
	Devices *int `config:"devices" doc:"devices that its active jobs may demand together; no limit if left out; a tenant with 0 and no other limit may hold nothing" min:"0"`
	// Jobs is how many jobs it may have active; 0 for no limit.
	Jobs int `config:"jobs" doc:"jobs that it may have active; 0 for no limit" min:"0"`
	// Share bounds the dominant share: the largest of the parts.
	Share float64 `config:"share" doc:"part of the cluster's devices, CPUs and memory, each, that its active jobs may demand together, of what the cluster counts; 0 for no limit" min:"0" max:"1"`
}

// Validate refuses tenants that are listed twice.
func (c QuotaConfig) Validate() error {
	seen := make(map[string]bool, len(c.Tenants))
	var problems []error
	for i, t := range c.Tenants {
		if seen[t.Name] {
			problems = append(problems, fmt.Errorf("tenants[%d].name: tenant %q is listed twice", i, t.Name))
		}
		seen[t.Name] = true
	}
	return errors.Join(problems...)
}

// holdsNothing reports whether the tenant may hold nothing. Beside another limit 0 devices are no limit, as configs say that were written out in full
// when a limit that was left out and one of 0 were the same.
func (t *TenantQuota) holdsNothing() bool {
	return t.Devices != nil && *t.Devices == 0 && t.Jobs == 0 && t.Share == 0
}

// limits reports whether anything bounds what the tenant holds.
func (t *TenantQuota) limits() bool { return t.Devices != nil || t.Jobs > 0 || t.Share > 0 }

// NoteCluster notes tenants that may hold nothing, and those whose limits are none.
func (c QuotaConfig) NoteCluster(*core.Cluster) (notes core.Diagnostics) {
	for i := range c.Tenants {
		switch t := &c.Tenants[i]; {
		case t.holdsNothing():
			notes = append(notes, core.Diagnostic{
				Path: fmt.Sprintf("tenants[%d].devices", i), Summary: fmt.Sprintf("tenant %q may hold nothing: its quota is 0 devices, and its jobs are rejected", t.Name),
				Hint: "leave devices out for no limit",
			})
		case t.Devices != nil && *t.Devices == 0:
			notes = append(notes, core.Diagnostic{
				Path: fmt.Sprintf("tenants[%d].devices", i), Summary: fmt.Sprintf("0 is no limit on the devices of tenant %q, which has another limit", t.Name),
				Hint: "leave devices out, or leave out the other limits for it to hold nothing",
			})
		case !t.limits():
			notes = append(notes, core.Diagnostic{
				Path: fmt.Sprintf("tenants[%d]", i), Summary: fmt.Sprintf("tenant %q has no limit: 0 jobs and a share of 0 are none", t.Name),
				Hint: "with devices: 0 it may hold nothing",
			})
		}
	}
	return notes
}

// NewQuota limits what each tenant has active: the devices its jobs demand, and their number. Within a tenant jobs are
// admitted in submission order, so that a large job is not overtaken for ever, and those of a higher tier before others. A job that exceeds its tenant's quota
// on its own is rejected. O(active + pending), and O(pending log pending) where jobs have tiers.
//
// A share bounds a tenant in its dominant resource (Ghodsi et al., DRF, NSDI'11): the largest part that it demands of the devices, the CPUs and the memory of the cluster's
// nodes, whatever their health. Jobs demand the CPUs and the memory that they ask for, whatever placement gives them.
func NewQuota() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "quota",
		Summary: "limits the devices and the number of active jobs of each tenant",
		Description: "Counts the devices that the active jobs of a tenant demand, whether they run or wait; parts of devices where jobs have these. Jobs of a tenant are admitted in submission order, those of a higher tier first; " +
			"tenants do not hold back each other. A job that could never fit its tenant's quota is rejected. With a share, devices, CPUs and memory each count as a part of what the cluster has, or with the nodes that may join may have, and the reason of a pending job names the one that is short. O(active + pending jobs) a round.",
	}, QuotaConfig{}, func(c QuotaConfig, _ core.Settings) (core.Admitter, error) { return newQuota(c), nil })
}

type quota struct {
	onEvents
	byDefault TenantQuota
	ranks     map[string]int32 // tenant name to its index in tenants
	tenants   []tenant
	ofJob     []int32 // by JobID: 1 + index of the job's tenant; 0 when not yet looked up
	verdicts  []core.Verdict
	byTier    []*core.Job // the jobs that wait, where they have tiers
	cluster   capacity
}

type tenant struct {
	limit       TenantQuota
	taken, jobs int // of devices, in core.PartUnits; how many jobs
	resources   core.Resources
	holding     bool
	holds       int // rank of the tier of the job that holds others back
}

// capacity is what the nodes of a cluster have, whatever their health; 0 of CPUs and memory where they are not counted, or some node does not tell.
type capacity struct {
	devices int
	core.Resources
	// coming is what the nodes have that pools may still get; without bounds where pools are not told, or do not tell what a node has.
	coming struct{ devices, cpus, memoryGB float64 }

	of            *core.Cluster
	healthChanges int
}

func (c *capacity) countIn(v *core.View) {
	if c.of == v.Cluster && c.healthChanges == v.HealthChanges {
		return
	}
	*c = capacity{of: v.Cluster, healthChanges: v.HealthChanges}
	toldCPUs, toldMemory := v.Cluster.CountsResources, v.Cluster.CountsResources
	for i := range v.Cluster.Nodes {
		if n := &v.Cluster.Nodes[i]; n.Health != core.Gone {
			c.devices += n.Devices
			c.Resources = c.Plus(core.Resources{CPUs: n.CPUs, MemoryGB: n.MemoryGB})
			toldCPUs, toldMemory = toldCPUs && n.CPUs > 0, toldMemory && n.MemoryGB > 0
		}
	}
	if !toldCPUs {
		c.CPUs = 0
	}
	if !toldMemory {
		c.MemoryGB = 0
	}
	c.countComing(v.Cluster)
}

func (c *capacity) countComing(of *core.Cluster) {
	if len(of.Pools) == 0 {
		c.coming.devices, c.coming.cpus, c.coming.memoryGB = math.Inf(1), math.Inf(1), math.Inf(1)
	}
	for i := range of.Pools {
		p := &of.Pools[i]
		nodes := p.Max
		for k := range of.Nodes {
			if n := &of.Nodes[k]; n.Pool == p.Name && n.Health != core.Gone {
				nodes--
			}
		}
		if nodes > 0 {
			c.coming.devices += float64(nodes * p.Devices)
			c.coming.cpus += bound(float64(nodes) * p.CPUs)
			c.coming.memoryGB += bound(float64(nodes) * p.MemoryGB)
		}
	}
}

// bound is an amount that nodes tell, and none that they do not.
func bound(amount float64) float64 {
	if amount == 0 {
		return math.Inf(1)
	}
	return amount
}

// most is what a part of a resource may come to: of what there is, and of what the nodes have that may join.
func (c *capacity) most(share, all, coming float64) float64 {
	if c.of.MayGrow {
		all += coming
	}
	return partOf(share, all)
}

// partOf is a part of a resource, to the thousandth.
func partOf(share, all float64) float64 { return math.Round(share*all*1000) / 1000 }

func newQuota(c QuotaConfig) *quota {
	p := &quota{
		byDefault: TenantQuota{Jobs: c.DefaultJobs, Share: c.DefaultShare},
		ranks:     make(map[string]int32, len(c.Tenants)),
	}
	if c.DefaultDevices > 0 {
		p.byDefault.Devices = &c.DefaultDevices
	}
	for _, t := range c.Tenants {
		p.ranks[t.Name] = int32(len(p.tenants))
		p.tenants = append(p.tenants, tenant{limit: t})
	}
	return p
}

func (p *quota) Admit(_ context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	p.verdicts = p.verdicts[:0]
	p.cluster.countIn(v)
	for i := range p.tenants {
		p.tenants[i] = tenant{limit: p.tenants[i].limit}
	}
	for _, id := range v.Active {
		p.tenant(v.Jobs[id]).admit(v.Cluster, v.Jobs[id])
	}
	for _, j := range p.inTurn(waiting) {
		t := p.tenant(j)
		verdict, held := t.judge(j, &p.cluster)
		if !held {
			t.admit(v.Cluster, j)
			continue
		}
		if verdict.Code == core.Defer && !t.holding {
			t.holding, t.holds = true, core.TierRank(j.Tier)
		}
		p.verdicts = append(p.verdicts, verdict)
	}
	slices.SortFunc(p.verdicts, func(a, b core.Verdict) int { return cmp.Compare(a.Job, b.Job) }) // where tiers come first they are not
	return p.verdicts, nil
}

// inTurn is the jobs that wait in the order in which they are admitted: by tier, and as they were submitted.
func (p *quota) inTurn(waiting []*core.Job) []*core.Job {
	if !slices.ContainsFunc(waiting, func(j *core.Job) bool { return j.Tier != "" }) {
		return waiting
	}
	p.byTier = append(p.byTier[:0], waiting...)
	slices.SortStableFunc(p.byTier, func(a, b *core.Job) int { return cmp.Compare(core.TierRank(a.Tier), core.TierRank(b.Tier)) })
	return p.byTier
}

func (p *quota) tenant(j *core.Job) *tenant {
	for int(j.ID) >= len(p.ofJob) {
		p.ofJob = append(p.ofJob, 0)
	}
	if p.ofJob[j.ID] == 0 {
		rank, known := p.ranks[j.Tenant]
		if !known {
			rank = int32(len(p.tenants))
			p.ranks[j.Tenant] = rank
			p.tenants = append(p.tenants, tenant{limit: p.byDefault})
		}
		p.ofJob[j.ID] = 1 + rank
	}
	return &p.tenants[p.ofJob[j.ID]-1]
}

func (t *tenant) admit(c *core.Cluster, j *core.Job) {
	n := demand(j.JobSpec)
	t.taken += taken(c, j.JobSpec, n)
	t.resources = t.resources.Plus(j.Asks().Times(float64(n)))
	t.jobs++
}

// judgeShare is judge for the dominant share: of what is short it tells the resource of which the largest part would be demanded.
func (t *tenant) judgeShare(j *core.Job, of *capacity) (core.Verdict, bool) {
	n := demand(j.JobSpec)
	wanted := j.Asks().Times(float64(n))
	worst, found := core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.QuotaExceeded}, 0.0
	for _, r := range [...]struct {
		unit                      string
		wanted, held, all, coming float64
	}{{"devices", devices(taken(of.of, j.JobSpec, n)), devices(t.taken), float64(of.devices), of.coming.devices}, {"cpus", wanted.CPUs, t.resources.CPUs, of.CPUs, of.coming.cpus}, {"GB", wanted.MemoryGB, t.resources.MemoryGB, of.MemoryGB, of.coming.memoryGB}} {
		limit := partOf(t.limit.Share, r.all)
		if part := (r.held + r.wanted) / r.all; r.all > 0 && r.wanted > 0 && r.held+r.wanted > limit+1e-9 && part > found {
			found = part
			worst.Wanted, worst.Available, worst.Unit = r.wanted, max(limit-r.held, 0), r.unit
			worst.Code, worst.Message = core.Defer, ""
			switch most := of.most(t.limit.Share, r.all, r.coming); {
			case r.wanted <= most:
			case of.of.MayGrow:
				worst.Code, worst.Available = core.Reject, most
				worst.Message = "the job alone exceeds the share of its tenant, whatever nodes may join"
			default:
				worst.Code, worst.Message = core.Reject, "the job alone exceeds the share of its tenant"
			}
		}
	}
	return worst, found > 0
}

// judge returns the verdict on a job that the quota holds back, and false when it fits.
func (t *tenant) judge(j *core.Job, of *capacity) (core.Verdict, bool) {
	if t.limit.Share > 0 {
		if v, exceeds := t.judgeShare(j, of); exceeds {
			return v, true
		}
	}
	wanted, limit := taken(of.of, j.JobSpec, demand(j.JobSpec)), 0
	if t.limit.Devices != nil {
		limit = min(*t.limit.Devices, math.MaxInt/core.PartUnits) * core.PartUnits
	}
	v := core.Verdict{
		Job: j.ID, Code: core.Defer, Reason: core.QuotaExceeded,
		Wanted: devices(wanted), Available: devices(max(limit-t.taken, 0)), Unit: "devices",
	}
	switch {
	case t.limit.holdsNothing():
		v.Code, v.Available = core.Reject, 0
		v.Message = "the quota of its tenant is 0 devices"
	case limit > 0 && wanted > limit:
		v.Code, v.Available = core.Reject, devices(limit)
		v.Message = "the job alone exceeds the quota of its tenant"
	case limit > 0 && t.taken+wanted > limit:
	case t.limit.Jobs > 0 && t.jobs+1 > t.limit.Jobs:
		v.Wanted, v.Available, v.Unit = 1, 0, "jobs"
	case t.holding:
		v.Wanted, v.Available, v.Unit = 0, 0, ""
		v.Message = "an earlier job of its tenant waits for quota"
		if t.holds < core.TierRank(j.Tier) {
			v.Message = "a job of a higher tier of its tenant waits for quota"
		}
	default:
		return core.Verdict{}, false
	}
	return v, true
}
