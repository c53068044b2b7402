package local

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
)

// Nodes of pools are slots: devices of this machine that are there from a moment to another. A slot is provisioned, opens, drains
// and is removed when nothing runs on it. What becomes of it depends on the moments that the store keeps, on what the pipeline was
// told of it and on what runs, so that a scheduler after this one goes on with it.

// Pool is what it takes for nodes of a pool to come and go. Times are those of the run.
type Pool = backend.Pool

// Eviction is a node of a pool that is taken away at a moment of the run.
type Eviction struct {
	// Node is the name of the node: its pool, a hyphen and its number, from 0.
	Node string `config:"node" doc:"name of the node: that of its pool, a hyphen and its number, counted from 0" required:"true"`
	// At is the moment of the run at which the node is gone.
	At time.Duration `config:"at" doc:"moment of the run at which it is gone" min:"0s"`
}

// pool is the pool that the name of a node is of; false for none.
func (e *Eviction) pool(pools []string) (string, bool) {
	at := strings.LastIndexByte(e.Node, '-')
	if at < 0 {
		return "", false
	}
	number, err := strconv.Atoi(e.Node[at+1:])
	if err != nil || number < 0 || strconv.Itoa(number) != e.Node[at+1:] { // as nodes are named
		return "", false
	}
	return e.Node[:at], slices.Contains(pools, e.Node[:at])
}

// hint says which names nodes of pools have, and which of them was most likely meant.
func (e *Eviction) hint(pools []string) string {
	if len(pools) == 0 {
		return "the cluster has no pools"
	}
	number, _ := strconv.Atoi(e.Node[len(strings.TrimRight(e.Node, "0123456789")):]) // 0 for none
	var near, valid []string
	for _, pool := range pools {
		near = append(near, fmt.Sprintf("%s-%d", pool, number))
		valid = append(valid, pool+"-0", pool+"-1", "…")
	}
	hint := "valid nodes: " + strings.Join(valid, ", ")
	if name := core.Nearest(e.Node, near); name != "" {
		hint = fmt.Sprintf("did you mean %q? %s", name, hint)
	}
	return hint
}

// checkPools refuses what is said twice, or of pools that there cannot be.
func (c *Config) checkPools() []error {
	problems := backend.CheckPools(c.Pools, func(pool string) bool {
		return slices.ContainsFunc(c.Evict, func(e Eviction) bool {
			_, is := e.pool([]string{pool})
			return is
		})
	})
	for i := range c.Evict {
		if slices.ContainsFunc(c.Evict[:i], func(o Eviction) bool { return o.Node == c.Evict[i].Node }) {
			problems = append(problems, fmt.Errorf("evict[%d].node: node %q is listed twice", i, c.Evict[i].Node))
		}
	}
	return problems
}

// checkPoolNames refuses pools, and nodes of pools, that the cluster does not have.
func (c *Config) checkPoolNames(cluster *core.Cluster) core.Diagnostics {
	ds, names := backend.CheckPoolNames(c.Pools, cluster), backend.PoolNames(cluster)
	for i := range c.Evict {
		if _, is := c.Evict[i].pool(names); !is {
			ds = append(ds, core.Diagnostic{
				Path: fmt.Sprintf("evict[%d].node", i), Summary: fmt.Sprintf("node %q is of no pool", c.Evict[i].Node),
				Hint: c.Evict[i].hint(names),
			})
		}
	}
	return ds
}

// absent is the health of a node that the pipeline was not told of yet.
const absent = core.Gone + 1

