package cells

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// Config is the virtual clusters as the stages that know of them get them.
type Config struct {
	// Tenants are those that have a virtual cluster; jobs of all others take what is left.
	Tenants []TenantConfig `config:"tenants" doc:"who has a virtual cluster; jobs of all others take what is left"`
	// Levels are levels of cells besides device, node and rack.
	Levels []GroupConfig `config:"levels" doc:"levels of cells besides device, node, and rack where nodes name their racks"`
}

// VirtualClusters lets a config that embeds this one return it.
func (c Config) VirtualClusters() Config { return c }

// Equal reports whether two configs promise the same.
func (c Config) Equal(o Config) bool {
	return slices.Equal(c.Levels, o.Levels) && slices.EqualFunc(c.Tenants, o.Tenants, func(a, b TenantConfig) bool {
		return a.Name == b.Name && slices.Equal(a.Cells, b.Cells)
	})
}

// TenantConfig is the virtual cluster of a tenant.
type TenantConfig struct {
	// Name is the tenant that it belongs to.
	Name string `config:"name" doc:"tenant that it belongs to" required:"true"`
	// Cells are the cells that it is made of.
	Cells []CellConfig `config:"cells" doc:"the cells that it is made of" required:"true"`
}

// CellConfig is a number of equal cells.
type CellConfig struct {
	// Level is the level of the cells: device, node, rack or a configured one.
	Level string `config:"level" doc:"level of the cells: device, node, rack, or one of levels" required:"true"`
	// Accelerator is the accelerator type of the devices; empty where the cluster has one.
	Accelerator string `config:"accelerator" doc:"accelerator type of the devices; may be left out where the cluster has one"`
	// Count is the number of such cells.
	Count int `config:"count" doc:"number of such cells" min:"1"`
}

// GroupConfig is a level of cells besides those that there always are.
type GroupConfig struct {
	// Name is the name of the level, such as switch or socket.
	Name string `config:"name" doc:"name of the level, such as switch or socket" required:"true"`
	// Devices is how many neighbouring devices of a node each cell has.
	Devices int `config:"devices" doc:"devices of each cell, which lie beside each other in a node; there is no such level on nodes that are not larger" min:"0"`
	// Nodes is how many nodes each cell has, in their order in the cluster.
	Nodes int `config:"nodes" doc:"nodes of each cell, in their order in the cluster, and within a rack as long as it is not larger" min:"0"`
}

// Validate reports what is wrong whatever the cluster.
func (c Config) Validate() error {
	var problems []error
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for i, l := range c.Levels {
		if l.Name == LevelDevice || l.Name == LevelNode || l.Name == LevelRack {
			refuse("levels[%d].name: there always is a level %s", i, l.Name)
		}
		if slices.ContainsFunc(c.Levels[:i], func(o GroupConfig) bool { return o.Name == l.Name }) {
			refuse("levels[%d].name: there are two levels %q", i, l.Name)
		}
		if (l.Devices > 1) == (l.Nodes > 1) || l.Devices == 1 || l.Nodes == 1 {
			refuse("levels[%d]: give either devices or nodes, more than one", i)
		}
	}
	for i, t := range c.Tenants {
		if slices.ContainsFunc(c.Tenants[:i], func(o TenantConfig) bool { return o.Name == t.Name }) {
			refuse("tenants[%d].name: tenant %q is listed twice", i, t.Name)
		}
		if len(t.Cells) == 0 {
			refuse("tenants[%d].cells: must not be empty; a tenant without cells needs no entry", i)
		}
	}
	return errors.Join(problems...)
}

