package gavel

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/optim"
)

// pairs is what the mechanism keeps of jobs that share devices two by two; nil for policies under which none do.
type pairs struct {
	config Pairing

	list    []*pair     // those with a share, by JobID of both
	shares  []pairShare // as the policy divided, before they are taken over
	sorted  []pairShare // scratch
	count   []int       // scratch
	groups  int         // granted in this round
	entries []pairEntry
}

// Pairing configures policies under which jobs share devices.
type Pairing struct {
	// Partners says whom the jobs of a kind share devices with.
	Partners string `config:"partners" doc:"whom the jobs of a kind share devices with, when two kinds are to be together for some time: few shares it among as few pairs as it takes; all among all pairs evenly, as published" enum:"few|all"`
	// LeastGain is how many times the throughput of one job alone a pair must exceed.
	LeastGain float64 `config:"least_gain" doc:"what the two of a pair must do together, more than so many times of what one of them would alone, to be a pair: with 1, only pairs that gain over taking turns; with 0 all that run, as published" min:"0" max:"2"`
}

// The values of Pairing.Partners.
const (
	fewPartners = "few"
	allPartners = "all"
)

var usualPairing = Pairing{Partners: fewPartners, LeastGain: 1}

// pairShare is the part of the time that two jobs of the problem are to be together on a type.
type pairShare = optim.PairShare

// pair is two jobs and the accounts of their time together, by accelerator type.
type pair struct {
	ids                     [2]core.JobID // ascending
	members                 [2]*member
	share, seconds, deficit []float64
	granted                 core.AcceleratorID
	spent                   float64 // seconds in the round before, of the one that had devices for longer
}

// pairEntry is a job, or a pair, in the queue of a type.
type pairEntry struct {
	priority, short, share float64
	first, second          core.JobID // second is -1 for a job alone
	index                  int32      // of the job, or of the pair, in its list
	on                     int32
}

// settle closes the accounts of pairs, as of jobs.
func (p *pairs) settle(c Rounds, elapsed, interval float64) {
	for _, both := range p.list {
		settleAccounts(c.Accounts, both.share, both.seconds, both.deficit, elapsed, interval)
	}
}

// take takes over the shares that the policy divided. A pair that has none any more loses its accounts.
func (p *pairs) take(jobs []*member, types int, credit float64) {
	of := func(s *pairShare) [2]core.JobID { return [2]core.JobID{jobs[s.Jobs[0]].id, jobs[s.Jobs[1]].id} }
	p.sort(len(jobs))
	next, at := make([]*pair, 0, len(p.list)), 0
	for i := range p.shares {
		s := &p.shares[i]
		ids := of(s)
		if len(next) == 0 || next[len(next)-1].ids != ids {
			for at < len(p.list) && compareIDs(p.list[at].ids, ids) < 0 {
				at++
			}
			if at < len(p.list) && p.list[at].ids == ids {
				next = append(next, p.list[at])
				clear(p.list[at].share)
			} else {
				next = append(next, newPair(ids, types, credit))
			}
			next[len(next)-1].members = [2]*member{jobs[s.Jobs[0]], jobs[s.Jobs[1]]}
		}
		next[len(next)-1].share[s.Type] += s.Share
	}
	p.list, p.shares = next, p.shares[:0]
}

// sort orders the shares by their jobs, of so many: a few thousand at times, by counting.
func (p *pairs) sort(jobs int) {
	for _, by := range [2]int{1, 0} {
		p.count, p.sorted = append(p.count[:0], make([]int, jobs+1)...), append(p.sorted[:0], p.shares...)
		for i := range p.sorted {
			p.count[p.sorted[i].Jobs[by]+1]++
		}
		for i := range jobs {
			p.count[i+1] += p.count[i]
		}
		for i := range p.sorted {
			at := &p.count[p.sorted[i].Jobs[by]]
			p.shares[*at] = p.sorted[i]
			*at++
		}
	}
}

func newPair(ids [2]core.JobID, types int, credit float64) *pair {
	numbers := make([]float64, 3*types)
	both := &pair{ids: ids, granted: core.AnyAccelerator}
	both.share, both.seconds, both.deficit = numbers[:types:types], numbers[types:2*types:2*types], numbers[2*types:]
	for t := range both.seconds {
		both.seconds[t] = credit
	}
	return both
}

func compareIDs(a, b [2]core.JobID) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
}

// charge books the time of the round before, and drops pairs of jobs that ended. Members are by JobID. Of types that came with new nodes no pair
// has a share yet, and each the credit.
func (p *pairs) charge(members []*member, types int, credit float64, changed bool) {
	p.list = slices.DeleteFunc(p.list, func(both *pair) bool { return len(both.share) > types })
	for _, both := range p.list {
		for len(both.share) < types {
			both.share, both.seconds, both.deficit = append(both.share, 0), append(both.seconds, credit), append(both.deficit, 0)
		}
		if both.granted != core.AnyAccelerator {
			both.seconds[both.granted] += both.spent
			both.granted, both.spent = core.AnyAccelerator, 0
		}
	}
	if !changed {
		return
	}
	find := func(id core.JobID) *member {
		at, found := slices.BinarySearchFunc(members, id, func(m *member, id core.JobID) int { return cmp.Compare(m.id, id) })
		if !found {
			return nil
		}
		return members[at]
	}
	p.list = slices.DeleteFunc(p.list, func(both *pair) bool {
		both.members = [2]*member{find(both.ids[0]), find(both.ids[1])}
		return both.members[0] == nil || both.members[1] == nil
	})
}

