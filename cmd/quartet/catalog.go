package main

import (
	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core/backend/local"
)

// catalog lists the components of this program: the built-in ones, and the engines that it can run on.
func catalog() quartet.Catalog {
	all := quartet.Builtins().WithBackend(local.New(wallClock{}))
	for _, engine := range distributed() {
		all = all.WithBackend(engine)
	}
	return all
}
