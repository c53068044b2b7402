package main

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
	"golang.org/x/term"

	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/host"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // the run failed
	exitUsage       = 2   // wrong usage, config or input
	exitIncomplete  = 3   // unfinished, failed or rejected jobs under --strict
	exitRejected    = 4   // "wait": a job was rejected
	exitCancelled   = 5   // "wait": a job was cancelled
	exitWorse       = 6   // "compare": a change is above its --fail-above
	exitTimeout     = 124 // "wait": the jobs have not ended in time
	exitInterrupted = 130 // stopped by a signal, partial results written
)

// app is one invocation: its streams, and the flags that every command takes.
type app struct {
	stdout, stderr io.Writer
	format         render.Format
	yaml           bool // the data is asked for as YAML: it is made as JSON, and translated
	noColor        bool
	quiet          bool
	byCalendar     bool // moments are in Unix time: those of a Kubernetes cluster
	pluginDirs     []string
	straysTold     bool
	logs           logFlags

	running            bool          // the command line was understood
	strayVariablesTold bool          // of the environment
	library            *host.Library // opened when it is needed

	stdinText []byte // once read
	stdinErr  error
}

// exitError ends the program with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout: stdout, stderr: stderr, format: render.Text}
	root := a.rootCommand()
	root.SetArgs(args)
	defer a.closePlugins()
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	code := a.exitCode(err)
	if !onlyInterrupted(err) {
		a.tell(command, err)
	}
	return code
}

// exitCode is that of the error; everything wrong with what the user gave is a matter of usage.
func (a *app) exitCode(err error) int {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	if _, ok := errors.AsType[core.Diagnostics](err); ok || !a.running {
		return exitUsage
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	return exitFailed
}

// onlyInterrupted reports whether an error says nothing but that the program was asked to end: whoever asked knows.
func onlyInterrupted(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it walks through what is wrapped itself
	case nil, *exitError, core.Diagnostics:
		return false
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !onlyInterrupted(err) })
	case interface{ Unwrap() error }:
		return onlyInterrupted(e.Unwrap())
	default:
		return errors.Is(err, context.Canceled)
	}
}

// tell writes the error to stderr: diagnostics a line each, starting with their position.
func (a *app) tell(command *cobra.Command, err error) {
	text := err.Error()
	if _, ok := errors.AsType[core.Diagnostics](err); !ok {
		text = a.red("error: ") + strings.TrimSpace(text)
	}
	if !a.running {
		text += fmt.Sprintf("\nsee %q", command.CommandPath()+" --help")
	}
	fmt.Fprintln(a.stderr, text)
}

// note tells the user something that is neither data nor an error.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintln(a.stderr, render.Prose(a.stderr, fmt.Sprintf(format, args...)))
	}
}

func (a *app) red(text string) string {
	if a.noColor || os.Getenv("NO_COLOR") != "" || !isTerminal(a.stderr) {
		return text
	}
	return "\x1b[31m" + text + "\x1b[0m"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
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
		Args:          knownCommand,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	build := readBuild()
	root.Version = build.Version
	root.SetVersionTemplate(fmt.Sprintf("quartet %s (commit %s, %s)\n", build.Version, build.Commit, build.Go))
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.VarP(&a.format, "output", "o", "format of the data: "+strings.Join(render.Formats, ", "))
	flags.BoolVar(&a.noColor, "no-color", false, "no colours (also with NO_COLOR set)")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "no progress and no notes on stderr")
	mustComplete(root, "output", render.Formats)
	root.AddCommand(
		a.simulateCommand(), a.benchCommand(), a.compareCommand(), a.adviseCommand(), a.runCommand(), a.planCommand(), a.forecastCommand(), a.reportCommand(),
		a.uiCommand(), a.timelineCommand(),
		a.configCommand(), a.policyCommand(), a.pluginCommand(), a.traceCommand(), a.profileCommand(), a.fillCommand(), a.synergyBoundCommand(), a.versionCommand(), a.manCommand(),
	)
	root.AddCommand(a.operateCommands()...)
	root.AddCommand(a.kubeCommands()...)
	a.completeSets(root)
	a.noteStart(root)
	return root
}

// noteStart makes a command note that it runs: what went wrong before is a matter of usage.
func (a *app) noteStart(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error { return tellArguments(c, args, check(c, args)) }
	}
	if body := c.RunE; body != nil {
		c.PreRunE = checkFlags
		c.RunE = func(c *cobra.Command, args []string) error {
			a.running = true
			if a.format != render.YAML {
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
	out := a.stdout
	a.stdout, a.format, a.yaml = &document, render.JSON, true
	err := body()
	a.stdout = out
	if document.Len() == 0 {
		return err
	}
	if !json.Valid(document.Bytes()) {
		_, told := document.WriteTo(out)
		return errors.Join(err, told)
	}
	return errors.Join(err, render.AsYAML(out, document.Bytes()))
}

// tellArguments words what cobra says of the number of arguments, by which it tells how many but not of what.
func tellArguments(c *cobra.Command, args []string, err error) error {
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

// refuseOtherFormats refuses a format asked for with -o, where the data has a form of its own.
func (a *app) refuseOtherFormats(c *cobra.Command, form string, same ...render.Format) error {
	asked := a.format
	if a.yaml {
		if asked = render.YAML; strings.HasPrefix(form, "YAML") {
			return nil
		}
	}
	if !c.Flags().Changed("output") || slices.Contains(same, a.format) {
		return nil
	}
	return problem("--output", fmt.Sprintf("%q is no format of %q", asked, c.CommandPath()), "it writes "+form)
}

// group is a command that only holds others.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  knownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// knownCommand refuses the arguments of a command that only holds others: each is a mistyped name.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return fmt.Errorf("unknown command %q for %q; %s", args[0], c.CommandPath(), core.SuggestHint(args[0], "commands", names))
}

// mustComplete lists the values of a flag for shell completion, and for the error of one that is missing.
func mustComplete(c *cobra.Command, flag string, values []string) {
	if f := c.Flag(flag); f != nil {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[validValues] = values
	}
	mustCompleteFunc(c, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

func mustCompleteFunc(c *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag does not exist: a mistake in this package
	}
}
