package elasticity

import (
	"context"
	"math"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// The ranges of replicas that fixed responds with.
const (
	requested = "requested"
	elastic   = "elastic"
)

// FixedConfig configures NewFixed.
type FixedConfig struct {
	// Replicas is the range of a job: exactly what it requested, or all that it can run with (elastic).
	Replicas string `config:"replicas" doc:"range of a job: requested is exactly what the user asked for, elastic all that the job can run with" enum:"requested|elastic"`
	// Split says how the batch is split over devices of different types: even or proportional.
	Split string `config:"split" doc:"how the batch is split over replicas on devices of different types: even leaves the faster ones waiting, proportional gives each as much as it does in the time" enum:"even|proportional"`
	// Oracle gives the true rate curve and the steps left also when Replicas is requested.
	Oracle bool `config:"oracle" doc:"give the true rate curve and the steps left also when replicas is requested; elastic always gives them"`
}

// Capabilities are those that reading step times needs.
func (c FixedConfig) Capabilities() []core.Capability {
	if c.Replicas == elastic || c.Oracle || c.Split == proportional {
		return []core.Capability{core.CapabilityStepTimes}
	}
	return nil
}

// NewFixed keeps the total batch that the user asked for, whatever the number of replicas.
//
// The rates of a profiled job are its true step times at that batch, and the work left its steps left. A job of known
// duration is taken to scale linearly. An elastic job gets at most as many replicas as its batch has shares of the
// least per-device batch, and as its step times cover.
//
// Where the replicas of a job that mixes types run on several, a proportional split gives each device
// the part of the batch that it does while the others do theirs, in whole samples, so that no device
// waits for another by more than one sample.
//
// Source: the fixed batch of the Pollux artifact (OSDI'21), whose rule splits it over the replicas; the proportional
// split of Liu et al. (TPDS'24). O(jobs) a call, and O(replicas log replicas) for a proportional split.
func NewFixed() core.Factory[core.Elasticity] {
	return core.NewFactory(core.Info{
		Type:    "fixed",
		Summary: "keeps the requested total batch on any number of replicas",
		Description: "Splits the requested batch evenly over the replicas, with accumulation where it exceeds a device. " +
			"With replicas requested every job is rigid; with elastic it may get any number in its range, along its true step times, but no more than its batch has shares for. " +
			"With split proportional, devices of different types get parts of the batch by their speed. " +
			"A job of known duration, which the source does not have, is taken to scale linearly. O(jobs asked about) a call.",
		Source: "Pollux artifact, OSDI'21: batch split of the Tiresias and Optimus baselines; Liu et al., TPDS'24: proportional split",
	}, FixedConfig{Replicas: requested, Split: even}, func(c FixedConfig, _ core.Settings) (core.Elasticity, error) {
		return &fixed{
			elastic: c.Replicas == elastic, oracle: c.Replicas == elastic || c.Oracle, proportional: c.Split == proportional,
			measured: make(map[*core.StepTimes]knownTimes), linear: make(map[span][]core.Curve),
		}, nil
	})
}

type fixed struct {
	elastic, oracle, proportional bool
	inherits                      bool // jobs with a batch to tune were tuned by another policy before
	// The curves made so far: jobs share them.
	measured map[*core.StepTimes]knownTimes
	linear   map[span][]core.Curve
	types    int // that measured is by

	responses []core.Response
	tunings   []core.Tuning
	splitter  splitter
}

// knownTimes is what a table of step times becomes in a response.
type knownTimes struct {
	curves []core.Curve
	unlike *core.MixedTypeRates
}

// span is what a linear curve depends on.
type span struct{ requested, most int }

func (p *fixed) Respond(_ context.Context, v *core.View, jobs []*core.Job) ([]core.Response, error) {
	p.responses = p.responses[:0]
	for _, j := range jobs {
		p.responses = append(p.responses, p.respond(v.Cluster, j))
	}
	return p.responses, nil
}

func (p *fixed) respond(c *core.Cluster, j *core.Job) core.Response {
	least := max(j.MinReplicas, 1)
	most := max(j.MaxReplicas, least)
	asked := min(max(j.Requested, least), most)
	r := core.Response{Job: j.ID, MinReplicas: asked, MaxReplicas: asked, RemainingWork: math.NaN()}
	if p.elastic {
		r.MinReplicas, r.MaxReplicas = least, most
		if j.Batch.Requested > 0 && j.Batch.MinPerDevice > 0 {
			r.MaxReplicas = max(min(r.MaxReplicas, j.Batch.Requested/j.Batch.MinPerDevice), least)
		}
	}
	switch {
	case p.oracle && j.StepTimes != nil:
		r.MaxReplicas = max(min(r.MaxReplicas, j.StepTimes.Most()), r.MinReplicas)
		known := p.knownOf(c, j.StepTimes)
		r.Curves, r.RemainingWork = known.curves, j.StepsLeft
		if j.MixesTypes {
			r.MixedTypes = known.unlike
		}
	case r.MaxReplicas > r.MinReplicas:
		r.Curves = p.linearCurves(span{requested: asked, most: r.MaxReplicas})
	}
	return r
}

func (p *fixed) knownOf(c *core.Cluster, times *core.StepTimes) knownTimes {
	if types := len(c.Accelerators); p.types != types {
		p.types = types
		clear(p.measured)
	}
	known, made := p.measured[times]
	if !made {
		known = knownTimes{curves: stepCurves(times, c.Accelerators), unlike: unlikeRates(times.MixedTypes, c.Accelerators)}
		p.measured[times] = known
	}
	return known
}

func (p *fixed) linearCurves(s span) []core.Curve {
	curves, made := p.linear[s]
	if !made {
		curves = linearCurves(s.requested, s.most)
		p.linear[s] = curves
	}
	return curves
}

func (p *fixed) Tune(_ context.Context, v *core.View, placements []core.Placement) ([]core.Tuning, error) {
	p.tunings = p.tunings[:0]
	p.splitter.begin()
	for i := range placements {
		seats := placements[i].Seats
		j := v.Jobs[placements[i].Job]
		if j.Batch.Requested < 1 || p.tuned(j, seats) {
			continue
		}
		t, split := core.Tuning{}, false
		if p.proportional {
			t, split = p.splitter.split(v.Cluster, j, seats)
		}
		if !split {
			t = core.Tuning{Job: j.ID, LearningRateFactor: 1}
			accelerator := v.Cluster.Accelerators[v.Cluster.Nodes[seats[0].Node].Accelerator]
			t.BatchPerDevice, t.AccumulationSteps = goodput.SplitBatch(j.Batch.Requested, core.Replicas(seats), j.BatchOn(accelerator))
		}
		if !t.Equal(j.Tuning) {
			p.tunings = append(p.tunings, t)
		}
	}
	return p.tunings, nil
}

// tuned reports whether a job was tuned to such seats when it got them.
func (p *fixed) tuned(j *core.Job, seats []core.Seat) bool {
	if p.proportional && j.MixesTypes {
		return core.SameSeats(j.Seats, seats)
	}
	return core.Replicas(seats) == j.Held && len(j.BatchByType) == 0 && !p.shrunk(j)
}

// shrunk reports whether the batch of a job is less than requested, as of one that lost some of its devices and goes on.
func (p *fixed) shrunk(j *core.Job) bool {
	if p.inherits && j.Batch.Initial > 0 && j.Batch.Max > 0 {
		return false
	}
	return j.Held*j.Tuning.BatchPerDevice*(j.Tuning.AccumulationSteps+1) < j.Batch.Requested
}

// Standing is for ever: responses are asked for after events, and a job is tuned when its replicas change.
func (p *fixed) Standing() core.Standing { return core.Standing{UntilSeconds: math.Inf(1)} }
