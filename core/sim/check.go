package sim

import (
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// checkRounds refuses the publication options that go only with rounds on an interval and none on events.
func (c *Config) checkRounds(intervalSeconds float64, onEvents bool) core.Diagnostics {
	if intervalSeconds > 0 && !onEvents {
		return nil
	}
	var ds core.Diagnostics
	for _, option := range [...]struct{ name, value, needy string }{
		{"first_round", c.Publication.FirstRound, oneInterval},
		{"progress", c.Publication.Progress, perRound},
		{"progress", c.Publication.Progress, backToBack},
		{"completion", c.Publication.Completion, nextRound},
	} {
		if option.value == option.needy {
			ds = append(ds, core.Diagnostic{
				Path:    "publication." + option.name,
				Summary: option.value + " needs rounds on an interval, and none on events",
				Hint:    "set round.interval, and round.on_events to false",
			})
		}
	}
	return ds
}

// states are the names of what a node event can lead to, by core.Health.
var states = []string{core.Ready.String(), core.Draining.String(), core.Down.String()}

// checkNodeEvents refuses events on nodes that the cluster does not have, and to states that no node has.
func (c *Config) checkNodeEvents(cluster *core.Cluster) core.Diagnostics {
	var ds core.Diagnostics
	known := make(map[string]bool, len(cluster.Nodes))
	for i := range cluster.Nodes {
		known[cluster.Nodes[i].Name] = true
	}
	for i, e := range c.NodeEvents {
		if !known[e.Node] {
			ds = append(ds, core.Diagnostic{
				Path:    fmt.Sprintf("node_events[%d].node", i),
				Summary: fmt.Sprintf("unknown node %q", e.Node), Hint: nodeHint(e.Node, cluster),
			})
		}
		if !slices.Contains(states, e.To) {
			ds = append(ds, core.Diagnostic{
				Path:    fmt.Sprintf("node_events[%d].to", i),
				Summary: fmt.Sprintf("unknown state %q", e.To), Hint: core.SuggestHint(e.To, "states", states),
			})
		}
	}
	return ds
}

// mostListed is how many nodes a hint names; clusters may have thousands.
const mostListed = 16

func nodeHint(name string, c *core.Cluster) string {
	names := make([]string, len(c.Nodes))
	for i := range c.Nodes {
		names[i] = c.Nodes[i].Name
	}
	if len(names) <= mostListed {
		return core.SuggestHint(name, "nodes", names)
	}
	if nearest := core.Nearest(name, names); nearest != "" {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	return fmt.Sprintf("the cluster has %d nodes, from %q to %q", len(names), names[0], names[len(names)-1])
}
