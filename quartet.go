// Package quartet composes a GPU-cluster scheduler of four parts and simulates it, runs it, or says what it would do next.
//
// A Catalog lists the components there are: Builtins, and one's own beside them. Load, Parse and Compose choose from it and
// return a Composition, whose methods carry it out: Simulate, Run, Plan, and Twin, from which a Forecast or a WhatIf is made.
// What a run came to is a value, a Result; files are written only where a folder is named.
//
// The package links no client of an engine: backends of real machines are brought by the caller, with Catalog.WithBackend.
package quartet

import (
	"context"
	"log/slog"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/engine"
)

// Load reads the composition that config files describe. An error is a core.Diagnostics with every problem found.
func Load(c Catalog, o Options) (*Composition, error) { return engine.Load(c, o) }

// Parse is Load for a config in memory; name stands for it in diagnostics.
func Parse(c Catalog, name, config string, o Options) (*Composition, error) {
	return engine.Parse(c, name, config, o)
}

// Compose is Load for a config that a program makes, beginning with NewSpec.
func Compose(c Catalog, s Spec) (*Composition, error) { return engine.Compose(c, s) }

// NewSpec is a config in which only what has no default is missing: the nodes of a cluster, a workload and an allocation.
func NewSpec() Spec { return configs.DefaultFile() }

// Simulate loads a composition and simulates it.
func Simulate(ctx context.Context, c Catalog, o Options) (*Result, error) {
	composition, err := Load(c, o)
	if err != nil {
		return nil, err
	}
	return composition.Simulate(ctx)
}

// LoadWorkload reads or generates the jobs of a config, takes the sample that it names, and sets what policies know of their work. A
// Composition may be given the result, and several may share it. A nil log discards.
func LoadWorkload(ctx context.Context, c *configs.Config, log *slog.Logger) (*workload.Workload, error) {
	return engine.LoadWorkload(ctx, c, log)
}

// SelectJobs is LoadWorkload for jobs that were read already, which it leaves as they are.
func SelectJobs(c *configs.Config, source *workload.Workload) (*workload.Workload, error) {
	return engine.SelectJobs(c, source)
}

// Given is the factory of a component that is there already. The component serves one run: give the next one another.
func Given[S any](name string, component S) core.Factory[S] {
	info := core.Info{Type: name, Summary: "given by the program"}
	return core.NewFactory(info, core.None{}, func(core.None, core.Settings) (S, error) { return component, nil })
}

// LoadManifest reads the manifest of any run of this or an older program, also of one that failed or was interrupted.
func LoadManifest(path string) (*Manifest, error) { return engine.LoadManifest(path) }

// ReadManifest reads the manifest of a run that can be repeated, and refuses any other with a core.Diagnostics.
func ReadManifest(path string) (*Manifest, error) { return engine.ReadManifest(path) }

// ReadBuild reads what the running program was built from.
func ReadBuild() Build { return engine.ReadBuild() }
