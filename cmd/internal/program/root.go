package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/operate"
	"github.com/quartet-sched/quartet/cmd/internal/plugin"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/cmd/internal/simulate"
	"github.com/quartet-sched/quartet/cmd/internal/study"
	"github.com/quartet-sched/quartet/cmd/internal/trace"
	"github.com/quartet-sched/quartet/core"
)

// app is one invocation of the program.
type app struct {
	*cli.App
	engine Engine
}

// Engine is what a program is linked with to reach Kubernetes.
type Engine struct {
	cluster.Engine
	Commands func(*cli.App) []*cobra.Command // that install the scheduler on a cluster
}

// Run runs a command line on an engine and returns the exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer, e Engine) int {
	a := &app{&cli.App{Stdout: stdout, Stderr: stderr, Format: render.Text, Engine: e.Engine}, e}
	if e.Absent && completesElsewhere(args) {
		if code, err := a.handOver(args); err == nil {
			return code
		}
	}
	root := a.rootCommand()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	a.ClosePlugins()
	if err == nil {
		return cli.ExitOK
	}
	if e.Absent && cluster.IsElsewhere(err) {
		var code int
		if code, err = a.handOver(args); err == nil {
			return code
		}
	}
	code := a.exitCode(err)
	if !onlyInterrupted(err) {
		a.printError(command, err)
	}
	return code
}

// exitCode is that of the error; everything wrong with what the user gave is a matter of usage.
func (a *app) exitCode(err error) int {
	if exit, ok := errors.AsType[*cli.ExitError](err); ok {
		return exit.Code
	}
	if _, ok := errors.AsType[core.Diagnostics](err); ok || !a.Understood {
		return cli.ExitUsage
	}
	if errors.Is(err, context.Canceled) {
		return cli.ExitInterrupted
	}
	return cli.ExitFailed
}

// onlyInterrupted reports whether an error says nothing but that the program was asked to end: whoever asked knows.
func onlyInterrupted(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it walks through what is wrapped itself
	case nil, *cli.ExitError, core.Diagnostics:
		return false
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !onlyInterrupted(err) })
	case interface{ Unwrap() error }:
		return onlyInterrupted(e.Unwrap())
	default:
		return errors.Is(err, context.Canceled)
	}
}

// printError writes the error to stderr: diagnostics a line each, starting with their position.
func (a *app) printError(command *cobra.Command, err error) {
	text := err.Error()
	if _, ok := errors.AsType[core.Diagnostics](err); !ok {
		text = a.red("error: ") + strings.TrimSpace(text)
	}
	if !a.Understood {
		text += fmt.Sprintf("\nsee %q", command.CommandPath()+" --help")
	}
	fmt.Fprintln(a.Stderr, text)
}

func (a *app) red(text string) string {
	if a.NoColor || os.Getenv("NO_COLOR") != "" || !cli.IsTerminal(a.Stderr) {
		return text
	}
	return "\x1b[31m" + text + "\x1b[0m"
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "quartet",
		Short: "Compose a GPU-cluster scheduler from four parts, simulate it, and run it",
		Long: `Quartet composes a scheduler for GPU training clusters from four swappable parts
(admission, allocation, placement, elasticity), simulates it on a trace or runs it on this
machine, and measures it.

Data goes to stdout, all else to stderr. Tables and notes fit the terminal; -o wide shows tables
whole. Exit codes: 0 done, 1 the run failed, 2 wrong usage or config, 3 unfinished, failed or
rejected jobs under --strict, a study or an advice that is not complete; 4, 5 and 124 are of wait,
6 is of compare; 130 interrupted.`,
		Args:          cli.KnownCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	build := cli.ReadBuild()
	root.Version = build.Version
	root.SetVersionTemplate(fmt.Sprintf("quartet %s (commit %s, %s)\n", build.Version, build.Commit, build.Go))
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(cli.FlagError)
	flags := root.PersistentFlags()
	flags.VarP(&a.Format, "output", "o", "format of the data: "+strings.Join(render.Formats, ", "))
	flags.BoolVar(&a.NoColor, "no-color", false, "no colours (also with NO_COLOR set)")
	flags.BoolVarP(&a.Quiet, "quiet", "q", false, "no progress and no notes on stderr")
	cli.MustComplete(root, "output", render.Formats)
	root.AddCommand(a.versionCommand(), a.manCommand())
	for _, group := range []func(*cli.App) []*cobra.Command{simulate.Commands, operate.Commands, study.Commands, trace.Commands, plugin.Commands, a.engine.Commands} {
		root.AddCommand(group(a.App)...)
	}
	a.completeSets(root)
	a.noteStart(root)
	return root
}

// noteStart makes a command note that it runs: what went wrong before is a matter of usage.
func (a *app) noteStart(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error { return describeArguments(c, args, check(c, args)) }
	}
	if body := c.RunE; body != nil {
		c.PreRunE = cli.CheckFlags
		c.RunE = func(c *cobra.Command, args []string) error {
			a.Understood = true
			if a.Format != render.YAML {
				return body(c, args)
			}
			return a.asYAML(func() error { return body(c, args) })
		}
	}
	for _, sub := range c.Commands() {
		a.noteStart(sub)
	}
}

// asYAML lets a command write JSON, and translates it. What is no JSON stays as it is.
func (a *app) asYAML(body func() error) error {
	var document bytes.Buffer
	out := a.Stdout
	a.Stdout, a.Format, a.YAMLAsked = &document, render.JSON, true
	err := body()
	a.Stdout = out
	if document.Len() == 0 {
		return err
	}
	if !json.Valid(document.Bytes()) {
		_, failed := document.WriteTo(out)
		return errors.Join(err, failed)
	}
	return errors.Join(err, render.AsYAML(out, document.Bytes()))
}

// describeArguments words what cobra says of the number of arguments, which says how many but not of what.
func describeArguments(c *cobra.Command, args []string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if !strings.HasPrefix(text, "accepts ") && !strings.HasPrefix(text, "requires ") && !strings.HasPrefix(text, "unknown command ") || c.HasSubCommands() {
		return err
	}
	_, wanted, takes := strings.Cut(c.Use, " ")
	switch {
	case !takes:
		return fmt.Errorf("%q takes no arguments, and was given %q", c.CommandPath(), args[0])
	case len(args) == 0:
		return fmt.Errorf("%q needs %s: %s", c.CommandPath(), wanted, c.UseLine())
	default:
		return fmt.Errorf("%q takes %s, and was given %s: %s", c.CommandPath(), wanted, render.Count(len(args), "argument"), c.UseLine())
	}
}
