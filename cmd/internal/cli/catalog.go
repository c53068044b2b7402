package cli

import (
	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/backend/local"
)

// Catalog lists the components of this program: the built-in ones, and the backends that it can run on.
func (a *App) Catalog() quartet.Catalog {
	return quartet.Builtins().WithBackend(local.New(WallClock{})).WithBackend(a.Engine.Backend)
}
