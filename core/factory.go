package core

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"
)

// Info describes a component to its users. Its texts are what `policy list` and `policy describe` print.
type Info struct {
	Type         string       // name in configs, lower_snake_case
	Summary      string       // what the component does, in one line
	Description  string       // idea, deviations from the source, limits
	Source       string       // paper, section or equation; empty for ideas of nobody in particular
	Capabilities []Capability // that the backend must have
	// OneType is set by an allocator that grants a job devices of one accelerator type at a time, even one that mixes
	// types: a job that needs more than any type has is then rejected, instead of waiting for ever.
	OneType bool
	// Counts is set by a placer that counts CPUs and memory, and Sharing by one that seats jobs that share devices in these ways: a cluster where
	// that matters takes no other. Sharing of an allocator are the ways, of which it needs one; none for one that needs no sharing.
	Counts  bool
	Sharing []Sharing // ways of sharing devices that the component knows
	// Divides is set by a placer that decides the CPUs and the memory of jobs, which the cluster then has to count.
	Divides bool
	// Packs is set by a placer that decides by itself who shares a device, whatever groups the allocator makes.
	Packs bool
}

// Settings is what a component is created with, besides its Config.
type Settings struct {
	ID   string       // component id: stage/type, such as "allocation/las"
	Seed uint64       // of the run
	Rand *rand.Rand   // the component's own stream of that seed; the only source of randomness
	Log  *slog.Logger // log of the component; never nil
}

// Factory creates components of one type for one kind of slot S (Admitter, Allocator, …). It is a plain value:
// built-ins are listed explicitly, and a plugin serves the very same value.
type Factory[S any] struct {
	Info
	defaults func() any // nil with foreign
	foreign  *Foreign
	build    func(config any, s Settings) (S, error)
}

// NewFactory ties a Config struct to a constructor. C is the only source of the component's defaults, validation,
// documentation and schema: see Fields for its tags. A C with a method Validate() error is asked after decoding; a C
// with a method Capabilities() []Capability adds those its values need to info.Capabilities.
func NewFactory[C, S any](info Info, defaults C, build func(config C, s Settings) (S, error)) Factory[S] {
	return Factory[S]{
		Info:     info,
		defaults: func() any { c := defaults; return &c },
		build:    func(config any, s Settings) (S, error) { return build(*config.(*C), s) },
	}
}

// TakesTurns is implemented by the Config of an allocator that may hand the devices of a running job to one that had less of them, again and again and
// without end, though no job comes or goes: where rounds are shorter than a start takes, such jobs may never get on.
type TakesTurns interface {
	// LeastTurn is for how many seconds a job keeps its devices at least, whatever the rounds, and the setting that says so; 0 and "" where rounds alone
	// decide. It is false where jobs do not take turns without end.
	LeastTurn() (seconds float64, setting string, turns bool)
}

// CountsFractions is implemented by the Config of an allocator that counts parts of devices where jobs have parts, as queue.Walk does: others stop granting where the
// devices would be used up if they were whole.
type CountsFractions interface {
	// CountsFractions does nothing: it marks the config.
	CountsFractions()
}

// NeedsInterval is implemented by the Config of an allocator whose turns end in rounds at an interval: without one, or with a longer one than its
// turns are, jobs keep their devices for longer than it says.
type NeedsInterval interface {
	// LongestInterval is the longest interval with which turns end when they should, and the setting that says so.
	LongestInterval() (longest time.Duration, setting string)
}

// PlansDeadlines is implemented by the Config of an admitter or allocator that plans when jobs with deadlines have devices, and counts a pause at each
// change of these. An admitter promises deadlines by such plans, and needs an allocator that carries them out.
type PlansDeadlines interface {
	// PlannedOverhead is the pause that it counts, and the setting that says so.
	PlannedOverhead() (overhead time.Duration, setting string)
}

// CountsRestart is implemented by the Config of an elasticity or a cluster scaler that counts one pause for every restart, whichever job it is of.
type CountsRestart interface {
	// CountedRestart is the pause that it counts, and the setting that says so.
	CountedRestart() (pause time.Duration, setting string)
}

// New creates the component from a config that Decode returned.
func (f Factory[S]) New(config any, s Settings) (S, error) { return f.build(config, s) }

// Needs lists the capabilities that the component needs when it is configured so.
func (f Factory[S]) Needs(config any) []Capability {
	needs := f.Capabilities
	if c, ok := config.(interface{ Capabilities() []Capability }); ok {
		for _, need := range c.Capabilities() {
			if !slices.Contains(needs, need) {
				needs = append(slices.Clip(needs), need)
			}
		}
	}
	return needs
}

// Component is a constructed policy together with the id it is blamed and recorded under.
type Component[S any] struct {
	ID      string // stage and type, such as "allocation/las"
	Policy  S      // the policy itself, of the interface of its stage
	OneType bool   // Info.OneType, of an allocator

	// Stream is where the random stream of the policy is; nil where nobody knows. A second instance draws the same numbers from there.
	Stream *rand.PCG

	can Abilities // of the policy; the pipeline finds them out
}

// None is the Config of a component without settings.
type None struct{}