// CheckCluster reports cells that the cluster does not have, and an assignment that is not valid: one whose cells cannot all be had
// at once. Nodes that a scaler may take away do not count.
func (c Config) CheckCluster(cluster *core.Cluster) core.Diagnostics {
	var found core.Diagnostics
	refuse := func(path, hint, format string, args ...any) {
		found = append(found, core.Diagnostic{Path: path, Summary: fmt.Sprintf(format, args...), Hint: hint})
	}
	lasting := lasting(cluster)
	if len(c.Tenants) == 0 {
		return nil
	}
	shapes, forests := make([][]Level, len(cluster.Accelerators)), make([]chain, len(cluster.Accelerators))
	wanted, sound := make([][]int, len(shapes)), make([][]int, len(shapes))
	for t := range shapes {
		levels, err := Shape(lasting, core.AcceleratorID(t), c.Levels)
		if err != nil {
			refuse("levels", "", "%v", err)
			return found
		}
		if shapes[t] = levels; len(levels) > 0 {
			forests[t] = newChain(lasting, core.AcceleratorID(t), levels)
			wanted[t], sound[t] = make([]int, len(levels)), forests[t].Sound(nil)
		}
	}
	invalid := make([]bool, len(shapes))
	for i, tenant := range c.Tenants {
		for k, cell := range tenant.Cells {
			path := fmt.Sprintf("tenants[%d].cells[%d]", i, k)
			t, ok := cell.chain(cluster)
			switch {
			case !ok && cell.Accelerator == "":
				refuse(path+".accelerator", core.SuggestHint("", "types", cluster.Accelerators), "required in a cluster of several accelerator types, but missing")
				continue
			case !ok || len(shapes[t]) == 0:
				hint := ""
				if !ok {
					hint = core.SuggestHint(cell.Accelerator, "types", cluster.Accelerators)
				}
				refuse(path+".accelerator", hint, "no node that stays has accelerators of type %q", cell.Accelerator)
				continue
			}
			level := levelNamed(shapes[t], cell.Level)
			if level < 0 {
				refuse(path+".level", core.SuggestHint(cell.Level, "levels", namesOf(shapes[t])), "there is no level %q on %s", cell.Level, cluster.Accelerators[t])
				continue
			}
			if wanted[t][level] += cell.Count; invalid[t] {
				continue
			}
			if short, missing := Missing(shapes[t], sound[t], wanted[t]); missing > 0 {
				invalid[t] = true
				refuse(path, "take cells from a tenant, or add nodes", "tenant %q cannot have %d more cells of level %s on %s: with those of the tenants before it, %s missing", tenant.Name, cell.Count, cell.Level, cluster.Accelerators[t],
					plural(missing, shapes[t][short].Name))
			}
		}
	}
	return found
}

// NoteCluster warns of levels without a whole cell: no accelerator type has so many nodes, whatever join.
func (c Config) NoteCluster(cluster *core.Cluster) (ds core.Diagnostics) {
	nodes := make([]int, len(cluster.Accelerators))
	for i := range cluster.Nodes {
		if n := &cluster.Nodes[i]; n.Pool == "" {
			nodes[n.Accelerator]++
		}
	}
	for i := range cluster.Pools {
		nodes[cluster.Pools[i].Accelerator] += cluster.Pools[i].Max
	}
	most := 0
	for _, n := range nodes {
		most = max(most, n)
	}
	for i, l := range c.Levels {
		if len(c.Tenants) > 0 && l.Nodes > most {
			ds = append(ds, core.Diagnostic{
				Path: fmt.Sprintf("levels[%d].nodes", i), Summary: fmt.Sprintf("there is no cell of level %q: it has %d nodes, and no accelerator type more than %d", l.Name, l.Nodes, most),
				Hint: fmt.Sprintf("leave it out, or set %d or fewer", most),
			})
		}
	}
	return ds
}

func plural(n int, of string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s is", of)
	}
	return fmt.Sprintf("%d %ss are", n, of)
}

// lasting is the cluster with those nodes of pools only that always stay.
func lasting(c *core.Cluster) *core.Cluster {
	if len(c.Pools) == 0 {
		return c
	}
	stays := *c
	stays.Nodes = slices.Clone(c.Nodes)
	for i := range c.Pools {
		left := c.Pools[i].Min
		for n := range stays.Nodes {
			if node := &stays.Nodes[n]; node.Pool == c.Pools[i].Name {
				if left--; left < 0 {
					node.Health = core.Gone
				}
			}
		}
	}
	return &stays
}

// chain is the accelerator type of the cells in a cluster, and whether there is one.
func (c CellConfig) chain(cluster *core.Cluster) (core.AcceleratorID, bool) {
	if c.Accelerator == "" {
		return 0, len(cluster.Accelerators) == 1
	}
	t := cluster.Accelerator(c.Accelerator)
	return t, t != core.AnyAccelerator
}

// levelNamed is the level of a name; -1 for none. A node of one device is that device.
func levelNamed(levels []Level, name string) int {
	at := slices.IndexFunc(levels, func(l Level) bool { return l.Name == name })
	if at < 0 && name == LevelNode {
		return 0
	}
	return at
}

func namesOf(levels []Level) []string {
	names := make([]string, len(levels))
	for k := range levels {
		names[k] = levels[k].Name
	}
	return names
}