// slot is a node of a pool, as the store keeps it. Moments are seconds of the run.
type slot struct {
	Node           core.NodeID
	Name, Pool     string
	Accelerator    string
	Devices        int
	CPUs, MemoryGB float64
	Names          []string `json:",omitempty"` // of its devices; none until it opens
	OpensSeconds   float64  // when it is to be ready, or known not to come
	Fails          bool     `json:",omitempty"`
	LifeSeconds    float64  `json:",omitempty"` // from when it is ready until it is taken away by chance; 0 for ever
	EvictSeconds   float64  `json:",omitempty"` // when it is taken away as scheduled; 0 for never
	Expected       float64  `json:",omitempty"` // when it should be ready, as far as is known outside; 0 of one that was there
	Leaves         bool     `json:",omitempty"` // a scaler lets it go,
	LeavesSeconds  float64  `json:",omitempty"` // since when

	ready float64 // when it opened, as the pipeline is told
	taken bool    // it was taken away
	told  bool    // the pipeline was told that it is gone
}

// takenAt is when a slot that is ready is taken away; +Inf for never.
func (s *slot) takenAt() float64 {
	at := math.Inf(1)
	if s.EvictSeconds > 0 {
		at = s.EvictSeconds
	}
	if s.LifeSeconds > 0 {
		at = min(at, s.ready+s.LifeSeconds)
	}
	return at
}

// expires is when the jobs of a slot that leaves are interrupted; +Inf for never.
func (s *slot) expires(w *Pool) float64 {
	if !s.Leaves || w.DrainTimeout == 0 {
		return math.Inf(1)
	}
	return s.LeavesSeconds + w.DrainTimeout.Seconds()
}

// poolRecord is what the store keeps of the pools. A slot is kept until it is recorded that the pipeline was told of its end.
type poolRecord struct {
	Round int            // the last one whose sizes were taken in
	Next  core.NodeID    // of the node that joins next
	Named map[string]int // by pool: how many nodes were named
	Slots []slot         // by Node
}

// pools is how nodes come and go.
type pools struct {
	poolRecord
	seed uint64
	id   string             // of the component
	seen backend.Membership // as the pipeline was told
}

// describePools tells a cluster what there is to know of its pools.
func (c *Config) describePools(cluster *core.Cluster) {
	backend.DescribePools(cluster, c.Pools)
	for i := range c.Evict {
		if name, of := c.Evict[i].pool(backend.PoolNames(cluster)); of {
			cluster.Pool(name).Spot = true
		}
	}
}

// beginPools makes slots of the nodes of pools that a run begins with.
func (b *Backend) beginPools() {
	p, c := &b.pools, b.cluster
	p.poolRecord = poolRecord{Next: core.NodeID(len(c.Nodes)), Named: map[string]int{}}
	for id := range c.Nodes {
		if n := &c.Nodes[id]; n.Pool != "" {
			s := slot{
				Node: n.ID, Name: n.Name, Pool: n.Pool, Accelerator: c.Accelerators[n.Accelerator], Devices: n.Devices, CPUs: n.CPUs,
				MemoryGB: n.MemoryGB, Names: b.devices.names[id],
			}
			b.drawFate(&s, 0)
			p.Slots, p.Named[n.Pool] = append(p.Slots, s), p.Named[n.Pool]+1
		}
	}
}

// goOnWithPools takes in the slots of schedulers before this one, after the nodes that the run began with.
func (b *Backend) goOnWithPools(r *poolRecord) {
	if r == nil { // none was kept: the scheduler before was killed when it had just begun, or knew no pools
		b.beginPools()
		return
	}
	for int(r.Next) > len(b.health) {
		b.health = append(b.health, absent)
	}
	r.Slots = slices.DeleteFunc(r.Slots, func(s slot) bool { // of a pool that is no more; adopt made it a node that is down
		return int(s.Node) < len(b.cluster.Nodes) && b.cluster.Nodes[s.Node].Pool == ""
	})
	for i := range r.Slots {
		s := &r.Slots[i]
		b.devices.give(s.Node, s.Names)
		if b.cluster.Pool(s.Pool) == nil && !s.Leaves {
			s.Leaves, s.LeavesSeconds = true, b.openedAt
		}
	}
	b.pools.poolRecord = *r
}