// choosePairs grants devices to the most urgent jobs and pairs.
func (p *mechanism) choosePairs() []core.Grant {
	q := &p.queue
	q.begin(p.devices)
	p.pairs.groups, p.pairs.entries = 0, p.pairs.entries[:0]
	p.keepLeased()
	if p.config.Types == shuffled {
		p.rand.Shuffle(len(q.order), func(a, b int) { q.order[a], q.order[b] = q.order[b], q.order[a] })
	}
	for _, t := range q.order {
		if !p.config.GlobalQueue {
			p.pairs.entries = p.pairs.entries[:0]
		}
		p.enlistPairs(t)
		if !p.config.GlobalQueue {
			p.servePairs()
		}
	}
	if p.config.GlobalQueue {
		p.servePairs()
	}
	return q.grants
}

// keepLeased grants those whose leases run what they have, together with whom they have it.
func (p *mechanism) keepLeased() {
	q := &p.queue
	for _, both := range p.pairs.list {
		m, o := both.members[0], both.members[1]
		if m.leased != core.AnyAccelerator && m.leased == o.leased && m.together == o.id && o.together == m.id &&
			m.granted == core.AnyAccelerator && o.granted == core.AnyAccelerator && !m.spec.Pinned && !o.spec.Pinned &&
			m.devices <= q.left[m.leased] {
			p.grantPair(both, m.leased)
		}
	}
	for _, m := range p.jobTable.members {
		if m.leased != core.AnyAccelerator && m.granted == core.AnyAccelerator && m.devices <= q.left[m.leased] {
			p.grant(m, m.leased)
		}
	}
}

// enlistPairs adds the jobs and the pairs that can run on a type, with their priorities there.
func (p *mechanism) enlistPairs(t int) {
	total := 0.0
	for _, m := range p.jobTable.members {
		total += m.seconds[t]
	}
	for _, both := range p.pairs.list {
		total += both.seconds[t]
	}
	entries := p.pairs.entries
	for i, m := range p.jobTable.members {
		if m.speed[t] <= 0 || m.granted != core.AnyAccelerator {
			continue
		}
		e := pairEntry{short: m.deficit[t], share: m.share[t], first: m.id, second: -1, index: int32(i), on: int32(t)}
		if m.share[t] > 0 {
			e.priority = urgency(m.share[t], p.received(m, t), total)
		}
		entries = append(entries, e)
	}
	for i, both := range p.pairs.list {
		m, o := both.members[0], both.members[1]
		if both.share[t] <= 0 || m.granted != core.AnyAccelerator || o.granted != core.AnyAccelerator ||
			m.speed[t] <= 0 || o.speed[t] <= 0 || m.devices != o.devices || m.spec.Pinned || o.spec.Pinned {
			continue
		}
		received := both.seconds[t]
		if p.config.Accounts == settled {
			received -= both.deficit[t]
		}
		entries = append(entries, pairEntry{
			urgency(both.share[t], received, total), both.deficit[t], both.share[t], both.ids[0], both.ids[1], int32(i), int32(t),
		})
	}
	p.pairs.entries = entries
}

// compare orders by priority, then by what is missing of the share, then by the share; then by JobID, jobs alone first.
func (e *pairEntry) compare(o *pairEntry) int {
	switch {
	case e.priority > o.priority:
		return -1
	case e.priority < o.priority:
		return 1
	}
	return cmp.Or(
		cmp.Compare(o.short, e.short), cmp.Compare(o.share, e.share), cmp.Compare(e.first, o.first), cmp.Compare(e.second, o.second),
		cmp.Compare(e.on, o.on),
	)
}

// servePairs grants devices by urgency, skipping what does not fit. Most pairs are of jobs that were granted by then, or come too late, so that
// the queue is a heap.
func (p *mechanism) servePairs() {
	if len(p.pairs.entries) == 0 {
		return
	}
	heap, free := pile(p.pairs.entries), p.free(int(p.pairs.entries[0].on))
	for len(heap) > 0 && free > 0 {
		e := heap[0]
		heap = pop(heap)
		free -= p.serveEntry(&e)
	}
}

// serveEntry grants devices to the job or to the pair of an entry, if it fits, and returns how many.
func (p *mechanism) serveEntry(e *pairEntry) int {
	if e.second >= 0 {
		both := p.pairs.list[e.index]
		m, o := both.members[0], both.members[1]
		if m.granted != core.AnyAccelerator || o.granted != core.AnyAccelerator || m.devices > p.queue.left[e.on] {
			return 0
		}
		p.grantPair(both, core.AcceleratorID(e.on))
		return m.devices
	}
	m := p.jobTable.members[e.index]
	if m.granted != core.AnyAccelerator || m.devices > p.queue.left[e.on] {
		return 0
	}
	p.grant(m, core.AcceleratorID(e.on))
	return m.devices
}

// grantPair grants both jobs the same devices.
func (p *mechanism) grantPair(both *pair, on core.AcceleratorID) {
	p.queue.left[on] -= both.members[0].devices
	p.pairs.groups++
	both.granted = on
	for k, m := range both.members {
		m.granted, m.with, m.together = on, both, both.ids[1-k]
		p.queue.grants = append(p.queue.grants, core.Grant{Job: m.id, Accelerator: on, Replicas: m.devices, Group: p.pairs.groups})
	}
}
