package host

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// OnFailure says what to do when a plugin crashes, hangs, or breaks a rule.
type OnFailure string

// The values of OnFailure.
const (
	Fail     OnFailure = "fail"     // end the run
	Restart  OnFailure = "restart"  // start a new process and send it the whole view; end the run after Options.MaxRestarts
	Fallback OnFailure = "fallback" // use a built-in policy for the rest of the run
)

// Options say how a component in another process is called, and what to do when it fails.
type Options struct {
	OnFailure   OnFailure     // OnFailure is empty where no config can choose: like Fail, but the error suggests nothing.
	MaxRestarts int           // MaxRestarts bounds the restarts in a run.
	Backoff     time.Duration // Backoff is the wait before the first restart; it doubles with each, up to a minute.
	CallTimeout time.Duration // CallTimeout bounds one call.
	Log         *slog.Logger  // Log receives restarts and fallbacks, as warnings.
}

// DefaultOptions apply to a config that sets none.
var DefaultOptions = Options{OnFailure: Fail, MaxRestarts: 3, Backoff: 100 * time.Millisecond, CallTimeout: 30 * time.Second}

// Session is a connection to a process in which one component is configured.
type Session struct {
	Conn           grpc.ClientConnInterface // Conn carries the calls of the component's stage.
	Close          func()                   // Close ends the connection, and the process if it was started for it.
	Kill           func()                   // Kill ends the process without asking it to; nil where that is Close.
	wire.Abilities                          // Abilities of the component.
	// End returns how the process ended, such as "exit status 3", and FinalOutput the end of what it wrote to stderr, once Close
	// has returned. Both are nil where there is no process.
	End, FinalOutput func() string
}

// Dial starts a process, or otherwise reaches one, and configures the component in it.
type Dial func(ctx context.Context) (*Session, error)

// worker is a component in another process: what all stages have in common.
type worker struct {
	id            string
	name          string // of the plugin
	dial          Dial
	options       Options
	session       *Session
	restarts      int
	usingFallback bool   // for the rest of the run
	reason        string // of the last failure; empty for none

	encoder  wire.Encoder
	standing core.Standing
	reset    func() // empties the lists that the stage sends and receives, with each full view
}

// errUseFallback says that the fallback must answer.
var errUseFallback = errors.New("use the fallback")

func (w *worker) start(ctx context.Context) error {
	session, err := w.dial(ctx)
	if err != nil {
		return err
	}
	w.session = session
	w.encoder.Plain, w.encoder.Reports = !session.Has(wire.KnowsChanges), session.Has(wire.KnowsReports)
	w.encoder.Reset()
	return nil
}

// Close ends the process, if it still lives.
func (w *worker) Close() error {
	if w.session != nil {
		w.session.Close()
		w.session = nil
	}
	return nil
}

// able reports whether the policy that answers now has an ability: the process, or the fallback once it is used.
func (w *worker) able(x wire.Ability, fallback any) bool {
	if w.usingFallback {
		return wire.AbilitiesOf(fallback).Has(x)
	}
	return w.session != nil && w.session.Has(x)
}

// Discard ends the process like Close, but kills a policy that learns from how jobs end: asked to end, it would leave what it
// learned to later runs.
func (w *worker) Discard() error {
	if s := w.session; s != nil && s.Has(wire.LearnsFromEnds) && s.Kill != nil {
		s.Kill()
	}
	return w.Close()
}

// candidates are the jobs whose responses are sent to a plugin, each list in JobID order.
type candidates struct{ admitted, waiting []core.Candidate }

// ask puts a question to the process, again after a resync or a restart. question sends the view, reads the answer, and returns its
// resync and standing.
func (w *worker) ask(ctx context.Context, v *core.View, sent candidates, question func(context.Context, *stagev1.ViewUpdate) (bool, *stagev1.Standing, error)) error {
	if w.usingFallback {
		return errUseFallback
	}
	if w.session == nil { // it failed for good, or was closed
		return errors.New("the process has ended")
	}
	for {
		err := w.askOnce(ctx, v, sent, question)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err() // the run was interrupted, the plugin did not fail
		}
		if err := w.handleFailure(ctx, v.Round, err); err != nil {
			return err
		}
	}
}

func (w *worker) askOnce(ctx context.Context, v *core.View, sent candidates, question func(context.Context, *stagev1.ViewUpdate) (bool, *stagev1.Standing, error)) error {
	for range 2 {
		u := w.encoder.Encode(v, sent.admitted, sent.waiting)
		if u.GetFull() {
			w.reset()
		}
		call, cancel := context.WithTimeout(ctx, w.options.CallTimeout)
		resync, standing, err := question(call, u)
		cancel()
		if err != nil {
			return err
		}
		if resync {
			w.encoder.Reset()
			continue
		}
		w.standing = core.Standing{UntilSeconds: v.NowSeconds}
		if standing != nil {
			w.standing = core.Standing{UntilSeconds: standing.GetUntilSeconds(), IfSeated: int(standing.GetIfSeated())}
		}
		return nil
	}
	return errors.New("it asked for the whole view twice in a row")
}

// handleFailure does what the options say. It returns nil when the question can be put again, errUseFallback when the fallback must
// answer, and otherwise the error that ends the run. The process has ended in any case.
func (w *worker) handleFailure(ctx context.Context, round int, cause error) error {
	failure := w.fail(cause)
	w.reason = failure.Error()
	if w.options.OnFailure == Fallback {
		w.options.Log.Warn("the fallback takes over", "component", w.id, "plugin", w.name, "round", round, "error", failure)
		w.usingFallback = true
		return errUseFallback
	}
	for w.options.OnFailure == Restart && w.restarts < w.options.MaxRestarts {
		wait := backoff(w.options.Backoff, w.restarts)
		w.restarts++
		w.options.Log.Warn("restarting a plugin", "in", wait, "component", w.id, "plugin", w.name, "round", round, "restart", w.restarts, "error", failure)
		if err := sleep(ctx, wait); err != nil {
			return err
		}
		err := w.start(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failure = &pluginFailure{Plugin: w.name, Cause: err}
		w.reason = failure.Error()
	}
	failure.Restarts = w.restarts
	return failure
}

// Trouble describes the failures of a component in a run that continued all the same.
type Trouble struct {
	Component string // Component is its id, such as "allocation/backfill".
	Restarts  int    // Restarts counts how often its process was started again.
	Fallback  bool   // Fallback says that the built-in policy replaced it.
	Reason    string // Reason is the text of the last failure.
}

// Trouble returns the failures of the component, and whether there were any.
func (w *worker) Trouble() (Trouble, bool) {
	return Trouble{Component: w.id, Restarts: w.restarts, Fallback: w.usingFallback, Reason: w.reason}, w.reason != ""
}

// Recover handles an answer that broke a rule of the pipeline like any other failure, and reports whether to ask again.
func (w *worker) Recover(ctx context.Context, broken error) (again bool, err error) {
	var rule *core.InvariantError
	if w.usingFallback || !errors.As(broken, &rule) {
		return false, broken
	}
	err = w.handleFailure(ctx, rule.Round, broken)
	if err == nil || errors.Is(err, errUseFallback) {
		return true, nil
	}
	return false, err
}

// longestBackoff bounds the wait before a restart.
const longestBackoff = time.Minute

// backoff is the wait before a restart, after so many.
func backoff(first time.Duration, restarts int) time.Duration {
	wait := first
	for range restarts {
		if wait > longestBackoff/2 {
			return longestBackoff
		}
		wait *= 2
	}
	return min(wait, longestBackoff)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
