// Package trace holds the commands that read, write and make workloads, and profiles of jobs.
package trace

import (
	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
)

// app is one invocation, with the commands of this package as methods.
type app struct{ *cli.App }

// Commands read, write and make workloads.
func Commands(invocation *cli.App) []*cobra.Command {
	a := &app{invocation}
	return []*cobra.Command{a.traceCommand(), a.profileCommand()}
}
