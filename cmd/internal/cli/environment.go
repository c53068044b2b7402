package cli

import (
	"os"
	"slices"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// HandedOverVariable is set where a command was handed from one program to another.
const HandedOverVariable = "QUARTET_HANDED_OVER"

// ownVariables lists the variables of the environment that begin as those of configs do and are for something else: where
// plugins are, what a job or a plugin is told when it starts, and what the tests of this repository read.
func ownVariables() []string {
	return []string{
		host.PathVariable, wire.EnvChannel, wire.Handshake.MagicCookieKey,
		agent.JobVariable, agent.RankVariable, agent.ReplicasVariable, agent.NodesVariable, agent.RendezvousVariable, agent.CheckpointVariable,
		agent.SocketVariable, agent.CAVariable, agent.TokenVariable,
		agent.ShareVariable, agent.DeviceMemoryVariable, agent.CPUsVariable, agent.MemoryVariable,
		HandedOverVariable, "QUARTET_DATA", "QUARTET_PYTHON", "QUARTET_TORCH", "QUARTET_OPTUNA", "QUARTET_NODE_PLUGIN", "QUARTET_CHROMIUM", "QUARTET_AXE", "QUARTET_CONTROLPLANE", "QUARTET_HELM", "QUARTET_MUTANT", "QUARTET_MUTANT_TRACE",
	}
}

// Environment looks up variables for a config, and remembers which.
type Environment struct{ asked []string }

// Lookup returns the value of a variable, if it is set.
func (e *Environment) Lookup(name string) (string, bool) {
	e.asked = append(e.asked, name)
	return os.LookupEnv(name)
}

// noteStrayVariables tells, once, of variables that look as if they set something and are read by nothing. The config is nil where it
// could not be loaded.
func (a *App) noteStrayVariables(e *Environment, config *configs.Config) {
	if a.strayVariablesReported {
		return
	}
	a.strayVariablesReported = true
	known := slices.Concat(ownVariables(), e.asked)
	if config != nil {
		known = append(known, config.PluginVariables()...)
	}
	for _, d := range configs.StrayVariables(os.Environ(), known) {
		a.Note("%s", d)
	}
}
