package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quartet-sched/quartet/core/backend/kube/lead"
)

// The limits of Events, those of client-go's recorder.
const (
	eventQueue       = 1000             // Events that wait to be written; more are dropped
	eventMemory      = 4096             // Events that are remembered, to count them when they come again
	eventBurst       = 25               // Events of one object and type that may be written at once
	eventRefill      = 5 * time.Minute  // after which one more may be written
	eventsAlike      = 10               // different messages with one reason of one object, from which on they are written as one Event
	eventsAlikeFor   = 10 * time.Minute // after which these are counted anew
	eventTries       = 12               // how often an Event is sent to an API server that does not answer
	eventPause       = 10 * time.Second // between these
	eventPatience    = 5 * time.Second  // how long a request may take
	combinedMessages = "(combined from similar events): "
)

// recorder writes Events beside the rounds, in the order in which they are recorded. An Event that comes again is counted at the
// first one. Events may be lost: those of an object that has too many of them, and those that an API server refuses.
type recorder struct {
	sink      eventSink
	clock     lead.Clock
	log       *slog.Logger
	component string // in whose name Events are written
	queue     chan *corev1.Event

	written map[eventKey]*writtenEvent
	budgets map[eventKey]*eventBudget // by object and type
	alike   map[eventKey]*alikeEvents // by object, type and reason
}

// eventSink is where Events are written to: the API server.
type eventSink interface {
	create(ctx context.Context, e *corev1.Event) error
	patch(ctx context.Context, namespace, name string, patch []byte) error
}

// eventKey says which Events count as the same; what they may differ in is empty.
type eventKey struct {
	object                corev1.ObjectReference
	kind, reason, message string
}

// writtenEvent is an Event that comes again.
type writtenEvent struct {
	name  string
	first metav1.Time
	count int32 // how often it came
}

// eventBudget is how many Events may be written, as of a moment.
type eventBudget struct {
	left float64
	at   time.Time
}

// alikeEvents are the messages of Events that have all else in common.
type alikeEvents struct {
	messages map[string]bool
	last     time.Time
}

func newRecorder(sink eventSink, clock lead.Clock, log *slog.Logger, component string) *recorder {
	return &recorder{
		sink: sink, clock: clock, log: log, component: component, queue: make(chan *corev1.Event, eventQueue),
		written: map[eventKey]*writtenEvent{}, budgets: map[eventKey]*eventBudget{}, alike: map[eventKey]*alikeEvents{},
	}
}

// record has an Event of an object written. It does not wait.
func (r *recorder) record(object *corev1.ObjectReference, kind, reason, message string) {
	now := metav1.NewTime(r.clock.Now())
	namespace := object.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: eventName(object, now), Namespace: namespace},
		InvolvedObject: *object, Type: kind, Reason: reason, Message: message, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: r.component}, ReportingController: r.component,
	}
	select {
	case r.queue <- e:
	default:
		r.log.Warn("too many Events wait to be written; one is dropped", "object", object.Name, "reason", reason)
	}
}

// eventName is the name of an Event, which no other has.
func eventName(object *corev1.ObjectReference, now metav1.Time) string {
	return fmt.Sprintf("%s.%x", object.Name, now.UnixNano())
}

// run writes Events until a context ends.
func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.queue:
			if again := r.count(e); r.affords(e) {
				r.write(ctx, e, again)
			}
		}
	}
}

// count makes an Event one of the Events that came before if it is the same, or alike many others. It reports whether it is there already.
func (r *recorder) count(e *corev1.Event) (again bool) {
	key := r.combine(e)
	if len(r.written) >= eventMemory {
		clear(r.written) // those that come again are written anew
	}
	was := r.written[key]
	if was == nil {
		r.written[key] = &writtenEvent{e.Name, e.FirstTimestamp, 1}
		return false
	}
	was.count++
	e.Name, e.FirstTimestamp, e.Count = was.name, was.first, was.count
	return true
}

// combine makes an Event one with those that are alike, if there were many lately, and returns what it is known by.
func (r *recorder) combine(e *corev1.Event) eventKey {
	group := keyOfObject(e)
	group.reason = e.Reason
	if len(r.alike) >= eventMemory {
		clear(r.alike)
	}
	seen, now := r.alike[group], e.LastTimestamp.Time
	if seen == nil || now.Sub(seen.last) > eventsAlikeFor {
		seen = &alikeEvents{messages: map[string]bool{}}
		r.alike[group] = seen
	}
	seen.last = now
	if seen.messages[e.Message] || len(seen.messages) < eventsAlike-1 {
		seen.messages[e.Message] = true
		one := group
		one.message = e.Message
		return one
	}
	e.Message = combinedMessages + e.Message
	return group
}

// affords reports whether an object may have one more Event of its type now.
func (r *recorder) affords(e *corev1.Event) bool {
	if len(r.budgets) >= eventMemory {
		clear(r.budgets)
	}
	key, now := keyOfObject(e), e.LastTimestamp.Time
	b := r.budgets[key]
	if b == nil {
		b = &eventBudget{eventBurst, now}
		r.budgets[key] = b
	}
	b.left = min(b.left+max(now.Sub(b.at), 0).Seconds()/eventRefill.Seconds(), eventBurst)
	if b.at = now; b.left < 1 {
		return false
	}
	b.left--
	return true
}

// keyOfObject is what the Events of one object and type have in common, whichever version of the object they are of.
func keyOfObject(e *corev1.Event) eventKey {
	object := e.InvolvedObject
	object.ResourceVersion = ""
	return eventKey{object: object, kind: e.Type}
}

// write writes an Event, or how often it came. An API server that does not answer is asked again.
func (r *recorder) write(ctx context.Context, e *corev1.Event, again bool) {
	for try := 1; ; try++ {
		err := r.send(ctx, e, again)
		var refused apierrors.APIStatus
		switch {
		case err == nil, apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return
		case errors.As(err, &refused), try == eventTries:
			r.log.Warn("an Event is not written", "object", e.InvolvedObject.Name, "reason", e.Reason, "error", err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.clock.After(eventPause):
		}
	}
}

// send sends an Event once. One that was deleted meanwhile is made again.
func (r *recorder) send(ctx context.Context, e *corev1.Event, again bool) error {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventPatience) // what is under way when the backend closes is finished
	defer cancel()
	if again {
		patch, err := json.Marshal(map[string]any{"count": e.Count, "lastTimestamp": e.LastTimestamp, "message": e.Message})
		if err != nil {
			return err
		}
		if err := r.sink.patch(call, e.Namespace, e.Name, patch); !apierrors.IsNotFound(err) {
			return err
		}
	}
	return r.sink.create(call, e)
}

// apiEvents writes Events to an API server.
type apiEvents struct{ clients *clients }

func (s apiEvents) create(ctx context.Context, e *corev1.Event) error {
	_, err := s.clients.Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
	return err
}

func (s apiEvents) patch(ctx context.Context, namespace, name string, patch []byte) error {
	_, err := s.clients.Events(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
