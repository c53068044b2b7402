package admission

import (
	"context"
	"errors"
	"fmt"

	"github.com/quartet-sched/quartet/core"
)

// QuotaConfig configures NewQuota.
type QuotaConfig struct {
	Tenants        []TenantQuota `config:"tenants" doc:"limits of single tenants; all others have the default ones"`
	DefaultDevices int           `config:"default_devices" doc:"devices that the active jobs of a tenant not listed may demand; 0 for no limit" min:"0"`
	DefaultJobs    int           `config:"default_jobs" doc:"jobs that a tenant not listed may have active; 0 for no limit" min:"0"`
}

// TenantQuota limits one tenant.
type TenantQuota struct {
	Name    string `config:"name" doc:"tenant the limits are for" required:"true"`
	Devices int    `config:"devices" doc:"devices that its active jobs may demand together; 0 for no limit" min:"0"`
	Jobs    int    `config:"jobs" doc:"jobs that it may have active; 0 for no limit" min:"0"`
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

// NewQuota limits what each tenant has active: the devices its jobs demand, and their number. Within a tenant jobs are
// admitted in submission order, so that a large job is not overtaken for ever. A job that exceeds its tenant's quota
// on its own is rejected. O(active + pending).
func NewQuota() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "quota",
		Summary: "limits the devices and the number of active jobs of each tenant",
		Description: "Counts the devices that the active jobs of a tenant demand, whether they run or wait. Jobs of a tenant are admitted in submission order; " +
			"tenants do not hold back each other. A job that could never fit its tenant's quota is rejected. O(active + pending jobs) a round.",
	}, QuotaConfig{}, func(c QuotaConfig, _ core.Settings) (core.Admitter, error) { return newQuota(c), nil })
}

type quota struct {
	onEvents
	byDefault TenantQuota
	ranks     map[string]int32 // tenant name to its index in tenants
	tenants   []tenant
	ofJob     []int32 // by JobID: 1 + index of the job's tenant; 0 when not yet looked up
	verdicts  []core.Verdict
}

type tenant struct {
	limit         TenantQuota
	devices, jobs int
	holding       bool
}

func newQuota(c QuotaConfig) *quota {
	p := &quota{
		byDefault: TenantQuota{Devices: c.DefaultDevices, Jobs: c.DefaultJobs},
		ranks:     make(map[string]int32, len(c.Tenants)),
	}
	for _, t := range c.Tenants {
		p.ranks[t.Name] = int32(len(p.tenants))
		p.tenants = append(p.tenants, tenant{limit: t})
	}
	return p
}

func (p *quota) Admit(_ context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	p.verdicts = p.verdicts[:0]
	for i := range p.tenants {
		p.tenants[i] = tenant{limit: p.tenants[i].limit}
	}
	for _, id := range v.Active {
		p.tenant(v.Jobs[id]).admit(v.Jobs[id])
	}
	for _, j := range waiting {
		t := p.tenant(j)
		verdict, held := t.judge(j)
		if !held {
			t.admit(j)
			continue
		}
		t.holding = t.holding || verdict.Code == core.Defer
		p.verdicts = append(p.verdicts, verdict)
	}
	return p.verdicts, nil
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

func (t *tenant) admit(j *core.Job) {
	t.devices += demand(j.JobSpec)
	t.jobs++
}

// judge returns the verdict on a job that the quota holds back, and false when it fits.
func (t *tenant) judge(j *core.Job) (core.Verdict, bool) {
	wanted := demand(j.JobSpec)
	v := core.Verdict{
		Job: j.ID, Code: core.Defer, Reason: core.QuotaExceeded,
		Wanted: float64(wanted), Available: float64(max(t.limit.Devices-t.devices, 0)), Unit: "devices",
	}
	switch {
	case t.limit.Devices > 0 && wanted > t.limit.Devices:
		v.Code, v.Available = core.Reject, float64(t.limit.Devices)
		v.Message = "the job alone exceeds the quota of its tenant"
	case t.limit.Devices > 0 && t.devices+wanted > t.limit.Devices:
	case t.limit.Jobs > 0 && t.jobs+1 > t.limit.Jobs:
		v.Wanted, v.Available, v.Unit = 1, 0, "jobs"
	case t.holding:
		v.Wanted, v.Available, v.Unit = 0, 0, ""
		v.Message = "an earlier job of its tenant waits for quota"
	default:
		return core.Verdict{}, false
	}
	return v, true
}
