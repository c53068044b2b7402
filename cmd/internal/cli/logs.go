package cli

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// LogFlags say what is logged to stderr, and how. The zero value logs warnings as text.
type LogFlags struct {
	format, level choice
}

var (
	logFormats = []string{"text", "json"}
	logLevels  = []string{"debug", "info", "warn", "error"}
)

// Register adds the flags to a command.
func (f *LogFlags) Register(c *cobra.Command) {
	f.format = choice{"text", logFormats}
	f.level = choice{"warn", logLevels}
	c.Flags().Var(&f.format, "log-format", "format of the log on stderr: "+strings.Join(logFormats, ", "))
	c.Flags().Var(&f.level, "log-level", "least level that is logged: "+strings.Join(logLevels, ", ")+"; info logs every job, debug every round")
	MustComplete(c, "log-format", logFormats)
	MustComplete(c, "log-level", logLevels)
}

// choice is a flag value out of a few.
type choice struct {
	value string
	among []string
}

func (c *choice) String() string { return c.value }

// Type names the flag's value in the help.
func (c *choice) Type() string { return "name" }

// Set takes a value by name.
func (c *choice) Set(name string) error {
	if !slices.Contains(c.among, name) {
		return fmt.Errorf("unknown value %q; valid values: %s", name, strings.Join(c.among, ", "))
	}
	c.value = name
	return nil
}

func (f *LogFlags) leastLevel() slog.Level {
	level := slog.LevelWarn
	if f.level.value != "" {
		_ = level.UnmarshalText([]byte(f.level.value)) // one of logLevels: slog knows them
	}
	return level
}

// Logger logs to stderr as the flags say. Text is for people who watch and has no time; JSON is for machines.
func (a *App) Logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: a.Logs.leastLevel()}
	if a.Logs.format.value == "json" {
		return slog.New(slog.NewJSONHandler(a.Stderr, options))
	}
	options.ReplaceAttr = func(groups []string, attr slog.Attr) slog.Attr {
		if len(groups) == 0 && attr.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return attr
	}
	return slog.New(slog.NewTextHandler(a.Stderr, options))
}
