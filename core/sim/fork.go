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
func (s *Simulator) Fork(known *core.Cluster) (*Simulator, error) {
	if s.reaction != nil {
		return nil, errors.New("a workload that reacts to its jobs cannot be forked")
	}
	f := *s
	forked := make(map[*simJob]*simJob, s.jobs.active)
	f.jobs.byID = make([]*simJob, len(s.jobs.byID))
	for i, j := range s.jobs.byID {
		if j != nil {
			f.jobs.byID[i] = j.fork()
			forked[j] = f.jobs.byID[i]
		}
	}
	list := func(from []*simJob) []*simJob {
		to := make([]*simJob, len(from))
		for i, j := range from {
			to[i] = forked[j]
		}
		return to
	}
	f.clock.events, f.clock.notes = nil, slices.Clone(s.clock.notes)
	f.jobs.running, f.jobs.queue = list(s.jobs.running), list(s.jobs.queue)
	f.starts = starts{starting: list(s.starts.starting), leaving: slices.Clone(s.starts.leaving), delays: s.starts.delays.fork()}
	f.devices = s.devices.fork(known, list)
	f.pools = s.pools.fork()
	f.reports.noise = s.reports.noise.fork()
	return &f, nil
}

func (j *simJob) fork() *simJob {
	f := *j
	f.seats, f.kept, f.reported = slices.Clone(j.seats), slices.Clone(j.kept), slices.Clone(j.reported)
	f.running.Shape, f.running.Accelerators = slices.Clone(j.running.Shape), slices.Clone(j.running.Accelerators)
	return &f
}

// fork copies the devices for a pipeline that knows the given cluster; list copies jobs.
func (d *devices) fork(known *core.Cluster, list func([]*simJob) []*simJob) devices {
	f := *d
	f.cluster, f.known, f.nodes, f.spanning = d.cluster.Fork(), known, d.nodes.fork(), slices.Clone(d.spanning)
	if h := d.sharing; h != nil {
		f.sharing = &sharing{model: h.model, cluster: f.cluster, on: make(map[deviceAt][]*simJob, len(h.on)), changed: list(h.changed)}
		for at, on := range h.on {
			f.sharing.on[at] = list(on)
		}
	}
	if d.slicing != nil {
		f.slicing = &slicing{into: maps.Clone(d.slicing.into)}
	}
	return f
}

func (p *pools) fork() pools {
	f := *p
	f.names, f.retiring, f.expires, f.rand = slices.Clone(p.names), slices.Clone(p.retiring), maps.Clone(p.expires), p.rand.fork()
	return f
}

func (e *nodeEvents) fork() nodeEvents {
	f := *e
	f.schedule, f.chance, f.joining = slices.Clone(e.schedule), slices.Clone(e.chance), slices.Clone(e.joining)
	f.planned, f.failed, f.told = slices.Clone(e.planned), slices.Clone(e.failed), slices.Clone(e.told)
	f.rand = e.rand.fork()
	return f
}
