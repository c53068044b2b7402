package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// bubbleClock is the clock of a bubble.
type bubbleClock struct{}

func (bubbleClock) Now() time.Time                         { return time.Now() } //nolint:forbidigo // a clock is what it is
func (bubbleClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// eventLog is an API server that keeps Events, and fails as it is told.
type eventLog struct {
	mutex  sync.Mutex // of all below
	lines  []string
	names  map[string]bool
	answer func() error // nil: it takes all
	calls  int
}

// call counts a request and answers it. The caller holds the mutex.
func (l *eventLog) call() error {
	if l.calls++; l.answer != nil {
		return l.answer()
	}
	return nil
}

func (l *eventLog) create(_ context.Context, e *corev1.Event) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.call(); err != nil {
		return err
	}
	l.names[e.Namespace+"/"+e.Name] = true
	l.lines = append(l.lines, fmt.Sprintf("%s %s %s ×%d", e.Type, e.Reason, e.Message, e.Count))
	return nil
}

func (l *eventLog) patch(_ context.Context, namespace, name string, patch []byte) error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.call(); err != nil {
		return err
	}
	if !l.names[namespace+"/"+name] {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, name)
	}
	var e corev1.Event
	if err := json.Unmarshal(patch, &e); err != nil {
		return err
	}
	l.lines = append(l.lines, fmt.Sprintf("again %s ×%d", e.Message, e.Count))
	return nil
}

// answerBy has requests answered by a function from now on, which are counted anew.
func (l *eventLog) answerBy(answer func() error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.calls, l.answer = 0, answer
}

// requests counts the requests since answerBy.
func (l *eventLog) requests() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.calls
}

// recording runs a recorder in a bubble.
func recording(t *testing.T, test func(l *eventLog, record func(name, kind, reason, message string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &eventLog{names: map[string]bool{}}
		r := newRecorder(l, bubbleClock{}, slog.New(slog.DiscardHandler), "quartet")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.run(ctx)
		}()
		version := 0
		test(l, func(name, kind, reason, message string) {
			version++
			r.record(&corev1.ObjectReference{Namespace: "default", Name: name, ResourceVersion: fmt.Sprint(version)}, kind, reason, message)
			time.Sleep(time.Millisecond) // of the bubble: it is written meanwhile
			synctest.Wait()
		})
		cancel()
		<-done
	})
}

func (l *eventLog) want(t *testing.T, lines ...string) {
	t.Helper()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !slices.Equal(l.lines, lines) {
		t.Errorf("written:\n%s\nwant:\n%s", strings.Join(l.lines, "\n"), strings.Join(lines, "\n"))
	}
	l.lines = nil
}

// An Event that comes again is counted, whatever version of its object it is of; one of another object or message is another.
func TestEventsAreCounted(t *testing.T) {
	recording(t, func(l *eventLog, record func(name, kind, reason, message string)) {
		record("a", "Normal", "Running", "all run")
		record("a", "Normal", "Running", "all run")
		record("b", "Normal", "Running", "all run")
		record("a", "Normal", "Running", "one runs")
		record("a", "Normal", "Running", "all run")
		l.want(t, "Normal Running all run ×1", "again all run ×2", "Normal Running all run ×1", "Normal Running one runs ×1", "again all run ×3")
		clear(l.names) // somebody deletes them
		record("a", "Normal", "Running", "all run")
		l.want(t, "Normal Running all run ×4")
	})
}

// Many messages with one reason become one Event, for as long as they keep coming.
func TestEventsAlikeAreCombined(t *testing.T) {
	recording(t, func(l *eventLog, record func(name, kind, reason, message string)) {
		for i := range eventsAlike - 1 {
			record("a", "Normal", "Waiting", fmt.Sprint(i))
		}
		l.lines = nil
		record("a", "Normal", "Waiting", "0")
		record("a", "Normal", "Waiting", "new")
		record("a", "Normal", "Waiting", "newer")
		record("a", "Normal", "Other", "new")
		l.want(t, "again 0 ×2", "Normal Waiting "+combinedMessages+"new ×1", "again "+combinedMessages+"newer ×2", "Normal Other new ×1")
		time.Sleep(eventsAlikeFor + time.Second)
		record("a", "Normal", "Waiting", "newest")
		l.want(t, "Normal Waiting newest ×1")
	})
}

// An object that has too many Events gets no more until some time passed; those of another type and of others do not count.
func TestEventsOfOneObjectAreLimited(t *testing.T) {
	recording(t, func(l *eventLog, record func(name, kind, reason, message string)) {
		for range eventBurst + 5 {
			record("a", "Normal", "Running", "all run")
		}
		if len(l.lines) != eventBurst {
			t.Errorf("%d Events, want %d", len(l.lines), eventBurst)
		}
		l.lines = nil
		record("a", "Warning", "Failed", "exit code 1")
		record("b", "Normal", "Running", "all run")
		l.want(t, "Warning Failed exit code 1 ×1", "Normal Running all run ×1")
		time.Sleep(eventRefill)
		record("a", "Normal", "Running", "all run")
		record("a", "Normal", "Running", "all run")
		l.want(t, fmt.Sprintf("again all run ×%d", eventBurst+6))
	})
}

// An API server that does not answer is asked again, one that refuses is not.
func TestEventsAreTriedAgain(t *testing.T) {
	recording(t, func(l *eventLog, record func(name, kind, reason, message string)) {
		l.answerBy(func() error {
			if l.calls < 3 {
				return errors.New("connection refused")
			}
			return nil
		})
		record("a", "Normal", "Running", "all run")
		l.want(t)
		time.Sleep(3 * eventPause)
		l.want(t, "Normal Running all run ×1")
		l.answerBy(func() error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "a", errors.New("no"))
		})
		record("b", "Normal", "Running", "all run")
		time.Sleep(time.Hour)
		if n := l.requests(); n != 1 {
			t.Errorf("%d requests of one that is refused", n)
		}
		l.answerBy(func() error { return errors.New("connection refused") })
		record("c", "Normal", "Running", "all run")
		time.Sleep(time.Hour)
		if n := l.requests(); n != eventTries {
			t.Errorf("%d requests of one that is never answered, want %d", n, eventTries)
		}
	})
}
