package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
	"github.com/quartet-sched/quartet/plugins/host"
)

// Plugin names a plugin and its content.
type Plugin = quartet.Plugin

// RegisterPluginDirs adds --plugin-dir to a command and those under it.
func (a *App) RegisterPluginDirs(c *cobra.Command) {
	c.PersistentFlags().StringArrayVar(&a.PluginDirs, "plugin-dir", nil,
		"folder with plugins, searched before those of $"+host.PathVariable+", of the config and of the user; may be repeated")
}

// PluginFolders lists the folders in which plugins are looked for.
func (a *App) PluginFolders(configured []string) []string {
	return host.Folders(a.PluginDirs, os.Getenv(host.PathVariable), configured)
}

// OpenLibrary returns the library of this invocation; ClosePlugins ends its processes.
func (a *App) OpenLibrary(ctx context.Context) *host.Library {
	if a.library == nil {
		a.library = host.NewLibrary(ctx, a.Logger())
	}
	return a.library
}

// ClosePlugins ends the processes of plugins.
func (a *App) ClosePlugins() {
	if a.library == nil {
		return
	}
	if err := a.library.Close(); err != nil {
		a.Note("a plugin did not end well: %v", err)
	}
}

// InSilence is an invocation of its own that writes no data and no notes, with the plugins and the log of this one.
func (a *App) InSilence() *App {
	return &App{Stdout: io.Discard, Stderr: a.Stderr, Engine: a.Engine, Quiet: true, PluginDirs: a.PluginDirs, Logs: a.Logs, straysReported: true}
}

// Plugins describes the policies of this invocation that are in processes of their own.
func (a *App) Plugins() quartet.Plugins { return (*usedPlugins)(a) }

// usedPlugins tells of the policies of this invocation that are in processes of their own.
type usedPlugins App

// Used lists the plugins that policies were created from.
func (p *usedPlugins) Used() (list []Plugin) {
	if p.library == nil {
		return nil
	}
	for _, used := range p.library.Used() {
		list = append(list, Plugin{Name: used.Name, Version: used.Version, SHA256: used.SHA256})
	}
	return list
}

// Troubles lists plugins that failed in a run that continued.
func (p *usedPlugins) Troubles() (list []metrics.Trouble) {
	if p.library == nil {
		return nil
	}
	for _, t := range p.library.Troubles() {
		list = append(list, metrics.Trouble(t))
	}
	return list
}

// Outside makes policies of other processes known to configs.
func (a *App) Outside(ctx context.Context) func(configs.Outside) (configs.Catalog, error) {
	return func(o configs.Outside) (configs.Catalog, error) {
		terms := host.Terms{
			Options: host.Options{
				OnFailure: host.OnFailure(o.Options.OnFailure), MaxRestarts: o.Options.MaxRestarts,
				Backoff: o.Options.Backoff, CallTimeout: o.Options.CallTimeout, Log: a.Logger(),
			},
			StartTimeout: o.Options.StartTimeout, Environment: o.Options.Environment, Fallback: o.Instead,
		}
		if o.Isolated {
			return isolated(a.Catalog(), a.OpenLibrary(ctx), terms), nil
		}
		a.NoteStrays(o.Dirs)
		plugins, err := host.Find(a.PluginFolders(o.Dirs))
		return Installed(a.OpenLibrary(ctx), plugins, terms), err
	}
}

// Installed is the catalog of plugins.
func Installed(l *host.Library, plugins []host.Installed, t host.Terms) configs.Catalog {
	return configs.Catalog{
		Admission:  host.Factories[core.Admitter](l, plugins, t),
		Allocation: host.Factories[core.Allocator](l, plugins, t),
		Placement:  host.Factories[core.Placer](l, plugins, t),
		Elasticity: host.Factories[core.Elasticity](l, plugins, t),
		Scaler:     host.Factories[core.ClusterScaler](l, plugins, t),
	}
}

// isolated is the catalog of the built-in policies, each in a process of its own.
func isolated(c quartet.Catalog, l *host.Library, t host.Terms) configs.Catalog {
	return configs.Catalog{
		Admission:  host.Isolated(l, c.Admission, t),
		Allocation: host.Isolated(l, c.Allocation, t),
		Placement:  host.Isolated(l, c.Placement, t),
		Elasticity: host.Isolated(l, c.Elasticity, t),
		Scaler:     host.Isolated(l, c.Scaler, t),
	}
}

// NoteStrays warns, once, of folders that were named and cannot be read, and of plugins that no lock records.
func (a *App) NoteStrays(configured []string) {
	if a.straysReported {
		return
	}
	a.straysReported = true
	for _, folder := range host.Folders(a.PluginDirs, os.Getenv(host.PathVariable), nil) {
		if _, err := os.Stat(folder); err != nil && folder != host.UserFolder() {
			a.Note("the plugin folder %s cannot be read: %v", folder, errors.Unwrap(err))
		}
	}
	for _, file := range host.Strays(a.PluginFolders(configured)) {
		a.Note("%s is in no lock and is never started; install it, or remove it", file)
	}
}
