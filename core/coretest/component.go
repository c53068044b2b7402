package coretest

import (
	"log/slog"

	"github.com/quartet-sched/quartet/core"
)

// Component makes a component of a config, and panics where the config does not do. Log may be nil.
func Component[S any](f core.Factory[S], raw map[string]any, log *slog.Logger) S {
	config, problems := f.Decode(raw)
	if len(problems) > 0 {
		panic(problems)
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s, err := f.New(config, core.Settings{ID: f.Type, Rand: core.NewRand(1, f.Type), Log: log})
	if err != nil {
		panic(err)
	}
	return s
}
