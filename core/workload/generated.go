package workload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// GeneratedConfig is the Config of the source `generated`.
type GeneratedConfig struct {
	// Jobs: number of jobs.
	Jobs int `config:"jobs" min:"1" max:"10000000" doc:"Number of jobs."`
	// Span: time within which all jobs are submitted.
	Span time.Duration `config:"span" min:"0" doc:"Time within which all jobs are submitted; 0 submits them at once."`
	// Arrivals: how submissions spread over the span: poisson, bursty or diurnal.
	Arrivals string `config:"arrivals" enum:"poisson|bursty|diurnal" doc:"How submissions spread over the span: evenly at random, in regular bursts, or by the hour of the day."`

	// BurstEvery: for bursty arrivals, the time from the start of a burst to that of the next.
	BurstEvery time.Duration `config:"burst_every" doc:"For bursty arrivals, the time from the start of a burst to that of the next; the first starts at 0."`
	// BurstLength: for bursty arrivals, the length of a burst.
	BurstLength time.Duration `config:"burst_length" doc:"For bursty arrivals, the length of a burst."`
	// BurstFactor: for bursty arrivals, the rate within a burst over the rate outside.
	BurstFactor float64 `config:"burst_factor" min:"1" max:"100" doc:"For bursty arrivals, the rate within a burst over the rate outside."`

	// DiurnalAmplitude: for diurnal arrivals, how far the rate swings around its mean, as a share of it, a ratio from 0 to 1.
	DiurnalAmplitude float64 `config:"diurnal_amplitude" min:"0" max:"1" doc:"For diurnal arrivals, how far the rate swings around its mean, as a share of it."`
	// DiurnalPeak: for diurnal arrivals, the time of day with the highest rate.
	DiurnalPeak time.Duration `config:"diurnal_peak" doc:"For diurnal arrivals, the time of day with the highest rate; the span starts at midnight."`

	// Replicas: name of the distribution of the replicas that jobs ask for.
	Replicas string `config:"replicas" enum:"pollux|gavel|philly|one" doc:"Distribution of the replicas that jobs ask for, or one replica for every job."`
	// Durations: name of the distribution of how long jobs run.
	Durations string `config:"durations" enum:"pollux|gavel|philly" doc:"Distribution of how long jobs run. With replicas of pollux too, both come from the same kind of job."`

	// Tenants: whose the jobs are: none, or a tenant for each number of replicas.
	Tenants string `config:"tenants" enum:"none|by_replicas" doc:"Whose the jobs are: nobody's, or of a tenant for each number of replicas, called replicas-1, replicas-2, …."`

	// Sensitivity: whether the speed of jobs depends on CPUs and memory: none or mix.
	Sensitivity string `config:"sensitivity" enum:"none|mix" doc:"Whether the speed of jobs depends on the CPUs and the memory beside their devices: none, or mix, where half of the jobs run best with more CPUs than the 3 that belong to a device, up to 12, and some of these with more memory than 62.5 GB."`

	// Applications: whether jobs train the applications that come with Quartet, and so are elastic, instead of running for a known time.
	Applications bool `config:"applications" doc:"Whether jobs train the applications that come with Quartet, and so are elastic, instead of running for a known time."`
}

// The values of GeneratedConfig.Arrivals, of Replicas and Durations, and of Tenants.
const (
	arrivalsPoisson = "poisson"
	arrivalsBursty  = "bursty"
	arrivalsDiurnal = "diurnal"

	mixPollux = "pollux"
	mixGavel  = "gavel"
	mixPhilly = "philly"
	mixOne    = "one"

	sensitivityNone = "none"
	sensitivityMix  = "mix"

	tenantsNone       = "none"
	tenantsByReplicas = "by_replicas"
)

// Validate reports values that do not go together.
func (c GeneratedConfig) Validate() error {
	if c.Arrivals == arrivalsBursty && (c.BurstLength <= 0 || c.BurstLength > c.BurstEvery) {
		return errors.New("burst_length: must be above 0s and at most burst_every")
	}
	if c.Applications && (c.Replicas != mixPollux || c.Durations != mixPollux) {
		return errors.New("applications: needs replicas and durations of pollux, with which they are tuned")
	}
	return nil
}

