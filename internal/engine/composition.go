// Package engine carries one run from its config to its results: it opens the backend, assembles the pipeline, holds the rounds and
// writes what they came to. Live runs, takeovers, forecasts, what-ifs, files and manifests are here; the root package is the door to it.
package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/core/synthesizer"
	"github.com/quartet-sched/quartet/core/twin"
	"github.com/quartet-sched/quartet/core/workload"
)

// Composition is a checked composition of components with a cluster and a workload. Its fields may be set before it is
// carried out; the zero values write no file, measure no time and log nothing.
type Composition struct {
	*configs.Config

	// Dir is the folder that Simulate and Run write into. Simulate never writes over the files of another run: see
	// Result.Dir. Empty for no files.
	Dir string
	// Keep keeps the content of the files in Result.Files, whether they are written or not.
	Keep bool
	// Brief leaves out Result.Jobs, for a caller that reads the files: a large workload has many.
	Brief bool
	// Jobs are the workload of the config where LoadWorkload has loaded it already; nil loads it. Several runs may share it at the same
	// time: nothing changes a workload that was loaded.
	Jobs *workload.Workload
	// Log takes what components log; nil discards it.
	Log *slog.Logger
	// Stopwatch returns the time from any fixed moment. Without one the summary knows no wall time and no decision times, and
	// is the same whenever the run is repeated.
	Stopwatch func() time.Duration
	// Observers see every round.
	Observers []core.Observer
	// Watch makes an observer that may also look at the pipeline of the run and at its backend while it observes a round: it may fork them,
	// and changes nothing. nil for none.
	Watch func(*core.Pipeline, core.Backend) core.Observer
	// OnForecast is called with forecasts of a live run, from time to time, by another goroutine. nil for no forecasts.
	OnForecast func(*twin.Forecast)
	// NoForecastReason is called with why a live run is not forecast for now, where OnForecast asks for forecasts, and with an empty text
	// when it is forecast again. It may be nil.
	NoForecastReason func(why string)
	// Attach is called when a run is about to begin, and may put something between its pipeline and what it works with: a server that takes orders,
	// or a page that shows the run. It may be nil.
	Attach func(Session) (Attachment, error)
	// Follow is called with a function that replaces the policies, when a live run begins. What it returns is called when the run has
	// ended. It may be nil.
	Follow func(context.Context, Takeover) (stop func())
	// Note is called with what people should know of the run that is neither a result nor an error. It may be nil.
	Note func(text string)
	// Fresh has Run stop and forget what is left of an unfinished run in the same folder.
	Fresh bool
	// Plugins lists the policies in processes of their own; nil when there are none.
	Plugins Plugins

	chosen        func(alternative int)                              // called with who takes over, between two rounds; nil for nobody
	workloadModel func(*workload.Workload) synthesizer.WorkloadModel // in the place of what the run teaches; nil outside of tests
}

// Plugins lists policies in processes of their own.
type Plugins interface {
	// Used lists the plugins that took part.
	Used() []Plugin
	// Troubles lists the plugins that failed in a run that went on.
	Troubles() []metrics.Trouble
}

// Load reads the composition that config files describe. An error is a core.Diagnostics with every problem found.
func Load(c configs.Catalog, o configs.Options) (*Composition, error) {
	config, err := configs.Load(c, o)
	return compositionOf(config, err)
}

// Parse is Load for a config in memory; name stands for it in diagnostics.
func Parse(c configs.Catalog, name, config string, o configs.Options) (*Composition, error) {
	parsed, err := configs.Parse(c, name, []byte(config), o)
	return compositionOf(parsed, err)
}

// Compose is Load for a config that a program makes, beginning with NewSpec.
func Compose(c configs.Catalog, s configs.File) (*Composition, error) {
	config, err := configs.Build(c, s, configs.Options{})
	return compositionOf(config, err)
}

func compositionOf(c *configs.Config, err error) (*Composition, error) {
	if err != nil {
		return nil, err
	}
	return &Composition{Config: c}, nil
}

func (c *Composition) logger() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}

func (c *Composition) note(text string) {
	if c.Note != nil {
		c.Note(text)
	}
}

// stopwatch tells the time from now on; that of a composition without a stopwatch stands still.
func (c *Composition) stopwatch() func() time.Duration {
	if c.Stopwatch == nil {
		return func() time.Duration { return 0 }
	}
	begin := c.Stopwatch()
	return func() time.Duration { return c.Stopwatch() - begin }
}

func (c *Composition) pluginsUsed() []Plugin {
	if c.Plugins == nil {
		return nil
	}
	return c.Plugins.Used()
}

func (c *Composition) troubles() []metrics.Trouble {
	if c.Plugins == nil {
		return nil
	}
	return c.Plugins.Troubles()
}

// File is a file of a run.
type File struct {
	Digest
	Content []byte // only with Composition.Keep
}
