// Package study holds the commands that compare compositions and show what came of runs.
package study

import (
	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
)

// app is one invocation, with the commands of this package as methods.
type app struct{ *cli.App }

// Commands compare compositions, and show what came of runs.
func Commands(invocation *cli.App) []*cobra.Command {
	a := &app{invocation}
	return []*cobra.Command{a.benchCommand(), a.compareCommand(), a.adviseCommand(), a.reportCommand(), a.timelineCommand(), a.fillCommand(), a.synergyBoundCommand()}
}
