package sim

import (
	"fmt"
	"slices"
	"time"

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
		{"progress", c.Publication.Progress, wholeSteps},
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
var states = []string{core.Ready.String(), core.Draining.String(), core.Down.String(), core.Gone.String()}

// healthOf is the health that a node event leads to.
func healthOf(state string) core.Health {
	if state == core.Gone.String() {
		return core.Gone
	}
	return core.Health(slices.Index(states, state))
}

// checkNodes refuses nodes that join by a name that there is, events on nodes that the cluster never has, or not yet, and to
// states that no node has.
func (c *Config) checkNodes(cluster *core.Cluster) core.Diagnostics {
	ds := c.checkPoolNames(cluster)
	readyAt := make(map[string]time.Duration, len(cluster.Nodes))
	for i := range cluster.Nodes {
		readyAt[cluster.Nodes[i].Name] = 0
	}
	for i := range c.JoiningNodes {
		g := &c.JoiningNodes[i]
		for k := range g.count() {
			name := g.nodeName(k)
			if _, taken := readyAt[name]; taken {
				ds = append(ds, core.Diagnostic{
					Path:    fmt.Sprintf("joining_nodes[%d].name", i),
					Summary: fmt.Sprintf("there is a node %q already", name), Hint: "a name is used once, also after its node has gone",
				})
				break
			}
			readyAt[name] = g.At + g.Provisioning
		}
	}
	for i, e := range c.NodeEvents {
		ready, known := readyAt[e.Node]
		switch {
		case !known:
			ds = append(ds, core.Diagnostic{
				Path:    fmt.Sprintf("node_events[%d].node", i),
				Summary: fmt.Sprintf("unknown node %q", e.Node), Hint: c.nodeHint(e.Node, cluster),
			})
		case e.At < ready:
			ds = append(ds, core.Diagnostic{
				Path:    fmt.Sprintf("node_events[%d].at", i),
				Summary: fmt.Sprintf("node %q is not ready before %v", e.Node, ready), Hint: "it joins then, or is provisioned until then",
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

func (c *Config) nodeHint(name string, cluster *core.Cluster) string {
	names := make([]string, len(cluster.Nodes))
	for i := range cluster.Nodes {
		names[i] = cluster.Nodes[i].Name
	}
	for i := range c.JoiningNodes {
		for k := range c.JoiningNodes[i].count() {
			names = append(names, c.JoiningNodes[i].nodeName(k))
		}
	}
	if len(names) <= mostListed {
		return core.SuggestHint(name, "nodes", names)
	}
	if nearest := core.Nearest(name, names); nearest != "" {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	return fmt.Sprintf("the cluster has %d nodes, from %q to %q", len(names), names[0], names[len(names)-1])
}
