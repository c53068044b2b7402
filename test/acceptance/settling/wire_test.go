package settling_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/loopback"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Policies that are plugins settle rounds as the same ones do that are built in: the same jobs at the same seconds, in random worlds.
func TestPluginsSettleAsBuiltInsDo(t *testing.T) {
	placements := placementsOfWholeDevices()
	rapid.Check(t, func(r *rapid.T) {
		w, _ := drawWorld(r, placements)
		want := doneBy(t, r, w, quartet.Builtins())
		var open []io.Closer
		got := doneBy(t, r, w, throughTheWire(t, quartet.Builtins(), &open))
		for _, c := range open {
			_ = c.Close()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("built in (-) and through the wire (+):\n%s\n%+v", diff, w)
		}
	})
}

// doneBy is when each job started and ended, in seconds, and how often it was restarted.
func doneBy(t *testing.T, r *rapid.T, w world, c quartet.Catalog) map[string]string {
	t.Helper()
	w.catalog = &c
	result, err := w.compose(t).Simulate(t.Context())
	if err != nil {
		r.Fatal(err)
	}
	jobs := map[string]string{}
	for _, j := range result.Jobs {
		jobs[j.Name] = fmt.Sprint(j.FirstStartSeconds, j.FinishSeconds, j.Restarts)
	}
	return jobs
}

// throughTheWire is a catalog whose allocations and placements are reached as plugins are. What they open is to be closed.
func throughTheWire(t *testing.T, c quartet.Catalog, open *[]io.Closer) quartet.Catalog {
	for i, f := range c.Allocation {
		c.Allocation[i] = behindWire(t, f, host.Allocator, open)
	}
	for i, f := range c.Placement {
		c.Placement[i] = behindWire(t, f, host.Placer, open)
	}
	return c
}

func behindWire[S any](t *testing.T, f core.Factory[S], reach func(context.Context, host.Spec[S]) (S, error), open *[]io.Closer) core.Factory[S] {
	settings := core.Foreign{Fields: f.Fields, Schema: f.Schema, Decode: func(raw map[string]any) (map[string]any, []core.Capability, core.Diagnostics) {
		config, problems := f.Decode(raw)
		if len(problems) > 0 {
			return nil, nil, problems
		}
		return core.Encode(config), f.Needs(config), nil
	}}
	return core.NewForeignFactory(f.Info, settings, func(settings map[string]any, s core.Settings) (S, error) {
		options := host.DefaultOptions
		options.Log = slog.New(slog.DiscardHandler)
		policy, err := reach(context.WithoutCancel(t.Context()), host.Spec[S]{
			ID: s.ID, Plugin: f.Type, Options: options,
			Dial: loopback.Dial(f, host.Component{Stage: wire.StageOf[S](), Type: f.Type, ID: s.ID, Seed: 1, Config: settings}),
		})
		if c, is := any(policy).(io.Closer); is {
			*open = append(*open, c)
		}
		return policy, err
	})
}
