package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/internal/inputfile"
	"github.com/quartet-sched/quartet/internal/interrupt"
)

// ConfigFlags are the flags that choose and change a config.
type ConfigFlags struct {
	Files []string       // flag --file: paths of configs; later ones override earlier ones
	Sets  []string       // flag --set: assignments path=value
	Flags []configs.Flag // what other flags of the command set
	Usual string         // embedded config that is taken when none is given; "" for the default
}

// without names the embedded config that is taken when no file is given.
func (f *ConfigFlags) without() string { return cmp.Or(f.Usual, "default.yaml") }

// Register adds the flags to a command.
func (f *ConfigFlags) Register(a *App, c *cobra.Command) {
	a.RegisterPluginDirs(c)
	c.Flags().StringArrayVarP(&f.Files, "file", "f", nil, "config file, name of an embedded config, or - for standard input; may be repeated, later ones override (default: $"+configs.FileVariable+", or quartet.yaml of this folder or of the user, or the embedded "+f.without()+")")
	c.Flags().StringArrayVar(&f.Sets, "set", nil, "change one value of the config, such as seed=7; may be repeated")
	CompleteConfigs(c)
}

// ByFlag refuses arguments of a command that takes its config by flag.
func ByFlag(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q takes its config by flag: %s -f %s", c.CommandPath(), c.CommandPath(), strings.Join(args, " -f "))
}

// LoadConfig loads a config. Whoever is interrupted waits for none of its files.
func (a *App) LoadConfig(ctx context.Context, o configs.Options) (*configs.Config, error) {
	var env Environment
	o.Env, o.Outside = env.Lookup, a.Outside(ctx)
	o.Stdin = func() ([]byte, error) { return a.ReadStdin(ctx) }
	o.ReadFile = func(name string) ([]byte, error) {
		return interrupt.Call(ctx, func() ([]byte, error) { return inputfile.Read(name, inputfile.Document) })
	}
	a.holding = true
	config, err := configs.Load(a.Catalog(), o)
	a.holding = false
	if cluster.IsElsewhere(err) {
		return nil, err // the program that is handed the command has the notes, too
	}
	a.release()
	if interrupted := ctx.Err(); err != nil && interrupted != nil {
		return nil, interrupted
	}
	a.noteStrayVariables(&env, config)
	return config, err
}

// ReadStdin reads standard input, once: a config may be loaded twice.
func (a *App) ReadStdin(ctx context.Context) ([]byte, error) {
	if a.stdinText == nil && a.stdinErr == nil {
		a.stdinText, a.stdinErr = interrupt.Call(ctx, func() ([]byte, error) {
			return inputfile.All(os.Stdin, inputfile.Document)
		})
	}
	return a.stdinText, a.stdinErr
}

// CompleteConfigs completes -f to the embedded configs, and where none fits to files.
func CompleteConfigs(c *cobra.Command) {
	MustCompleteFunc(c, "file", func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names := slices.DeleteFunc(configs.EmbeddedNames(), func(name string) bool { return !strings.HasPrefix(name, typed) })
		return names, cobra.ShellCompDirectiveDefault
	})
}

// Discover names the files of the config that is found without being named, if none is.
func (f *ConfigFlags) Discover(a *App) error {
	if len(f.Files) > 0 {
		return nil
	}
	found, err := configs.Discover()
	if err != nil {
		return err
	}
	if found != "" {
		a.hold("config: %s", found)
		f.Files = []string{found}
	} else if f.Usual != "" {
		f.Files = []string{f.Usual}
	}
	return nil
}

// Load loads the config that the flags name. A run of it writes below outDir, or below its own folder where that is empty.
func (f *ConfigFlags) Load(ctx context.Context, a *App, outDir string) (*configs.Config, error) {
	if err := f.Discover(a); err != nil {
		return nil, err
	}
	return a.LoadConfig(ctx, configs.Options{Files: f.Files, Sets: f.Sets, Flags: f.Flags, OutDir: outDir})
}
