package admission

import (
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/cells"
)

// VirtualClustersConfig configures NewVirtualClusters.
type VirtualClustersConfig struct {
	cells.Config
	// Admit says which jobs of a tenant with cells compete: those that fit together, or all.
	Admit string `config:"admit" doc:"which jobs of a tenant with cells compete: fitting admits them in submission order while all that are admitted fit its cells at once, possible all that fit its idle cells alone" enum:"fitting|possible"`
	// Others says what happens to jobs of tenants without cells: opportunistic admits them, reject rejects them.
	Others string `config:"others" doc:"what becomes of jobs of tenants without cells: opportunistic admits them to what is left, reject rejects them" enum:"opportunistic|reject"`
}

// The values of VirtualClustersConfig.
const (
	admitFitting        = "fitting"
	admitPossible       = "possible"
	othersOpportunistic = "opportunistic"
	othersReject        = "reject"
)

// NewVirtualClusters admits the jobs of a tenant to the cells that it is promised. A job that its tenant's idle cells could not hold is
// rejected. With admit fitting the others are admitted in submission order while all active ones fit together, as the admission quota does by
// devices, and decides equally where all cells are devices; with admit possible all of them are, and it is for the allocation to order
// them. Best effort jobs are admitted.
//
// Source: Zhao et al., HiveD (OSDI'20). What fits is counted in cells: a job takes whole cells of the highest level that is not larger than
// it is, and of each lower one for the rest. That is exact where jobs are as large as cells; of others the placement may find that the
// cells left are in pieces. A job that may run on several accelerator types counts on the one where it runs, or on the lowest one where it
// fits. O(active + pending jobs) × levels.
func NewVirtualClusters() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "virtual_clusters",
		Summary: "admits the jobs of a tenant to the cells that it is promised",
		Description: "A tenant is promised cells: devices, nodes, racks and what lies between, by accelerator type. That all of them can be had at once is checked when the config is loaded. " +
			"Goes with the placement cells, which has the same tenants, and by which no job waits for devices within these cells. Where all cells are devices it is the admission quota. " +
			"O((active + pending jobs) × levels) a round.",
		Source: "HiveD, OSDI'20",
	}, VirtualClustersConfig{Admit: admitFitting, Others: othersOpportunistic}, func(c VirtualClustersConfig, _ core.Settings) (core.Admitter, error) {
		return &virtualClusters{config: c, clusters: cells.NewClusters(c.Config), standing: core.Standing{UntilSeconds: math.Inf(1)}}, nil
	})
}

type virtualClusters struct {
	config   VirtualClustersConfig
	clusters *cells.Clusters
	cluster  *core.Cluster // as of which clusters is
	nodes    int

	budgets  []cells.Budget // by tenant and accelerator type
	holding  []bool         // by tenant
	several  bool           // a job that is counted could be on several types
	ofJob    []cells.Tenant // by JobID: 2 + whose cells it may use; 0 when not yet looked up
	only     []int          // by tenant: the only accelerator type of its cells; -1 where there are several
	verdicts []core.Verdict
	standing core.Standing
}

// Standing is for ever, and for no time while a job waits and one that is counted may yet be seated on another type.
func (p *virtualClusters) Standing() core.Standing { return p.standing }

func (p *virtualClusters) Admit(_ context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	p.verdicts, p.several = p.verdicts[:0], false
	p.begin(v)
	if p.config.Admit == admitFitting {
		for _, id := range v.Active {
			if of := p.tenant(v.Jobs[id].JobSpec); of != cells.Guest {
				p.count(v, v.Jobs[id], of)
			}
		}
	}
	for _, j := range waiting {
		of := p.tenant(j.JobSpec)
		switch verdict, held := p.judge(v, j, of); {
		case held:
			p.verdicts = append(p.verdicts, verdict)
		case of != cells.Guest && p.config.Admit == admitFitting:
			p.count(v, j, of)
		}
	}
	p.standing.UntilSeconds = math.Inf(1)
	if p.several && len(p.verdicts) > 0 {
		p.standing.UntilSeconds = math.Inf(-1)
	}
	return p.verdicts, nil
}

