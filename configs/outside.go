package configs

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/quartet-sched/quartet/core"
)

// Plugins says where components that are not built in may come from.
type Plugins struct {
	// Dirs: folders with plugins, each with its plugins.lock.yaml.
	Dirs []string `config:"dirs" doc:"folders with plugins, each with its plugins.lock.yaml"`
}

// PluginOptions are how a policy in another process is kept.
type PluginOptions struct {
	// OnFailure: what happens when the process crashes, hangs or breaks a rule: fail, restart or fallback.
	OnFailure string `config:"on_failure" doc:"what happens when it crashes, hangs or breaks a rule: the run fails, a new process takes over, or the fallback does" enum:"fail|restart|fallback"`
	// MaxRestarts: restarts in a run, after which it fails.
	MaxRestarts int `config:"max_restarts" doc:"restarts in a run, after which it fails" min:"0"`
	// Backoff: wait before the first restart.
	Backoff time.Duration `config:"backoff" doc:"wait before the first restart; doubles with each, up to a minute" min:"0s" max:"1m"`
	// CallTimeout: time that the answer to one question may take.
	CallTimeout time.Duration `config:"call_timeout" doc:"time that the answer to one question may take" min:"1ms"`
	// StartTimeout: time that the process may take to be ready.
	StartTimeout time.Duration `config:"start_timeout" doc:"time that the process may take to be ready" min:"1ms"`
	// Environment: names of environment variables that the process may see, besides PATH, HOME and the like.
	Environment []string `config:"environment" doc:"names of environment variables that the process may see, besides PATH, HOME and the like"`
	// Fallback: built-in policy that takes over with on_failure: fallback.
	Fallback Fallback `config:"fallback" doc:"built-in policy that takes over with on_failure: fallback"`
}

// Fallback names a built-in policy.
type Fallback struct {
	// Type: type of the policy.
	Type string `config:"type" doc:"type of the policy"`
	// Config: its settings.
	Config map[string]any `config:"config" doc:"its settings"`
}

// The values of PluginOptions.OnFailure.
const (
	onFailureFail     = "fail"
	onFailureFallback = "fallback"
)

func defaultPluginOptions() PluginOptions {
	return PluginOptions{
		OnFailure: onFailureFail, MaxRestarts: 3, Backoff: 100 * time.Millisecond,
		CallTimeout: 30 * time.Second, StartTimeout: 10 * time.Second,
	}
}

// Outside asks for policies of other processes, on certain terms.
type Outside struct {
	Dirs     []string // plugin folders of the config
	Isolated bool     // the built-ins, each in a process of its own; otherwise those of the installed plugins
	// Options: how the processes are kept.
	Options PluginOptions
	Instead func(core.Settings) (policy any, err error) // makes the fallback; nil for none
}

// Remote is how a policy in another process is kept.
type Remote[S any] struct {
	Isolated bool // a built-in; otherwise of a plugin
	// Options: how the process is kept.
	Options  PluginOptions
	Fallback *Selected[S] // nil for none
}

// PluginVariables lists the variables of the environment that policies in other processes are to see.
func (c *Config) PluginVariables() (names []string) {
	for _, s := range c.Admission {
		names = append(names, s.variables()...)
	}
	for i := 1; i < len(c.Alternatives); i++ {
		names = append(names, c.Alternatives[i].Config.PluginVariables()...)
	}
	return slices.Concat(names, c.Allocation.variables(), c.Placement.variables(), c.Elasticity.variables(), c.Scaler.variables())
}

func (s *Selected[S]) variables() []string {
	if s.Remote == nil {
		return nil
	}
	return s.Remote.Options.Environment
}

// slot is where a policy goes: its stage, its place in the config, and its list in a catalog.
type slot[S any] struct {
	stage, path string
	list        func(Catalog) []core.Factory[S]
}

