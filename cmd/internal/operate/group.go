// Package operate holds the commands that run a composition on real machines, and those that watch and change what runs.
package operate

import (
	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
	"github.com/quartet-sched/quartet/core"
)

// app is one invocation, with the commands of this package as methods.
type app struct{ *cli.App }

// Commands run a composition on real machines, and talk to a running scheduler.
func Commands(invocation *cli.App) []*cobra.Command {
	a := &app{invocation}
	return []*cobra.Command{
		a.runCommand(), a.planCommand(), a.forecastCommand(), a.uiCommand(),
		a.submitCommand(), a.jobsCommand(), a.describeCommand(), a.explainCommand(), a.logsCommand(), a.waitCommand(), a.cancelCommand(), a.nodesCommand(),
		a.healthCommand("drain", "Take the jobs off nodes and place no more there", core.Draining),
		a.healthCommand("undrain", "Place jobs on drained nodes again", core.Ready),
	}
}
