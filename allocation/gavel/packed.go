package gavel

import (
	"context"
	"errors"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// PackedConfig configures the policies under which jobs share devices two by two.
type PackedConfig struct {
	Rounds
	Pairing
}

// Validate refuses to be blind to types: pairs are measured on them.
func (c PackedConfig) Validate() error {
	if c.TypeBlind {
		return errors.New("type_blind: pairs were measured on a type, and are as fast as that there only")
	}
	return nil
}

// newPackedFactory makes the factory of a policy under which jobs share devices.
func newPackedFactory(info core.Info, newPolicy func() policy) core.Factory[core.Allocator] {
	info.OneType = true
	info.Sharing = []core.Sharing{core.TimeSlice}
	info.Capabilities = append(info.Capabilities, core.CapabilityPairRates)
	return core.NewFactory(info, PackedConfig{defaults, usualPairing}, func(c PackedConfig, s core.Settings) (core.Allocator, error) {
		m := newMechanism(c.Rounds, newPolicy(), s)
		m.pairs = &pairs{config: c.Pairing}
		return m, nil
	})
}

// NewMaxMinPacked is gavel_max_min where two jobs may share devices.
//
// Source: Gavel (OSDI'20), section 4.4 (space sharing). The published program has a variable for each pair of jobs and type; jobs that are
// alike are one class here, and pairs that gain nothing over taking turns are left out (least_gain), neither of which changes what is reached.
// Without a pair that gains it is gavel_max_min. O(rows³ + classes² × types) for each of some 20 steps, whatever the number of jobs.
func NewMaxMinPacked() core.Factory[core.Allocator] {
	return newPackedFactory(core.Info{
		Type:    "gavel_max_min_packed",
		Summary: "max-min fairness over types, for jobs alone and in pairs that share devices",
		Description: "Maximises the least throughput of a job, measured against that alone in an equal share of every device, by weight and devices; " +
			"two jobs of as many devices may share them, at the rates that were measured of such a pair (table of pairs of the workload).",
		Source: source + ", section 4.4",
	}, func() policy { return &maxMinPacked{maxMin: maxMin{spare: true}} })
}

type maxMinPacked struct {
	maxMin
	packed optim.PackedSolver
}

func (p *maxMinPacked) divide(ctx context.Context, d *problem) error {
	slopes := d.fairSlopes()
	problem := d.packed(slopes)
	if len(problem.Pairs) == 0 {
		return p.maxMin.divide(ctx, d)
	}
	r, err := p.packed.MaxMin(ctx, problem, optim.Level{Slope: slopes}, d.pairs.config.Partners == allPartners)
	if err != nil {
		return err
	}
	d.takePacked(&r)
	return nil
}

// NewMakespanPacked is gavel_makespan where two jobs may share devices.
//
// Source: Gavel (OSDI'20), sections 4.2 and 4.4, whose search for the makespan is one max-min problem over the rates per work left.
func NewMakespanPacked() core.Factory[core.Allocator] {
	return newPackedFactory(core.Info{
		Type:    "gavel_makespan_packed",
		Summary: "ends the last of the jobs as early as possible, alone and in pairs that share devices",
		Description: "Maximises the least progress of a job against the work that it has left, which it must know; two jobs of as many devices " +
			"may share them, at the rates that were measured of such a pair.",
		Source:       source + ", sections 4.2 and 4.4",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, func() policy { return new(makespanPacked) })
}

type makespanPacked struct {
	makespan
	packed optim.PackedSolver
}

func (p *makespanPacked) divide(ctx context.Context, d *problem) error {
	problem := d.packed(nil)
	if len(problem.Pairs) == 0 {
		return p.makespan.divide(ctx, d)
	}
	r, err := p.packed.MaxMin(ctx, problem, optim.Level{Slope: d.workLeft()}, d.pairs.config.Partners == allPartners)
	if err != nil {
		return err
	}
	d.takePacked(&r)
	return nil
}

// NewFinishTimeFairnessPacked is finish_time_fairness where two jobs may share devices. In isolation none does.
//
// Source: Themis (NSDI'20), as Gavel (OSDI'20), sections 4.2 and 4.4, have it.
func NewFinishTimeFairnessPacked() core.Factory[core.Allocator] {
	return newPackedFactory(core.Info{
		Type:    "finish_time_fairness_packed",
		Summary: "minimises the worst ratio of a job's finish time to that in isolation, for jobs alone and in pairs",
		Description: "Minimises the worst ratio of the time that a job takes from its submission to that in an isolated part of the cluster, where two " +
			"jobs of as many devices may share them, at the rates that were measured of such a pair. Jobs must know their remaining work.",
		Source:       "Themis, NSDI 2020; " + source + ", sections 4.2 and 4.4",
		Capabilities: []core.Capability{core.CapabilityRemainingWork},
	}, func() policy { return &finishTimesPacked{finishTimes: finishTimes{booked: map[core.JobID]booking{}}} })
}

type finishTimesPacked struct {
	finishTimes
	packed optim.PackedSolver
}

func (p *finishTimesPacked) divide(ctx context.Context, d *problem) error {
	problem := d.packed(nil)
	if len(problem.Pairs) == 0 {
		return p.finishTimes.divide(ctx, d)
	}
	r, err := p.packed.FinishTimes(ctx, problem, p.finish(d), d.pairs.config.Partners == allPartners)
	if err != nil {
		return err
	}
	d.takePacked(&r)
	return nil
}

// packed is the problem as the solver knows it: jobs of one kind that ask for the same are a class; nil for those that may ask for different.
func (p *problem) packed(asks []float64) optim.Packed {
	q := optim.Packed{Capacity: p.capacity}
	var firsts []*member // of the classes
	var asked []float64
	for i, m := range p.jobs {
		ask := 0.0
		if asks != nil {
			ask = asks[i]
		}
		at := slices.IndexFunc(firsts, m.alike)
		for at >= 0 && asked[at] != ask {
			if next := slices.IndexFunc(firsts[at+1:], m.alike); next >= 0 {
				at += 1 + next
			} else {
				at = -1
			}
		}
		if at < 0 {
			at = len(firsts)
			firsts, asked = append(firsts, m), append(asked, ask)
			q.Classes = append(q.Classes, optim.PackedClass{Devices: float64(m.devices), Rates: m.rates})
		}
		q.Classes[at].Members = append(q.Classes[at].Members, i)
	}
	for a, m := range firsts {
		for b := a; b < len(firsts); b++ {
			o := firsts[b]
			if m.devices != o.devices || a == b && len(q.Classes[a].Members) < 2 {
				continue
			}
			for t := range p.capacity {
				if first, second, runs := p.together(m, o, t); runs {
					q.Pairs = append(q.Pairs, optim.PackedPair{First: a, Second: b, Type: t, Rates: [2]float64{first, second}})
				}
			}
		}
	}
	return q
}

// alike reports whether two jobs are as fast as each other, alone and beside others.
func (m *member) alike(o *member) bool {
	return m.devices == o.devices && m.spec.Pinned == o.spec.Pinned && m.spec.Application == o.spec.Application && m.spec.Requested == o.spec.Requested &&
		m.spec.Pairs == o.spec.Pairs && m.spec.DeviceMemoryGB == o.spec.DeviceMemoryGB && slices.Equal(m.rates, o.rates)
}

// together is the rates of two jobs on the same devices of a type, in parts of their units, if that was measured, fits and gains enough.
func (p *problem) together(m, o *member, t int) (first, second float64, runs bool) {
	if m.spec.Pinned || o.spec.Pinned { // its devices stay its own, and only its own
		return 0, 0, false
	}
	if m.rates[t] <= 0 || o.rates[t] <= 0 || m.devices != m.spec.Requested || o.devices != o.spec.Requested {
		return 0, 0, false
	}
	accelerator := p.cluster.Accelerators[t]
	part, known := m.spec.Pairs.Part(accelerator, m.spec, o.spec)
	other, knows := o.spec.Pairs.Part(accelerator, o.spec, m.spec)
	if !known || !knows || part <= 0 || other <= 0 || part+other <= p.pairs.config.LeastGain ||
		!p.cluster.FitTogether(core.AcceleratorID(t), m.spec, o.spec) {
		return 0, 0, false
	}
	if first, second = coarse(m.rates[t]*part), coarse(o.rates[t]*other); m.alike(o) {
		second = first
	}
	return first, second, first >= leastRate && second >= leastRate
}

// takePacked copies shares of the solver.
func (p *problem) takePacked(r *optim.PackedResult) {
	p.take(r.Exclusive)
	p.pairs.shares = append(p.pairs.shares, r.Pairs...)
}
