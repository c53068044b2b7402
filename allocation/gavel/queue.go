package gavel

import (
	"cmp"

	"github.com/quartet-sched/quartet/core"
)

// starved is the weight of a share of a type on which a job received no time at all, or less.
const starved = 1e9

// queue hands out the devices of a round.
type queue struct {
	left    []int // devices by type
	entries []entry
	order   []int // of types
	grants  []core.Grant
}

// entry is a job in the queue of a type.
type entry struct {
	*member
	on       int
	priority float64
}

// compare orders by priority, then by what the job is short of, then by its share; then by JobID.
func (e *entry) compare(o *entry) int {
	switch {
	case e.priority > o.priority:
		return -1
	case e.priority < o.priority:
		return 1
	}
	return cmp.Or(
		cmp.Compare(o.deficit[o.on], e.deficit[e.on]), cmp.Compare(o.share[o.on], e.share[e.on]),
		cmp.Compare(e.id, o.id), cmp.Compare(e.on, o.on),
	)
}

// choose grants devices to the most urgent jobs.
func (p *mechanism) choose() []core.Grant {
	q := &p.queue
	q.begin(p.devices)
	for _, m := range p.jobTable.members {
		if m.leased != core.AnyAccelerator && m.devices <= q.left[m.leased] {
			p.grant(m, m.leased)
		}
	}
	if p.config.Types == shuffled {
		p.rand.Shuffle(len(q.order), func(a, b int) { q.order[a], q.order[b] = q.order[b], q.order[a] })
	}
	for _, t := range q.order {
		if !p.config.GlobalQueue {
			q.entries = q.entries[:0]
		}
		p.enlist(t)
		if !p.config.GlobalQueue {
			p.serve()
		}
	}
	if p.config.GlobalQueue {
		p.serve()
	}
	return q.grants
}

func (q *queue) begin(capacity []float64) {
	q.left, q.order, q.entries = q.left[:0], q.order[:0], q.entries[:0]
	for t, w := range capacity {
		q.left, q.order = append(q.left, int(w)), append(q.order, t)
	}
}

// enlist adds the jobs that can run on a type, with their priorities there.
func (p *mechanism) enlist(t int) {
	total := 0.0
	for _, m := range p.jobTable.members {
		total += m.seconds[t]
	}
	for _, m := range p.jobTable.members {
		if m.speed[t] <= 0 || m.granted != core.AnyAccelerator {
			continue
		}
		e := entry{member: m, on: t}
		if m.share[t] > 0 {
			e.priority = urgency(m.share[t], p.received(m, t), total)
		}
		if e.priority > 0 || !p.policy.strict() {
			p.queue.entries = append(p.queue.entries, e)
		}
	}
}

// received is the time on a type that the share is weighed against.
func (p *mechanism) received(m *member, t int) float64 {
	if p.config.Accounts == settled {
		return m.seconds[t] - m.deficit[t]
	}
	return m.seconds[t]
}

// urgency weighs a share against the part received of all time given; it rises on where less than nothing was.
func urgency(share, received, total float64) float64 {
	if received > 0 {
		return share / (received / total)
	}
	return starved * (share - received/share)
}

// serve grants devices along the queue, skipping what does not fit. Where many wait the devices are used up long before its end, so that the queue is a heap.
func (p *mechanism) serve() {
	q := &p.queue
	if len(q.entries) == 0 {
		return
	}
	heap, free := pile(q.entries), p.free(q.entries[0].on)
	for len(heap) > 0 && free > 0 {
		e := heap[0]
		heap = pop(heap)
		if e.granted == core.AnyAccelerator && e.devices <= q.left[e.on] {
			p.grant(e.member, core.AcceleratorID(e.on))
			free -= e.devices
		}
	}
}

// free is how many devices are left for a queue: of its type, or of all in the only one.
func (p *mechanism) free(on int) (devices int) {
	if !p.config.GlobalQueue {
		return p.queue.left[on]
	}
	for _, left := range p.queue.left {
		devices += left
	}
	return devices
}

// urgent are entries that can be compared; negative for the more urgent one.
type urgent[E any] interface {
	*E
	compare(*E) int
}

// pile makes entries a heap, the most urgent one first.
func pile[E any, P urgent[E]](heap []E) []E {
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink[E, P](heap, i)
	}
	return heap
}

// pop takes the first entry out of a heap.
func pop[E any, P urgent[E]](heap []E) []E {
	last := len(heap) - 1
	heap[0] = heap[last]
	heap = heap[:last]
	sink[E, P](heap, 0)
	return heap
}

// sink brings an entry of a heap below those that come before it.
func sink[E any, P urgent[E]](heap []E, i int) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && P(&heap[child+1]).compare(&heap[child]) < 0 {
			child++
		}
		if P(&heap[i]).compare(&heap[child]) <= 0 {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}

func (p *mechanism) grant(m *member, on core.AcceleratorID) {
	p.queue.left[on] -= m.devices
	m.granted, m.together = on, -1
	if m.shared || p.config.NewJobs == share || m.leased == on {
		p.queue.grants = append(p.queue.grants, core.Grant{Job: m.id, Accelerator: on, Replicas: m.devices})
	}
}
