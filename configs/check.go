package configs

import (
	"fmt"
	"strings"

	"github.com/quartet-sched/quartet/core"
)

// maxNodes bounds the size of a cluster, far above any that exists, so that a slip of the finger does not eat the
// memory of the machine.
const maxNodes = 100_000

// emptyMappings refuses mappings without keys, except in the settings of components: they say nothing, and more likely
// than not a key was lost.
func emptyMappings(n *node) core.Diagnostics {
	var ds core.Diagnostics
	check := func(child *node) {
		if child.kind == mappingKind && len(child.keys) == 0 {
			ds = append(ds, core.Diagnostic{Position: child.at, Summary: "mapping without keys", Hint: "give it one, or remove it"})
		}
		ds = append(ds, emptyMappings(child)...)
	}
	for _, item := range n.list {
		check(item)
	}
	for _, key := range n.keys {
		if key != "config" {
			check(n.fields[key])
		}
	}
	return ds
}

// checkFile checks what the form of the file cannot say.
func (l *loader) checkFile(c *Config) {
	if c.Version != formatVersion {
		l.problem("version", "unknown version %d; this program reads version %d", c.Version, formatVersion)
	}
	if !plainFileName(c.Name) {
		l.problem("name", "%q is not a plain file name; use letters, digits, \"-\", \"_\" and \".\"", c.Name)
	}
	if c.Round.Interval == 0 && !c.Round.OnEvents {
		l.problem("round", "no round would ever be held; give an interval, or set on_events: true")
	}
	if c.Output.Dir == "" {
		l.problem("output.dir", "must not be empty")
	}
	l.checkNodes(c.Cluster.Nodes)
}

func (l *loader) problem(path, format string, args ...any) {
	l.report(path, core.Diagnostics{{Summary: fmt.Sprintf(format, args...)}})
}

func (l *loader) checkNodes(groups []NodeGroup) {
	total := 0
	for i := range groups {
		g, path := &groups[i], fmt.Sprintf("cluster.nodes[%d]", i)
		if g.Name == "" {
			l.problem(path+".name", "must not be empty")
		}
		if g.Accelerator == "" {
			l.problem(path+".accelerator", "must not be empty")
		}
		total = min(total+min(g.size(), maxNodes+1), maxNodes+1)
	}
	switch {
	case total == 0:
		l.problem("cluster.nodes", "a cluster needs at least one node")
	case total > maxNodes:
		l.problem("cluster.nodes", "too many nodes; at most %d are possible", maxNodes)
	default:
		l.checkNodeNames(groups, total)
	}
}

func (l *loader) checkNodeNames(groups []NodeGroup, total int) {
	group := make(map[string]int, total)
	for i := range groups {
		for k := range groups[i].size() {
			name := groups[i].nodeName(k)
			if earlier, twice := group[name]; twice {
				first := l.position(fmt.Sprintf("cluster.nodes[%d]", earlier))
				l.problem(fmt.Sprintf("cluster.nodes[%d].name", i), "there are two nodes %q; the other is of %s", name, first)
				break // one report for a group
			}
			group[name] = i
		}
	}
}

// plainFileName reports whether a name can be that of a folder on every system, and is no path.
func plainFileName(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
	return name != "" && len(name) <= 200 && strings.Trim(name, allowed) == "" && !strings.ContainsAny(name[:1], ".-")
}
