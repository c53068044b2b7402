package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/plugins/host"
)

// plugin names a plugin and its content.
type plugin = quartet.Plugin

// registerPluginDirs adds --plugin-dir to a command and those under it.
func (a *app) registerPluginDirs(c *cobra.Command) {
	c.PersistentFlags().StringArrayVar(&a.pluginDirs, "plugin-dir", nil,
		"folder with plugins, searched before those of $"+host.PathVariable+", of the config and of the user; may be repeated")
}

// pluginFolders lists the folders in which plugins are looked for.
func (a *app) pluginFolders(configured []string) []string {
	return host.Folders(a.pluginDirs, os.Getenv(host.PathVariable), configured)
}

// openLibrary returns the library of this invocation; closePlugins ends its processes.
func (a *app) openLibrary(ctx context.Context) *host.Library {
	if a.library == nil {
		a.library = host.NewLibrary(ctx, a.logger())
	}
	return a.library
}

func (a *app) closePlugins() {
	if a.library == nil {
		return
	}
	if err := a.library.Close(); err != nil {
		a.note("a plugin did not end well: %v", err)
	}
}

// plugins tells of the policies of this invocation that are in processes of their own.
type plugins app

// Used lists the plugins that policies were created from.
func (p *plugins) Used() (list []plugin) {
	if p.library == nil {
		return nil
	}
	for _, used := range p.library.Used() {
		list = append(list, plugin{Name: used.Name, Version: used.Version, SHA256: used.SHA256})
	}
	return list
}

// Troubles tells of plugins that failed in a run that went on.
func (p *plugins) Troubles() (list []metrics.Trouble) {
	if p.library == nil {
		return nil
	}
	for _, t := range p.library.Troubles() {
		list = append(list, metrics.Trouble(t))
	}
	return list
}

// outside makes policies of other processes known to configs.
func (a *app) outside(ctx context.Context) func(configs.Outside) (configs.Catalog, error) {
	return func(o configs.Outside) (configs.Catalog, error) {
		terms := host.Terms{
			Options: host.Options{
				OnFailure: host.OnFailure(o.Options.OnFailure), MaxRestarts: o.Options.MaxRestarts,
				Backoff: o.Options.Backoff, CallTimeout: o.Options.CallTimeout, Log: a.logger(),
			},
			StartTimeout: o.Options.StartTimeout, Environment: o.Options.Environment, Fallback: o.Instead,
		}
		if o.Isolated {
			return isolated(a.openLibrary(ctx), terms), nil
		}
		a.noteStrays(o.Dirs)
		plugins, err := host.Find(a.pluginFolders(o.Dirs))
		return installed(a.openLibrary(ctx), plugins, terms), err
	}
}

// installed is the catalog of plugins.
func installed(l *host.Library, plugins []host.Installed, t host.Terms) configs.Catalog {
	return configs.Catalog{
		Admission:  host.Factories[core.Admitter](l, plugins, t),
		Allocation: host.Factories[core.Allocator](l, plugins, t),
		Placement:  host.Factories[core.Placer](l, plugins, t),
		Elasticity: host.Factories[core.Elasticity](l, plugins, t),
		Scaler:     host.Factories[core.ClusterScaler](l, plugins, t),
	}
}

// isolated is the catalog of the built-in policies, each in a process of its own.
func isolated(l *host.Library, t host.Terms) configs.Catalog {
	c := catalog()
	return configs.Catalog{
		Admission:  host.Isolated(l, c.Admission, t),
		Allocation: host.Isolated(l, c.Allocation, t),
		Placement:  host.Isolated(l, c.Placement, t),
		Elasticity: host.Isolated(l, c.Elasticity, t),
		Scaler:     host.Isolated(l, c.Scaler, t),
	}
}
