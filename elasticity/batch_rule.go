package elasticity

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/internal/memo"
)

// BatchRule chooses the total batch of a job whenever one of its epochs begins. It does not know the devices.
type BatchRule interface {
	// Next is the total batch of the epoch that begins, in samples, from j.Limits.Initial to j.Limits.Max. It depends on nothing but j,
	// and may note in j.Memory what it needs in later epochs.
	Next(j *BatchState) int
}

// BatchState is what a BatchRule knows about a job.
type BatchState struct {
	// Limits are the bounds of the batch that the job declares.
	Limits        core.BatchSpec
	Epoch, Epochs int            // the epoch that begins, from 0, and how many there are
	Batch         int            // of the epoch before, as the rule chose it; at first that of Limits.Initial
	Gradients     core.Gradients // of the epoch before, or before training; zero when unknown
	// Memory is what the rule remembers of the job.
	Memory BatchMemory
}

// BatchMemory is what rules note from epoch to epoch.
type BatchMemory struct {
	Norm float64        `json:",omitzero"` // of the gradient, when it was checked last; 0 before
	Mean core.Gradients `json:",omitzero"` // moving average; zero before the first
}

// The rules.
const (
	ruleSchedule       = "schedule"
	ruleNoise          = "noise"
	ruleNoiseDoubling  = "noise_doubling"
	ruleAveragedNoise  = "averaged_noise"
	ruleCriticalRegime = "critical_regime"
)

// BatchRuleConfig configures NewBatchRule.
type BatchRuleConfig struct {
	// Rule is the rule that the batch grows by.
	Rule string `config:"rule" doc:"schedule multiplies the batch at fixed parts of the training; noise takes the noise scale of the gradients, averaged_noise its moving average; noise_doubling doubles where the noise scale is at least twice the batch; critical_regime takes the initial batch while the norm of the gradient changes, and the largest otherwise" enum:"schedule|noise|noise_doubling|averaged_noise|critical_regime"`
	// Parts is, for schedule, in how many equal parts of the training the batch grows.
	Parts int `config:"parts" doc:"schedule: equal parts of the training, at whose borders the batch grows" min:"1"`
	// Factor is, for schedule, by how much the batch grows at each border.
	Factor float64 `config:"factor" doc:"schedule: how much it grows at each" min:"1" max:"1000"`
	// Keep is, for averaged_noise, the part of the average that stays when an epoch is added.
	Keep float64 `config:"keep" doc:"averaged_noise: part of the average that stays when an epoch is added" min:"0" max:"1"`
	// Checks is, for critical_regime, how often in a training the norm of the gradient is compared.
	Checks int `config:"checks" doc:"critical_regime: how often in a training the norm of the gradient is compared" min:"1"`
	// Change is, for critical_regime, the relative change of the norm from which the regime is critical.
	Change float64 `config:"change" doc:"critical_regime: change of the norm, as a part of it, from which the regime is critical" min:"0"`
	// Epochs is into how many equal parts the declared work of a training is divided.
	Epochs int `config:"epochs" doc:"epochs of a training, equal parts of its declared work; the batch changes at their ends" min:"1" max:"100000"`
	// EpochsOf are the epochs of single applications, instead of Epochs.
	EpochsOf []ApplicationEpochs `config:"epochs_of" doc:"epochs of single applications, instead of epochs"`
	// Knowledge is what is known of a job that starts.
	Knowledge string `config:"knowledge" doc:"what is known of a job that starts: learned is nothing, history what jobs of its application measured before in this run, oracle the truth" enum:"learned|history|oracle"`
	// Profiled says that each job was measured on one device of each accelerator type before it starts.
	Profiled bool `config:"profiled" doc:"each job was measured on one device of each accelerator type before it starts, which shows how types compare"`
	// Types says whether each accelerator type has a model of its own (each) or not (blind).
	Types string `config:"types" doc:"each accelerator type has a model of its own, or the model is blind to types" enum:"each|blind"`
	// FixedBatch are applications that keep the requested batch.
	FixedBatch []string `config:"fixed_batch" doc:"applications that keep the batch the user asked for"`
	// ScalingRule says how the learning rate grows with the batch.
	ScalingRule string `config:"scaling_rule" doc:"how the learning rate grows with the batch" enum:"adascale|square_root|linear|legew"`
	// SilentAfter is how long a job may work without reporting before it is taken to report nothing.
	SilentAfter time.Duration `config:"silent_after" doc:"a job that has worked for so long and reported nothing is taken to report nothing" min:"0s"`
	// MostReplicas is up to how many replicas curves are given.
	MostReplicas int `config:"most_replicas" doc:"replicas up to which curves are given" min:"1"`
}

// ApplicationEpochs is how many epochs the training of an application has.
type ApplicationEpochs struct {
	// Application is the name of the application.
	Application string `config:"application" required:"true" doc:"name of the application"`
	// Epochs is how many epochs its trainings have.
	Epochs int `config:"epochs" required:"true" doc:"its epochs" min:"1" max:"100000"`
}

// Capabilities are those that knowing the declared work, of which epochs are parts, and the truth need.
func (c BatchRuleConfig) Capabilities() []core.Capability { return c.goodput().Capabilities() }

func (c BatchRuleConfig) goodput() GoodputConfig {
	return GoodputConfig{
		Knowledge: c.Knowledge, Types: c.Types, FixedBatch: c.FixedBatch, DeclaredWork: true, Profiled: c.Profiled,
		UnmeasuredSeconds: 600, ScalingRule: c.ScalingRule, SilentAfter: c.SilentAfter, MostReplicas: c.MostReplicas,
	}
}

