package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/grid"
)

// patience is how long a test waits for what must come, on a machine that is busy.
const patience = time.Minute

// mostRounds is more than any test needs.
const mostRounds = 1000

// session is a test's talk with a backend. It holds every observation to the contract.
type session struct {
	testing.TB
	h       *Harness
	backend core.Backend
	cluster *core.Cluster // that the backend was opened on

	held   int // rounds
	round  int // of changes
	now    float64
	lastID uint64
	jobs   []jobSeen  // by JobID
	nodes  []nodeSeen // by NodeID
	news   []string   // what was told besides progress, since somebody looked
}

// jobSeen is what a session was told of a job.
type jobSeen struct {
	spec    *core.JobSpec
	at      float64 // last event
	started bool    // by a change
	ended   *core.Event

	interrupted *core.Event // for the last time
}

// nodeSeen is what a session was told of a node.
type nodeSeen struct {
	at     float64 // last event
	added  float64 // when it was told that it joins; 0 of one that was there
	ready  float64 // when it was ready; NaN before
	health core.Health
	told   *core.AddedNode
}

// onEvents waits for an event, however long it takes.
var onEvents = core.Wake{BySeconds: math.Inf(1), OnEvents: true}

func open(t testing.TB, h *Harness, jobs ...Job) *session {
	t.Helper()
	return openWorld(t, h, World{Jobs: jobs})
}

// openWorld opens a backend for jobs whose times are in units.
func openWorld(t testing.TB, h *Harness, w World) *session {
	t.Helper()
	w.Cluster = cluster()
	w.Jobs = h.scaled(w.Jobs)
	return newSession(t, h, h.Open(t, w), w.Cluster)
}

func newSession(t testing.TB, h *Harness, b core.Backend, c *core.Cluster) *session {
	s := &session{TB: t, h: h, backend: b, cluster: c}
	for range c.Nodes {
		s.nodes = append(s.nodes, nodeSeen{})
	}
	return s
}

// scaled are jobs whose times are in units, in seconds.
func (h *Harness) scaled(jobs []Job) []Job {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		j := &jobs[i]
		j.SubmitSeconds *= h.UnitSeconds
		if j.Seconds != Endless {
			j.Seconds *= h.UnitSeconds
		}
		if j.Name == "" {
			j.Name = fmt.Sprintf("job-%d", i)
		}
		j.Replicas = max(j.Replicas, 1)
	}
	return jobs
}

// next waits for the next round and returns the events that were not told before.
func (s *session) next(w core.Wake) []core.Event {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	events, err := s.tryNext(ctx, w)
	if err != nil {
		s.Fatalf("next: %v", err)
	}
	return events
}

func (s *session) tryNext(ctx context.Context, w core.Wake) ([]core.Event, error) {
	s.Helper()
	seen, err := s.backend.Next(ctx, w)
	if err != nil {
		return nil, err
	}
	if s.held++; s.held > mostRounds {
		s.Fatalf("%d rounds, and no end of them", mostRounds)
	}
	if !(seen.NowSeconds >= s.now) {
		s.Errorf("time went back from %v to %v s", s.now, seen.NowSeconds)
	}
	var fresh []core.Event
	for i := range seen.Events {
		e := &seen.Events[i]
		if e.ID != 0 && e.ID <= s.lastID {
			continue
		}
		if (e.ID == 0) != (s.lastID == 0) && (s.lastID != 0 || len(fresh) > 0) {
			s.Errorf("%v has id %d after events with ids up to %d: all have one, or none", e.Kind, e.ID, s.lastID)
		}
		s.lastID = e.ID
		if !(e.AtSeconds >= s.now && e.AtSeconds <= seen.NowSeconds) {
			s.Errorf("%v of %v s is reported at %v s, after the observation of %v s", e.Kind, e.AtSeconds, seen.NowSeconds, s.now)
		}
		s.take(e)
		s.note(e)
		fresh = append(fresh, *e)
	}
	s.checkDue(seen.NowSeconds, w, fresh)
	s.now = seen.NowSeconds
	return fresh, nil
}

// checkDue complains about a round that is held too early, or on an exact clock too late.
func (s *session) checkDue(now float64, w core.Wake, fresh []core.Event) {
	s.Helper()
	onGrid := func(t float64) float64 {
		if w.IntervalSeconds > 0 && !math.IsInf(t, 1) {
			return grid.From(t, w.IntervalSeconds)
		}
		return t
	}
	due := onGrid(w.BySeconds)
	for i := range fresh {
		e := &fresh[i]
		if e.Kind == core.JobProgressed || e.Kind == core.JobMeasured || e.Kind == core.JobReported {
			continue // an exact one may wait for the grid only, and no test has any
		}
		if w.OnEvents {
			due = min(due, e.AtSeconds)
		} else {
			due = min(due, onGrid(e.AtSeconds))
		}
	}
	if now < due {
		s.Errorf("a round at %v s, due at %v s: %+v", now, due, w)
	}
	if s.h.Exact && now > due {
		s.Errorf("a round at %v s, due at %v s already: %+v", now, due, w)
	}
}

