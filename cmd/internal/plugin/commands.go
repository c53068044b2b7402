package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/sdk"
	"github.com/quartet-sched/quartet/plugins/wire"
)

func (a *app) pluginCommand() *cobra.Command {
	c := cli.Group("plugin", "Write, test, install and check policies that live in processes of their own",
		a.registerDir(a.pluginListCommand()), a.registerDir(a.pluginDescribeCommand()), a.pluginInstallCommand(), a.registerDir(a.pluginVerifyCommand()),
		a.registerDir(a.pluginRemoveCommand()), a.pluginNewCommand(), a.pluginTestCommand(), a.pluginServeCommand())
	a.RegisterPluginDirs(c)
	return c
}

func (a *app) pluginListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the installed plugins",
		Long:  "Lists what the locks of the plugin folders record. Nothing is started.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			plugins, err := host.Find(a.PluginFolders(nil))
			if err != nil {
				return err
			}
			t := render.Table{Columns: []render.Column{
				{Name: "name"}, {Name: "version"}, {Name: "stage"}, {Name: "type"}, {Name: "summary"}, {Name: "file"},
			}}
			for _, p := range plugins {
				for _, c := range p.Components {
					t.Rows = append(t.Rows, []any{p.Name, p.Version, c.Stage, c.Type, c.Summary, p.File()})
				}
			}
			a.NoteStrays(nil)
			return t.Write(a.Stdout, a.Format)
		},
	}
}

// registerDir adds --dir to a command that looks into folders, so that what install takes is taken here too.
func (a *app) registerDir(c *cobra.Command) *cobra.Command {
	c.Flags().StringArrayVar(&a.PluginDirs, "dir", nil, "the same as --plugin-dir")
	cli.MustCompleteDirs(c, "dir")
	return c
}

func (a *app) pluginDescribeCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "describe NAME|FILE",
		Short:             "Show the policies of a plugin and their settings",
		Long:              "Starts the installed plugin of that name, or a file that is not installed yet, and asks it.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePlugins,
		RunE: func(c *cobra.Command, args []string) error {
			if a.Format == render.CSV {
				if err := a.RefuseOtherFormats(c, "text, Markdown or JSON"); err != nil {
					return err
				}
			}
			b, p, err := a.pluginNamed(args[0])
			if err != nil {
				return err
			}
			description, err := b.Describe(c.Context())
			if err != nil {
				return err
			}
			p.Name, p.Version = description.Name, description.Version
			return a.describePlugin(p, description)
		},
	}
}

func (a *app) describePlugin(p host.Installed, d *host.Description) error {
	descriptions := []description{}
	for _, info := range d.Components {
		c := component{stage: wire.StageName(info.Stage), Info: info.Info, fields: info.Fields, plugin: &p}
		if a.Format == render.JSON {
			descriptions = append(descriptions, c.describe(listSettings([]setting{}, "", c.fields)))
			continue
		}
		if len(descriptions) > 0 {
			fmt.Fprintln(a.Stdout)
		}
		if err := a.describe(c); err != nil {
			return err
		}
	}
	if a.Format == render.JSON {
		return render.Document(a.Stdout, descriptions)
	}
	return nil
}

// pluginNamed finds an installed plugin, or a file where the name is a path.
func (a *app) pluginNamed(name string) (host.Binary, host.Installed, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		b, err := a.pluginFile(name)
		return b, host.Installed{Entry: host.Entry{Path: filepath.Base(b.Path), SHA256: ""}, Folder: filepath.Dir(b.Path)}, err
	}
	p, err := a.findPlugin(name)
	b := p.Binary()
	b.Log = a.Logger()
	return b, p, err
}

// pluginFile is a file that the user named, which need not be installed.
func (a *app) pluginFile(path string) (host.Binary, error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return host.Binary{}, err
	}
	if _, err := os.Stat(whole); errors.Is(err, os.ErrNotExist) {
		return host.Binary{}, cli.Problem(path, "there is no such file", "name the binary or the script of a plugin")
	}
	return host.Binary{Name: filepath.Base(whole), Path: whole, Log: a.Logger()}, nil
}

