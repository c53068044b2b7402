package elasticity

import (
	"math"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
)

// ThroughputConfig configures NewThroughput.
type ThroughputConfig struct {
	// Knowledge is what is known of a job that starts.
	Knowledge string `config:"knowledge" doc:"what is known of a job that starts: learned is nothing, history what jobs of its application measured before in this run, oracle the truth, as far as the model can be fitted to it, exact the truth itself" enum:"learned|history|oracle|exact"`
	// Profiled says that each job was measured on one device of each accelerator type before it starts.
	Profiled bool `config:"profiled" doc:"each job was measured on one device of each accelerator type before it starts, which shows how types compare"`
	// Types says whether each accelerator type has a model of its own (each) or not (blind).
	Types string `config:"types" doc:"each accelerator type has a model of its own, or the model is blind to types" enum:"each|blind"`
	// FixedBatch are applications that keep the requested batch.
	FixedBatch []string `config:"fixed_batch" doc:"applications that keep the batch the user asked for"`
	// DeclaredWork gives the work left, as far as users declare how long a job trains.
	DeclaredWork bool `config:"declared_work" doc:"give the work left, as far as users declare how long a job trains"`
	// ScalingRule says how the learning rate grows with the batch.
	ScalingRule string `config:"scaling_rule" doc:"how the learning rate grows with the batch" enum:"adascale|square_root|linear|legew"`
	// SilentAfter is how long a job may work without reporting before it is taken to report nothing.
	SilentAfter time.Duration `config:"silent_after" doc:"a job that has worked for so long and reported nothing is taken to report nothing" min:"0s"`
	// MostReplicas is up to how many replicas curves are given.
	MostReplicas int `config:"most_replicas" doc:"replicas up to which curves are given" min:"1"`
}

// Capabilities are those that giving the declared work, or knowing the truth, needs.
func (c ThroughputConfig) Capabilities() []core.Capability { return c.goodput().Capabilities() }

func (c ThroughputConfig) goodput() GoodputConfig {
	return GoodputConfig{
		Knowledge: c.Knowledge, Types: c.Types, FixedBatch: c.FixedBatch, DeclaredWork: c.DeclaredWork, Profiled: c.Profiled,
		UnmeasuredSeconds: 600, ScalingRule: c.ScalingRule, SilentAfter: c.SilentAfter, MostReplicas: c.MostReplicas,
	}
}

// NewThroughput gives each job the batch of its range at which it processes the most samples a second, on whatever it gets.
//
// Source: Saxena et al., Effective Elastic Scaling of Deep Learning Workloads (MASCOTS'20), whose premise is that within the range
// that its owner gives, the batch of a job changes neither the samples that it needs nor what it learns. How fast a batch is it is
// learned as by goodput: by a model that is fitted to what a job measures, so that a job doubles its replicas at most; or by the truth.
// Gradient statistics are not looked at. Deviation: the publication profiles a job on one node before it starts, and adds a model
// of the communication. O(types × replicas × batch sizes) for a job that measured something new.
func NewThroughput() core.Factory[core.Elasticity] {
	return core.NewFactory(core.Info{
		Type:    "throughput",
		Summary: "gives each job the batch of its range that is the fastest on what it gets",
		Description: "Fits a throughput model to what a job measures, and takes each sample for worth the same at any batch of the job's range. " +
			"Where that is not so, a larger batch makes more samples necessary: goodput weighs that. A job doubles its replicas at most.",
		Source: "Saxena et al., MASCOTS'20",
	}, ThroughputConfig{
		Knowledge: learned, Types: eachType, DeclaredWork: true, ScalingRule: string(goodput.AdaScale), SilentAfter: time.Minute, MostReplicas: 64,
	}, func(c ThroughputConfig, s core.Settings) (core.Elasticity, error) {
		made, err := newGoodputAgent(c.goodput(), s)
		if err != nil {
			return nil, err
		}
		agent := made.(*goodputAgent)
		agent.everySample = true
		agent.standing = core.Standing{UntilSeconds: math.Inf(1)}
		return agent, nil
	})
}

// everySample are the gradient statistics by which a sample is worth the same at any batch: nothing but noise.
var everySample = core.Gradients{Variance: 1}
