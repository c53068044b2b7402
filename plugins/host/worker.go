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
	OnFailure   OnFailure     // empty is Fail where no config could say otherwise: the failure then advises nothing
	MaxRestarts int           // in a run
	Backoff     time.Duration // before the first restart; doubles with each, up to a minute
	CallTimeout time.Duration // for one question
	Log         *slog.Logger
}

// DefaultOptions are those of a config that names none.
var DefaultOptions = Options{OnFailure: Fail, MaxRestarts: 3, Backoff: 100 * time.Millisecond, CallTimeout: 30 * time.Second}

// Session is a connection to a process in which the component is configured.
type Session struct {
	Conn  grpc.ClientConnInterface
	Close func()
	Kill  func() // ends it without asking; nil where that is Close
	Traits
	// End and LastWords tell how the process ended, and the end of what it wrote to stderr, once Close returned. Both are
	// nil where there is no process.
	End, LastWords func() string
}

// Traits are what a configured component says of itself.
type Traits struct {
	Ends     bool // it is to be told how jobs end
	Changing bool // it knows of clusters and jobs that change
	Curves   bool // an admission that looks at what jobs do with accelerators
	Promises bool // an admission that admits a job with a deadline only if the deadline will be met
	Reviews  bool // an admission that is asked about admitted jobs that reported
	Reports  bool // it knows what jobs report
	Follows  bool // an elasticity that may answer otherwise once a job has reported

	Guarantees *core.Guarantees // an allocation that guarantees tiers; nil where it tells none
}

// TraitsOf are those of the answer to Configure.
func TraitsOf(m *stagev1.ConfigureResponse) Traits {
	t := Traits{Ends: m.GetEnds(), Changing: m.GetChanging(), Curves: m.GetCurves(), Promises: m.GetPromises(), Reviews: m.GetReviews(), Reports: m.GetReports(), Follows: m.GetFollowsReports()}
	if told := m.GetGuarantees(); len(told) == len(core.Guarantees{}) {
		t.Guarantees = (*core.Guarantees)(told)
	}
	return t
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
	instead  bool   // the fallback took over
	reason   string // of the last failure; empty for none

	encoder  wire.Encoder
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
	w.encoder.Plain, w.encoder.Reports = !session.Changing, session.Reports
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

// Discard is Close, but that a policy which learns from how jobs end is killed: asked to end, it would leave what it learned to
// later runs.
func (w *worker) Discard() error {
	if s := w.session; s != nil && s.Ends && s.Kill != nil {
		s.Kill()
	}
	return w.Close()
}

// candidates are the jobs of which a plugin is told what they do with accelerators, each in JobID order.
type candidates struct{ admitted, waiting []core.Candidate }

// ask puts a question to the process, again after a resync or a restart. question sends the view, takes the answer in,
// and returns its resync and standing.
func (w *worker) ask(ctx context.Context, v *core.View, told candidates, question func(context.Context, *stagev1.ViewUpdate) (bool, *stagev1.Standing, error)) error {
	if w.instead {
		return errInstead
	}
	if w.session == nil { // it failed for good, or was closed
		return errors.New("the process is gone")
	}
	for {
		err := w.askOnce(ctx, v, told, question)
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

func (w *worker) askOnce(ctx context.Context, v *core.View, told candidates, question func(context.Context, *stagev1.ViewUpdate) (bool, *stagev1.Standing, error)) error {
	for range 2 {
		u := w.encoder.Encode(v, told.admitted, told.waiting)
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

// mend deals with a failure as the options say. It returns nil when the question can be put again, errInstead when the
// fallback must answer, and the error that ends the run otherwise. The process is gone in any case.
func (w *worker) mend(ctx context.Context, round int, cause error) error {
	failure := w.fail(cause)
	w.reason = failure.Error()
	if w.options.OnFailure == Fallback {
		w.options.Log.Warn("the fallback takes over", "component", w.id, "plugin", w.name, "round", round, "error", failure)
		w.instead = true
		return errInstead
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
		failure = &Failure{Plugin: w.name, Cause: err}
		w.reason = failure.Error()
	}
	failure.Restarts = w.restarts
	return failure
}

// Trouble is what a component went through in a run that went on all the same.
type Trouble struct {
	Component string // its id
	Restarts  int
	Fallback  bool   // the built-in policy took over
	Reason    string // of the last failure
}

// Trouble tells of the component, and whether there is anything to tell.
func (w *worker) Trouble() (Trouble, bool) {
	return Trouble{Component: w.id, Restarts: w.restarts, Fallback: w.instead, Reason: w.reason}, w.reason != ""
}

// Recover is told that an answer broke a rule of the pipeline, and reports whether to ask again.
func (w *worker) Recover(ctx context.Context, broken error) (again bool, err error) {
	var rule *core.InvariantError
	if w.instead || !errors.As(broken, &rule) {
		return false, broken
	}
	err = w.mend(ctx, rule.Round, broken)
	if err == nil || errors.Is(err, errInstead) {
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
