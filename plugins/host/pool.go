package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// Pool creates one component after another in a few processes, in turn: the last ones created are alive, as many as
// the pool has processes, and an earlier one must not be asked any more. A process that fails a call is ended, and
// another one takes its place. Tests that need hundreds of instances use it.
type Pool struct {
	// CallTimeout bounds one call. NewPool sets it to 5 s: the worlds of tests are small, and a policy that takes longer hangs.
	CallTimeout time.Duration

	ctx     context.Context
	binary  Binary
	workers []poolWorker
	next    int
}

type poolWorker struct {
	process *Process
	calls   any // of the component created last
}

// NewPool starts n processes of a plugin.
func NewPool(ctx context.Context, b Binary, n int) (*Pool, error) {
	p := &Pool{CallTimeout: poolCallTimeout, ctx: ctx, binary: b, workers: make([]poolWorker, n)}
	for i := range p.workers {
		process, err := b.Start(ctx)
		if err != nil {
			p.Close()
			return nil, err
		}
		p.workers[i].process = process
	}
	return p, nil
}

// poolCallTimeout is the CallTimeout of new pools.
const poolCallTimeout = 5 * time.Second

// Close ends the processes of the pool.
func (p *Pool) Close() {
	for _, w := range p.workers {
		if w.process != nil {
			w.process.Close()
		}
	}
}

// Describe asks the plugin which components it serves.
func (p *Pool) Describe() (*Description, error) {
	return p.binary.describe(p.ctx, p.workers[0].process)
}

// PoolFactory returns a component of the plugin as a factory, whose instances live in the pool.
func PoolFactory[S any](p *Pool, info ComponentInfo) core.Factory[S] {
	return core.NewForeignFactory(info.Info, core.Foreign{
		Fields: func() []core.Field { return info.Fields },
		Schema: func() map[string]any { return info.Schema },
		Decode: func(raw map[string]any) (map[string]any, []core.Capability, core.Diagnostics) {
			w, err := p.take()
			if err != nil {
				return nil, nil, core.Diagnostics{{Summary: err.Error()}}
			}
			return p.binary.check(p.ctx, w.process, Component{Stage: info.Stage, Type: info.Type, ID: info.ID(), Config: raw})
		},
	}, func(config map[string]any, s core.Settings) (stage S, err error) {
		options := Options{CallTimeout: p.CallTimeout, Log: slog.New(slog.DiscardHandler)}
		return Reach(p.ctx, Spec[S]{ID: s.ID, Plugin: p.binary.Name, Options: options, Dial: func(ctx context.Context) (*Session, error) {
			return p.session(ctx, Component{Stage: wire.StageOf[S](), Type: info.Type, ID: s.ID, Seed: s.Seed, Config: config})
		}})
	})
}

// take is the worker whose component was created longest ago, with a process that lives.
func (p *Pool) take() (*poolWorker, error) {
	w := &p.workers[p.next]
	if !w.process.Exited() {
		return w, nil
	}
	w.process.Close()
	process, err := p.binary.Start(p.ctx)
	if err != nil {
		return nil, fmt.Errorf("start it again: %w", err)
	}
	*w = poolWorker{process: process}
	return w, nil
}

func (p *Pool) session(ctx context.Context, c Component) (*Session, error) {
	w, err := p.take()
	if err != nil {
		return nil, err
	}
	p.next = (p.next + 1) % len(p.workers)
	if last, ok := w.calls.(*exchange); ok {
		last.end()
	}
	process := w.process
	configured, err := p.binary.configure(ctx, process, c, false)
	if err != nil {
		if problems := core.Diagnostics(nil); !errors.As(err, &problems) {
			process.Close()
		}
		return nil, err
	}
	calls, err := process.calls(ctx, configured)
	if err != nil {
		process.Close()
		return nil, err
	}
	w.calls = calls
	return &Session{Conn: calls, Close: process.Close, End: process.End, FinalOutput: process.FinalOutput, Abilities: wire.AbilitiesFrom(configured)}, nil
}
