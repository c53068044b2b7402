package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/internal/interrupt"
)

// configFlags are the flags that choose and change a config.
type configFlags struct {
	files []string
	sets  []string
	flags []configs.Flag // what other flags of the command set
	usual string         // embedded config that is taken when none is given; "" for the default
}

// without names the embedded config that is taken when no file is given.
func (f *configFlags) without() string { return cmp.Or(f.usual, "default.yaml") }

func (f *configFlags) register(a *app, c *cobra.Command) {
	a.registerPluginDirs(c)
	c.Flags().StringArrayVarP(&f.files, "file", "f", nil, "config file, name of an embedded config, or - for standard input; may be repeated, later ones override (default: $"+configs.FileVariable+", or quartet.yaml of this folder or of the user, or the embedded "+f.without()+")")
	c.Flags().StringArrayVar(&f.sets, "set", nil, "change one value of the config, such as seed=7; may be repeated")
	completeConfigs(c)
}

// byFlag refuses arguments of a command that takes its config by flag.
func byFlag(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q takes its config by flag: %s -f %s", c.CommandPath(), c.CommandPath(), strings.Join(args, " -f "))
}

// loadConfig loads a config. Whoever is interrupted waits for none of its files.
func (a *app) loadConfig(ctx context.Context, o configs.Options) (*configs.Config, error) {
	var env environment
	o.Env, o.Outside = env.lookup, a.outside(ctx)
	o.Stdin = func() ([]byte, error) { return a.readStdin(ctx) }
	o.ReadFile = func(name string) ([]byte, error) {
		return interrupt.Call(ctx, func() ([]byte, error) { return os.ReadFile(name) })
	}
	config, err := configs.Load(catalog(), o)
	if interrupted := ctx.Err(); err != nil && interrupted != nil {
		return nil, interrupted
	}
	a.noteStrayVariables(&env, config)
	return config, err
}

// readStdin reads standard input, once: a config may be loaded twice.
func (a *app) readStdin(ctx context.Context) ([]byte, error) {
	if a.stdinText == nil && a.stdinErr == nil {
		a.stdinText, a.stdinErr = interrupt.Call(ctx, func() ([]byte, error) {
			return io.ReadAll(io.LimitReader(os.Stdin, maxStdin))
		})
	}
	return a.stdinText, a.stdinErr
}

// maxStdin bounds a config that is given on standard input.
const maxStdin = 16 << 20

// completeConfigs completes -f to the embedded configs, and where none fits to files.
func completeConfigs(c *cobra.Command) {
	mustCompleteFunc(c, "file", func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names := slices.DeleteFunc(configs.EmbeddedNames(), func(name string) bool { return !strings.HasPrefix(name, typed) })
		return names, cobra.ShellCompDirectiveDefault
	})
}

// discover names the files of the config that is found without being named, if none is.
func (f *configFlags) discover(a *app) error {
	if len(f.files) > 0 {
		return nil
	}
	found, err := configs.Discover()
	if err != nil {
		return err
	}
	if found != "" {
		a.note("config: %s", found)
		f.files = []string{found}
	} else if f.usual != "" {
		f.files = []string{f.usual}
	}
	return nil
}

func (f *configFlags) load(ctx context.Context, a *app, outDir string) (*configs.Config, error) {
	if err := f.discover(a); err != nil {
		return nil, err
	}
	return a.loadConfig(ctx, configs.Options{Files: f.files, Sets: f.sets, Flags: f.flags, OutDir: outDir})
}

type simulateFlags struct {
	configFlags
	out    string
	from   string
	strict bool
}

func (a *app) simulateCommand() *cobra.Command {
	var f simulateFlags
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Run a composition on a workload and measure it",
		Long: `Runs the scheduler that a config composes on its workload, prints what it came to, and writes
manifest.json, summary.json, jobs.csv, rounds.csv and decisions.jsonl into a folder named after
the run; output.write in the config asks for more or fewer. docs/outputs.md defines every field.

-o json prints summary.json exactly. --from repeats a recorded run and compares its files byte
for byte; it writes files only with --out.`,
		Example: `  quartet simulate
  quartet simulate -f my.yaml --set pipeline.allocation.type=las -o json
  quartet simulate --from runs/default/manifest.json`,
		Args: byFlag,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.from != "" {
				return a.repeat(c.Context(), &f)
			}
			config, err := f.load(c.Context(), a, f.out)
			if err != nil {
				return err
			}
			return f.complete(c.Context(), a, config, nil)
		},
	}
	f.register(a, c)
	c.Flags().StringVar(&f.out, "out", "", "folder for the results, instead of output.dir")
	c.Flags().BoolVar(&f.strict, "strict", false, "exit 3 when jobs were rejected, failed or did not finish")
	c.Flags().StringVar(&f.from, "from", "", "manifest of a run to repeat and compare with")
	c.MarkFlagsMutuallyExclusive("from", "file")
	c.MarkFlagsMutuallyExclusive("from", "set")
	return c
}

