package sim

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// stream is numbers at random that a copy can go on with from where they are.
type stream struct {
	*rand.Rand
	source *rand.PCG
}

func newStream(seed uint64, id string) *stream {
	source := core.NewStream(seed, id)
	return &stream{rand.New(source), source}
}

func (r *stream) fork() *stream {
	if r == nil {
		return nil
	}
	source := *r.source
	return &stream{rand.New(&source), &source}
}

// Fork is the simulation as it stands between two rounds, truth and chance included, for a pipeline that was forked at the same moment and knows the given cluster.
// Nothing that becomes of one of the two is seen by the other. One whose workload reacts cannot be forked.
func (s *Simulator) Fork(seen *core.Cluster) (*Simulator, error) {
	if s.reaction != nil {
		return nil, errors.New("a workload that reacts to its jobs cannot be forked")
	}
	f := *s
	f.seen, f.cluster = seen, s.cluster.Fork()
	jobs := make(map[*simJob]*simJob, s.active)
	f.jobs = make([]*simJob, len(s.jobs))
	for i, j := range s.jobs {
		if j != nil {
			f.jobs[i] = j.fork()
			jobs[j] = f.jobs[i]
		}
	}
	list := func(from []*simJob) []*simJob {
		to := make([]*simJob, len(from))
		for i, j := range from {
			to[i] = jobs[j]
		}
		return to
	}
	f.running, f.queue, f.starting = list(s.running), list(s.queue), list(s.starting)
	f.noise, f.delays = s.noise.fork(), s.delays.fork()
	f.events, f.notes = nil, slices.Clone(s.notes)
	f.spanning, f.leaving = slices.Clone(s.spanning), slices.Clone(s.leaving)
	f.nodes = s.nodes.fork()
	f.pools.names, f.pools.retiring = slices.Clone(s.pools.names), slices.Clone(s.pools.retiring)
	f.pools.expires, f.pools.rand = maps.Clone(s.pools.expires), s.pools.rand.fork()
	if h := s.sharing; h != nil {
		f.sharing = &sharing{model: h.model, cluster: f.cluster, on: make(map[deviceAt][]*simJob, len(h.on)), changed: list(h.changed)}
		for at, on := range h.on {
			f.sharing.on[at] = list(on)
		}
	}
	if s.slicing != nil {
		f.slicing = &slicing{into: maps.Clone(s.slicing.into)}
	}
	return &f, nil
}

func (j *simJob) fork() *simJob {
	f := *j
	f.seats, f.kept, f.reported = slices.Clone(j.seats), slices.Clone(j.kept), slices.Clone(j.reported)
	f.running.Shape, f.running.Accelerators = slices.Clone(j.running.Shape), slices.Clone(j.running.Accelerators)
	return &f
}

func (e *nodeEvents) fork() nodeEvents {
	f := *e
	f.schedule, f.chance, f.joining = slices.Clone(e.schedule), slices.Clone(e.chance), slices.Clone(e.joining)
	f.planned, f.failed, f.told = slices.Clone(e.planned), slices.Clone(e.failed), slices.Clone(e.told)
	f.rand = e.rand.fork()
	return f
}
