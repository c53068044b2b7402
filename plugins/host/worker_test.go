package host

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// attempts are a worker whose starts and questions fail as the test says: the first start is at no. 0, and so is the first question.
type attempts struct {
	worker
	starts, questions       []error
	started, asked, closed  int
	full                    []bool // by question: whether it told the whole view
	log                     bytes.Buffer
	stopAtStart, stopAtCall int // number of the start or question that ends the run; 0 for none
	stop                    context.CancelFunc
}

func attempt(on OnFailure, restarts int, starts, questions []error) *attempts {
	a := &attempts{starts: starts, questions: questions}
	drop := func(_ []string, at slog.Attr) slog.Attr {
		if at.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return at
	}
	a.worker = newWorker("stage/p", "p", func(context.Context) (*Session, error) {
		a.started++
		if a.started == a.stopAtStart {
			a.stop()
		}
		if a.started <= len(a.starts) && a.starts[a.started-1] != nil {
			return nil, a.starts[a.started-1]
		}
		return &Session{Close: func() { a.closed++ }}, nil
	}, Options{
		OnFailure: on, MaxRestarts: restarts, Backoff: time.Microsecond, CallTimeout: time.Minute,
		Log: slog.New(slog.NewTextHandler(&a.log, &slog.HandlerOptions{ReplaceAttr: drop})),
	})
	a.reset = func() {}
	return a
}

// put puts a question.
func (a *attempts) put(ctx context.Context) error {
	v := &core.View{Round: 4, Cluster: &core.Cluster{Accelerators: []string{"t4"}, Nodes: []core.Node{{Name: "a", Devices: 1}}}}
	return a.ask(ctx, v, candidates{}, func(_ context.Context, u *stagev1.ViewUpdate) (bool, *stagev1.Standing, error) {
		a.asked++
		a.full = append(a.full, u.GetFull())
		if a.asked == a.stopAtCall {
			a.stop()
		}
		if a.asked <= len(a.questions) {
			return false, nil, a.questions[a.asked-1]
		}
		return false, nil, nil
	})
}

var errNo = status.Error(codes.Internal, "no")

// A failure ends the run, starts the process again so many times, or lets the fallback answer.
func TestWhatAFailureLeadsTo(t *testing.T) {
	unready := errors.New("not ready")
	for name, tc := range map[string]struct {
		on                OnFailure
		most              int
		starts, questions []error
		want              string // the error; empty for none
		started, asked    int
		trouble           Trouble
		log               string // what it says, by line
	}{
		"nothing": {on: Fail, started: 1, asked: 1},
		"fail": {
			on: Fail, most: 9, questions: []error{errNo}, want: `plugin "p": no; plugin.on_failure: restart or fallback lets a run survive this`,
			started: 1, asked: 1, trouble: Trouble{Reason: `plugin "p": no; plugin.on_failure: restart or fallback lets a run survive this`},
		},
		"fall back": {
			on: Fallback, most: 9, questions: []error{errNo}, want: errUseFallback.Error(), started: 1, asked: 1,
			trouble: Trouble{Fallback: true, Reason: `plugin "p": no`},
			log:     `level=WARN msg="the fallback takes over" component=stage/p plugin=p round=4 error="plugin \"p\": no"` + "\n",
		},
		"restart": {
			on: Restart, most: 2, questions: []error{errNo}, started: 2, asked: 2, trouble: Trouble{Restarts: 1, Reason: `plugin "p": no`},
			log: `level=WARN msg="restarting a plugin" in=1µs component=stage/p plugin=p round=4 restart=1 error="plugin \"p\": no"` + "\n",
		},
		"restart twice": {
			on: Restart, most: 2, questions: []error{errNo, errNo}, started: 3, asked: 3, trouble: Trouble{Restarts: 2, Reason: `plugin "p": no`},
			log: `level=WARN msg="restarting a plugin" in=1µs component=stage/p plugin=p round=4 restart=1 error="plugin \"p\": no"` + "\n" +
				`level=WARN msg="restarting a plugin" in=2µs component=stage/p plugin=p round=4 restart=2 error="plugin \"p\": no"` + "\n",
		},
		"restart too often": {
			on: Restart, most: 1, questions: []error{errNo, errNo}, want: `plugin "p": no; given up after 1 restarts`, started: 2, asked: 2,
			trouble: Trouble{Restarts: 1, Reason: `plugin "p": no`},
			log:     `level=WARN msg="restarting a plugin" in=1µs component=stage/p plugin=p round=4 restart=1 error="plugin \"p\": no"` + "\n",
		},
		"never restart": {
			on: Restart, questions: []error{errNo}, want: `plugin "p": no`, started: 1, asked: 1, trouble: Trouble{Reason: `plugin "p": no`},
		},
		"a restart that fails": {
			on: Restart, most: 2, starts: []error{nil, unready}, questions: []error{errNo}, started: 3, asked: 2,
			trouble: Trouble{Restarts: 2, Reason: `plugin "p": not ready`},
			log: `level=WARN msg="restarting a plugin" in=1µs component=stage/p plugin=p round=4 restart=1 error="plugin \"p\": no"` + "\n" +
				`level=WARN msg="restarting a plugin" in=2µs component=stage/p plugin=p round=4 restart=2 error="plugin \"p\": not ready"` + "\n",
		},
		"every restart fails": {
			on: Restart, most: 1, starts: []error{nil, unready}, questions: []error{errNo}, want: `plugin "p": not ready; given up after 1 restarts`,
			started: 2, asked: 1, trouble: Trouble{Restarts: 1, Reason: `plugin "p": not ready`},
			log: `level=WARN msg="restarting a plugin" in=1µs component=stage/p plugin=p round=4 restart=1 error="plugin \"p\": no"` + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := attempt(tc.on, tc.most, tc.starts, tc.questions)
			if err := a.start(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := a.put(t.Context())
			if err == nil && tc.want != "" || err != nil && err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if a.started != tc.started || a.asked != tc.asked {
				t.Errorf("%d starts, %d questions; want %d, %d", a.started, a.asked, tc.started, tc.asked)
			}
			for i, full := range a.full {
				if !full {
					t.Errorf("question %d to a new process tells the view in part", i)
				}
			}
			tc.trouble.Component = "stage/p"
			trouble, any := a.Trouble()
			if diff := cmp.Diff(tc.trouble, trouble); diff != "" || any != (len(tc.questions) > 0) {
				t.Errorf("trouble: %v, -want +got:\n%s", any, diff)
			}
			if diff := cmp.Diff(tc.log, a.log.String()); diff != "" {
				t.Errorf("log -want +got:\n%s", diff)
			}
		})
	}
}

