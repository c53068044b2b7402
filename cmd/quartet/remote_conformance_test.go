package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/plugins/host"
	"github.com/quartet-sched/quartet/plugins/loopback"
	"github.com/quartet-sched/quartet/plugins/sdk"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// TestConformanceThroughTheWire holds every built-in, reached through the wire, to the suite that it passes when called
// directly.
func TestConformanceThroughTheWire(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, by := range []struct {
		name     string
		way      func(*testing.T, sdk.Factory) func(host.Component) host.Dial
		worlds   string
		atLength string // worlds under make wire
	}{
		{"in memory", inMemory, "6", "20"},
		{"own process", inProcesses, "3", "10"},
	} {
		t.Run(by.name, func(t *testing.T) {
			worlds := by.worlds
			switch {
			case *wireAtLength:
				worlds = by.atLength
			case testing.Short():
				worlds = "1"
			}
			fewer(t, worlds)
			c := catalog()
			for _, f := range c.Admission {
				t.Run("admission/"+f.Type, func(t *testing.T) {
					coretest.RunAdmitter(t, behindWire(t, f, by.way(t, f), host.Admitter), coretest.Elsewhere(), coretest.Reporting())
				})
				t.Run("admission/"+f.Type+" where jobs share", func(t *testing.T) {
					coretest.RunAdmitter(t, behindWire(t, f, by.way(t, f), host.Admitter), coretest.Elsewhere(), coretest.Reporting(), coretest.Sharing())
				})
			}
			for _, f := range c.Allocation {
				t.Run("allocation/"+f.Type, func(t *testing.T) {
					coretest.RunAllocator(t, behindWire(t, f, by.way(t, f), host.Allocator), coretest.Elsewhere(), coretest.Reporting(), coretest.Pinning(), coretest.Tiers())
				})
				t.Run("allocation/"+f.Type+" where jobs share", func(t *testing.T) {
					coretest.RunAllocator(t, behindWire(t, f, by.way(t, f), host.Allocator), coretest.Elsewhere(), coretest.Reporting(), coretest.Pinning(), coretest.Tiers(), coretest.Sharing())
				})
			}
			for _, f := range c.Placement {
				t.Run("placement/"+f.Type, func(t *testing.T) {
					options := []coretest.Option{coretest.Elsewhere(), coretest.Reporting(), coretest.Pinning()}
					if slices.Contains([]string{"tail_eviction", "buddy", "cells", "gandiva_affinity", "antman"}, f.Type) {
						options = append(options, coretest.Evicting())
					}
					coretest.RunPlacer(t, behindWire(t, f, by.way(t, f), host.Placer), options...)
					if len(f.Sharing) > 0 || f.Counts {
						t.Run("where jobs share", func(t *testing.T) {
							coretest.RunPlacer(t, behindWire(t, f, by.way(t, f), host.Placer), append(options, coretest.Sharing())...)
						})
					}
				})
			}
			for _, f := range c.Elasticity {
				t.Run("elasticity/"+f.Type, func(t *testing.T) {
					coretest.RunElasticity(t, behindWire(t, f, by.way(t, f), host.Elasticity), coretest.Elsewhere(), coretest.Reporting())
				})
				t.Run("elasticity/"+f.Type+" where jobs share", func(t *testing.T) {
					coretest.RunElasticity(t, behindWire(t, f, by.way(t, f), host.Elasticity), coretest.Elsewhere(), coretest.Reporting(), coretest.Sharing())
				})
			}
			for _, f := range c.Scaler {
				t.Run("scaler/"+f.Type, func(t *testing.T) {
					coretest.RunScaler(t, behindWire(t, f, by.way(t, f), host.Scaler), coretest.Elsewhere(), coretest.Reporting())
				})
			}
		})
	}
}

// fewer has the suites try this many worlds during the test.
func fewer(t *testing.T, worlds string) {
	t.Helper()
	t.Setenv("CORETEST_WORLDS", worlds)
}

// behindWire is a factory whose components are served by f at the other end of what dial reaches. It closes those that a
// suite uses no longer.
func behindWire[S any](t *testing.T, f core.Factory[S], dial func(host.Component) host.Dial, reach func(context.Context, host.Spec[S]) (S, error)) core.Factory[S] {
	var open [coretest.Instances]io.Closer
	created := 0
	t.Cleanup(func() {
		for _, c := range open {
			if c != nil {
				_ = c.Close()
			}
		}
	})
	settings := core.Foreign{
		Fields: f.Fields, Schema: f.Schema,
		Decode: func(raw map[string]any) (map[string]any, []core.Capability, core.Diagnostics) {
			config, problems := f.Decode(raw)
			if len(problems) > 0 {
				return nil, nil, problems
			}
			return core.Encode(config), f.Needs(config), nil
		},
	}
	return core.NewForeignFactory(f.Info, settings, func(settings map[string]any, s core.Settings) (S, error) {
		slot := &open[created%len(open)]
		created++
		if *slot != nil {
			_ = (*slot).Close()
		}
		options := host.DefaultOptions
		options.Log = slog.New(slog.DiscardHandler)
		policy, err := reach(context.WithoutCancel(t.Context()), host.Spec[S]{
			ID: s.ID, Plugin: f.Type, Options: options,
			Dial: dial(host.Component{Stage: wire.StageOf[S](), Type: f.Type, ID: s.ID, Seed: 1, Config: settings}),
		})
		*slot, _ = any(policy).(io.Closer)
		return policy, err
	})
}

func inMemory(_ *testing.T, f sdk.Factory) func(host.Component) host.Dial {
	return func(c host.Component) host.Dial { return loopback.Dial(f, c) }
}

// inProcesses starts as many processes as a suite uses instances at once, and configures them anew in turn.
func inProcesses(t *testing.T, _ sdk.Factory) func(host.Component) host.Dial {
	var started [coretest.Instances]*host.Process
	dialled := 0
	t.Cleanup(func() {
		for _, p := range started {
			if p != nil {
				p.Close()
			}
		}
	})
	return func(c host.Component) host.Dial {
		return func(ctx context.Context) (*host.Session, error) {
			p := &started[dialled%len(started)]
			dialled++
			if *p == nil {
				fresh, err := ownBinary(c).Start(ctx)
				if err != nil {
					return nil, err
				}
				*p = fresh
			}
			return configured(ctx, *p, c)
		}
	}
}

// configured makes a session of a process that outlives it.
func configured(ctx context.Context, p *host.Process, c host.Component) (*host.Session, error) {
	answer, err := host.Configure(ctx, p.Conn, c, false)
	if err != nil {
		return nil, err
	}
	conn, err := host.Calls(ctx, p.Conn, answer)
	if err != nil {
		return nil, err
	}
	calls, ok := conn.(io.Closer)
	if !ok {
		return nil, errors.New("the SDK serves no exchange")
	}
	return &host.Session{Conn: conn, Close: func() { _ = calls.Close() }, Abilities: wire.AbilitiesFrom(answer)}, nil
}
