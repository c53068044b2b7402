package cli

import (
	"github.com/quartet-sched/quartet"
)

// BuildInfo says what this program was built from.
type BuildInfo = quartet.Build

func ReadBuild() BuildInfo { return quartet.ReadBuild() }
