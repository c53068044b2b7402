// Package plugin holds the commands about the parts that a config can name, and about plugins, which are parts in processes of their own.
package plugin

import (
	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
)

// app is one invocation, with the commands of this package as methods.
type app struct{ *cli.App }

// Commands list the parts that a config can name, and those in processes of their own.
func Commands(invocation *cli.App) []*cobra.Command {
	a := &app{invocation}
	return []*cobra.Command{a.policyCommand(), a.pluginCommand()}
}
