package sim

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// opener opens simulations.
type opener struct {
	config   Config
	settings core.Settings
}

// Capabilities lists what the simulator knows that a real cluster would not.
func (o *opener) Capabilities() []core.Capability {
	return []core.Capability{
		core.CapabilityRemainingWork, core.CapabilityStepTimes, core.CapabilityMeasurements, core.CapabilityScaleCluster,
		core.CapabilityShares, core.CapabilitySlices, core.CapabilityResources, core.CapabilityPairRates,
	}
}

// Check refuses publication options that need rounds of another kind, and events on nodes that there are not.
func (o *opener) Check(c *core.Cluster, r core.RoundOptions) core.Diagnostics {
	return slices.Concat(o.config.checkRounds(r.IntervalSeconds, r.OnEvents), o.config.checkNodes(c), o.config.checkMig(c.Sharing))
}

// Open starts the virtual clock over a cluster and a workload.
func (o *opener) Open(ctx context.Context, c *core.Cluster, w *workload.Workload) (core.Backend, error) {
	if err := o.config.checkNodes(c).Err(); err != nil {
		return nil, err
	}
	if err := checkEnds(w).Err(); err != nil {
		return nil, err
	}
	if err := o.config.checkReacting(w); err != nil {
		return nil, err
	}
	s := &Simulator{
		config: o.config, settings: o.settings,
		jobs:    jobs{workload: w.Jobs, byID: make([]*simJob, len(w.Jobs))},
		outages: outages{list: sortedOutages(o.config.Outages), owed: math.Inf(1)},
	}
	truth := *c
	truth.MayGrow, truth.Accelerators, truth.Nodes, truth.Pools = false, slices.Clone(c.Accelerators), slices.Clone(c.Nodes), slices.Clone(c.Pools)
	s.devices.known, s.devices.cluster = c, &truth
	if o.config.MeasurementNoise.any() {
		s.reports.noise = newStream(o.settings.Seed, o.settings.ID+"/measurement_noise")
	}
	s.reports.any = slices.ContainsFunc(w.Jobs, func(j workload.Job) bool {
		_, measures := j.Model.(workload.Measurer)
		return measures
	})
	s.devices.nodes = newNodeEvents(o.config, c, newStream(o.settings.Seed, o.settings.ID))
	if c.Sharing != core.Exclusive {
		s.devices.sharing = &sharing{model: withMemory(o.config.CoLocation.model(), s.devices.cluster), cluster: s.devices.cluster, on: make(map[deviceAt][]*simJob)}
		if err := s.readPairs(ctx); err != nil {
			return nil, err
		}
	}
	if c.Sharing == core.Mig {
		s.devices.slicing = &slicing{into: make(map[deviceAt]division)}
	}
	s.openPools()
	c.MayGrow = s.mayGrow()
	if o.config.StartDelaySpread > 0 {
		s.starts.delays = newStream(o.settings.Seed, o.settings.ID+"/start_delay")
	}
	if w.React != nil {
		to, err := w.React(ctx, "")
		if err != nil {
			return nil, err
		}
		s.reaction, s.reports.any = &reaction{to: to, ids: map[string]core.JobID{}}, true
	}
	return s, nil
}

// checkEnds refuses jobs of unknown length: virtual time would pass without end.
func checkEnds(w *workload.Workload) (found core.Diagnostics) {
	for i := range w.Jobs {
		j := &w.Jobs[i]
		if math.IsInf(j.Model.PhaseEnd(j.Model.Phases()-1), 1) {
			found = append(found, core.Diagnostic{
				Position: j.At, Summary: fmt.Sprintf("job %q does not say how long it takes, and would never end in a simulation", j.Spec.Name),
				Hint: "give it \"seconds\"",
			})
		}
	}
	return found
}
