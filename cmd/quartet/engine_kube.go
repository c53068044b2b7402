//go:build !noengines

package main

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/backend/kube"
)

// distributed are the engines of many machines, each with a client of its own that makes the program larger.
func distributed() []core.Factory[backend.Opener] {
	return []core.Factory[backend.Opener]{kube.New(wallClock{})}
}
