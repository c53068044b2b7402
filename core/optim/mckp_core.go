package optim

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
)

// The limits of a search, unless told otherwise.
const (
	mckpWidth  = 8192
	mckpEffort = 1_000_000
	mckpNodes  = 1 << 30 // whatever one is told
)

// An mckpCore is the search's state.
type mckpCore struct {
	jobs        []mckpCoreJob
	options     []mckpOption
	nodes       []mckpNode
	states      []mckpState // by key
	from, spare []mckpState
	shift       []uint  // of each type's field in a key
	mask        []int64 // of the field, shifted down
	low, more   []int   // the devices a field can stand for; that of 0 is low
	less, plus  []int
	frees       []int // by job and type: the most devices it and those after it can free
}

// A mckpCoreJob is a job that may leave its base choice.
type mckpCoreJob struct {
	job         int
	least       float64 // its smallest loss
	first, last int     // its options
}

// A mckpOption is a choice a job may change to.
type mckpOption struct {
	pick  int
	loss  float64
	shift int64 // of the key
}

// A mckpState is the devices used, packed in a key, with the least loss that leads there.
type mckpState struct {
	key  int64
	loss float64
	node int32
}

// A mckpNode is a change on the way to a state; the way goes on at parent.
type mckpNode struct {
	parent, job, pick int32
}

// search looks for a selection better than the best so far among those that
// leave the base choices, and lowers the bound.
func (k *Knapsack) search(ctx context.Context) error {
	if k.budget() <= 0 {
		k.bound = k.value
	}
	if k.closed(0) {
		return nil
	}
	c := &k.core
	width, effort := k.Width, k.Effort
	if width == 0 {
		width = mckpWidth
	}
	if effort == 0 {
		effort = mckpEffort
	}
	unseen := k.enter() // the loss of the best selection that may have been left out
	for j, job := range c.jobs {
		if err := ctx.Err(); err != nil {
			return err
		}
		k.prune(j)
		rest := unseen
		for _, s := range c.states {
			rest = math.Min(rest, s.loss+job.least)
		}
		effort -= len(c.states) * (job.last - job.first)
		if len(c.states) == 0 || k.closed(rest) || effort < 0 || len(c.nodes) > mckpNodes {
			unseen = rest
			break
		}
		if len(c.states) > width {
			unseen = math.Min(unseen, c.narrow(width)+job.least)
		}
		mark := len(c.nodes)
		k.extend(job)
		k.finish(mark)
	}
	if unseen >= k.budget() {
		k.bound = k.value
	} else {
		k.bound -= unseen
	}
	return nil
}

// closed reports whether a selection that loses this much at the prices is no better than the best so far, up to the gap.
func (k *Knapsack) closed(loss float64) bool {
	return loss >= k.budget() || k.bound-loss-k.value <= k.Gap*math.Abs(k.value) && !math.IsInf(k.value, -1)
}

// budget is the loss at which a selection is no better than the best so far.
func (k *Knapsack) budget() float64 {
	return k.bound - k.value - math.Max(k.Step*(1-1e-6), 1e-12*math.Abs(k.bound))
}

// enter lists the jobs with choices that lose less than the best so far, lays out the keys, and starts at the base. It
// returns the loss below which no job was left out.
func (k *Knapsack) enter() (unseen float64) {
	c := &k.core
	c.jobs, c.options, c.nodes = c.jobs[:0], c.options[:0], c.nodes[:0]
	budget := k.budget()
	for i := range k.menus {
		job := mckpCoreJob{job: i, least: math.Inf(1), first: len(c.options)}
		for pick := k.first(i); pick < len(k.menus[i].Choices); pick++ {
			choice := k.of(i, pick)
			loss := math.Max(0, k.worth[i]-choice.Value+k.price[choice.Type]*float64(choice.Devices))
			if pick != k.base[i] && loss < budget && choice.Devices <= k.capacity[choice.Type] {
				c.options = append(c.options, mckpOption{pick: pick, loss: loss})
				job.least = math.Min(job.least, loss)
			}
		}
		job.last = len(c.options)
		if job.last > job.first {
			c.jobs = append(c.jobs, job)
		}
	}
	slices.SortStableFunc(c.jobs, func(a, b mckpCoreJob) int { return cmp.Compare(a.least, b.least) })
	k.count(k.base)
	unseen = k.layOut()
	key := int64(0)
	for t, used := range k.used {
		key |= int64(used-c.low[t]) << c.shift[t]
	}
	c.states = append(c.states[:0], mckpState{key, 0, -1})
	return unseen
}

