package pollux

import "slices"

// takers lists the jobs that may gain on nodes where they do not sit, and bounds what each could gain from so many devices
// more, in blocks of which most can be skipped together.
type takers struct {
	jobs  []int32
	at    []int32     // by job: its position in jobs, -1 for none
	gains [][]float64 // by devices and position: the most that the job could gain
	most  [][]float64 // by devices and block: the most of its jobs

	perNode int // devices of the largest node: the bounds beyond are of an earlier call

	scanned int // jobs whose bounds were looked at in this round
}

// scanLimit is the number of bounds of jobs that a round looks at, after which replicas are passed on between jobs of one
// node only. It bounds the time of a round on a very large cluster.
const scanLimit = 1 << 25

// takerBlock is the number of jobs in a block.
const takerBlock = 32

// list finds the takers: all jobs on a small cluster, and otherwise those that have less than the relaxation gave them.
func (t *takers) list(p *allocator) {
	s := &p.search
	s.few = len(p.jobs)*len(p.usable) <= fewLimit
	t.jobs, t.at = t.jobs[:0], slices.Grow(t.at[:0], len(p.jobs))[:len(p.jobs)]
	for i, count := range s.counts.of {
		t.at[i] = -1
		if s.few || int(s.occupancy.has[i]) < count {
			t.at[i] = int32(len(t.jobs))
			t.jobs = append(t.jobs, int32(i))
		}
	}
	blocks := (len(t.jobs) + takerBlock - 1) / takerBlock
	t.perNode = p.perNode
	for len(t.gains) <= p.perNode {
		t.gains, t.most = append(t.gains, nil), append(t.most, nil)
	}
	for k := range p.perNode + 1 {
		t.gains[k] = slices.Grow(t.gains[k][:0], len(t.jobs))[:len(t.jobs)]
		t.most[k] = slices.Grow(t.most[k][:0], blocks)[:blocks]
	}
}

// set notes what a job could gain, by devices. The bounds of blocks do not follow; see bound.
func (t *takers) set(i int32, gains []float64) {
	if at := t.at[i]; at >= 0 {
		for k, gain := range gains {
			t.gains[k][at] = gain
		}
	}
}

// bound sets the bounds of all blocks.
func (t *takers) bound() {
	for k, most := range t.most[:t.perNode+1] {
		for block := range most {
			most[block] = t.best(k, block)
		}
	}
}

// update notes what a job could gain now, and corrects the bounds of its block.
func (t *takers) update(i int32, gains []float64) {
	at := t.at[i]
	if at < 0 {
		return
	}
	block := int(at) / takerBlock
	for k, gain := range gains {
		was := t.gains[k][at]
		t.gains[k][at] = gain
		switch most := &t.most[k][block]; {
		case !(gain < *most): // or one of them is not a number
			*most = max(gain, *most)
		case !(was < *most):
			*most = t.best(k, block)
		}
	}
}

// best is the most that a job of a block could gain from k devices.
func (t *takers) best(k, block int) float64 {
	first := block * takerBlock
	return slices.Max(t.gains[k][first:min(first+takerBlock, len(t.jobs))])
}
