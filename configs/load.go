package configs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// Options say what to load besides the catalog.
type Options struct {
	// Files are laid over each other in this order; none for the embedded default. Where there is no such file, the
	// name of an embedded config will do. "-" is Stdin.
	Files  []string
	Sets   []string // path=value, applied after the files
	Flags  []Flag   // applied after Sets
	OutDir string   // overrides output.dir when not empty

	// Stdin reads all of standard input, and may be called again; nil where it is not to be read.
	Stdin func() ([]byte, error)
	// ReadFile reads the files; nil for os.ReadFile.
	ReadFile func(name string) ([]byte, error)
	// Env looks up the variables that paths name; nil for an empty environment, so that a recorded config means the same
	// everywhere. With it, the variables listed by Variables set values, too: those of the process.
	Env func(name string) (value string, set bool)
	// Outside lists the policies of other processes, to be used on the terms given; nil when there are none. It is asked
	// only for what the catalog does not hold and for what is to be isolated.
	Outside func(terms Outside) (Catalog, error)
}

// Flag is a flag of the program that sets a value: problems with the value name it.
type Flag struct {
	Name string // such as "--name"
	Set  string // assignment path=value that the flag stands for
}

func (o Options) env(name string) (string, bool) {
	if o.Env == nil {
		return "", false
	}
	return o.Env(name)
}

// Load reads a config from files. An error is a core.Diagnostics with every problem found.
func Load(c Catalog, o Options) (*Config, error) {
	if len(o.Files) == 0 {
		return Parse(c, builtIn+defaultName, defaultConfig, o)
	}
	name := o.Files[0]
	if name == stdinName {
		name = stdinPlace
	}
	l := newLoader(c, o, name)
	for _, name := range o.Files {
		place, data, err := o.read(name)
		if err != nil {
			l.found, l.unreadable = append(l.found, unreadable(cmp.Or(name, place), err)), true
			continue
		}
		l.read(place, data)
	}
	return l.load()
}

// Parse is Load for a single file in memory; name stands for it in positions.
func Parse(c Catalog, name string, data []byte, o Options) (*Config, error) {
	l := newLoader(c, o, name)
	l.read(name, data)
	return l.load()
}

// read reads a file or, where there is none, the embedded config of that name. The place is what positions name.
func (o Options) read(name string) (place string, data []byte, err error) {
	switch name {
	case stdinName:
		return o.stdin()
	case "":
		return "-f", nil, errors.New("its name is empty")
	}
	readFile := o.ReadFile
	if readFile == nil {
		readFile = os.ReadFile
	}
	data, err = readFile(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return name, data, err
	}
	if embedded, builtInErr := fs.ReadFile(Embedded(), name); builtInErr == nil {
		return builtIn + name, embedded, nil
	}
	return name, nil, err
}

func unreadable(name string, err error) core.Diagnostic {
	reason := err.Error()
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		reason = pathError.Err.Error()
	}
	d := core.Diagnostic{Position: core.Position{File: name}, Summary: "cannot read the config: " + reason}
	if errors.Is(err, fs.ErrNotExist) {
		nearest := core.Nearest(name, EmbeddedNames())
		if slices.Contains(EmbeddedNames(), name+".yaml") {
			nearest = name + ".yaml"
		}
		if nearest != "" {
			d.Hint = fmt.Sprintf("did you mean the embedded %q?", nearest)
		}
	}
	return d
}

// loader carries one load from text to Config.
type loader struct {
	catalog Catalog
	options Options
	name    string // of the first file
	root    *node
	found   core.Diagnostics

	unreadable bool // a file is missing from root, so that nothing more can be said about the whole

	settings map[string]any // root over the defaults

	wrong map[string]bool // sections of the file whose form is wrong, by key: nothing more is said about them

	fromRestart map[string]string // settings that the section restart gave: its path, by theirs

	outsideFailed error // why policies of other processes cannot be found
}

func newLoader(c Catalog, o Options, name string) *loader {
	return &loader{catalog: c, options: o, name: name, root: newMapping(core.Position{File: name, Line: 1, Column: 1}), fromRestart: map[string]string{}}
}

func (l *loader) read(name string, data []byte) {
	root, ds := readFile(name, data)
	l.found = append(l.found, ds...)
	if root == nil {
		l.unreadable = true
		return
	}
	l.root = l.root.merge(root)
}

