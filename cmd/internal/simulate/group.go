// Package simulate holds the commands that compose a scheduler and simulate it: simulate and config.
package simulate

import (
	"github.com/spf13/cobra"

	"github.com/quartet-sched/quartet/cmd/internal/cli"
)

// app is one invocation, with the commands of this package as methods.
type app struct{ *cli.App }

// Commands compose a scheduler and simulate it.
func Commands(invocation *cli.App) []*cobra.Command {
	a := &app{invocation}
	return []*cobra.Command{a.simulateCommand(), a.configCommand()}
}
