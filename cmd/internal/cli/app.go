package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quartet-sched/quartet/cmd/internal/cluster"
	"github.com/quartet-sched/quartet/cmd/internal/render"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/host"
)

// The exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1   // the run failed
	ExitUsage       = 2   // wrong usage, config or input
	ExitIncomplete  = 3   // unfinished, failed or rejected jobs under --strict
	ExitRejected    = 4   // "wait": a job was rejected
	ExitCancelled   = 5   // "wait": a job was cancelled
	ExitWorse       = 6   // "compare": a change is above its --fail-above
	ExitTimeout     = 124 // "wait": the jobs have not ended in time
	ExitInterrupted = 130 // stopped by a signal, partial results written
)

// App is one invocation: its streams, and the flags that every command takes.
type App struct {
	Stdout     io.Writer      // takes the data
	Stderr     io.Writer      // takes everything else
	Engine     cluster.Engine // reaches Kubernetes; nil in the program without it
	Format     render.Format  // of the data on Stdout
	YAMLAsked  bool           // the data is asked for as YAML: it is made as JSON, and translated
	NoColor    bool           // flag --no-color: output is without colours
	Quiet      bool           // --quiet: no progress and no notes
	ByCalendar bool           // moments are in Unix time: those of a Kubernetes cluster
	PluginDirs []string       // flag --plugin-dir: folders in which plugins are looked for
	Logs       LogFlags       // what is logged to Stderr
	Understood bool           // the command line was understood: an error from here on is not one of usage

	holding                bool          // a config is being loaded: notes are held
	held                   []string      // notes that are written once the config was loaded
	straysReported         bool          // of plugins
	strayVariablesReported bool          // of the environment
	library                *host.Library // opened when it is needed

	stdinText []byte // once read
	stdinErr  error
}

// Stdin is the standard input that was read; nil where none was.
func (a *App) Stdin() []byte { return a.stdinText }

// ExitError ends the program with a code of its own.
type ExitError struct {
	Code int   // exit code of the program
	Err  error // the message for the user
}

// Error is the message for the user.
func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the error that has the exit code.
func (e *ExitError) Unwrap() error { return e.Err }

// Note prints a message to the user that is neither data nor an error.
func (a *App) Note(format string, args ...any) {
	if a.holding {
		a.hold(format, args...)
		return
	}
	if !a.Quiet {
		fmt.Fprintln(a.Stderr, render.Prose(a.Stderr, fmt.Sprintf(format, args...)))
	}
}

// hold keeps a note until the config was loaded: a program that is handed the command writes it, too.
func (a *App) hold(format string, args ...any) { a.held = append(a.held, fmt.Sprintf(format, args...)) }

// release writes the notes that were held.
func (a *App) release() {
	for _, text := range a.held {
		a.Note("%s", text)
	}
	a.held = nil
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// RefuseOtherFormats refuses a format asked for with -o, where the data has a form of its own.
func (a *App) RefuseOtherFormats(c *cobra.Command, form string, same ...render.Format) error {
	asked := a.Format
	if a.YAMLAsked {
		if asked = render.YAML; strings.HasPrefix(form, "YAML") {
			return nil
		}
	}
	if !c.Flags().Changed("output") || slices.Contains(same, a.Format) {
		return nil
	}
	return Problem("--output", fmt.Sprintf("%q is no format of %q", asked, c.CommandPath()), "it writes "+form)
}

// Group is a command that only holds others.
func Group(name, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   name,
		Short: short,
		Args:  KnownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// KnownCommand refuses the arguments of a command that only holds others: each is a mistyped name.
func KnownCommand(c *cobra.Command, args []string) error {
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

// MustComplete lists the values of a flag for shell completion, and for the error of one that is missing.
func MustComplete(c *cobra.Command, flag string, values []string) {
	if f := c.Flag(flag); f != nil {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[validValues] = values
	}
	MustCompleteFunc(c, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// MustCompleteFunc completes the values of a flag for shells.
func MustCompleteFunc(c *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the flag does not exist: a mistake in this program
	}
}

// DefaultOut is the folder of runs, unless a config or a flag names another.
const DefaultOut = "runs"

// MustCompleteDirs completes the values of a flag to folders.
func MustCompleteDirs(c *cobra.Command, flag string) {
	MustCompleteFunc(c, flag, func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
}