// layOut gives every type a field of the key that holds whatever the jobs can use, and leaves the last jobs out when
// the key is full. It returns the smallest loss of those, +Inf when there are none.
func (k *Knapsack) layOut() (unseen float64) {
	c, types := &k.core, len(k.capacity)
	c.low, c.shift, c.mask = append(c.low[:0], k.used...), zeroed(c.shift, types), zeroed(c.mask, types)
	c.more = append(c.more[:0], k.used...)
	c.frees = zeroed(c.frees, (len(c.jobs)+1)*types)
	unseen = math.Inf(1)
	for j, job := range c.jobs {
		less, more := k.span(job)
		width := 0
		for t := range types {
			width += bits.Len(uint(c.more[t] + more[t] - c.low[t] + less[t]))
		}
		if width > 62 {
			unseen, c.jobs = job.least, c.jobs[:j]
			break
		}
		for t := range types {
			c.low[t] -= less[t]
			c.more[t] += more[t]
			c.frees[j*types+t] = less[t]
		}
	}
	at := uint(0)
	for t := range types {
		width := uint(bits.Len(uint(c.more[t] - c.low[t])))
		c.shift[t], c.mask[t] = at, 1<<width-1
		at += width
	}
	for j := len(c.jobs) - 1; j > 0; j-- {
		for t := range types {
			c.frees[(j-1)*types+t] += c.frees[j*types+t]
		}
	}
	for _, job := range c.jobs {
		from := k.of(job.job, k.base[job.job])
		for o := job.first; o < job.last; o++ {
			to := k.of(job.job, c.options[o].pick)
			c.options[o].shift = int64(to.Devices)<<c.shift[to.Type] - int64(from.Devices)<<c.shift[from.Type]
		}
	}
	return unseen
}

// span is how many devices of each type a job may use less and more than at its base choice.
func (k *Knapsack) span(job mckpCoreJob) (less, more []int) {
	c := &k.core
	c.less, c.plus = zeroed(c.less, len(k.capacity)), zeroed(c.plus, len(k.capacity))
	from := k.of(job.job, k.base[job.job])
	for _, o := range c.options[job.first:job.last] {
		to := k.of(job.job, o.pick)
		change := to.Devices
		if to.Type == from.Type {
			change -= from.Devices
		} else {
			c.less[from.Type] = from.Devices
		}
		c.less[to.Type] = max(c.less[to.Type], -change)
		c.plus[to.Type] = max(c.plus[to.Type], change)
	}
	return c.less, c.plus
}

// prune drops the states that no change of the jobs from j on makes better than the best, or makes fit.
func (k *Knapsack) prune(j int) {
	c, types := &k.core, len(k.capacity)
	budget := k.budget() - c.jobs[j].least
	frees := c.frees[j*types : (j+1)*types]
	kept := c.states[:0]
	for _, s := range c.states {
		fits := s.loss < budget
		for t := 0; fits && t < types; t++ {
			fits = c.used(s.key, t) <= k.capacity[t]+frees[t]
		}
		if fits {
			kept = append(kept, s)
		}
	}
	c.states = kept
}

func (c *mckpCore) used(key int64, t int) int {
	return int(key>>c.shift[t]&c.mask[t]) + c.low[t]
}

// narrow keeps the states of least loss, and returns the least loss it drops.
func (c *mckpCore) narrow(width int) float64 {
	var bins [1024]int
	most := 0.0
	for _, s := range c.states {
		most = math.Max(most, s.loss)
	}
	bin := func(loss float64) int { return int(loss / math.Max(most, 1e-300) * float64(len(bins)-1)) }
	for _, s := range c.states {
		bins[bin(s.loss)]++
	}
	cut, room := 0, width
	for ; room >= bins[cut]; cut++ {
		room -= bins[cut]
	}
	dropped := math.Inf(1)
	kept := c.states[:0]
	for _, s := range c.states {
		at := bin(s.loss)
		if at == cut && room > 0 {
			room--
			at--
		}
		if at < cut {
			kept = append(kept, s)
		} else {
			dropped = math.Min(dropped, s.loss)
		}
	}
	c.states = kept
	return dropped
}

// extend adds what a job's options make of the states. An option moves all
// keys alike, so it is a merge of sorted lists.
func (k *Knapsack) extend(job mckpCoreJob) {
	c := &k.core
	budget := k.budget()
	c.from = append(c.from[:0], c.states...)
	for _, o := range c.options[job.first:job.last] {
		c.spare = c.spare[:0]
		i := 0
		for _, s := range c.from {
			loss := s.loss + o.loss
			if loss >= budget {
				continue
			}
			key := s.key + o.shift
			for i < len(c.states) && c.states[i].key < key {
				c.spare = append(c.spare, c.states[i])
				i++
			}
			if i < len(c.states) && c.states[i].key == key {
				if c.states[i].loss <= loss {
					continue
				}
				i++
			}
			c.nodes = append(c.nodes, mckpNode{s.node, int32(job.job), int32(o.pick)})
			c.spare = append(c.spare, mckpState{key, loss, int32(len(c.nodes) - 1)})
		}
		c.spare = append(c.spare, c.states[i:]...)
		c.states, c.spare = c.spare, c.states
	}
}

// finish offers the best selection among the states since a node.
func (k *Knapsack) finish(mark int) {
	c := &k.core
	best, node := k.budget(), int32(-1)
	for _, s := range c.states {
		if int(s.node) < mark {
			continue
		}
		loss := s.loss
		for t, price := range k.price {
			left := k.capacity[t] - c.used(s.key, t)
			if left < 0 {
				loss = math.Inf(1)
				break
			}
			loss += price * float64(left)
		}
		if loss < best {
			best, node = loss, s.node
		}
	}
	if node < 0 {
		return
	}
	k.trial = append(k.trial[:0], k.base...)
	for ; node >= 0; node = c.nodes[node].parent {
		k.trial[c.nodes[node].job] = int(c.nodes[node].pick)
	}
	k.offer(k.trial)
}
