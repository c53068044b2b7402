package allocation

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
	"github.com/quartet-sched/quartet/policykit/elastic"
	"github.com/quartet-sched/quartet/policykit/queue"
)

// ElasticDPConfig configures NewElasticDP.
type ElasticDPConfig struct {
	// Strict lets a job that does not fit hold back those behind it.
	Strict bool `config:"strict" doc:"a job that does not fit holds back those behind it; otherwise they are tried"`
}

// NewElasticDP divides the devices so that the jobs that run make the most progress together, each measured by what it does on
// one device.
//
// Source: Saxena et al., Effective Elastic Scaling of Deep Learning Workloads (MASCOTS'20), by its abstract and its patent (US
// 11,586,475). Jobs that run keep running; waiting ones join in JobID order while every job can have its least number. Then a
// multiple-choice knapsack chooses k for each job, the largest Σ S(k), S(k) being the rate on k devices over the best rate on one,
// at any batch of the job's range: see [optim.Division]. Numbers without a rate are left out, so that the program passes a drop
// where a node ends. Grants come by descending replicas, ties in JobID order. A job without a curve gets its least number only.
//
// Deviations: devices of all types count alike. The drop of jobs that do not fit is the admission fits_all. The number of devices
// may change with every event; the publication decides every ten minutes (interval). O(jobs × devices × levels), of which bounds
// leave few.
func NewElasticDP() core.Factory[core.Allocator] {
	return core.NewFactory(core.Info{
		Type:    "elastic_dp",
		Summary: "the division of devices under which the jobs together speed up the most",
		Description: "Jobs that run keep running, waiting ones join in submission order while every job can have its least number of devices. " +
			"A dynamic program then divides the devices exactly, so that the sum of the speed-ups is the largest: those of the elasticity, of throughput or of goodput. " +
			"A job without a curve gets its least number only. O(jobs × devices × levels) a round, of which bounds leave few.",
		Source: "Saxena et al., MASCOTS'20",
	}, ElasticDPConfig{}, func(c ElasticDPConfig, _ core.Settings) (core.Allocator, error) {
		return &elasticDP{config: c, standing: core.Standing{UntilSeconds: math.Inf(1)}}, nil
	})
}

type elasticDP struct {
	config   ElasticDPConfig
	capacity queue.Capacity
	division optim.Division
	all      []optim.Share // levels of all candidates, one after the other
	ends     []int         // where those of each end
	runs     []bool        // by candidate: it is to have devices
	chosen   []core.JobID  // those that are
	levels   [][]optim.Share
	grants   []core.Grant
	standing core.Standing
}

func (p *elasticDP) Allocate(_ context.Context, v *core.View, candidates []core.Candidate) ([]core.Grant, error) {
	left := p.list(v, candidates)
	p.choose(candidates, left)
	p.chosen, p.levels = p.chosen[:0], p.levels[:0]
	for i, runs := range p.runs {
		if runs {
			p.chosen, p.levels = append(p.chosen, candidates[i].ID), append(p.levels, p.levelsOf(i))
		}
	}
	devices, _, _ := p.division.Solve(left, p.levels)
	for j, k := range devices {
		p.grants = append(p.grants, core.Grant{Job: p.chosen[j], Accelerator: core.AnyAccelerator, Replicas: k})
	}
	slices.SortFunc(p.grants, func(a, b core.Grant) int {
		return cmp.Or(cmp.Compare(b.Replicas, a.Replicas), cmp.Compare(a.Job, b.Job))
	})
	p.standing = core.Standing{UntilSeconds: math.Inf(1), IfSeated: len(p.grants)}
	if p.stops(candidates) {
		p.standing = core.Standing{UntilSeconds: math.Inf(-1)}
	}
	return p.grants, nil
}

// list grants pinned jobs what they hold, lists the levels of the others, and returns how many devices are left.
func (p *elasticDP) list(v *core.View, candidates []core.Candidate) int {
	p.capacity.CountIn(v)
	p.all, p.ends, p.grants = p.all[:0], p.ends[:0], p.grants[:0]
	left, perNode := v.Devices, v.Cluster.LargestNode()
	for i := range candidates {
		if c := &candidates[i]; queue.Stays(v, c) {
			p.grants = append(p.grants, core.Grant{Job: c.ID, Accelerator: core.AnyAccelerator, Replicas: c.Held})
			left -= c.Held
		} else {
			p.all = addLevels(p.all, c, p.capacity.Limit(c, v.Cluster, c.Response.MaxReplicas), perNode)
		}
		p.ends = append(p.ends, len(p.all))
	}
	return left
}

// levelsOf are the levels of a candidate; none for one that is pinned, or can run on nothing.
func (p *elasticDP) levelsOf(i int) []optim.Share {
	if i == 0 {
		return p.all[:p.ends[0]]
	}
	return p.all[p.ends[i-1]:p.ends[i]]
}

// choose chooses who is to have devices: those that run, and then those that wait, while their least numbers fit.
func (p *elasticDP) choose(candidates []core.Candidate, left int) {
	p.runs = slices.Grow(p.runs[:0], len(candidates))[:len(candidates)]
	clear(p.runs)
	for _, running := range [...]bool{true, false} {
		for i := range candidates {
			if (candidates[i].State == core.Running) != running || len(p.levelsOf(i)) == 0 {
				continue
			}
			least := p.levelsOf(i)[0].Devices
			if p.runs[i] = least <= left; p.runs[i] {
				left -= least
			} else if p.config.Strict {
				return
			}
		}
	}
}

// stops reports whether a job that runs gets nothing: it waits then, behind those that run, and the choice may be another.
func (p *elasticDP) stops(candidates []core.Candidate) bool {
	for i := range candidates {
		if candidates[i].State == core.Running && !p.runs[i] && len(p.levelsOf(i)) > 0 {
			return true
		}
	}
	return false
}

// addLevels adds the numbers of devices that a job can run on, and its speed-up on each.
func addLevels(all []optim.Share, c *core.Candidate, most, perNode int) []optim.Share {
	base := math.NaN()
	if c.Response.SingleDeviceRate > 0 {
		base = c.Response.SingleDeviceRate
	}
	from := len(all)
	for k := c.Response.MinReplicas; k <= most; k++ {
		rate := c.Response.Rate(core.AnyAccelerator, k, perNode)
		if rate <= 0 || math.IsInf(rate, 1) {
			continue
		}
		if math.IsNaN(base) {
			base = elastic.UnitRate(c.Response, k, perNode)
		}
		all = append(all, optim.Share{Devices: k, Value: rate / base})
	}
	if len(all) == from && c.Response.MinReplicas <= most {
		all = append(all, optim.Share{Devices: c.Response.MinReplicas, Value: 1})
	}
	return all
}

// Standing is for ever once those run that were granted devices: then they are chosen again, and divided alike.
func (p *elasticDP) Standing() core.Standing { return p.standing }
