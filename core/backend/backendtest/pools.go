package backendtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// What core.Scaling says, as tests. They scale one pool of up to three nodes with one device each, of which one is there at first.
var poolChecks = []check{
	{"nodes of a pool come after a while", nodesCome},
	{"nodes of a pool do not come after all", nodesFail},
	{"a node that comes is not wanted any more", nodesAreCalledOff},
	{"a node drains and goes", nodesDrain},
	{"a node does not drain in time", nodesAreDrained},
	{"nodes are taken away with notice", func(t testing.TB, h *Harness) { nodesAreTaken(t, h, 2) }},
	{"nodes are taken away without notice", func(t testing.TB, h *Harness) { nodesAreTaken(t, h, 0) }},
	{"another scheduler takes over pools", takesOverPools},
	{"a pipeline runs on pools", runsPools},
}

// poolCluster is a pool of up to three nodes, one of which is there.
func poolCluster() *core.Cluster {
	return &core.Cluster{
		Accelerators: []string{"gpu"},
		Nodes:        []core.Node{{ID: 0, Name: "p-0", Devices: 1, Pool: "p"}},
		Pools:        []core.Pool{{Name: "p", Devices: 1, Max: 3, PricePerHour: 1}},
	}
}

// openPool opens a backend whose pool behaves as said, in units of time.
func openPool(t testing.TB, h *Harness, provisioning, evictions, notice, drain float64, fails bool, jobs ...Job) *session {
	t.Helper()
	if h.OpenPools == nil {
		t.Skip("this backend has no pools")
	}
	span := func(units float64) time.Duration { return time.Duration(units * h.UnitSeconds * float64(time.Second)) }
	p := backend.Pool{Pool: "p", Provisioning: span(provisioning), Evictions: span(evictions), Notice: span(notice), DrainTimeout: span(drain)}
	if fails {
		p.Fails = 1
	}
	w := World{Cluster: poolCluster(), Jobs: h.scaled(jobs)}
	return newSession(t, h, h.OpenPools(t, w, []backend.Pool{p}), w.Cluster)
}

// scale wants a size as of the round that was applied last, twice.
func (s *session) scale(nodes int, remove ...core.NodeID) {
	s.Helper()
	for range 2 {
		t := []core.PoolTarget{{Pool: "p", Nodes: nodes, Remove: slices.Clone(remove)}}
		if err := backend.AbilitiesOf(s.backend).Scaling.Scale(context.Background(), s.round, t); err != nil {
			s.Fatalf("scale to %d nodes: %v", nodes, err)
		}
	}
}

// until holds rounds until something is so.
func (s *session) until(what string, is func() bool) {
	s.Helper()
	for from := s.held; !is(); {
		if s.held-from > mostRounds/4 {
			s.Fatalf("after %d rounds it is not so that %s; reported %q", s.held-from, what, s.news)
		}
		s.next(core.Wake{BySeconds: s.now + s.h.UnitSeconds, OnEvents: true})
		s.apply()
	}
}

func (s *session) untilHealth(id core.NodeID, h core.Health) {
	s.Helper()
	s.until(fmt.Sprintf("node %d is %v", id, h), func() bool { return int(id) < len(s.nodes) && s.nodes[id].health == h })
}

// checkAfter holds a moment against the earliest one at which something may be.
func (s *session) checkAfter(what string, at, want float64) {
	s.Helper()
	if s.h.Exact && math.Abs(at-want) > 1e-9*max(want, 1) || !(at >= want-1e-9) {
		s.Errorf("%s at %v s, want %v s", what, at, want)
	}
}

func nodesCome(t testing.TB, h *Harness) {
	s := openPool(t, h, 3, 0, 0, 0, false, Job{Seconds: Endless}, Job{Seconds: 1})
	s.submitted(2)
	s.apply(start(0, []core.Seat{{Node: 0, Devices: 1}}))
	asked := s.now
	s.scale(3)
	s.untilHealth(2, core.Ready)
	if len(s.nodes) != 3 {
		t.Fatalf("%d nodes, want 3: the sizes of a round are taken in once", len(s.nodes))
	}
	for id := core.NodeID(1); id < 3; id++ {
		n := &s.nodes[id]
		if n.told.Pool != "p" || n.told.Devices != 1 || n.told.Accelerator != "gpu" || n.told.Health != core.Provisioning {
			t.Errorf("node %d joins as %+v, want one of pool p that is provisioned", id, *n.told)
		}
		if at := n.told.ExpectedSeconds; at != 0 && at < asked+3*h.UnitSeconds-1e-9 {
			t.Errorf("node %d is expected at %v s, and asked for at %v s", id, at, asked)
		}
		s.checkAfter(fmt.Sprintf("node %d is ready", id), n.ready, asked+3*h.UnitSeconds)
	}
	s.apply(start(1, []core.Seat{{Node: 2, Devices: 1}}))
	if e := s.end(1); e.Kind != core.JobFinished {
		t.Errorf("a job on a node that joined: %v, want it finished", e.Kind)
	}
}

