// Package configs reads the YAML file that composes a scheduler. It is strict: every problem is reported at once, each
// with its position, its path and what to do about it.
package configs

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// Config is a checked composition, ready to be built.
type Config struct {
	// Version: version of the config format.
	Version int
	Name    string // a plain file name
	// Seed: seed of all randomness.
	Seed uint64
	// Plugins: where policies come from that are not built in.
	Plugins Plugins
	// Cluster: machines.
	Cluster Cluster
	// Workload: source of the jobs.
	Workload Selected[workload.Source]
	// Sample: which jobs of the workload take part, and how dense.
	Sample workload.Sample
	// Estimate: what policies know about the work of a job.
	Estimate workload.Estimate
	// Round: when rounds are held.
	Round Round
	// Restart: what a restart costs where components have no setting of their own.
	Restart Restart
	// Measure: which jobs the summary covers.
	Measure Measure
	// Admission: policies that must all admit a job.
	Admission []Selected[core.Admitter]
	// Allocation: policy that says how many devices each job gets.
	Allocation Selected[core.Allocator]
	// Placement: policy that says which devices.
	Placement Selected[core.Placer]
	// Elasticity: policy that says what a job does with devices.
	Elasticity Selected[core.Elasticity]
	// Scaler: policy that says how many nodes the cluster has.
	Scaler Selected[core.ClusterScaler]
	// Backend: what runs the jobs.
	Backend Selected[backend.Opener]
	// Output: what a run leaves behind.
	Output Output

	// Synthesizer: how the run chooses between compositions.
	Synthesizer  Synthesizer
	Alternatives []Alternative // those that the run chooses from, that of this config first; empty for none

	// Notes are warnings about what is valid and yet has no effect.
	Notes core.Diagnostics

	reread      func(resolved []byte) (*Config, error)
	tree        *node             // what was written, and where
	fromRestart map[string]string // settings that the section restart gave: its path, by theirs
}

// Selected is a component that the config chose, with its checked settings.
type Selected[S any] struct {
	ID string // stage/type, such as "allocation/las"; the second of its type in a list ends in "#2"
	// Factory: what makes the component.
	Factory core.Factory[S]
	// Config: its settings, as Factory.Decode returned them.
	Config any
	At     core.Position // of its type
	Remote *Remote[S]    // nil for a component of this process

	drew *atomic.Bool // a number at random; nil when nobody asks
}

// New creates the component with its own random stream. A nil log discards.
func (s Selected[S]) New(seed uint64, log *slog.Logger) (S, error) {
	component, err := s.Build(seed, log)
	return component.Policy, err
}

// Build is New with what a pipeline knows of the component besides.
func (s Selected[S]) Build(seed uint64, log *slog.Logger) (core.Component[S], error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	stream := core.NewStream(seed, s.ID)
	random := rand.New(stream)
	if drew := s.drew; drew != nil {
		random = watchedRand(stream, func() { drew.Store(true) })
	}
	component, err := s.Factory.New(s.Config, core.Settings{ID: s.ID, Seed: seed, Rand: random, Log: log})
	if u, ok := any(component).(interface{ UsesSeed() bool }); ok && u.UsesSeed() && s.drew != nil {
		s.drew.Store(true)
	}
	return core.Component[S]{ID: s.ID, Policy: component, OneType: s.Factory.OneType, Stream: stream}, err
}

// usesSeed lists the component when the seed made a difference to it so far, or may have in another process.
func (s Selected[S]) usesSeed(list []string) []string {
	if s.Remote != nil || s.drew != nil && s.drew.Load() {
		list = append(list, s.ID)
	}
	return list
}

// SeedUsers lists the components that drew random numbers so far, those of other processes, of which nobody knows, and the other
// sections of the config to which the seed makes a difference.
func (c *Config) SeedUsers() []string {
	list := c.Workload.usesSeed(nil)
	if c.Sample.Draws() {
		list = append(list, "sample")
	}
	if !c.Estimate.True() && c.Estimate.Source == workload.EstimateNoisy {
		list = append(list, "estimate")
	}
	for _, s := range c.Admission {
		list = s.usesSeed(list)
	}
	list = c.Allocation.usesSeed(list)
	list = c.Placement.usesSeed(list)
	list = c.Elasticity.usesSeed(list)
	list = c.Scaler.usesSeed(list)
	list = c.Backend.usesSeed(list)
	for i := range c.Alternatives {
		if i == 0 {
			continue // counted above
		}
		for _, user := range c.Alternatives[i].Config.SeedUsers() {
			if !slices.Contains(list, user) {
				list = append(list, user)
			}
		}
	}
	return list
}