// complete simulates a config, or runs it on real machines, and prints what came of it.
func (f *simulateFlags) complete(ctx context.Context, a *app, config *configs.Config, real *realRun) error {
	c := a.composition(config, real)
	c.Dir = filepath.Join(config.Output.Dir, config.Name)
	do := c.Simulate
	if real != nil {
		do = c.Run
	}
	r, err := do(ctx)
	if r == nil {
		return err
	}
	if err != nil && !r.Interrupted {
		a.note("wrote %s: the results up to the failure", r.Dir)
		return err
	}
	if err := a.print(r, config); err != nil {
		return err
	}
	if config.SeedGiven() && len(config.SeedUsers()) == 0 {
		a.note("seed %d changes nothing here: no component draws a number at random", config.Seed)
	}
	if r.ReplacedRun {
		a.note("wrote %s, in the place of the same run", r.Dir)
	} else {
		a.note("wrote %s", r.Dir)
	}
	return f.verdict(a, r)
}

// composition is a config with what this program adds to its runs.
func (a *app) composition(config *configs.Config, real *realRun) *quartet.Composition {
	started := time.Now()
	c := &quartet.Composition{
		Config: config, Brief: true, Log: a.logger(), Plugins: (*plugins)(a), Stopwatch: func() time.Duration { return time.Since(started) },
		Note: func(text string) { a.note("%s", text) },
	}
	c.Attach = func(s quartet.Session) (quartet.Attachment, error) {
		spareMemory(len(s.Workload.Jobs))
		return a.attach(s, real)
	}
	if real != nil {
		c.Fresh, c.OnForecast, c.NoForecastReason = real.fresh, real.foretold.take, real.foretold.not
		c.Follow = func(ctx context.Context, t quartet.Takeover) (stop func()) {
			return (&reloading{takeover: t, load: real.load, files: followFiles(real.files), log: a.logger()}).follow(ctx)
		}
	}
	return c
}

// verdict notes jobs that did not finish, and is the error that a whole, measured run still ends with.
func (f *simulateFlags) verdict(a *app, r *quartet.Result) error {
	if r.Interrupted {
		return &exitError{exitInterrupted, fmt.Errorf("interrupted at %s; the results are those up to then", render.Span(r.EndSeconds))}
	}
	if len(r.Unfinished) > 0 {
		a.note("%s", leftOver(r.Unfinished))
	}
	n := r.Summary.Jobs
	if left := n.Rejected + n.Failed + n.Unfinished; f.strict && left > 0 {
		return &exitError{exitIncomplete, fmt.Errorf("jobs rejected: %d, failed: %d, unfinished: %d", n.Rejected, n.Failed, n.Unfinished)}
	}
	return nil
}

// repeat runs what a manifest records and compares the files.
func (a *app) repeat(ctx context.Context, f *simulateFlags) error {
	m, err := interrupt.Call(ctx, func() (*quartet.Manifest, error) { return quartet.ReadManifest(f.from) })
	if err != nil {
		return err
	}
	// What the environment says went into the recorded config.
	config, err := configs.Parse(catalog(), f.from, []byte(m.Config), configs.Options{OutDir: f.out, Outside: a.outside(ctx)})
	if err != nil {
		return err
	}
	c := a.composition(config, nil)
	if f.out != "" {
		c.Dir = filepath.Join(config.Output.Dir, config.Name)
	}
	r, err := c.Simulate(ctx)
	if err != nil && (r == nil || !r.Interrupted) {
		return err
	}
	if err := a.print(r, config); err != nil {
		return err
	}
	if r.Interrupted {
		return f.verdict(a, r)
	}
	if differences := m.Differences(r); len(differences) > 0 {
		return &exitError{exitFailed, errors.New(differs(m, differences))}
	}
	a.note("repeated %s: every file is the same, byte for byte", f.from)
	return f.verdict(a, r)
}

func differs(m *quartet.Manifest, differences []string) string {
	text := "the run did not repeat:\n  " + strings.Join(differences, "\n  ")
	if b := readBuild(); b.Version != m.Quartet || b.Commit != m.Commit || b.Go != m.Go {
		text += fmt.Sprintf("\n  recorded by quartet %s (commit %s, %s), this is %s (commit %s, %s)",
			m.Quartet, m.Commit, m.Go, b.Version, b.Commit, b.Go)
	}
	return text
}