// drawFate draws what becomes of a slot that is asked for at a moment. What is drawn depends on nothing but the seed and its name.
func (b *Backend) drawFate(s *slot, asked float64) {
	w := backend.PoolOf(b.config.Pools, s.Pool)
	rand := core.NewRand(b.pools.seed, b.pools.id+"/pools/"+s.Name)
	spread, fails, life := rand.Float64(), rand.Float64(), rand.ExpFloat64()
	if len(s.Names) == 0 {
		s.OpensSeconds = asked + w.Provisioning.Seconds() + spread*w.Spread.Seconds()
		s.Expected = asked + w.Expected().Seconds()
		s.Fails = fails < w.Fails
	}
	if w.Evictions > 0 {
		s.LifeSeconds = life * w.Evictions.Seconds()
	}
	if at := slices.IndexFunc(b.config.Evict, func(e Eviction) bool { return e.Node == s.Name }); at >= 0 {
		s.EvictSeconds = max(b.config.Evict[at].At.Seconds(), 0.001) // 0 stands for never
	}
}

// slot is the slot of a node; nil for a node of no pool, and for one that is gone.
func (b *Backend) slot(id core.NodeID) *slot {
	list := b.pools.Slots
	at, is := slices.BinarySearchFunc(list, id, func(s slot, id core.NodeID) int { return int(s.Node - id) })
	if !is || b.health[id] == core.Gone {
		return nil
	}
	return &list[at]
}

// Scale has slots join and leave.
func (b *Backend) Scale(_ context.Context, round int, targets []core.PoolTarget) error {
	if b.journal.Replaying() || round <= b.pools.Round {
		return nil
	}
	now, before := b.elapsed(), b.pools.poolRecord
	next := poolRecord{Round: round, Next: before.Next, Named: maps.Clone(before.Named)}
	for i := range before.Slots {
		if !before.Slots[i].told {
			next.Slots = append(next.Slots, before.Slots[i])
		}
	}
	for i := range targets {
		if err := b.scale(&next, &targets[i], now); err != nil {
			return err
		}
	}
	if err := b.store.keepPools(&next); err != nil {
		return fmt.Errorf("record the sizes of pools: %w", err)
	}
	b.pools.poolRecord = next
	return b.keepSlots(now)
}

// scale brings a pool to its size.
func (b *Backend) scale(next *poolRecord, t *core.PoolTarget, now float64) error {
	pool := b.cluster.Pool(t.Pool)
	if pool == nil {
		return fmt.Errorf("scale pool %q, which there is not", t.Pool)
	}
	size := 0
	for i := range next.Slots {
		if s := &next.Slots[i]; s.Pool == t.Pool && !s.Leaves && !b.drains(s, now) && (int(s.Node) >= len(b.health) || b.health[s.Node] != core.Gone) {
			size++
		}
	}
	for ; size < t.Nodes; size++ {
		s := slot{
			Node: next.Next, Name: fmt.Sprintf("%s-%d", pool.Name, next.Named[pool.Name]), Pool: pool.Name,
			Accelerator: b.cluster.Accelerators[pool.Accelerator], Devices: pool.Devices, CPUs: pool.CPUs, MemoryGB: pool.MemoryGB,
		}
		b.drawFate(&s, now)
		next.Slots, next.Next, next.Named[pool.Name] = append(next.Slots, s), next.Next+1, next.Named[pool.Name]+1
	}
	for _, id := range t.Remove[:min(max(size-t.Nodes, 0), len(t.Remove))] {
		at := slices.IndexFunc(next.Slots, func(s slot) bool { return s.Node == id })
		if at >= 0 && !next.Slots[at].Leaves {
			next.Slots[at].Leaves, next.Slots[at].LeavesSeconds = true, now
		}
	}
	return nil
}

// drains reports whether a slot takes no new jobs, or is about to be told to take none.
func (b *Backend) drains(s *slot, now float64) bool {
	if int(s.Node) >= len(b.health) || b.health[s.Node] >= core.Provisioning {
		return false
	}
	w := backend.PoolOf(b.config.Pools, s.Pool)
	return s.Leaves || s.taken || now >= s.takenAt()-w.Notice.Seconds() || b.ordered[s.Name] == core.Draining
}