// load takes the tree through its steps: what was given outside of files, expansion, defaults, the form of the file,
// the components, and what must hold between them. It skips a step that needs what an earlier one found missing.
func (l *loader) load() (*Config, error) {
	l.found = append(l.found, overlay(l.root, l.options)...)
	l.found = append(l.found, expand(l.root, l.options)...)
	if l.unreadable {
		return nil, l.found.Err()
	}
	return l.compose()
}

// compose takes a tree with everything that was given through the other steps.
func (l *loader) compose() (*Config, error) {
	l.layer()
	f := defaultFile()
	ds := core.Decode(&f, l.settings)
	l.report("", ds)
	if len(ds) > 0 {
		l.decodeRest(&f, ds)
	}
	c := &Config{
		Version: f.Version, Name: f.Name, Seed: f.Seed, Plugins: f.Plugins, Cluster: f.Cluster, Sample: f.Sample, Estimate: f.Estimate, Round: f.Round, Restart: f.Restart, Measure: f.Measure, Output: f.Output,
		Synthesizer: f.Synthesizer,
		reread:      l.reread, tree: l.root, fromRestart: l.fromRestart,
	}
	l.checkFile(c)
	l.selectComponents(c)
	if len(l.found) == 0 {
		l.checkPolicies(c)
		l.checkCapabilities(c)
	}
	l.chooseAlternatives(c)
	if err := l.found.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

func (l *loader) reread(resolved []byte) (*Config, error) {
	return Parse(l.catalog, "the recorded config", resolved, Options{Outside: l.options.Outside})
}

// report adds the problems of the part of the config at path, at the position where they were written.
func (l *loader) report(path string, ds core.Diagnostics) {
	for _, d := range ds {
		d.Path = core.JoinPath(path, d.Path)
		d.Position = l.position(d.Path)
		l.found = append(l.found, d)
	}
}

// find returns the node at a path, or the nearest one above it and false.
func (l *loader) find(path string) (*node, bool) {
	steps, _ := parsePath(path)
	return l.root.find(steps)
}

// position is where the value at a path was written, or the nearest place above it.
func (l *loader) position(path string) core.Position {
	n, _ := l.find(path)
	return n.at
}

// selectComponents fills the slots of the config.
func (l *loader) selectComponents(c *Config) {
	c.Workload = choose(l, "workload", "workload", l.catalog.Workload)
	c.Admission = l.chooseAdmission()
	c.Allocation = choosePolicy(l, slot[core.Allocator]{"allocation", "pipeline.allocation", Catalog.allocation})
	c.Placement = choosePolicy(l, slot[core.Placer]{"placement", "pipeline.placement", Catalog.placement})
	c.Elasticity = choosePolicy(l, slot[core.Elasticity]{"elasticity", "pipeline.elasticity.job", Catalog.elasticity})
	c.Scaler = choosePolicy(l, slot[core.ClusterScaler]{"scaler", "pipeline.elasticity.cluster", Catalog.scaler})
	c.Backend = choose(l, "backend", "backend", l.catalog.Backend)
}

func (l *loader) chooseAdmission() []Selected[core.Admitter] {
	list, _ := lookup(l.settings, "pipeline.admission").([]any)
	admission := make([]Selected[core.Admitter], len(list))
	seen := map[string]int{}
	for i := range list {
		s := choosePolicy(l, slot[core.Admitter]{"admission", fmt.Sprintf("pipeline.admission[%d]", i), Catalog.admission})
		seen[s.ID]++
		if n := seen[s.ID]; n > 1 {
			s.ID = fmt.Sprintf("%s#%d", s.ID, n)
		}
		admission[i] = s
	}
	return admission
}

// choose finds the factory that a component names and decodes its settings. A component without a type was reported
// with the form of the file.
func choose[S any](l *loader, stage, path string, factories []core.Factory[S]) Selected[S] {
	name, ok := lookup(l.settings, path+".type").(string)
	if !ok {
		return Selected[S]{}
	}
	i := slices.IndexFunc(factories, func(f core.Factory[S]) bool { return f.Type == name })
	if i < 0 {
		types := make([]string, len(factories))
		for k := range factories {
			types[k] = factories[k].Type
		}
		slices.Sort(types)
		l.report(path+".type", core.Diagnostics{{
			Summary: fmt.Sprintf("unknown %s %q", stage, name), Hint: core.SuggestHint(name, "types", types),
		}})
		return Selected[S]{}
	}
	s := Selected[S]{ID: stage + "/" + name, Factory: factories[i], At: l.position(path + ".type"), drew: &atomic.Bool{}}
	l.layRestart(stage, path, name, s.Factory.Fields)
	raw, _ := lookup(l.settings, path+".config").(map[string]any)
	config, ds := s.Factory.Decode(raw)
	l.report(path+".config", ds)
	s.Config = config
	if len(ds) == 0 {
		s.Factory = s.Factory.Described()
	}
	return s
}

// checkCapabilities asks the backend what it can tell, and refuses components that need more.
func (l *loader) checkCapabilities(c *Config) {
	opener, err := c.Backend.New(c.Seed, nil)
	if err != nil {
		l.report("backend", core.Diagnostics{{Summary: err.Error()}})
		return
	}
	l.checkBackend(c, opener)
	can := backend.OpenerAbilitiesOf(opener)
	if can.Durable != nil && c.Sample.Load.By == workload.ByNodes && c.Sample.Load.Factor != 1 {
		l.problem("sample.load.by", "%q has the machines it has; use thinning or compression", c.Backend.ID)
	}
	from := giver{id: c.Backend.ID, gives: slices.Clone(opener.Capabilities())}
	if !c.Estimate.WorkKnown() {
		const work = core.CapabilityRemainingWork
		from.gives = slices.DeleteFunc(from.gives, func(given core.Capability) bool { return given == work })
		from.id += " with estimate.source " + c.Estimate.Source
	}
	for i, s := range c.Admission {
		needs(l, fmt.Sprintf("pipeline.admission[%d]", i), s, from)
	}
	needs(l, "workload", c.Workload, from)
	needs(l, "pipeline.allocation", c.Allocation, from)
	needs(l, "pipeline.placement", c.Placement, from)
	needs(l, "pipeline.elasticity.job", c.Elasticity, from)
	needs(l, "pipeline.elasticity.cluster", c.Scaler, from)
	l.checkShares(c, from)
	l.noteScaler(c, opener)
	l.noteTurns(c, can.Starting)
	l.noteInterval(c)
	l.noteRestart(c)
	l.notePromises(c, can.Starting)
	l.noteSharing(c)
}

// checkShares refuses a backend, or a placer, that knows whole devices only, where the cluster counts more, and an allocator that counts on more.
func (l *loader) checkShares(c *Config, from giver) {
	sharing, err := core.SharingOf(c.Cluster.Sharing)
	if err != nil {
		return // told before
	}
	if sharing != core.Exclusive {
		if !slices.Contains(from.gives, core.CapabilityShares) {
			l.problem("cluster.sharing", "%q gives each device to one job at a time", from.id)
		} else if sharing == core.Mig && !slices.Contains(from.gives, core.CapabilitySlices) {
			l.problem("cluster.sharing", "mig needs capability %q, which %q does not give", core.CapabilitySlices, from.id)
		}
		l.checkPlacer(c, "cluster.sharing: "+sharing.String(), func(i *core.Info) bool { return slices.Contains(i.Sharing, sharing) })
	}
	if sharing == core.TimeSlice {
		l.checkDeviceMemory(c.Cluster.Nodes)
	}
	each("pipeline.allocation", c.Allocation, func(path string, a Selected[core.Allocator]) {
		of := a.Factory.Sharing
		if len(of) == 0 || slices.Contains(of, sharing) {
			return
		}
		names := make([]string, len(of))
		for i, s := range of {
			names[i] = s.String()
		}
		l.report(path+".type", core.Diagnostics{{
			Summary: fmt.Sprintf("%q has jobs share devices, which cluster.sharing: %s does not let them", a.ID, sharing),
			Hint:    "ways of sharing that do: " + strings.Join(names, ", "),
		}})
	})
	each("pipeline.placement", c.Placement, func(path string, p Selected[core.Placer]) {
		if p.Factory.Divides && !slices.Contains(from.gives, core.CapabilityResources) {
			l.problem(path+".type", "%q needs capability %q, which %q does not give", p.ID, core.CapabilityResources, from.id)
		}
		if p.Factory.Divides && !c.Cluster.CountResources {
			l.report(path+".type", core.Diagnostics{{
				Summary: fmt.Sprintf("%q divides CPUs and memory, which the cluster does not count", p.ID), Hint: "set cluster.count_resources to true",
			}})
		}
	})
	if c.Cluster.CountResources {
		l.checkPlacer(c, "cluster.count_resources", func(i *core.Info) bool { return i.Counts })
	}
}

// checkDeviceMemory refuses nodes of one accelerator type with other memory: where jobs take turns, a type stands for its devices.
func (l *loader) checkDeviceMemory(groups []NodeGroup) {
	first := map[string]*NodeGroup{}
	for i := range groups {
		g := &groups[i]
		if of := first[g.Accelerator]; of == nil {
			first[g.Accelerator] = g
		} else if of.DeviceMemoryGB != g.DeviceMemoryGB {
			l.problem(fmt.Sprintf("cluster.nodes[%d].device_memory_gb", i), "must be %v as on node %q, which is %q, too, where jobs take turns; got %v", of.DeviceMemoryGB, of.Name, g.Accelerator, g.DeviceMemoryGB)
		}
	}
}

// checkPlacer refuses a placer that does not know what the cluster needs, and names those that do.
func (l *loader) checkPlacer(c *Config, need string, knows func(*core.Info) bool) {
	each("pipeline.placement", c.Placement, func(path string, p Selected[core.Placer]) {
		if knows(&p.Factory.Info) {
			return
		}
		var others []string
		for i := range l.catalog.Placement {
			if f := &l.catalog.Placement[i]; knows(&f.Info) {
				others = append(others, f.Type)
			}
		}
		why := fmt.Sprintf("%q does not go with %s", p.ID, need)
		if p.Remote != nil && !p.Remote.Isolated {
			why += ": its plugin does not say that it counts that"
		}
		l.report(path+".type", core.Diagnostics{{Summary: why, Hint: "placements that do: " + strings.Join(others, ", ")}})
	})
}

// each looks at a selected policy, and at the one that takes over from it when its process fails.
func each[S any](path string, s Selected[S], look func(path string, s Selected[S])) {
	look(path, s)
	if s.Remote != nil && s.Remote.Fallback != nil {
		each(path+".plugin.fallback", *s.Remote.Fallback, look)
	}
}

// noteScaler says when nothing carries out what a scaler decides, and when nobody sizes the pools that there are. That is no problem: a scaler
// can be watched deciding, and pools may be all that they need to be.
func (l *loader) noteScaler(c *Config, opener backend.Opener) {
	if c.Scaler.Factory.Type == noScaler && len(c.Cluster.Pools) > 0 {
		c.Notes = append(c.Notes, core.Diagnostic{
			Position: l.position("cluster.pools"), Path: "cluster.pools",
			Summary: "no policy sizes the pools: they begin with start nodes, and get others only where they would have fewer than min; set pipeline.elasticity.cluster",
		})
	}
	why := fmt.Sprintf("%q neither adds nor removes nodes", c.Backend.ID)
	switch can := slices.Contains(opener.Capabilities(), core.CapabilityScaleCluster); {
	case c.Scaler.Factory.Type == noScaler || can && len(c.Cluster.Pools) > 0:
		return
	case can:
		why = "the cluster has no pools"
	}
	const path = "pipeline.elasticity.cluster.type"
	c.Notes = append(c.Notes, core.Diagnostic{
		Position: l.position(path), Path: path,
		Summary: fmt.Sprintf("what %q decides is not carried out: %s", c.Scaler.ID, why),
	})
}

// noScaler is the type of the scaler that decides nothing.
const noScaler = "none"

// giver is who tells policies what they need besides the view.
type giver struct {
	id    string
	gives []core.Capability
}

func needs[S any](l *loader, path string, s Selected[S], from giver) {
	if s.Remote != nil && s.Remote.Fallback != nil {
		needs(l, path+".plugin.fallback", *s.Remote.Fallback, from)
	}
	for _, capability := range s.Factory.Needs(s.Config) {
		if !slices.Contains(from.gives, capability) {
			l.report(path+".type", core.Diagnostics{{
				Summary: fmt.Sprintf("%q needs capability %q, which %q does not give", s.ID, capability, from.id),
			}})
		}
	}
}