// begin gives every tenant back its cells.
func (p *virtualClusters) begin(v *core.View) {
	if p.cluster != v.Cluster || p.nodes != len(v.Cluster.Nodes) {
		p.cluster, p.nodes = v.Cluster, len(v.Cluster.Nodes)
		p.clusters.Join(v.Cluster)
		p.budgets = p.clusters.Budgets(p.budgets[:0])
		p.holding, p.only = make([]bool, len(p.config.Tenants)), make([]int, len(p.config.Tenants))
		for i := range p.only {
			p.only[i] = -1
			budgets := p.budgetsOf(v, cells.Tenant(i))
			has := func(b cells.Budget) bool { return b.Devices() > 0 }
			if at := slices.IndexFunc(budgets, has); at >= 0 && !slices.ContainsFunc(budgets[at+1:], has) {
				p.only[i] = at
			}
		}
	}
	for i := range p.budgets {
		p.budgets[i].Clear()
	}
	clear(p.holding)
}

// tenant is whose cells a job may use.
func (p *virtualClusters) tenant(j *core.JobSpec) cells.Tenant {
	if j.BestEffort {
		return cells.Guest
	}
	for int(j.ID) >= len(p.ofJob) {
		p.ofJob = append(p.ofJob, 0)
	}
	if p.ofJob[j.ID] == 0 {
		p.ofJob[j.ID] = 2 + p.clusters.Tenant(j)
	}
	return p.ofJob[j.ID] - 2
}

// budgetsOf are those of a tenant, by accelerator type.
func (p *virtualClusters) budgetsOf(v *core.View, of cells.Tenant) []cells.Budget {
	types := len(v.Cluster.Accelerators)
	return p.budgets[int(of)*types : (int(of)+1)*types]
}

// count takes the cells of a job that is admitted: on the type that it runs on, or else on the lowest where it fits.
func (p *virtualClusters) count(v *core.View, j *core.Job, of cells.Tenant) {
	n, on, types, fits := demand(j.JobSpec), core.AnyAccelerator, 0, false
	budgets := p.budgetsOf(v, of)
	if only := p.only[of]; only >= 0 && j.CanRunOn(v.Cluster, core.AcceleratorID(only)) {
		budgets[only].Take(n)
		return
	}
	for t := range budgets {
		if id := core.AcceleratorID(t); j.CanRunOn(v.Cluster, id) {
			if budgets[t].Devices() == 0 {
				continue
			}
			types++
			if fit := budgets[t].Fits(n); on == core.AnyAccelerator || fit && !fits {
				on, fits = id, fit
			}
		}
	}
	if j.State == core.Running {
		if runs := v.Cluster.Nodes[j.Seats[0].Node].Accelerator; budgets[runs].Devices() > 0 {
			on = runs
		}
	}
	p.several = p.several || types > 1
	if on != core.AnyAccelerator {
		budgets[on].Take(n)
	}
}

// judge returns the verdict on a job that is held back, and false when it is admitted.
func (p *virtualClusters) judge(v *core.View, j *core.Job, of cells.Tenant) (core.Verdict, bool) {
	wanted := demand(j.JobSpec)
	verdict := core.Verdict{Job: j.ID, Code: core.Defer, Reason: core.QuotaExceeded, Wanted: float64(wanted), Unit: "devices"}
	if of == cells.Guest {
		verdict.Code, verdict.Message = core.Reject, "its tenant has no cells"
		return verdict, p.config.Others == othersReject && !j.BestEffort
	}
	most, left, holds, fits := 0, 0, false, false
	for t, budgets := 0, p.budgetsOf(v, of); t < len(budgets); t++ {
		if b := &budgets[t]; j.CanRunOn(v.Cluster, core.AcceleratorID(t)) {
			most, left = max(most, b.Devices()), max(left, b.Left())
			holds, fits = holds || b.Holds(wanted), fits || b.Fits(wanted)
		}
	}
	switch {
	case !holds:
		verdict.Code, verdict.Available = core.Reject, float64(most)
		verdict.Message = "the job alone exceeds the virtual cluster of its tenant"
	case p.config.Admit == admitPossible:
		return core.Verdict{}, false
	case !fits:
		verdict.Available = float64(max(left, 0))
		if left >= wanted {
			verdict.Message = "the cells that are left are too small"
		}
	case p.holding[of]:
		verdict.Wanted, verdict.Available, verdict.Unit = 0, 0, ""
		verdict.Message = "an earlier job of its tenant waits for cells"
	default:
		return core.Verdict{}, false
	}
	p.holding[of] = p.holding[of] || verdict.Code == core.Defer
	return verdict, true
}
