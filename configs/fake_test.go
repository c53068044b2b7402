package configs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/workload"
)

// The fake components of the tests: their settings are of every kind, their policies do nothing.

type fakeTenant struct {
	Name    string `config:"name" doc:"name of the tenant" required:"true"`
	Devices int    `config:"devices" doc:"most devices" min:"1"`
}

type fakeQuota struct {
	Tenants []fakeTenant `config:"tenants" doc:"limits by tenant"`
}

type fakeTiresias struct {
	Thresholds []float64 `config:"thresholds" doc:"ends of the queues in device-seconds" min:"0"`
	Queue      string    `config:"queue" doc:"what happens behind a job that does not fit" enum:"backfill|blocking"`
	Decay      struct {
		Factor float64       `config:"factor" doc:"what is left of attained service" min:"0" max:"1"`
		Every  time.Duration `config:"every" doc:"how often" min:"0s"`
	} `config:"decay" doc:"forgetting of attained service"`
	Oracle bool `config:"oracle" doc:"use the remaining work"`
}

func (c fakeTiresias) Validate() error {
	if c.Decay.Factor > 0 && c.Decay.Every == 0 {
		return errors.New("decay.every: must be positive when decay.factor is")
	}
	return nil
}

func (c fakeTiresias) Capabilities() []core.Capability {
	if c.Oracle {
		return []core.Capability{core.CapabilityRemainingWork}
	}
	return nil
}

type fakeWorkload struct {
	Jobs     int           `config:"jobs" doc:"number of jobs" min:"1"`
	Span     time.Duration `config:"span" doc:"time of submissions" min:"1s"`
	Path     string        `config:"path" doc:"trace"`
	Profiles string        `config:"profiles" doc:"folder of profiles"`
}

// fakeTraining is what the embedded default sets of its workload.
type fakeTraining struct {
	Jobs         int           `config:"jobs" doc:"number of jobs" min:"1"`
	Span         time.Duration `config:"span" doc:"time of submissions" min:"1s"`
	Applications bool          `config:"applications" doc:"train"`
}

type fakeSimulator struct {
	RestartOverhead time.Duration `config:"restart_overhead" doc:"pause at each start" min:"0s"`
	Broken          bool          `config:"broken" doc:"refuse to be built"`
}

type fakeOpener struct {
	capabilities []core.Capability
	overhead     time.Duration
}

func (o fakeOpener) Capabilities() []core.Capability { return o.capabilities }

func (o fakeOpener) Check(c *core.Cluster, r core.RoundOptions) core.Diagnostics {
	if o.overhead.Seconds() <= r.IntervalSeconds || !r.OnEvents {
		return nil
	}
	return core.Diagnostics{{
		Path: "restart_overhead", Summary: fmt.Sprintf("too long for rounds on events on %d nodes", len(c.Nodes)), Hint: "shorten it",
	}}
}

func (fakeOpener) Open(context.Context, *core.Cluster, *workload.Workload) (core.Backend, error) {
	return nil, errors.New("a fake")
}

func fake[S, C any](name string, defaults C, needs ...core.Capability) core.Factory[S] {
	return core.NewFactory(core.Info{Type: name, Summary: "the fake " + name, Capabilities: needs}, defaults,
		func(C, core.Settings) (s S, err error) { return s, nil })
}

func fakeCatalog() Catalog {
	none := core.None{}
	return Catalog{
		Admission: []core.Factory[core.Admitter]{
			fake[core.Admitter]("accept_all", none), fake[core.Admitter]("quota", fakeQuota{}),
		},
		Allocation: []core.Factory[core.Allocator]{
			fake[core.Allocator]("tiresias", fakeTiresias{Thresholds: []float64{3250}, Queue: "backfill"}),
			fake[core.Allocator]("las", none),
			fake[core.Allocator]("optimus", none, core.CapabilityStepTimes, core.CapabilityRemainingWork),
		},
		Placement:  []core.Factory[core.Placer]{fake[core.Placer]("consolidated", none), fake[core.Placer]("first_fit", none)},
		Elasticity: []core.Factory[core.Elasticity]{fake[core.Elasticity]("fixed", none)},
		Scaler:     []core.Factory[core.ClusterScaler]{fake[core.ClusterScaler]("none", none)},
		Workload:   []core.Factory[workload.Source]{fake[workload.Source]("generated", fakeWorkload{Jobs: 1, Span: time.Hour})},
		Backend: []core.Factory[backend.Opener]{
			core.NewFactory(core.Info{Type: "simulator", Summary: "a fake world"}, fakeSimulator{},
				func(c fakeSimulator, _ core.Settings) (backend.Opener, error) {
					if c.Broken {
						return nil, errors.New("build the simulator: broken on purpose")
					}
					return fakeOpener{[]core.Capability{core.CapabilityRemainingWork}, c.RestartOverhead}, nil
				}),
			core.NewFactory(core.Info{Type: "kube", Summary: "a fake world"}, none,
				func(core.None, core.Settings) (backend.Opener, error) { return fakeOpener{}, nil }),
		},
	}
}

// defaultCatalog holds the components of the embedded default.
func defaultCatalog() Catalog {
	c, none := fakeCatalog(), core.None{}
	c.Allocation = append(c.Allocation, fake[core.Allocator]("pollux", none))
	c.Placement = append(c.Placement, fake[core.Placer]("proposed", none))
	c.Elasticity = append(c.Elasticity, fake[core.Elasticity]("goodput", none))
	c.Workload = []core.Factory[workload.Source]{fake[workload.Source]("generated", fakeTraining{})}
	return c
}

func environmentOf(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, set := variables[name]
		return value, set
	}
}

// fakeOutside holds a plugin with an allocation policy, wherever it is looked for, and every built-in isolated.
func fakeOutside(terms Outside) (Catalog, error) {
	if terms.Isolated {
		return fakeCatalog(), nil
	}
	backfill := fake[core.Allocator]("backfill", fakeTiresias{Thresholds: []float64{1}, Queue: "blocking"})
	return Catalog{Allocation: []core.Factory[core.Allocator]{core.NewForeignFactory(backfill.Info, core.Foreign{
		Fields: backfill.Fields,
		Schema: backfill.Schema,
		Decode: func(raw map[string]any) (map[string]any, []core.Capability, core.Diagnostics) {
			config, problems := backfill.Decode(raw)
			if len(problems) > 0 {
				return nil, nil, problems
			}
			return core.Encode(config), backfill.Needs(config), nil
		},
	}, func(map[string]any, core.Settings) (core.Allocator, error) { return nil, nil })}}, nil
}