// NewGenerated makes the factory of the source `generated`.
func NewGenerated() core.Factory[Source] {
	defaults := GeneratedConfig{
		Jobs: 160, Span: 8 * time.Hour, Arrivals: arrivalsPoisson,
		BurstEvery: 4 * time.Hour, BurstLength: 30 * time.Minute, BurstFactor: 4,
		DiurnalAmplitude: 0.8, DiurnalPeak: 14 * time.Hour,
		Replicas: mixPollux, Durations: mixPollux, Tenants: tenantsNone, Sensitivity: sensitivityNone,
	}
	return core.NewFactory(core.Info{
		Type:    "generated",
		Summary: "random jobs of known duration or of known applications, by the mixes of the publications",
		Description: "Submission times, in whole seconds, are those of a Poisson process of the given shape that has exactly the " +
			"given number of arrivals in the span. Jobs are rigid, unless they train applications, and named job-000000, job-000001, …. Mixes: pollux draws kinds of " +
			"training job with their tuned replicas and durations; gavel draws 1, 2, 4 or 8 replicas and durations spread evenly " +
			"in the exponent between half an hour and a week; philly follows the trace of that cluster, replicas and durations " +
			"drawn independently of each other. With applications, the kinds of the pollux mix go as the profiles that come with " +
			"Quartet say: by placement, replicas and batch.",
		Source: "Pollux, OSDI 2021; Gavel, OSDI 2020, and Blox, EuroSys 2024; Jeon et al., ATC 2019",
	}, defaults, func(c GeneratedConfig, s core.Settings) (Source, error) {
		g := &generator{config: c, rand: s.Rand, sensitivities: sensitivities()}
		if !c.Applications {
			return g, nil
		}
		var err error
		g.models, err = tunedModels()
		return g, err
	})
}

type generator struct {
	config GeneratedConfig
	rand   *rand.Rand
	models map[polluxTask]*modelledModel // nil for jobs of known duration

	sensitivities mix[*core.Sensitivity]
}

// Load generates the workload. A second call goes on in the random stream, and so yields other jobs.
func (g *generator) Load(ctx context.Context) (*Workload, error) {
	arrivals := make([]float64, g.config.Jobs)
	for i := range arrivals {
		arrivals[i] = g.arrival()
	}
	slices.Sort(arrivals)
	jobs := make([]Job, g.config.Jobs)
	for i := range jobs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		jobs[i] = g.job(fmt.Sprintf("job-%06d", i), arrivals[i], g.draw())
		if g.config.Tenants == tenantsByReplicas {
			jobs[i].Spec.Tenant = fmt.Sprintf("replicas-%d", jobs[i].Spec.Requested)
		}
		if g.config.Sensitivity == sensitivityMix {
			jobs[i].Spec.Sensitivity = g.sensitivities.draw(g.rand)
		}
	}
	return assemble(jobs, nil, nil)
}

// arrival is one submission time. Given their number, the arrivals of a Poisson process are independent draws from
// its intensity; each is drawn by rejection.
func (g *generator) arrival() float64 {
	for {
		at := g.rand.Float64() * g.config.Span.Seconds()
		if g.rand.Float64() <= g.config.intensity(at) {
			return math.Floor(at)
		}
	}
}

// intensity is the rate of arrivals at a moment over the highest rate.
func (c *GeneratedConfig) intensity(at float64) float64 {
	switch c.Arrivals {
	case arrivalsBursty:
		if math.Mod(at, c.BurstEvery.Seconds()) < c.BurstLength.Seconds() {
			return 1
		}
		return 1 / c.BurstFactor
	case arrivalsDiurnal:
		const day = 24 * 60 * 60
		swing := math.Cos(2 * math.Pi * (at - c.DiurnalPeak.Seconds()) / day)
		return (1 + c.DiurnalAmplitude*swing) / (1 + c.DiurnalAmplitude)
	default:
		return 1
	}
}

// draw is one job: the application is empty unless the duration comes from a kind of job.
func (g *generator) draw() jobKind {
	kind := polluxKinds.draw(g.rand)
	switch g.config.Durations {
	case mixGavel:
		kind.application, kind.seconds = "", gavelSeconds(g.rand)
	case mixPhilly:
		kind.application, kind.seconds = "", phillySeconds(g.rand.Float64())
	}
	switch g.config.Replicas {
	case mixOne:
		kind.replicas = 1
	case mixGavel:
		kind.replicas = gavelReplicaMix.draw(g.rand)
	case mixPhilly:
		kind.replicas = phillyReplicaMix.draw(g.rand)
	}
	kind.seconds = max(math.Round(kind.seconds), 1)
	return kind
}

func (g *generator) job(name string, submit float64, kind jobKind) Job {
	if g.models == nil {
		job := newDurationJob(name, submit, kind.seconds, kind.replicas)
		job.Spec.Application = kind.application
		return job
	}
	return newTrainingJob(name, submit, kind.replicas, g.models[polluxTask{kind.application, kind.batch}])
}
