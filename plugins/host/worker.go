package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
	"github.com/quartet-sched/quartet/plugins/wire"
)

// OnFailure is what happens when a plugin crashes, hangs, or breaks a rule.
type OnFailure string

// The answers to a failure.
const (
	Fail     OnFailure = "fail"     // the run ends
	Restart  OnFailure = "restart"  // a new process takes over, told everything anew; the run ends after too many
	Fallback OnFailure = "fallback" // a built-in policy takes over for the rest of the run
)

// Options are how a component in another process is kept.
type Options struct {
	OnFailure   OnFailure
	MaxRestarts int           // in a run
	Backoff     time.Duration // before the first restart; doubles with each
	CallTimeout time.Duration // for one question
	Log         *slog.Logger
}

// DefaultOptions are those of a config that names none.
var DefaultOptions = Options{OnFailure: Fail, MaxRestarts: 3, Backoff: 100 * time.Millisecond, CallTimeout: 30 * time.Second}

// Session is a connection to a process in which the component is configured.
type Session struct {
	Conn  grpc.ClientConnInterface
	Close func()
	// LastWords returns the end of what the process wrote to stderr; may be nil.
	LastWords func() string
}

// Dial starts a process, or otherwise reaches one, and configures the component in it.
type Dial func(ctx context.Context) (*Session, error)

// worker is a component in another process: what all stages have in common.
type worker struct {
	id       string
	name     string // of the plugin
	dial     Dial
	options  Options
	session  *Session
	restarts int
	instead  bool // the fallback took over

	teller   wire.Teller
	standing core.Standing
	reset    func() // of the lists that the stage tells and hears, with each full view
}

// errInstead says that the fallback must answer.
var errInstead = errors.New("the fallback takes over")

func (w *worker) start(ctx context.Context) error {
	session, err := w.dial(ctx)
	if err != nil {
		return err
	}
	w.session = session
	w.teller.Reset()
	return nil
}

// Close ends the process.
func (w *worker) Close() error {
	if w.session != nil {
		w.session.Close()
		w.session = nil
	}
	return nil
}

// ask puts a question to the process, again after a resync or a restart. question sends the view, takes the answer in,
// and returns its resync and standing.
func (w *worker) ask(ctx context.Context, v *core.View, candidates []core.Candidate, question func(context.Context, *stagev1.ViewUpdate) (bool, *stagev1.Standing, error)) error {
	if w.instead {
		return errInstead
	}
	for {
		err := w.askOnce(ctx, v, candidates, question)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err() // the run was interrupted: nobody's fault
		}
		if err := w.mend(ctx, v.Round, err); err != nil {
			return err
		}
	}
}

func (w *worker) askOnce(ctx context.Context, v *core.View, candidates []core.Candidate, question func(context.Context, *stagev1.ViewUpdate) (bool, *stagev1.Standing, error)) error {
	for range 2 {
		u := w.teller.Tell(v, candidates)
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
			w.teller.Reset()
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

// mend deals with a failure as the options say. It returns nil when the question can be put again, errInstead when the
// fallback must answer, and the error that ends the run otherwise.
func (w *worker) mend(ctx context.Context, round int, cause error) error {
	failure := w.describe(round, cause)
	if w.options.OnFailure == Fallback {
		w.options.Log.Warn("the fallback takes over", "component", w.id, "round", round, "error", failure)
		w.instead = true
		return errors.Join(errInstead, w.Close())
	}
	for w.options.OnFailure == Restart && w.restarts < w.options.MaxRestarts {
		_ = w.Close()
		if err := sleep(ctx, w.options.Backoff<<w.restarts); err != nil {
			return err
		}
		w.restarts++
		w.options.Log.Warn("restarting a plugin", "component", w.id, "round", round, "restart", w.restarts, "error", failure)
		err := w.start(ctx)
		if err == nil {
			return nil
		}
		failure = w.describe(round, err)
	}
	return failure
}

// Recover is told that an answer broke a rule of the pipeline, and reports whether to ask again.
func (w *worker) Recover(ctx context.Context, broken error) (again bool, err error) {
	var rule *core.InvariantError
	if w.instead || !errors.As(broken, &rule) {
		return false, broken
	}
	switch err := w.mend(ctx, rule.Round, broken); {
	case err == nil || errors.Is(err, errInstead):
		return true, nil
	case w.options.OnFailure == Fail:
		return false, broken
	default:
		return false, err
	}
}

// Failure is a malfunction of a component in another process.
type Failure struct {
	Component, Plugin string
	Round             int
	Cause             error
	LastWords         string // end of the process's stderr
	Remedy            string
}

func (f *Failure) Error() string {
	text := fmt.Sprintf("plugin %q: component %q: round %d: %v", f.Plugin, f.Component, f.Round, f.Cause)
	if f.LastWords != "" {
		text += fmt.Sprintf("; its last words: %q", f.LastWords)
	}
	return text + "; " + f.Remedy
}

func (f *Failure) Unwrap() error { return f.Cause }

func (w *worker) describe(round int, cause error) *Failure {
	f := &Failure{Component: w.id, Plugin: w.name, Round: round, Cause: cause}
	if w.session != nil && w.session.LastWords != nil {
		f.LastWords = w.session.LastWords()
	}
	switch s, _ := status.FromError(cause); s.Code() {
	case codes.DeadlineExceeded:
		f.Cause = fmt.Errorf("call timed out after %v", w.options.CallTimeout)
		f.Remedy = "raise plugin.call_timeout if the policy needs the time"
	case codes.Unavailable:
		f.Cause = errors.New("the process died or closed its connection")
		f.Remedy = "see its log above; plugin.on_failure: restart or fallback lets a run survive this"
	case codes.ResourceExhausted:
		f.Cause = fmt.Errorf("a message exceeded %d MiB: %s", wire.MaxMessage>>20, s.Message())
		f.Remedy = "answer with less"
	case codes.OK, codes.Unknown:
		f.Remedy = "`quartet plugin test` shows which rule it breaks"
	default:
		f.Cause = errors.New(s.Message())
		f.Remedy = "`quartet plugin test` shows what it does wrong"
	}
	return f
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