// SeedGiven reports whether somebody chose the seed.
func (c *Config) SeedGiven() bool {
	if c.tree == nil {
		return false
	}
	_, given := c.tree.find([]step{{key: "seed"}})
	return given
}

// Round says when decisions are taken.
type Round struct {
	// Interval: time between rounds.
	Interval time.Duration `config:"interval" doc:"time between rounds; 0s for none" min:"0s"`
	// OnEvents: hold a round at each event, besides those of the interval.
	OnEvents bool `config:"on_events" doc:"hold a round at each event, besides those of the interval"`
	// Settle says what a round does about jobs that are granted devices and cannot be placed.
	Settle Settle `config:"settle"`
}

// Settle says what a round does about jobs that are granted devices and cannot be placed.
type Settle struct {
	// Passes: how often the allocation is asked in a round at most.
	Passes int `config:"passes" doc:"how often the allocation is asked in a round at most, each time without the jobs that could not be placed; a time that places another job, or after which another one may find devices, does not count; 0 and 1 ask once, as publications do, and leave idle what such jobs would have used" min:"0"`
	// MakeRoom: let a job that cannot be placed take the devices of running jobs behind it.
	MakeRoom bool `config:"make_room" doc:"let a job that cannot be placed take the devices of running jobs behind it, where the allocation preempts in its order"`
	// ReserveAfter: how long a job waits, while others pass it, before devices are reserved for it.
	ReserveAfter time.Duration `config:"reserve_after" doc:"how long a job waits, while others pass it, before devices are reserved for it: one job at a time; 0s for never. Placements that count shares, cells and antman do not look at what is reserved, nor do plugins without keeps_reserved: beside them nothing is reserved" min:"0s"`
}

// Options are the round options in the terms of the pipeline.
func (r Round) Options() core.RoundOptions {
	return core.RoundOptions{
		IntervalSeconds: r.Interval.Seconds(), OnEvents: r.OnEvents,
		Settle: core.Settling{Passes: r.Settle.Passes, MakeRoom: r.Settle.MakeRoom, ReserveAfterSeconds: r.Settle.ReserveAfter.Seconds()},
	}
}

// Measure says which jobs a run is about: those from FirstJob to LastJob in submission order, or those between the shares that
// come first and last. The others are load.
type Measure struct {
	// FirstJob: rank in submission order of the first job that the summary covers.
	FirstJob int `config:"first_job" doc:"rank in submission order of the first job that the summary covers" min:"0"`
	// LastJob: rank of the last one: the run ends when all these have.
	LastJob int `config:"last_job" doc:"rank of the last one: the run ends when all these have; -1 for all jobs there are" min:"-1"`

	// WarmUpRatio: share of the jobs, in submission order, before the first that the summary covers, a ratio from 0 to 1.
	WarmUpRatio float64 `config:"warm_up_ratio" doc:"share of the jobs, in submission order, before the first that the summary covers" min:"0" max:"1"`
	// CoolDownRatio: share of the jobs after the last one, a ratio from 0 to 1.
	CoolDownRatio float64 `config:"cool_down_ratio" doc:"share of the jobs after the last one" min:"0" max:"1"`
}

// Whole reports whether a run is about all jobs.
func (m Measure) Whole() bool { return m == defaultFile().Measure }

// Output says what a run leaves behind.
type Output struct {
	// Dir: folder of the runs.
	Dir string `config:"dir" doc:"folder of the runs; each has a folder named after the config in it"`
	// Write: names of the files that a run writes besides the manifest and the summary.
	Write []string `config:"write" doc:"files to write besides the manifest and the summary" enum:"jobs|rounds|decisions|accelerators|fairness|tenants|timeline|usage|training|efficiency|reports"`
}

// Writes reports whether a run writes this one of the optional files.
func (o Output) Writes(file string) bool { return slices.Contains(o.Write, file) }
