package configs

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/policykit/cells"
)

// maxNodes bounds the size of a cluster, far above any that exists, so that a slip of the finger does not eat the
// memory of the machine.
const maxNodes = 100_000

// decodeRest decodes the sections of which no problem tells, so that one of them does not hide what is wrong with another. The
// others hold something valid.
func (l *loader) decodeRest(f *File, ds core.Diagnostics) {
	valid := DefaultFile()
	valid.Cluster.Nodes = []NodeGroup{{Name: "any", Count: 1, Accelerator: "any", Devices: 1}}
	valid.Workload.Type, valid.Pipeline.Allocation.Type = "any", "any"
	sections, rest := core.Encode(&valid), maps.Clone(l.settings)
	l.wrong = map[string]bool{}
	for _, d := range ds {
		key := section(d.Path)
		l.wrong[key] = true
		if rest[key] = sections[key]; rest[key] == nil {
			delete(rest, key) // unknown
		}
	}
	_ = core.Decode(f, rest) // its problems are told
}

// section is the first key of a path.
func section(path string) string {
	if end := strings.IndexAny(path, ".["); end >= 0 {
		return path[:end]
	}
	return path
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
	if !l.wrong["sample"] {
		l.report("sample", c.Sample.Check())
	}
	if !l.wrong["estimate"] {
		l.report("estimate", c.Estimate.Check())
		l.checkNoise(c)
	}
	l.checkRestart()
	l.checkMeasure(c.Measure)
	if c.Output.Dir == "" {
		l.problem("output.dir", "must not be empty")
	}
	l.checkNodes(c.Cluster.Nodes, c.Cluster.Pools)
	if len(l.found) == 0 {
		l.checkSize(c)
	}
}

// checkMeasure refuses ranks and shares of jobs that leave none.
func (l *loader) checkMeasure(m Measure) {
	if m.LastJob >= 0 && m.LastJob < m.FirstJob {
		l.problem("measure.last_job", "must not be before first_job, got %d and %d", m.LastJob, m.FirstJob)
	}
	if m.WarmUpRatio > 0 || m.CoolDownRatio > 0 {
		if m.FirstJob > 0 || m.LastJob >= 0 {
			l.problem("measure", "gives ranks and shares of the jobs; give one of them")
		}
		if m.WarmUpRatio+m.CoolDownRatio >= 1 {
			l.problem("measure", "leaves no jobs: warm_up_ratio and cool_down_ratio must come to less than 1, got %v and %v", m.WarmUpRatio, m.CoolDownRatio)
		}
	}
}

// checkNoise asks for the error of noisy estimates, and notes one of 0: it is meant where errors are compared, and else is none.
func (l *loader) checkNoise(c *Config) {
	const path = "estimate.sigma"
	if c.Estimate.Source != workload.EstimateNoisy {
		return
	}
	if _, given := l.find(path); !given {
		l.report(path, core.Diagnostics{{Summary: "required with source noisy, but missing", Hint: "for example 0.7, a factor of 2; 0 gives the true work"}})
	} else if c.Estimate.Sigma == 0 {
		c.Notes = append(c.Notes, core.Diagnostic{Position: l.position(path), Path: path, Summary: "an error of 0 is none: policies know the true work"})
	}
}

// checkSize checks the cluster that a load by nodes makes of the one that is written.
func (l *loader) checkSize(c *Config) {
	load := c.Sample.Load
	if load.By != workload.ByNodes || load.Factor == 1 {
		return
	}
	groups := sized(c.Cluster.Nodes, load)
	total, devices, written := 0, 0, 0
	for i := range groups {
		total += groups[i].Count
		devices += groups[i].Count * groups[i].Devices
		written += c.Cluster.Nodes[i].Count * c.Cluster.Nodes[i].Devices
	}
	if total > maxNodes {
		l.problem("sample.load.factor", "leads to more than %d nodes", maxNodes)
		return
	}
	l.checkNodeNames(groups, nil, total)
	const path = "sample.load.factor"
	if got := float64(written) / float64(devices); math.Abs(got-load.Factor) > 0.01*load.Factor {
		c.Notes = append(c.Notes, core.Diagnostic{
			Position: l.position(path), Path: path,
			Summary: fmt.Sprintf("the load becomes %.3g times as much, for nodes are whole: there are %d devices instead of %d", got, devices, written),
		})
	}
}

// checkBackend asks the backend whether its settings go with the cluster and the rounds.
func (l *loader) checkBackend(c *Config, opener backend.Opener) {
	l.report("backend.config", opener.Check(c.BuildCluster(), c.Round.Options()))
}

// checkPolicies asks policies whether their settings go with the cluster, and with each other.
func (l *loader) checkPolicies(c *Config) {
	cluster := c.BuildCluster()
	type checked struct {
		path   string
		config any
	}
	policies := []checked{
		{"pipeline.allocation", c.Allocation.Config},
		{"pipeline.placement", c.Placement.Config},
		{"pipeline.elasticity.job", c.Elasticity.Config},
		{"pipeline.elasticity.cluster", c.Scaler.Config},
	}
	for i, s := range c.Admission {
		policies = append(policies, checked{fmt.Sprintf("pipeline.admission[%d]", i), s.Config})
	}
	placed, places := c.Placement.Config.(virtualClusters)
	for _, p := range policies {
		if config, looks := p.config.(interface {
			CheckCluster(*core.Cluster) core.Diagnostics
		}); looks {
			l.report(p.path+".config", config.CheckCluster(cluster))
		}
		if config, looks := p.config.(interface {
			NoteCluster(*core.Cluster) core.Diagnostics
		}); looks && (p.path == "pipeline.placement" || !places) { // all of a composition are told the same
			for _, d := range config.NoteCluster(cluster) {
				l.note(c, p.path+".config."+d.Path, d.Hint, "%s", d.Summary)
			}
		}
		if config, has := p.config.(virtualClusters); has && places && !config.VirtualClusters().Equal(placed.VirtualClusters()) {
			l.problem(p.path+".config.tenants", "tenants and levels are others than those of %q", c.Placement.ID)
		}
	}
}

