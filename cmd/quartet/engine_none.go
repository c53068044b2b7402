//go:build noengines

package main

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// distributed are none: this program was built without.
func distributed() []core.Factory[backend.Opener] { return nil }
