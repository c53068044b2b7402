package elasticity

import (
	"context"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// GoodputConfig configures NewGoodput.
type GoodputConfig struct {
	FixedBatch        []string `config:"fixed_batch" doc:"applications that keep the batch the user asked for"`
	DeclaredWork      bool     `config:"declared_work" doc:"tell the work left, as far as users declare how long a job trains"`
	UnmeasuredSeconds float64  `config:"unmeasured_seconds" doc:"seconds that a job which has not run yet is taken to need on one device" min:"0"`
	ScalingRule       string   `config:"scaling_rule" doc:"how the learning rate grows with the batch" enum:"adascale|square_root|linear|legew"`
	WarmupIterations  float64  `config:"warmup_iterations" doc:"iterations at the initial batch that the warm-up of legew takes" min:"0"`
	MostReplicas      int      `config:"most_replicas" doc:"replicas up to which curves are told" min:"1"`
}

// Capabilities are those that telling the declared work needs.
func (c GoodputConfig) Capabilities() []core.Capability {
	if c.DeclaredWork {
		return []core.Capability{core.CapabilityRemainingWork}
	}
	return nil
}

// NewGoodput learns each job's goodput while it runs, and tunes its batch to what it gets.
//
// Each configuration that a job runs on is measured once and the throughput model fitted anew; the gradient statistics
// of the current epoch say how much a larger batch is worth. What was never measured is taken to scale perfectly, which
// makes a job try it; but its range ends at twice the replicas it ran on, so that it grows by doubling. Before the first
// measurement a job can use one replica.
//
// Source: the agent of Pollux (OSDI'21), sections 3 and 4.1. Deviations: a batch is tuned once a round, where the
// published simulator tunes it also within one. O(replicas × batch sizes) for a job that measured something new.
func NewGoodput() core.Factory[core.Elasticity] {
	return core.NewFactory(core.Info{
		Type:    "goodput",
		Summary: "learns each job's goodput while it runs, and tunes its batch to it",
		Description: "Fits a throughput model to what a job measures, and combines it with its gradient statistics to the rate at which it learns. " +
			"A job doubles its replicas at most. A batch is tuned once a round; the published simulator tunes it within a round as well.",
		Source: "Pollux, OSDI'21, sections 3 and 4.1",
	}, GoodputConfig{
		DeclaredWork: true, UnmeasuredSeconds: 600, ScalingRule: string(goodput.AdaScale), MostReplicas: 64,
	}, func(c GoodputConfig, _ core.Settings) (core.Elasticity, error) {
		return &goodputAgent{config: c, grids: map[core.BatchSpec]*goodput.Grid{}, rigid: fixed{elastic: true, linear: map[span][]core.Curve{}, measured: map[*core.StepTimes][]core.Curve{}}}, nil
	})
}

type goodputAgent struct {
	config GoodputConfig
	grids  map[core.BatchSpec]*goodput.Grid
	agents []*agent // by JobID; nil for jobs that have ended or have no batch to tune
	rigid  fixed    // answers for jobs without one

	responses []core.Response
	tunings   []core.Tuning
}

// agent is what is known of one job.
type agent struct {
	grid      *goodput.Grid
	measured  int // of the job's measurements, those that the model was fitted to
	most      int // replicas it may use
	fitted    goodput.Performance
	gradients core.Gradients
	curves    *goodput.Curves // nil before the first fit
	told      []core.Curve
}

// Respond tells the curves of each job, in iterations at the initial batch per second.
func (p *goodputAgent) Respond(ctx context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	p.forget(v)
	p.responses = p.responses[:0]
	for i, j := range jobs {
		if j.Batch.Initial == 0 || j.Batch.Max == 0 {
			rigid, err := p.rigid.Respond(ctx, v, jobs[i:i+1])
			if err != nil {
				return nil, err
			}
			p.responses = append(p.responses, rigid...)
			continue
		}
		a := p.learn(j)
		r := core.Response{Job: j.ID, MinReplicas: min(j.MinReplicas, a.most), MaxReplicas: a.most, Curves: a.told, RemainingWork: math.NaN()}
		if p.config.DeclaredWork {
			r.RemainingWork = j.RemainingWork(v.NowSeconds)
			if a.curves == nil {
				r.RemainingWork = p.config.UnmeasuredSeconds
			}
		}
		p.responses = append(p.responses, r)
	}
	return p.responses, nil
}

// forget drops the agents of jobs that have ended.
func (p *goodputAgent) forget(v *core.View) {
	for _, id := range v.Changed {
		if int(id) < len(p.agents) && v.Job(id) == nil {
			p.agents[id] = nil
		}
	}
}

// learn brings the agent of a job up to what the job has measured.
func (p *goodputAgent) learn(j *core.Job) *agent {
	for int(j.ID) >= len(p.agents) {
		p.agents = append(p.agents, nil)
	}
	a := p.agents[j.ID]
	if a == nil {
		a = &agent{grid: p.grid(j), most: min(1, j.MaxReplicas), told: p.optimism()}
		a.most = max(a.most, j.MinReplicas)
		p.agents[j.ID] = a
	}
	switch {
	case len(j.Measured) > a.measured:
		var warm *goodput.Performance
		if a.curves != nil {
			warm = &a.fitted
		}
		a.measured = len(j.Measured)
		a.fitted = goodput.Fit(j.Measured, nil); _ = warm
		ran := 1
		for _, m := range j.Measured {
			ran = max(ran, m.Replicas)
		}
		a.most = max(min(2*ran, j.MaxReplicas, a.grid.Most()), j.MinReplicas)
		a.gradients = j.Gradients
		a.curves = goodput.NewCurves(a.grid, a.fitted, goodput.Gradients(a.gradients), a.most)
	case a.curves != nil && j.Gradients != a.gradients:
		a.gradients = j.Gradients
		a.curves.Update(goodput.Gradients(a.gradients))
	default:
		return a
	}
	a.told = []core.Curve{{
		OneNode: perIteration(a.curves.Goodput[goodput.OneNode], j.Batch.Initial), ManyNodes: perIteration(a.curves.Goodput[goodput.ManyNodes], j.Batch.Initial),
	}}
	return a
}

func perIteration(samples []float64, initial int) []float64 {
	rates := make([]float64, len(samples))
	for i, s := range samples {
		rates[i] = s / float64(initial)
	}
	return rates
}

// optimism is the curve of a job that has measured nothing: as good as it has replicas.
func (p *goodputAgent) optimism() []core.Curve {
	rates := make([]float64, p.config.MostReplicas)
	for i := range rates {
		rates[i] = float64(i + 1)
	}
	return []core.Curve{{OneNode: rates, ManyNodes: rates}}
}

// grid is that of the job's application.
func (p *goodputAgent) grid(j *core.Job) *goodput.Grid {
	limits := j.Batch
	limits.Requested = 0
	if p.grids[limits] == nil {
		p.grids[limits] = goodput.NewGrid(limits, p.config.MostReplicas)
	}
	return p.grids[limits]
}

// Tune chooses the batch of each job for the devices it gets.
func (p *goodputAgent) Tune(ctx context.Context, v *core.View, placements []core.Placement) ([]core.Tuning, error) {
	p.tunings = p.tunings[:0]
	for i := range placements {
		j := v.Job(placements[i].Job)
		if j == nil || int(j.ID) >= len(p.agents) || p.agents[j.ID] == nil {
			rigid, err := p.rigid.Tune(ctx, v, placements[i:i+1])
			if err != nil {
				return nil, err
			}
			p.tunings = append(p.tunings, rigid...)
			continue
		}
		if t := p.tune(v, j, p.agents[j.ID], placements[i].Seats); t != j.Tuning {
			p.tunings = append(p.tunings, t)
		}
	}
	return p.tunings, nil
}

func (p *goodputAgent) tune(v *core.View, j *core.Job, a *agent, seats []core.Seat) core.Tuning {
	replicas, shape := core.Replicas(seats), goodput.OneNode
	if len(seats) > 1 {
		shape = goodput.ManyNodes
	}
	t := core.Tuning{Job: j.ID}
	switch fixed := slices.Contains(p.config.FixedBatch, j.Application); {
	case fixed:
		t.BatchPerDevice, t.AccumulationSteps = core.SplitBatch(j.Batch.Requested, replicas, j.Batch)
	case a.curves == nil || replicas > len(a.curves.Choices[shape]) || a.curves.Choices[shape][replicas-1].PerDevice == 0:
		total := max(j.Batch.Initial, j.Batch.MinPerDevice*replicas)
		t.BatchPerDevice, t.AccumulationSteps = core.SplitBatch(total, replicas, j.Batch)
	default:
		choice := a.curves.Choices[shape][replicas-1]
		t.BatchPerDevice, t.AccumulationSteps = choice.PerDevice, choice.Accumulation
		t.BatchPerDevice = min(t.BatchPerDevice, j.Batch.Max/(replicas*(t.AccumulationSteps+1)))
	}
	scale := float64(replicas*t.BatchPerDevice*(t.AccumulationSteps+1)) / float64(j.Batch.Initial)
	t.LearningRateFactor = goodput.ScalingRule(p.config.ScalingRule).Factor(scale, goodput.Gradients(j.Gradients),
		goodput.Warmup{Progress: j.WorkDone(v.NowSeconds), Iterations: p.config.WarmupIterations})
	return t
}

// Standing is for ever: everything is learned from events.
func (p *goodputAgent) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }
