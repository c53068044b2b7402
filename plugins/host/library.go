package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Library makes components of other processes usable like built-ins. A process starts when the settings of a component
// are checked or the component is created, not before, and ends with Close. A Library is for one goroutine, but Used may be called
// from any.
type Library struct {
	ctx    context.Context
	log    *slog.Logger
	idle   []idle
	stages []io.Closer

	mutex   sync.Mutex
	started []Installed
}

// idle is a process that described itself or checked settings, and holds no component yet.
type idle struct {
	key     string
	process *Process
	about   *Description
}

// NewLibrary returns a library whose processes end with ctx at the latest.
func NewLibrary(ctx context.Context, log *slog.Logger) *Library { return &Library{ctx: ctx, log: log} }

// Close ends every process of the library.
func (l *Library) Close() error {
	var errs []error
	for _, stage := range l.stages {
		errs = append(errs, stage.Close())
	}
	for _, i := range l.idle {
		i.process.Close()
	}
	l.stages, l.idle = nil, nil
	return errors.Join(errs...)
}

// Used lists the plugins whose components were created, by name.
func (l *Library) Used() []Installed {
	l.mutex.Lock()
	used := slices.Clone(l.started)
	l.mutex.Unlock()
	slices.SortStableFunc(used, func(a, b Installed) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(used, func(a, b Installed) bool { return a.Name == b.Name })
}

// Troubles lists the components that failed, in the order in which they were created.
func (l *Library) Troubles() []Trouble {
	var troubles []Trouble
	for _, stage := range l.stages {
		if w, ok := stage.(interface{ Trouble() (Trouble, bool) }); ok {
			if t, failed := w.Trouble(); failed {
				troubles = append(troubles, t)
			}
		}
	}
	return troubles
}

// Terms say how components in other processes are started, called, and replaced when they fail.
type Terms struct {
	Options
	StartTimeout time.Duration // StartTimeout bounds the start of a process, Describe and Configure included; 0 is 10 s.
	Environment  []string      // Environment names the variables that a process may see, besides those of every plugin.
	// Fallback makes the policy for OnFailure Fallback; nil for none.
	Fallback func(core.Settings) (any, error)
}

// Factories returns the components of stage S of installed plugins as factories.
func Factories[S any](l *Library, plugins []Installed, t Terms) []core.Factory[S] {
	var factories []core.Factory[S]
	stage := wire.StageOf[S]()
	for _, p := range plugins {
		b := t.apply(p.Binary())
		for _, c := range p.Components {
			if c.Stage != wire.StageName(stage) {
				continue
			}
			info := core.Info{Type: c.Type, Summary: c.Summary}
			ask := func() ComponentInfo {
				about, _ := l.describe(b) // Decode reports why not
				info, _ := about.Component(stage, c.Type)
				return info
			}
			factories = append(factories, core.NewForeignFactory(info, core.Foreign{
				Fields: func() []core.Field { return ask().Fields },
				Schema: func() map[string]any { return ask().Schema },
				Info: func() core.Info {
					if described := ask().Info; described.Type == c.Type {
						return described
					}
					return info // it does not start, or no longer has the component; Decode reports which
				},
				Decode: func(raw map[string]any) (map[string]any, []core.Capability, core.Diagnostics) {
					return l.check(b, Component{Stage: stage, Type: c.Type, ID: c.ID(), Config: raw})
				},
			}, func(config map[string]any, s core.Settings) (S, error) {
				policy, err := reach[S](l, b, t, c.Type, config, s)
				if err == nil {
					l.mutex.Lock()
					l.started = append(l.started, p)
					l.mutex.Unlock()
				}
				return policy, err
			}))
		}
	}
	return factories
}

// Isolated returns built-in components as factories that run each in a process of its own: this executable, which serves one when it is
// started with the arguments "plugin serve" and a component id.
func Isolated[S any](l *Library, builtIns []core.Factory[S], t Terms) []core.Factory[S] {
	isolated := make([]core.Factory[S], len(builtIns))
	for i, f := range builtIns {
		isolated[i] = core.NewForeignFactory(f.Info, core.Foreign{
			Fields: f.Fields,
			Schema: f.Schema,
			Decode: func(raw map[string]any) (map[string]any, []core.Capability, core.Diagnostics) {
				config, problems := f.Decode(raw)
				if len(problems) > 0 {
					return nil, nil, problems
				}
				return core.Encode(config), f.Needs(config), nil
			},
		}, func(config map[string]any, s core.Settings) (S, error) {
			own, err := os.Executable()
			if err != nil {
				var none S
				return none, fmt.Errorf("find our own executable: %w", err)
			}
			id := wire.StageName(wire.StageOf[S]()) + "/" + f.Type
			return reach[S](l, t.apply(Binary{Name: id, Path: own, Args: []string{"plugin", "serve", id}}), t, f.Type, config, s)
		})
	}
	return isolated
}

func (t Terms) apply(b Binary) Binary {
	b.Environment, b.StartTimeout, b.Log = t.Environment, t.StartTimeout, t.Log
	return b
}

// reach creates a component in a process.
func reach[S any](l *Library, b Binary, t Terms, typeName string, config map[string]any, s core.Settings) (stage S, err error) {
	spec := Spec[S]{ID: s.ID, Plugin: b.Name, Options: t.Options}
	spec.Options.Log = s.Log
	if t.Fallback != nil {
		policy, err := t.Fallback(s)
		if err != nil {
			return stage, err
		}
		spec.Fallback, _ = policy.(S)
	}
	c := Component{Stage: wire.StageOf[S](), Type: typeName, ID: s.ID, Seed: s.Seed, Config: config}
	spec.Dial = func(ctx context.Context) (*Session, error) {
		if p, _, ok := l.take(b); ok {
			return b.serve(ctx, p, c)
		}
		return b.Session(ctx, c)
	}
	stage, err = Reach(l.ctx, spec)
	if closer := core.AbilitiesOf(stage).Closer; closer != nil { // of one that was not reached, closing does nothing
		l.stages = append(l.stages, closer)
	}
	return stage, err
}

// check asks the plugin about settings.
func (l *Library) check(b Binary, c Component) (map[string]any, []core.Capability, core.Diagnostics) {
	p, about, err := l.start(b)
	if err != nil {
		return nil, nil, core.Diagnostics{{Summary: err.Error()}}
	}
	l.keep(b, p, about)
	return b.check(l.ctx, p, c)
}

// check asks a process about settings, and for them with every default filled in.
func (b Binary) check(ctx context.Context, p *Process, c Component) (map[string]any, []core.Capability, core.Diagnostics) {
	answer, err := b.configure(ctx, p, c, true)
	if err == nil {
		var settings map[string]any
		if settings, err = wire.SettingsFrom(answer.GetConfigJson()); err == nil {
			return settings, capabilities(answer.GetCapabilities()), nil
		}
	}
	if problems := core.Diagnostics(nil); errors.As(err, &problems) {
		return nil, nil, problems
	}
	return nil, nil, core.Diagnostics{{Summary: err.Error()}}
}

// describe asks the plugin which components it serves. The description is empty, never nil, with an error.
func (l *Library) describe(b Binary) (*Description, error) {
	p, about, err := l.start(b)
	if err != nil {
		return &Description{}, err
	}
	l.keep(b, p, about)
	return about, nil
}

// start takes an idle process, or starts one.
func (l *Library) start(b Binary) (*Process, *Description, error) {
	if p, about, ok := l.take(b); ok {
		return p, about, nil
	}
	p, err := b.Start(l.ctx)
	if err != nil {
		return nil, nil, err
	}
	about, err := b.describe(l.ctx, p)
	if err != nil {
		p.Close()
		return nil, nil, err
	}
	return p, about, nil
}

// take removes the idle process of a binary that was started in the same way.
func (l *Library) take(b Binary) (*Process, *Description, bool) {
	i := slices.IndexFunc(l.idle, func(i idle) bool { return i.key == b.key() })
	if i < 0 {
		return nil, nil, false
	}
	found := l.idle[i]
	l.idle = slices.Delete(l.idle, i, i+1)
	return found.process, found.about, true
}

func (l *Library) keep(b Binary, p *Process, about *Description) {
	l.idle = append(l.idle, idle{key: b.key(), process: p, about: about})
}

// key is the same for binaries whose processes can stand in for each other.
func (b Binary) key() string { return fmt.Sprintf("%q %q %q", b.Path, b.Args, b.Environment) }

// Reach calls Admitter, Allocator, Placer, Elasticity or Scaler, whichever makes an S.
func Reach[S any](ctx context.Context, s Spec[S]) (stage S, err error) {
	var policy any
	switch s := any(s).(type) {
	case Spec[core.Admitter]:
		policy, err = Admitter(ctx, s)
	case Spec[core.Allocator]:
		policy, err = Allocator(ctx, s)
	case Spec[core.Placer]:
		policy, err = Placer(ctx, s)
	case Spec[core.Elasticity]:
		policy, err = Elasticity(ctx, s)
	case Spec[core.ClusterScaler]:
		policy, err = Scaler(ctx, s)
	default:
		err = fmt.Errorf("%T is of no stage", s)
	}
	stage, _ = policy.(S)
	return stage, err
}