// A run that is interrupted ends with the error of its context, wherever it is.
func TestAnInterruptedRunBlamesNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		start, call int // at which it is interrupted
		backoff     time.Duration
		asked       int
	}{
		"in a question":          {call: 1, asked: 1},
		"in a restart":           {start: 2, asked: 1},
		"in the wait before one": {call: 2, backoff: time.Hour, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			a := attempt(Restart, 5, []error{nil, errors.New("not ready")}, []error{errNo, errNo, errNo})
			a.stop, a.stopAtStart, a.stopAtCall = stop, tc.start, tc.call
			if tc.backoff > 0 {
				a.starts = nil
			}
			if err := a.start(ctx); err != nil {
				t.Fatal(err)
			}
			if err := a.put(ctx); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "plugin") {
				t.Errorf("error %v", err)
			}
			if a.asked != tc.asked {
				t.Errorf("%d questions, want %d", a.asked, tc.asked)
			}
		})
	}
}

func TestSleep(t *testing.T) {
	if err := sleep(t.Context(), time.Microsecond); err != nil {
		t.Error(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A broken rule is a failure like another one; anything else, and what the fallback breaks, ends the run.
func TestARuleThatAnAnswerBreaks(t *testing.T) {
	rule := &core.InvariantError{Component: "stage/p", Round: 4, Rule: "capacity"}
	other := errors.New("disk full")
	for name, tc := range map[string]struct {
		on      OnFailure
		most    int
		instead bool
		broken  error
		again   bool
		want    error
	}{
		"restart":            {Restart, 1, false, rule, true, nil},
		"fall back":          {Fallback, 0, false, rule, true, nil},
		"fail":               {Fail, 1, false, rule, false, rule},
		"no restart is left": {Restart, 0, false, rule, false, rule},
		"by the fallback":    {Fallback, 0, true, rule, false, rule},
		"of no rule":         {Restart, 1, false, other, false, other},
	} {
		t.Run(name, func(t *testing.T) {
			a := attempt(tc.on, tc.most, nil, nil)
			a.usingFallback = tc.instead
			again, err := a.Recover(t.Context(), tc.broken)
			if again != tc.again || !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("again: %v, error %v; want %v, %v", again, err, tc.again, tc.want)
			}
		})
	}
}

// The context of a question ends with the question.
func TestAQuestionHasItsTime(t *testing.T) {
	a := attempt(Fail, 0, nil, nil)
	if err := a.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var call context.Context
	v := &core.View{Round: 1, Cluster: &core.Cluster{}}
	err := a.ask(t.Context(), v, candidates{}, func(ctx context.Context, _ *stagev1.ViewUpdate) (bool, *stagev1.Standing, error) {
		call = ctx
		if deadline, bounded := ctx.Deadline(); !bounded || time.Until(deadline) > time.Minute {
			t.Errorf("deadline %v", deadline)
		}
		return false, nil, nil
	})
	if err != nil || call.Err() == nil {
		t.Errorf("error %v, and that of its context: %v", err, call.Err())
	}
}
