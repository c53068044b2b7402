package cli

import (
	"github.com/quartet-sched/quartet"
)

// BuildInfo says what this program was built from.
type BuildInfo = quartet.Build

// ReadBuild reads what this program was built from.
func ReadBuild() BuildInfo { return quartet.ReadBuild() }
