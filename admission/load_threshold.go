package admission

import (
	"context"

	"github.com/quartet-sched/quartet/core"
)

// LoadThresholdConfig configures NewLoadThreshold.
type LoadThresholdConfig struct {
	// Factor is how many times the devices of ready nodes the admitted demand may reach.
	Factor float64 `config:"factor" doc:"admitted demand may reach this many times the devices of ready nodes" min:"0"`
}

// NewLoadThreshold holds jobs back, in submission order, while the admitted ones together demand more than a multiple
// of the cluster.
//
// Source: Blox (EuroSys'24), load-based admission. Blox tests before it adds, and so overshoots by one job; here the
// job itself is counted. A job that is larger than the threshold is admitted when nothing else is active, or it would
// wait for ever. O(active + pending).
func NewLoadThreshold() core.Factory[core.Admitter] {
	return core.NewFactory(core.Info{
		Type:    "load_threshold",
		Summary: "admits in submission order while admitted demand stays below a multiple of the cluster",
		Description: "A job is admitted while the devices, or parts of them, that active jobs demand, its own included, are at most factor times the devices of ready nodes. " +
			"The first job that does not fit holds back all behind it. Blox overshoots the threshold by one job; this does not. " +
			"A job larger than the threshold is admitted when nothing else is active, for it would wait for ever. O(active + pending jobs) a round.",
		Source: "Blox, EuroSys'24: load-based admission",
	}, LoadThresholdConfig{Factor: 1.2}, func(c LoadThresholdConfig, _ core.Settings) (core.Admitter, error) {
		return &loadThreshold{factor: c.Factor}, nil
	})
}

type loadThreshold struct {
	onEvents
	factor   float64
	verdicts []core.Verdict
}

func (p *loadThreshold) Admit(_ context.Context, v *core.View, waiting []*core.Job) ([]core.Verdict, error) {
	p.verdicts = p.verdicts[:0]
	load := 0
	for _, id := range v.Active {
		load += taken(v.Cluster, v.Jobs[id].JobSpec, demand(v.Jobs[id].JobSpec))
	}
	limit := p.factor * float64(v.Devices)
	holding := false
	for _, j := range waiting {
		wanted := taken(v.Cluster, j.JobSpec, demand(j.JobSpec))
		if fits := devices(load+wanted) <= limit || load == 0; fits && !holding {
			load += wanted
			continue
		}
		holding = true
		p.verdicts = append(p.verdicts, core.Verdict{
			Job: j.ID, Code: core.Defer, Reason: core.LoadLimit,
			Wanted: devices(wanted), Available: max(limit-devices(load), 0), Unit: "devices",
		})
	}
	return p.verdicts, nil
}