// virtualClusters is the config of a policy that is told virtual clusters: all of a composition are told the same.
type virtualClusters interface{ VirtualClusters() cells.Config }

// problem reports what is wrong at a path of a section whose form is right.
func (l *loader) problem(path, format string, args ...any) {
	if l.wrong[section(path)] {
		return
	}
	l.report(path, core.Diagnostics{{Summary: fmt.Sprintf(format, args...)}})
}

// checkNodes also fills in the count of single nodes.
func (l *loader) checkNodes(groups []NodeGroup, pools []Pool) {
	total := l.checkPools(pools)
	for i := range groups {
		g, path := &groups[i], fmt.Sprintf("cluster.nodes[%d]", i)
		if g.Name == "" {
			l.problem(path+".name", "must not be empty")
		}
		if g.Accelerator == "" {
			l.problem(path+".accelerator", "must not be empty")
		}
		if _, given := l.find(path + ".count"); !given {
			g.Count = 1
		} else if g.Count < 1 {
			l.problem(path+".count", "must be at least 1, got %d", g.Count)
		}
		l.checkAmounts(path, g.CPUs, g.MemoryGB, g.DeviceMemoryGB)
		total = min(total+min(max(g.Count, 0), maxNodes+1), maxNodes+1)
	}
	_, given := l.find("cluster.nodes")
	switch {
	case len(groups) == 0 && len(pools) == 0 && given:
		l.problem("cluster.nodes", "a cluster needs at least one node")
	case len(groups) == 0 && len(pools) == 0:
		l.report("cluster.nodes", core.Diagnostics{{Summary: "required but missing", Hint: "the machines, one item for each group of equal nodes"}})
	case total > maxNodes:
		key := "cluster.nodes"
		if len(groups) == 0 {
			key = "cluster.pools"
		}
		l.problem(key, "too many nodes; at most %d are possible", maxNodes)
	default:
		l.checkNodeNames(groups, pools, total)
	}
}

// leastAmount is the unit in which CPUs and gigabytes are counted.
const leastAmount = 0.001

// checkAmounts refuses what rounds to nothing: a node that has it would have none, and not be one of which that is not known.
func (l *loader) checkAmounts(path string, cpus, memoryGB, deviceMemoryGB float64) {
	for _, a := range [...]struct {
		key string
		has float64
	}{{"cpus", cpus}, {"memory_gb", memoryGB}, {"device_memory_gb", deviceMemoryGB}} {
		if a.has > 0 && a.has < leastAmount {
			l.problem(path+"."+a.key, "must be at least %v, which is what it is counted in, or 0 where it is not known; got %v", leastAmount, a.has)
		}
	}
}

// checkPools checks each pool, and returns how many nodes they may have together.
func (l *loader) checkPools(pools []Pool) (total int) {
	for i := range pools {
		p, path := &pools[i], fmt.Sprintf("cluster.pools[%d]", i)
		if p.Name == "" {
			l.problem(path+".name", "must not be empty")
		}
		if slices.ContainsFunc(pools[:i], func(o Pool) bool { return o.Name == p.Name }) {
			l.problem(path+".name", "there are two pools %q", p.Name)
		}
		if p.Accelerator == "" {
			l.problem(path+".accelerator", "must not be empty")
		}
		if p.Devices < 1 || p.Devices > core.MaxDevicesPerNode {
			l.problem(path+".devices", "must be between 1 and %d, got %d", core.MaxDevicesPerNode, p.Devices)
		}
		if p.Max < 1 || p.Max < p.Min {
			l.problem(path+".max", "must be at least 1 and not below min, got %d", p.Max)
		}
		if p.Min <= p.Max && (p.Start < p.Min || p.Start > p.Max) {
			l.problem(path+".start", "must be between min and max, %d and %d, got %d", p.Min, p.Max, p.Start)
		}
		l.checkAmounts(path, p.CPUs, p.MemoryGB, p.DeviceMemoryGB)
		for k := 1; k < len(p.Prices); k++ {
			if p.Prices[k].From <= p.Prices[k-1].From {
				l.problem(fmt.Sprintf("%s.prices[%d].from", path, k), "must be later than that of the price before, %s, got %s", p.Prices[k-1].From, p.Prices[k].From)
			}
		}
		total = min(total+min(max(p.Max, 0), maxNodes+1), maxNodes+1)
	}
	return total
}

func (l *loader) checkNodeNames(groups []NodeGroup, pools []Pool, total int) {
	group := make(map[string]int, total)
	for i := range groups {
		for k := range groups[i].Count {
			name := groups[i].nodeName(k)
			if earlier, twice := group[name]; twice {
				first := l.position(fmt.Sprintf("cluster.nodes[%d]", earlier))
				l.problem(fmt.Sprintf("cluster.nodes[%d].name", i), "there are two nodes %q; the other is declared at %s", name, first)
				break // one report for a group
			}
			if at := slices.IndexFunc(pools, func(p Pool) bool { return p.names(name) }); at >= 0 {
				l.problem(fmt.Sprintf("cluster.nodes[%d].name", i), "pool %q may call a node of its own %q, too", pools[at].Name, name)
				break
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