// choosePolicy is choose for a stage: the policy may also live in another process.
func choosePolicy[S any](l *loader, s slot[S]) Selected[S] {
	builtIns := s.list(l.catalog)
	name, ok := lookup(l.settings, s.path+".type").(string)
	if !ok {
		return Selected[S]{}
	}
	isolate, _ := lookup(l.settings, s.path+".isolate").(bool)
	builtIn := slices.ContainsFunc(builtIns, func(f core.Factory[S]) bool { return f.Type == name })
	if builtIn && !isolate {
		if _, given := l.find(s.path + ".plugin"); given {
			l.report(s.path+".plugin", core.Diagnostics{{
				Summary: fmt.Sprintf("%q is built in and runs in this process", s.stage+"/"+name),
				Hint:    "leave the options out, or add isolate: true",
			}})
		}
		return choose(l, s.stage, s.path, builtIns)
	}
	remote := &Remote[S]{Isolated: builtIn, Options: l.pluginOptions(s.path + ".plugin")}
	terms := Outside{Dirs: l.pluginDirs(), Isolated: builtIn, Options: remote.Options}
	if remote.Options.Fallback.Type != "" {
		fallback := choose(l, s.stage, s.path+".plugin.fallback", builtIns)
		remote.Fallback = &fallback
		terms.Instead = func(settings core.Settings) (any, error) { return fallback.Factory.New(fallback.Config, settings) }
	}
	factories := s.list(l.outside(terms))
	if !builtIn {
		factories = slices.Concat(builtIns, factories) // what the user may have meant
	}
	selected := choose(l, s.stage, s.path, factories)
	selected.Remote = remote
	return selected
}

// pluginOptions decodes the options of a policy in another process.
func (l *loader) pluginOptions(path string) PluginOptions {
	o := defaultPluginOptions()
	raw, _ := lookup(l.settings, path).(map[string]any)
	ds := core.Decode(&o, raw)
	if len(ds) == 0 {
		ds = checkVariables(o.Environment)
		switch {
		case o.OnFailure == onFailureFallback && o.Fallback.Type == "":
			ds = append(ds, core.Diagnostic{Path: "on_failure", Summary: "there is no fallback", Hint: "add fallback: {type: …} with a built-in policy"})
		case o.OnFailure != onFailureFallback && o.Fallback.Type != "":
			ds = append(ds, core.Diagnostic{
				Path: "fallback", Summary: "is never used with on_failure: " + o.OnFailure,
				Hint: "set on_failure: fallback, or leave it out",
			})
		}
	}
	l.report(path, ds)
	return o
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// checkVariables finds what names no variable of the environment, and what is named twice.
func checkVariables(names []string) (ds core.Diagnostics) {
	for i, name := range names {
		d := core.Diagnostic{Path: fmt.Sprintf("environment[%d]", i)}
		switch {
		case !variableName.MatchString(name):
			d.Summary, d.Hint = fmt.Sprintf("%q is no variable", name), "give its name only, of letters, digits and \"_\"; its value is that of the scheduler"
		case slices.Contains(names[:i], name):
			d.Summary = fmt.Sprintf("%q is named twice", name)
		default:
			continue
		}
		ds = append(ds, d)
	}
	return ds
}

func (l *loader) pluginDirs() []string {
	var dirs []string
	list, _ := lookup(l.settings, "plugins.dirs").([]any)
	for _, item := range list {
		if dir, ok := item.(string); ok { // the form of the file says so otherwise
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// outside asks for the policies of other processes. Problems on the way to them are told once.
func (l *loader) outside(terms Outside) Catalog {
	if l.options.Outside == nil {
		return Catalog{}
	}
	c, err := l.options.Outside(terms)
	if err != nil && l.outsideFailed == nil {
		l.outsideFailed = err
		if ds := core.Diagnostics(nil); errors.As(err, &ds) {
			l.found = append(l.found, ds...)
		} else {
			l.report("plugins", core.Diagnostics{{Summary: err.Error()}})
		}
	}
	return c
}
