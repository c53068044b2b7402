package simulate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/plugins/host"
)

func (a *app) configCommand() *cobra.Command {
	return cli.Group("config", "Check, show and begin configs",
		a.configValidateCommand(), a.configPrintCommand(), a.configSchemaCommand(), a.configInitCommand())
}

func (a *app) configValidateCommand() *cobra.Command {
	var f cli.ConfigFlags
	c := &cobra.Command{
		Use:   "validate",
		Short: "Check a config and report every problem in it",
		Long:  "Checks everything that can be known without reading the workload. Exit code 2 when there are problems.",
		Args:  cli.ByFlag,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.RefuseOtherFormats(c, "no data"); err != nil {
				return err
			}
			config, err := f.Load(c.Context(), a.App, "")
			if err != nil {
				return err
			}
			for _, n := range config.Notes {
				a.Note("%s", n)
			}
			a.Note("config %q is valid", config.Name)
			return nil
		},
	}
	f.Register(a.App, c)
	return c
}

func (a *app) configPrintCommand() *cobra.Command {
	var f cli.ConfigFlags
	var origin bool
	c := &cobra.Command{
		Use:     "print",
		Aliases: []string{"view"},
		Short:   "Show the whole config with every default filled in",
		Long: `Shows the config as a run would use it, as YAML that is a config itself.
With --origin, lists each value with the place it comes from, in the format of -o.`,
		Args: cli.ByFlag,
		RunE: func(c *cobra.Command, _ []string) error {
			if !origin {
				if err := a.RefuseOtherFormats(c, "YAML; with --origin, a table in any format"); err != nil {
					return err
				}
			}
			config, err := f.Load(c.Context(), a.App, "")
			if err != nil {
				return err
			}
			if origin {
				return originTable(config).Write(a.Stdout, a.Format)
			}
			resolved, err := config.Resolved()
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(resolved)
			return err
		},
	}
	f.Register(a.App, c)
	c.Flags().BoolVar(&origin, "origin", false, "list where each value comes from")
	return c
}

func originTable(c *configs.Config) render.Table {
	t := render.Table{Columns: []render.Column{{Name: "path"}, {Name: "value"}, {Name: "from"}}}
	for _, o := range c.Origins() {
		t.Rows = append(t.Rows, []any{o.Path, o.Value, o.From})
	}
	return t
}

func (a *app) configSchemaCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of configs, for editors",
		Long: `Prints the JSON schema of configs, with the settings of every component. The types of plugins are
those of the installed ones, of $QUARTET_PLUGIN_PATH and of --plugin-dir; their processes are
started to list their settings. A note says when there are none.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.RefuseOtherFormats(c, "JSON", render.JSON); err != nil {
				return err
			}
			plugins, err := host.Find(a.PluginFolders(nil))
			if err != nil {
				return err
			}
			if len(plugins) == 0 {
				a.Note("no plugins are known here, and the schema lists no types of them; --plugin-dir names a folder with some")
			}
			known := a.Catalog().Beside(cli.Installed(a.OpenLibrary(c.Context()), plugins, host.Terms{Options: host.Options{Log: a.Logger()}}))
			return render.Document(a.Stdout, configs.Schema(known))
		},
	}
	a.RegisterPluginDirs(c)
	return c
}

func (a *app) configInitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write a config to start from",
		Long:  "Writes the embedded default config to FILE, which must not exist, or to stdout.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.RefuseOtherFormats(c, "YAML"); err != nil {
				return err
			}
			if len(args) == 0 {
				_, err := a.Stdout.Write(configs.Default())
				return err
			}
			return a.writeNew(args[0], configs.Default())
		},
	}
}

// writeNew writes a file that must not exist yet.
func (a *app) writeNew(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return cli.Problem(path, "the file exists", "choose another name, or remove it first")
	}
	if err != nil {
		return fmt.Errorf("create the config: %w", err)
	}
	if _, err := file.Write(content); err != nil {
		_ = file.Close()
		return fmt.Errorf("write %q: %w", path, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	a.Note("wrote %s", path)
	return nil
}
