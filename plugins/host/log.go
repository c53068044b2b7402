package host

import (
	"context"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// logger passes go-plugin's log, and what a plugin writes to stderr, on to slog.
type logger struct {
	log  *slog.Logger
	name string
	args []any
}

func newLogger(log *slog.Logger, name string) hclog.Logger {
	return &logger{log: log.With("plugin", name), name: name}
}

func (l *logger) Log(level hclog.Level, message string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Info:
		to = slog.LevelInfo
	case hclog.Warn:
		to = slog.LevelWarn
	case hclog.Error:
		to = slog.LevelError
	}
	l.log.Log(context.Background(), to, message, args...)
}

func (l *logger) Trace(string, ...any)                {}
func (l *logger) Debug(message string, args ...any)   { l.Log(hclog.Debug, message, args...) }
func (l *logger) Info(message string, args ...any)    { l.Log(hclog.Info, message, args...) }
func (l *logger) Warn(message string, args ...any)    { l.Log(hclog.Warn, message, args...) }
func (l *logger) Error(message string, args ...any)   { l.Log(hclog.Error, message, args...) }
func (l *logger) IsTrace() bool                       { return false }
func (l *logger) IsDebug() bool                       { return l.log.Enabled(context.Background(), slog.LevelDebug) }
func (l *logger) IsInfo() bool                        { return true }
func (l *logger) IsWarn() bool                        { return true }
func (l *logger) IsError() bool                       { return true }
func (l *logger) ImpliedArgs() []any                  { return l.args }
func (l *logger) Name() string                        { return l.name }
func (l *logger) SetLevel(hclog.Level)                {}
func (l *logger) GetLevel() hclog.Level               { return hclog.Debug }
func (l *logger) ResetNamed(name string) hclog.Logger { return l.Named(name) }

func (l *logger) With(args ...any) hclog.Logger {
	return &logger{log: l.log.With(args...), name: l.name, args: args}
}

func (l *logger) Named(name string) hclog.Logger {
	return &logger{log: l.log, name: name, args: l.args}
}

func (l *logger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(l.StandardWriter(nil), "", 0)
}

func (l *logger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return io.Discard }