// Validate reports applications that are named twice.
func (c BatchRuleConfig) Validate() error {
	var problems []error
	at := map[string]int{}
	for i, e := range c.EpochsOf {
		if before, twice := at[e.Application]; twice {
			problems = append(problems, fmt.Errorf("epochs_of[%d].application: %q has its epochs at epochs_of[%d]", i, e.Application, before))
			continue
		}
		at[e.Application] = i
	}
	return errors.Join(problems...)
}

// NewBatchRule gives each job the batch that a published rule chooses, on whatever devices it gets.
//
// The batch changes at the ends of epochs only, and is split over the replicas as by the artifact of Pollux: what exceeds the
// devices is accumulated, and what is less than the least batch of each is raised to it. How fast a job is at that batch, and what
// its samples are worth, is learned as by goodput. A rule that looks at gradients gets those of the epoch before; a job of which none
// are known keeps its initial batch for an epoch.
//
// Sources: each at its rule. CABS (Balles et al., 2017) is left out: it needs the learning rate and the loss, which jobs do not report.
// Deviation: epochs are equal parts of the declared work, so that a job of unknown length keeps its initial batch; a round that comes
// late changes the batch late. O(types × replicas) for a job whose batch changes.
func NewBatchRule() core.Factory[core.Elasticity] {
	return core.NewFactory(core.Info{
		Type:    "batch_rule",
		Summary: "gives each job the batch that a rule chooses by its epochs and its gradients",
		Description: "The rules of the literature on large batches: they look at how far the training has come, or at its gradients, and not at the devices. " +
			"The batch changes at the ends of epochs. A model that is fitted to what a job measures says how fast it is at that batch. A job doubles its replicas at most.",
		Source: "AdaBatch (Devarakonda et al., 2017), Smith et al. (ICLR'18), McCandlish et al. (2018), KungFu (OSDI'20), Accordion (MLSys'21)",
	}, BatchRuleConfig{
		Rule: ruleNoise, Parts: 5, Factor: 2, Keep: 0.9, Checks: 10, Change: 0.5, Epochs: 100,
		Knowledge: learned, Types: eachType, ScalingRule: string(goodput.AdaScale), SilentAfter: time.Minute, MostReplicas: 64,
	}, func(c BatchRuleConfig, s core.Settings) (core.Elasticity, error) {
		made, err := newGoodputAgent(c.goodput(), s)
		if err != nil {
			return nil, err
		}
		agent := made.(*goodputAgent)
		agent.ruled = newRuled(c)
		agent.standing = core.Standing{UntilSeconds: math.Inf(1)}
		return agent, nil
	})
}

// ruled is what follows a rule.
type ruled struct {
	rule     BatchRule
	looks    bool // at gradients
	epochs   int
	epochsOf map[string]int // by application
	grids    *memo.Memo[core.BatchSpec, *goodput.Grid]
}

func newRuled(c BatchRuleConfig) *ruled {
	r := &ruled{rule: c.rule(), looks: c.Rule != ruleSchedule, epochs: c.Epochs, epochsOf: map[string]int{}, grids: memo.New[core.BatchSpec, *goodput.Grid](1024)}
	for _, e := range c.EpochsOf {
		r.epochsOf[e.Application] = e.Epochs
	}
	return r
}

func (c *BatchRuleConfig) rule() BatchRule {
	switch c.Rule {
	case ruleSchedule:
		return scheduleRule{c.Parts, c.Factor}
	case ruleNoise:
		return noiseRule{}
	case ruleNoiseDoubling:
		return noiseDoublingRule{}
	case ruleAveragedNoise:
		return averagedNoiseRule{c.Keep}
	default:
		return criticalRegimeRule{c.Checks, c.Change}
	}
}

// of is how many epochs a job has.
func (r *ruled) of(j *core.Job) int {
	if n := r.epochsOf[j.Application]; n > 0 {
		return n
	}
	return r.epochs
}

// early is the part of an epoch by which it may be over before its part of the work is done: jobs count work by what their gradients
// say of it, which differs a little from epoch to epoch.
const early = 0.01

// epoch is the one that a job is in, from 0; the first one while nobody knows how much work it has.
func (r *ruled) epoch(j *core.Job, now float64) int {
	if !(j.TotalWork > 0) {
		return 0
	}
	n := r.of(j)
	return min(int(j.WorkDone(now)/j.TotalWork*float64(n)+early), n-1)
}

// begin asks for the batch of the first epoch of a job.
func (r *ruled) begin(j *core.Job, gradients core.Gradients) BatchState {
	s := BatchState{Limits: j.Batch, Epochs: r.of(j), Batch: j.Batch.Initial, Gradients: gradients}
	s.Batch = r.rule.Next(&s)
	return s
}

// follow asks for the batch of each epoch up to one, and reports whether it is another.
func (r *ruled) follow(s *BatchState, j *core.Job, gradients core.Gradients, epoch int) bool {
	before := s.Batch
	s.Limits, s.Epochs, s.Gradients = j.Batch, r.of(j), gradients
	for s.Epoch < epoch {
		s.Epoch++
		s.Batch = r.rule.Next(s)
	}
	return s.Batch != before
}

// grid holds the split of a batch, which limits.Requested is.
func (r *ruled) grid(limits core.BatchSpec, most int) *goodput.Grid {
	return r.grids.Of(limits, func() *goodput.Grid { return goodput.NewFixedGrid(limits, most) })
}