func (a *app) findPlugin(name string) (host.Installed, error) {
	a.NoteStrays(nil)
	plugins, err := host.Find(a.PluginFolders(nil))
	if err != nil {
		return host.Installed{}, err
	}
	var names []string
	for _, p := range plugins {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	hint := "none is installed; a file is named by a path, such as ./" + name
	if len(names) > 0 {
		slices.Sort(names)
		hint = core.SuggestHint(name, "names", names)
	}
	return host.Installed{}, cli.Problem("", fmt.Sprintf("unknown plugin %q", name), hint)
}

func (a *app) completePlugins(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	plugins, err := host.Find(a.PluginFolders(nil))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var names []string
	for _, p := range plugins {
		names = append(names, p.Name)
	}
	return names, cobra.ShellCompDirectiveDefault
}

func (a *app) pluginInstallCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "install FILE",
		Short: "Copy a plugin into a folder and record it in the folder's lock",
		Long: `Starts the file once to learn what it holds, copies it, and records its sha256: from then on this very file
runs, and nothing else under its name. Whatever a plugin does, it does with your rights: install what you trust.`,
		Example: "  quartet plugin install ./my-policy\n  quartet plugin install ./my-policy --dir plugins",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			b, err := a.pluginFile(args[0])
			if err != nil {
				return err
			}
			if dir == "" {
				dir = host.UserFolder()
			}
			if dir == "" {
				return cli.Problem("--dir", "this user has no folder for plugins", "name one")
			}
			p, err := host.Install(c.Context(), b, dir, a.isBuiltIn)
			if err != nil {
				return err
			}
			for _, component := range p.Components {
				a.Note("installed %s of plugin %s %s", component.ID(), p.Name, p.Version)
			}
			a.Note("wrote %s", p.File())
			if !slices.Contains(a.PluginFolders(nil), filepath.Clean(dir)) {
				a.Note("to use it, add --plugin-dir %s, or to the config: plugins: {dirs: [%s]}", dir, dir)
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "folder to install into (default: "+userFolderWords+")")
	cli.MustCompleteDirs(c, "dir")
	return c
}

const userFolderWords = "quartet/plugins in the user's folder for configuration"

func (a *app) isBuiltIn(id string) bool {
	return slices.ContainsFunc(a.components(), func(c component) bool { return c.id() == id })
}

func (a *app) pluginVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Hold the installed plugins against their locks",
		Long:  "Compares hashes and checks permissions. Nothing is started. Exit code 1 when something is wrong.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			plugins, err := host.Find(a.PluginFolders(nil))
			if err != nil {
				return err
			}
			t := render.Table{Columns: []render.Column{{Name: "name"}, {Name: "version"}, {Name: "file"}, {Name: "state"}}}
			var wrong []error
			for _, p := range plugins {
				state := "ok"
				if err := p.Verify(); err != nil {
					wrong, state = append(wrong, err), "not as installed"
				}
				t.Rows = append(t.Rows, []any{p.Name, p.Version, p.File(), state})
			}
			a.NoteStrays(nil)
			return errors.Join(t.Write(a.Stdout, a.Format), errors.Join(wrong...))
		},
	}
}

func (a *app) pluginRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "remove NAME",
		Short:             "Delete an installed plugin",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePlugins,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := a.findPlugin(args[0])
			if err != nil {
				return err
			}
			if err := host.Remove(p.Folder, p.Name); err != nil {
				return err
			}
			a.Note("removed %s", p.File())
			return nil
		},
	}
}

func (a *app) pluginServeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve STAGE/TYPE",
		Short: "Serve a built-in policy as a plugin",
		Long:  "Is what isolate: true in a config starts. Started by hand it lists what it would serve.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			factory, err := BuiltInPolicy(a.Catalog(), args[0])
			if err != nil {
				return err
			}
			sdk.Main(factory)
			return nil
		},
	}
}

// BuiltInPolicy finds the factory of a built-in policy by its id.
func BuiltInPolicy(c quartet.Catalog, id string) (sdk.Factory, error) {
	policies := slices.Concat(byID(c.Admission), byID(c.Allocation), byID(c.Placement), byID(c.Elasticity), byID(c.Scaler))
	var names []string
	for _, p := range policies {
		if p.id == id {
			return p.factory, nil
		}
		names = append(names, p.id)
	}
	return nil, cli.Problem("", fmt.Sprintf("unknown policy %q", id), core.SuggestHint(id, "values", names))
}

type identified struct {
	id      string
	factory sdk.Factory
}

func byID[S any](factories []core.Factory[S]) []identified {
	list := make([]identified, len(factories))
	for i, f := range factories {
		list[i] = identified{wire.StageName(wire.StageOf[S]()) + "/" + f.Type, f}
	}
	return list
}