func nodesFail(t testing.TB, h *Harness) {
	s := openPool(t, h, 2, 0, 0, 0, true, Job{Seconds: Endless})
	s.submitted(1)
	s.apply(start(0, []core.Seat{{Node: 0, Devices: 1}}))
	for id := core.NodeID(1); id < 3; id++ {
		asked := s.now
		s.scale(2)
		s.untilHealth(id, core.Gone)
		if !math.IsNaN(s.nodes[id].ready) {
			t.Errorf("node %d was ready, want none to come", id)
		}
		s.checkAfter(fmt.Sprintf("node %d is known not to come", id), s.nodes[id].at, asked+2*h.UnitSeconds)
	}
	if s.jobs[0].ended != nil {
		t.Errorf("the job on the node that was there %v", s.jobs[0].ended.Kind)
	}
}

func nodesAreCalledOff(t testing.TB, h *Harness) {
	s := openPool(t, h, 5, 0, 0, 0, false, Job{Seconds: Endless})
	s.submitted(1)
	s.apply(start(0, []core.Seat{{Node: 0, Devices: 1}}))
	s.scale(2)
	s.untilHealth(1, core.Provisioning)
	s.scale(1, 1)
	s.untilHealth(1, core.Gone)
	s.scale(2)
	s.untilHealth(2, core.Ready) // under another id
	if !math.IsNaN(s.nodes[1].ready) || len(s.nodes) != 3 {
		t.Errorf("%d nodes, and the one that was called off was ready at %v s", len(s.nodes), s.nodes[1].ready)
	}
}

func nodesDrain(t testing.TB, h *Harness) {
	s := openPool(t, h, 1, 0, 0, 0, false, Job{Seconds: Endless}, Job{Seconds: Endless})
	s.submitted(2)
	s.apply(start(0, []core.Seat{{Node: 0, Devices: 1}}))
	s.scale(2)
	s.untilHealth(1, core.Ready)
	s.apply(start(1, []core.Seat{{Node: 1, Devices: 1}}))
	s.pass(1)
	s.scale(1, 1)
	s.untilHealth(1, core.Draining)
	s.news = nil
	s.pass(3)
	if len(s.news) > 0 {
		t.Errorf("while a job is on a node that drains, reported %q", s.news)
	}
	s.apply(stop(1))
	s.untilHealth(1, core.Gone)
	for _, told := range s.news {
		if told != "node_removed 1" {
			t.Errorf("reported %q, want that node 1 is gone and nothing else", told)
		}
	}
}

func nodesAreDrained(t testing.TB, h *Harness) {
	s := openPool(t, h, 0, 0, 0, 2, false, Job{Seconds: Endless})
	s.submitted(1)
	s.apply(start(0, []core.Seat{{Node: 0, Devices: 1}}))
	s.pass(1)
	asked := s.now
	s.scale(0, 0)
	s.untilHealth(0, core.Gone)
	s.checkInterrupted(0, core.CauseNodeDrained)
	s.checkAfter("the job is interrupted", s.jobs[0].interrupted.AtSeconds, asked+2*h.UnitSeconds)
}

// checkInterrupted wants the last that was told of a job to be that it lost its devices.
func (s *session) checkInterrupted(id core.JobID, cause core.Cause) {
	s.Helper()
	switch e := s.jobs[id].interrupted; {
	case s.jobs[id].ended != nil:
		s.Fatalf("job %d %v, want it interrupted", id, s.jobs[id].ended.Kind)
	case e == nil:
		s.Fatalf("no event says that job %d lost its devices; reported %q", id, s.news)
	case e.Cause != cause:
		s.Errorf("job %d was interrupted for %v, want %v", id, e.Cause, cause)
	}
}

// How long a node lives is left to chance.
func nodesAreTaken(t testing.TB, h *Harness, notice float64) {
	s := openPool(t, h, 1, 6, notice, 0, false, Job{Seconds: Endless})
	s.submitted(1)
	for node, taken := core.NodeID(0), 0; taken < 2; node++ {
		if node > 20 {
			t.Fatalf("%d nodes joined, and none was long enough there for a job", node)
		}
		s.until(fmt.Sprintf("node %d was ready", node), func() bool { return int(node) < len(s.nodes) && !math.IsNaN(s.nodes[node].ready) })
		s.jobs[0].interrupted = nil
		if s.nodes[node].health == core.Ready {
			taken++
			s.apply(start(0, []core.Seat{{Node: node, Devices: 1}}))
			s.until(fmt.Sprintf("node %d leaves", node), func() bool { return s.nodes[node].health != core.Ready })
			leaves := s.nodes[node].at
			s.untilHealth(node, core.Gone)
			s.checkInterrupted(0, core.CauseNodeFailed)
			if h.Exact {
				s.checkAfter(fmt.Sprintf("node %d is gone", node), s.nodes[node].at, leaves+notice*h.UnitSeconds)
			}
		}
		s.untilHealth(node, core.Gone)
		s.scale(1)
	}
}