// keepSlots brings slots up to a moment, and says what became of them.
func (b *Backend) keepSlots(now float64) error {
	for i := range b.pools.Slots {
		s := &b.pools.Slots[i]
		for int(s.Node) >= len(b.health) {
			b.health = append(b.health, absent)
		}
		if b.health[s.Node] == absent {
			b.reportSlot(s, core.NodeAdded, core.Provisioning, now)
		}
		switch b.health[s.Node] {
		case core.Gone:
		case core.Provisioning:
			if err := b.openSlot(s, now); err != nil {
				return err
			}
		default:
			b.hold(s, now)
		}
	}
	return nil
}

// reportSlot says what became of a slot.
func (b *Backend) reportSlot(s *slot, kind core.EventKind, h core.Health, now float64) {
	b.health[s.Node] = h
	e := core.Event{Kind: kind, AtSeconds: now, Node: s.Node, Health: h}
	switch kind {
	case core.NodeAdded:
		e.Health = 0
		e.Added = &core.AddedNode{
			Name: s.Name, Accelerator: s.Accelerator, Devices: s.Devices, CPUs: s.CPUs, MemoryGB: s.MemoryGB, Pool: s.Pool, Health: h,
			ExpectedSeconds: s.Expected,
		}
	case core.NodeRemoved:
		e.Health = 0
	}
	b.events = append(b.events, e)
}

// openSlot makes a slot ready when its moment has come and devices are free, unless it is not to come after all.
func (b *Backend) openSlot(s *slot, now float64) error {
	due := now >= s.OpensSeconds
	if s.Leaves || due && s.Fails || s.EvictSeconds > 0 && now >= s.EvictSeconds {
		b.reportSlot(s, core.NodeRemoved, core.Gone, now)
		return nil
	}
	if !due {
		return nil
	}
	if len(s.Names) == 0 {
		names := b.freeNames(s)
		if names == nil {
			return nil // those that leave hold them
		}
		s.Names = names
		if err := b.store.keepPools(&b.pools.poolRecord); err != nil {
			return fmt.Errorf("record the devices of node %q: %w", s.Name, err)
		}
		b.devices.give(s.Node, names)
	}
	s.ready = now
	b.reportSlot(s, core.NodeChanged, core.Ready, now)
	b.hold(s, now)
	return nil
}

// freeNames are devices that no slot has; nil for none.
func (b *Backend) freeNames(s *slot) []string {
	for _, names := range b.devices.spots[s.Pool] {
		if len(names) == s.Devices && !slices.ContainsFunc(b.pools.Slots, func(o slot) bool {
			return len(o.Names) > 0 && o.Names[0] == names[0] && b.health[o.Node] != core.Gone
		}) {
			return names
		}
	}
	return nil
}

// hold looks after a slot that was ready: it drains while it leaves, is to be taken away or an operator wants it, loses its jobs
// when it is taken away or did not drain in time, and is gone when nothing is left on it.
func (b *Backend) hold(s *slot, now float64) {
	w := backend.PoolOf(b.config.Pools, s.Pool)
	if !s.taken && now >= s.takenAt() {
		s.taken = true
		b.log.Info("a node is taken away", "node", s.Name)
	}
	switch {
	case s.taken:
		b.interruptOn(s, core.CauseNodeFailed, "its node was taken away", now)
		for _, j := range b.jobs {
			if j.live() && s.holds(j) && !j.evicted {
				j.evicted = true
				j.run.Keeper.EndNow() // as a machine does that is switched off
				if j.stopBy == 0 {
					j.stopBy = now + b.seconds(patience)
				}
			}
		}
	case now >= s.expires(&w):
		b.interruptOn(s, core.CauseNodeDrained, fmt.Sprintf("its node did not drain within %v", w.DrainTimeout), now)
	}
	h := core.Ready
	if b.drains(s, now) {
		h = core.Draining
	}
	if b.health[s.Node] != h {
		b.reportSlot(s, core.NodeChanged, h, now)
	}
	if (s.taken || s.Leaves) && !slices.ContainsFunc(b.jobs, func(j *job) bool { return j.live() && s.holds(j) || j.sits(s.Node) }) {
		b.reportSlot(s, core.NodeRemoved, core.Gone, now)
	}
}

