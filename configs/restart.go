package configs

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/restart"
)

// Restart is what a restart costs a job: the backend charges it and the policies count on it, each unless its own settings say otherwise.
type Restart struct {
	// Overhead is the pause of a job whose application is not listed.
	Overhead time.Duration `config:"overhead" doc:"pause of a job at each start and move, for every component that has a setting for it and leaves it out" min:"0s"`
	// Applications lists the applications whose jobs pause for another time.
	Applications []restart.Application `config:"applications" doc:"overheads of single applications, instead of overhead"`
}

// Validate reports applications without a name, and those listed twice.
func (r Restart) Validate() error {
	return restart.ValidateApplications("applications", r.Applications)
}

// The section of the config and its keys.
const (
	restartPath         = "restart"
	restartOverhead     = restartPath + ".overhead"
	restartApplications = restartPath + ".applications"
)

// decodeRestart reads the section.
func (l *loader) decodeRestart() (r Restart, ds core.Diagnostics) {
	section, _ := l.settings[restartPath].(map[string]any)
	ds = core.Decode(&r, section)
	return r, ds
}

// checkRestart reports what the form of the file cannot say of the section.
func (l *loader) checkRestart() {
	if l.wrong[restartPath] {
		return
	}
	if _, ds := l.decodeRestart(); len(ds) > 0 {
		l.report(restartPath, ds)
		if l.wrong == nil {
			l.wrong = map[string]bool{}
		}
		l.wrong[restartPath] = true
	}
}

// layRestart gives the component at a path the cost of a restart of the section restart, for those settings that it has and leaves out.
// A policy that plans with one figure for all jobs has the longest.
func (l *loader) layRestart(stage, path, name string, fields func() []core.Field) {
	section, given := l.find(restartPath)
	if !given || l.wrong[restartPath] {
		return
	}
	lay := func(key, from string, value any) {
		_, written := section.find([]step{{key: from[len(restartPath)+1:]}})
		if !written || value == nil || lookup(l.settings, path+".config."+key) != nil {
			return
		}
		component := lookup(l.settings, path).(map[string]any) // it has a type
		config, _ := component["config"].(map[string]any)
		if config == nil {
			config = map[string]any{}
			component["config"] = config
		}
		config[key] = value
		l.fromRestart[path+".config."+key] = from
	}
	known := fields()
	has := func(key string) bool {
		return slices.ContainsFunc(known, func(f core.Field) bool { return f.Name == key })
	}
	if has(restart.OverheadKey) {
		lay(restart.OverheadKey, restartOverhead, lookup(l.settings, restartOverhead))
	}
	if has(restart.ApplicationKey) {
		lay(restart.ApplicationKey, restartApplications, lookup(l.settings, restartApplications))
	}
	if key := l.plannedKey(stage, name); key != "" {
		lay(key, restartOverhead, core.FormatDuration(l.longestRestart()))
	}
}

// longestRestart is the longest pause of any job by the section restart.
func (l *loader) longestRestart() time.Duration {
	r, _ := l.decodeRestart() // its problems are reported
	cost := restart.Cost{RestartOverhead: r.Overhead, ApplicationOverhead: r.Applications}
	longest, _ := cost.LongestPause()
	return longest
}

// plannedKey is the setting of a built-in policy that counts one pause for all jobs, be it in plans for deadlines; empty for others.
func (l *loader) plannedKey(stage, name string) string {
	var defaults any
	switch stage {
	case "admission":
		defaults = defaultsOf(l.catalog.Admission, name)
	case "allocation":
		defaults = defaultsOf(l.catalog.Allocation, name)
	case "elasticity":
		defaults = defaultsOf(l.catalog.Elasticity, name)
	case "scaler":
		defaults = defaultsOf(l.catalog.Scaler, name)
	}
	key := ""
	switch can := abilitiesOf(defaults); {
	case can.PlansDeadlines != nil:
		_, key = can.PlansDeadlines.PlannedOverhead()
	case can.CountsRestart != nil:
		_, key = can.CountsRestart.CountedRestart()
	}
	return key
}

// defaultsOf is the config of a type with nothing but its defaults; nil where there is none.
func defaultsOf[S any](factories []core.Factory[S], name string) any {
	i := slices.IndexFunc(factories, func(f core.Factory[S]) bool { return f.Type == name })
	if i < 0 {
		return nil
	}
	config, _ := factories[i].Decode(nil)
	return config
}

// restartNode renders what was written of the section; nil for nothing.
func (c *Config) restartNode() *yaml.Node {
	values := core.Encode(&c.Restart)
	for key := range values {
		if _, written := c.tree.find([]step{{key: restartPath}, {key: key}}); !written {
			delete(values, key)
		}
	}
	if len(values) == 0 {
		return nil
	}
	return fieldsNode(core.FieldsOf(&c.Restart), values)
}

// costOf is what a component charges or counts for a restart, by its settings; false for one that has none for it.
func costOf(config any) (cost restart.Cost, has bool) {
	if config == nil {
		return cost, false
	}
	settings, raw := core.Encode(config), map[string]any{}
	for _, key := range [...]string{restart.OverheadKey, restart.ApplicationKey} {
		if value, given := settings[key]; given {
			raw[key] = value
		}
	}
	if _, has = raw[restart.OverheadKey]; !has {
		return cost, false
	}
	return cost, len(core.Decode(&cost, raw)) == 0
}

// noteRestart says where a policy counts another cost of a restart than the backend charges.
func (l *loader) noteRestart(c *Config) {
	charged, charges := costOf(c.Backend.Config)
	if !charges {
		return
	}
	if counted, counts := costOf(c.Allocation.Config); counts {
		l.noteRestartOf(c, &counted, &charged)
	}
	notePause(l, c, c.Elasticity, "pipeline.elasticity.job", l.catalog.Elasticity, &charged)
	notePause(l, c, c.Scaler, "pipeline.elasticity.cluster", l.catalog.Scaler, &charged)
}

// restartHint says how a policy and the backend come to the same cost of a restart.
const restartHint = "set restart.overhead, which both take unless they have a setting of their own, or keep both where a publication does"

// notePause says where a policy counts one pause for every restart, and the longest that the backend charges is another.
func notePause[S any](l *loader, c *Config, s Selected[S], path string, factories []core.Factory[S], charged *restart.Cost) {
	counts := abilitiesOf(settingsOf(l, s, path, factories)).CountsRestart
	if counts == nil {
		return
	}
	pause, setting := counts.CountedRestart()
	if longest, _ := charged.LongestPause(); longest != pause {
		l.note(c, path+".config."+setting, restartHint, "%q counts %v for a restart of a job, and %q charges up to %v", s.ID, pause, c.Backend.ID, longest)
	}
}

// noteRestartOf says where what the allocation counts is not what the backend charges.
func (l *loader) noteRestartOf(c *Config, counted, charged *restart.Cost) {
	found := restart.Differ(counted, charged)
	if len(found) == 0 {
		return
	}
	d, jobs := found[0], "a job"
	if d.Application != "" {
		jobs = fmt.Sprintf("a job of application %q", d.Application)
		if d.Devices > 0 {
			jobs += fmt.Sprintf(" on %d devices", d.Devices)
		}
	}
	more := ""
	if len(found) > 1 {
		more = fmt.Sprintf(", and they differ for %d more kinds of jobs", len(found)-1)
	}
	l.note(c, "pipeline.allocation.config."+restart.OverheadKey, restartHint,
		"%q counts %v for a restart of %s, and %q charges %v%s", c.Allocation.ID, d.A, jobs, c.Backend.ID, d.B, more)
}