// take takes in an event.
func (s *session) take(e *core.Event) {
	s.Helper()
	if e.Kind.OfNode() {
		s.takeNode(e)
		return
	}
	if e.Kind == core.JobSubmitted {
		switch {
		case int(e.Job) != len(s.jobs):
			s.Fatalf("job %d is submitted as number %d", e.Job, len(s.jobs))
		case e.Spec == nil || e.Spec.ID != e.Job:
			s.Fatalf("job %d is submitted without a specification of its own", e.Job)
		}
		s.jobs = append(s.jobs, jobSeen{spec: e.Spec, at: e.AtSeconds})
		return
	}
	if e.Job < 0 || int(e.Job) >= len(s.jobs) {
		s.Fatalf("reported %v of unknown job %d", e.Kind, e.Job)
	}
	j := &s.jobs[e.Job]
	switch {
	case j.ended != nil:
		s.Errorf("job %d: %v after %v", e.Job, e.Kind, j.ended.Kind)
	case e.AtSeconds < j.at:
		s.Errorf("job %d: events are not in order of time: %v of %v s after one of %v s", e.Job, e.Kind, e.AtSeconds, j.at)
	case math.IsNaN(e.Progress) || math.IsNaN(e.Rate) || math.IsNaN(e.FromSeconds):
		s.Errorf("job %d: progress that is no number: %+v", e.Job, *e)
	}
	j.at = e.AtSeconds
	switch e.Kind {
	case core.JobInterrupted:
		last := *e
		j.interrupted = &last
		fallthrough
	case core.JobFinished, core.JobFailed:
		if !j.started {
			s.Errorf("job %d: %v without ever being started", e.Job, e.Kind)
		}
	}
	if e.Kind == core.JobFinished || e.Kind == core.JobFailed || e.Kind == core.JobCancelled {
		last := *e
		j.ended = &last
	}
}

// takeNode takes in an event about a node. Ids follow each other, and one that is gone is not heard of again.
func (s *session) takeNode(e *core.Event) {
	s.Helper()
	if e.Kind == core.NodeAdded {
		if int(e.Node) != len(s.nodes) || e.Added == nil || e.Added.Health > core.Provisioning {
			s.Fatalf("node %d joins as number %d: %+v", e.Node, len(s.nodes), e.Added)
		}
		added := *e.Added
		s.nodes = append(s.nodes, nodeSeen{at: e.AtSeconds, added: e.AtSeconds, ready: math.NaN(), health: added.Health, told: &added})
		return
	}
	if e.Node < 0 || int(e.Node) >= len(s.nodes) {
		s.Fatalf("reported unknown node %d", e.Node)
	}
	n := &s.nodes[e.Node]
	if e.AtSeconds < n.at {
		s.Errorf("events of node %d are not in order of time", e.Node)
	}
	if n.health == core.Gone {
		s.Errorf("%v of node %d, which is gone", e.Kind, e.Node)
	}
	n.at, n.health = e.AtSeconds, e.Health
	if e.Kind == core.NodeRemoved {
		n.health = core.Gone
	} else if e.Health == core.Ready && math.IsNaN(n.ready) {
		n.ready = e.AtSeconds
	}
}

func (s *session) note(e *core.Event) {
	switch e.Kind {
	case core.JobProgressed, core.JobMeasured, core.JobStarting, core.JobStarted:
	case core.NodeChanged:
		s.news = append(s.news, fmt.Sprintf("%v %d %v", e.Kind, e.Node, e.Health))
	case core.NodeAdded, core.NodeRemoved:
		s.news = append(s.news, fmt.Sprintf("%v %d", e.Kind, e.Node))
	default:
		s.news = append(s.news, fmt.Sprintf("%v %d", e.Kind, e.Job))
	}
}

// wantNews lets a unit go by, and complains unless this is what was told since somebody looked last.
func (s *session) wantNews(after string, want ...string) {
	s.Helper()
	s.pass(1)
	if !slices.Equal(s.news, want) {
		s.Errorf("%s, reported %q, want %q", after, s.news, want)
	}
	s.news = nil
}

// apply carries out the changes of a round, and carries them out again.
func (s *session) apply(changes ...core.Change) {
	s.Helper()
	s.round++
	for i := range changes {
		changes[i].Round = s.round
	}
	s.again(changes...)
	s.again(changes...)
}

// again carries out changes as they are.
func (s *session) again(changes ...core.Change) {
	s.Helper()
	for _, c := range changes {
		if c.Action == core.Start && int(c.Job) < len(s.jobs) {
			s.jobs[c.Job].started = true
		}
	}
	if err := s.backend.Apply(context.Background(), slices.Clone(changes)); err != nil {
		s.Fatalf("apply %+v: %v", changes, err)
	}
}

// submitted waits until so many jobs were submitted.
func (s *session) submitted(jobs int) {
	s.Helper()
	for len(s.jobs) < jobs {
		s.next(onEvents)
		s.apply()
	}
}

// end waits until a job has ended, and returns its last event.
func (s *session) end(id core.JobID) core.Event {
	s.Helper()
	for s.jobs[id].ended == nil {
		s.next(onEvents)
		s.apply()
	}
	return *s.jobs[id].ended
}

// over checks that nothing more happens.
func (s *session) over() {
	s.Helper()
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		s.news = nil
		_, err := s.tryNext(ctx, core.Wake{BySeconds: s.now + 1000*s.h.UnitSeconds, OnEvents: true})
		cancel()
		if !errors.Is(err, io.EOF) {
			s.Fatalf("nothing is left, and Next returns %q, error %v; want io.EOF", s.news, err)
		}
	}
}

// pass lets time go by: rounds are held until so many units are over.
func (s *session) pass(units float64) {
	s.Helper()
	for until := s.now + units*s.h.UnitSeconds; s.now < until; {
		s.next(core.Wake{BySeconds: until, OnEvents: true})
		s.apply()
	}
}