// interruptOn takes the devices of a slot from its jobs. One whose keeper has ended is told of as it ended.
func (b *Backend) interruptOn(s *slot, cause core.Cause, why string, now float64) {
	for _, j := range b.jobs {
		if j.sits(s.Node) && !j.exited {
			left := slices.DeleteFunc(slices.Clone(j.seats), func(seat core.Seat) bool { return seat.Node == s.Node })
			b.lost(j, left, failure{cause: cause, why: why, at: now})
			b.unsettled = true
		}
	}
}

// holds reports whether the last run of a job has devices of the slot.
func (s *slot) holds(j *job) bool {
	return slices.ContainsFunc(j.run.Names, func(name string) bool { return slices.Contains(s.Names, name) })
}

// sits reports whether a job is to run on a node.
func (j *job) sits(id core.NodeID) bool {
	return !j.ended && slices.ContainsFunc(j.seats, func(seat core.Seat) bool { return seat.Node == id })
}

// slotsChange is the next moment at which something becomes of a slot, after now.
func (b *Backend) slotsChange(now float64) float64 {
	by := math.Inf(1)
	next := func(at float64) {
		if at > now {
			by = min(by, at)
		}
	}
	for i := range b.pools.Slots {
		s := &b.pools.Slots[i]
		w := backend.PoolOf(b.config.Pools, s.Pool)
		switch b.health[s.Node] {
		case core.Gone:
		case core.Provisioning:
			next(s.OpensSeconds)
			if s.EvictSeconds > 0 {
				next(s.EvictSeconds)
			}
		default:
			next(s.takenAt() - w.Notice.Seconds())
			next(s.takenAt())
			next(s.expires(&w))
		}
	}
	return by
}

// opening reports whether a slot is still to come.
func (b *Backend) opening() bool {
	return slices.ContainsFunc(b.pools.Slots, func(s slot) bool { return b.health[s.Node] == core.Provisioning })
}

// noteSlots takes in what the pipeline is told of nodes.
func (b *Backend) noteSlots(events []core.Event) {
	for i := range events {
		e := &events[i]
		if e.Kind != core.NodeRemoved {
			continue
		}
		if at := slices.IndexFunc(b.pools.Slots, func(s slot) bool { return s.Node == e.Node }); at >= 0 {
			b.pools.Slots[at].told = true
		}
	}
	b.pools.seen.Take(events)
	b.pools.seen.Grow(b.cluster)
}

// repeatNode brings what is known of a node up to an event of a recorded round.
func (b *Backend) repeatNode(e *core.Event) {
	for int(e.Node) >= len(b.health) {
		b.health = append(b.health, absent)
	}
	switch e.Kind {
	case core.NodeAdded:
		b.health[e.Node] = e.Added.Health
	case core.NodeRemoved:
		b.health[e.Node] = core.Gone
	case core.NodeChanged:
		before := b.health[e.Node]
		b.health[e.Node] = e.Health
		if s := b.slot(e.Node); s != nil && before == core.Provisioning {
			s.ready = e.AtSeconds
		}
	}
}

// refuses says why an operator cannot make a slot ready: it is on its way out.
func (b *Backend) refuses(s *slot, h core.Health) error {
	w, now := backend.PoolOf(b.config.Pools, s.Pool), b.elapsed()
	if h != core.Ready || !s.Leaves && !s.taken && now < s.takenAt()-w.Notice.Seconds() {
		return nil
	}
	return core.Diagnostics{{Summary: fmt.Sprintf("node %q leaves its pool", s.Name), Hint: "the scaler asks for another one when it is needed"}}
}