// Another scheduler is told the same of nodes, and each that is on its way comes once.
func takesOverPools(t testing.TB, h *Harness) {
	if h.Restart == nil {
		t.Skip("no scheduler takes over this backend")
	}
	s := openPool(t, h, 3, 0, 0, 0, false, Job{Seconds: Endless})
	for s.next(onEvents); len(s.jobs) == 0; s.next(onEvents) {
		s.apply()
	}
	s.apply(start(0, []core.Seat{{Node: 0, Devices: 1}}))
	s.scale(2)
	asked := s.now
	s.untilHealth(1, core.Provisioning)
	for range 2 {
		s.backend = h.Restart(t, s.backend)
		round := s.round
		s.jobs, s.lastID, s.now, s.round = nil, 0, 0, 0
		s.nodes = s.nodes[:1]
		for s.nodes[0] = (nodeSeen{}); s.round < round; s.round++ {
			seen, err := s.backend.Next(context.Background(), core.Wake{BySeconds: s.now, OnEvents: true})
			if err != nil || seen.Decided == nil {
				t.Fatalf("round %d is not repeated: %+v, error %v", s.round+1, seen, err)
			}
			for i := range seen.Events {
				s.lastID = max(s.lastID, seen.Events[i].ID)
				s.take(&seen.Events[i])
				if e := &seen.Events[i]; e.Kind == core.JobSubmitted {
					s.jobs[e.Job].started = true
				}
			}
			s.now = seen.NowSeconds
			if err := s.backend.Apply(context.Background(), seen.Decided.Changes); err != nil {
				t.Fatal(err)
			}
			if err := backend.AbilitiesOf(s.backend).Scaling.Scale(context.Background(), s.round+1, []core.PoolTarget{{Pool: "p", Nodes: 2}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.untilHealth(1, core.Ready)
	s.checkAfter("node 1 is ready", s.nodes[1].ready, asked+3*h.UnitSeconds)
	s.pass(2)
	if len(s.nodes) != 2 {
		t.Errorf("%d nodes, want 2", len(s.nodes))
	}
}

// sizes wants more and fewer nodes in turns of so many seconds.
type sizes float64

func (s sizes) Scale(_ context.Context, v *core.View, _ *core.Plan) (core.ClusterTarget, error) {
	turns := []int{2, 3, 0, 3, 1, 2}
	nodes := turns[min(int(v.NowSeconds/float64(s)), len(turns)-1)]
	return core.ClusterTarget{Pools: []core.PoolTarget{{Pool: "p", Nodes: nodes}}}, nil
}

// bounds hold the nodes that a pipeline sees to their pool.
type bounds struct {
	books
	names map[string]core.NodeID
	joins int
}

func (b *bounds) ObserveRound(r *core.Report) error {
	c := r.View.Cluster
	if n := c.PoolSize("p"); n > c.Pools[0].Max {
		b.Errorf("round %d: %d nodes, want at most %d", r.View.Round, n, c.Pools[0].Max)
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if id, known := b.names[n.Name]; known && id != n.ID || n.Pool != "p" {
			b.Errorf("round %d: node %d is called %q, as node %d, of pool %q", r.View.Round, n.ID, n.Name, id, n.Pool)
		}
		b.names[n.Name] = n.ID
	}
	b.joins = max(b.joins, len(c.Nodes))
	for _, j := range r.View.Jobs {
		if j == nil {
			continue
		}
		for _, seat := range j.Seats {
			if h := c.Nodes[seat.Node].Health; h > core.Draining {
				b.Errorf("round %d: job %q is on node %d, which is %v", r.View.Round, j.Name, seat.Node, h)
			}
		}
	}
	return b.books.ObserveRound(r)
}

func runsPools(t testing.TB, h *Harness) {
	jobs := []Job{{Seconds: 3}, {Seconds: 2}, {Seconds: 1}, {Seconds: 1, SubmitSeconds: 1}, {Seconds: 2, SubmitSeconds: 2}, {Seconds: 1, SubmitSeconds: 6}}
	s := openPool(t, h, 0.5, 20, 1, 2, false, jobs...)
	told := &bounds{books: books{TB: t, ended: map[string]core.Job{}, begun: map[core.JobID]bool{}}, names: map[string]core.NodeID{}}
	stages := FIFO()
	stages.Scaler = core.Component[core.ClusterScaler]{ID: "scaler/turns", Policy: sizes(2 * h.UnitSeconds)}
	p := core.NewPipeline(s.cluster, stages, core.PipelineOptions{
		Rounds:    core.RoundOptions{OnEvents: true, IntervalSeconds: h.UnitSeconds},
		Observers: []core.Observer{told},
		Scaling:   backend.AbilitiesOf(s.backend).Scaling,
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Run(ctx, s.backend); err != nil {
		t.Fatal(err)
	}
	if left := p.Unfinished(); len(left) > 0 || len(told.ended) != len(jobs) {
		t.Errorf("%d jobs are left, and %d ended", len(left), len(told.ended))
	}
	if told.joins < 4 {
		t.Errorf("%d nodes were there in all: the test shows nothing", told.joins)
	}
}
