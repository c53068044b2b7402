package placement

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/mig"
	"github.com/quartet-sched/quartet/placement/score"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// Who may be on several nodes where no node has room.
const (
	spreadElastic = "elastic"
	spreadLarger  = "larger"
)

// ScoredConfig configures the placements by score.
type ScoredConfig struct {
	// Spread says which jobs are spread over nodes where none has room: elastic or larger.
	Spread string `config:"spread" doc:"who is spread over nodes where none has room for all of its replicas: elastic, jobs that are larger than any node, and those that could run with fewer replicas; larger, the former alone, and the others wait for a node" enum:"elastic|larger"`
}

// scored seats each job by itself where a score is highest, ties on the lowest node. A job that fits on one node waits for one; a larger one
// gets as much as it can of one node after the other, and so does one for which no node has room that was granted more than its least number of
// replicas: it would be granted as many again. Nobody moves. What is left of the nodes is kept from round to round.
type scored struct {
	ScoredConfig
	scorer func(r *rand.Rand, seen []score.Task) score.Scorer
	random *rand.Rand
	learns bool // the scorer looks at the tasks seen

	walk          *score.Placer
	cluster       *core.Cluster
	healthChanges int
	nodes         int
	on            []int                 // nodes by type, but for those that are gone
	left          []int64               // thousandths of devices that nobody has, by type
	jobs          []*seatedJob          // by JobID; nil for those without seats
	holding       []core.JobID          // those with seats, in any order
	most          map[replicaKind][]int // what mostOn answered while nodes are what they are
	asked         unit                  // scratch: the task that is asked for, which would be allocated otherwise
	tasks         []score.Task          // of the jobs seen
	known         int                   // of them when the scorer was made
	by            score.Scorer
	seen          core.JobID // jobs before it were seen
	drawn         bool       // for a grant of the round that was refused
	now           float64

	round    int
	closed   []bool // by type: a job before keeps its turn there
	rest     []int  // indices of the grants that need new seats
	seats    []core.Seat
	placed   []core.Placement
	unseated []core.Verdict
	memory   []int64 // scratch: of devices
}

// Place seats grants in their order; first those that stay.
func (p *scored) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	if types := len(v.Cluster.Accelerators); types > score.MaxTypes {
		return core.Seating{}, fmt.Errorf("the cluster has %d accelerator types, and placement by score knows %d", types, score.MaxTypes)
	}
	p.begin(v)
	if !p.leave(v, grants) {
		p.leaveAll(v, grants)
	}
	for _, i := range p.rest {
		g := &grants[i]
		if first := len(p.seats); p.seat(v, g) {
			p.placed = append(p.placed, core.Placement{Job: g.Job, Seats: p.seats[first:len(p.seats):len(p.seats)]})
			continue
		}
		p.refuse(v, g)
		for t := range p.closed {
			p.closed[t] = p.closed[t] || g.Blocking && seating.Eligible(v, v.Jobs[g.Job], g, core.AcceleratorID(t))
		}
	}
	return core.Seating{Placed: p.placed, Unseated: p.unseated}, nil
}

// leave leaves those where they are that go on with what they hold, and drops the others, in one walk. It reports false where what a job holds is not what is known of it.
func (p *scored) leave(v *core.View, grants []core.Grant) bool {
	for _, id := range v.Changed { // almost always all that there is to forget
		if s := p.held(id); s != nil && !p.has(v.Job(id), s) {
			p.release(id)
		}
	}
	stay := 0
	for i := range grants {
		g := &grants[i]
		j, s := v.Jobs[g.Job], p.held(g.Job)
		if j.Held == 0 && s == nil {
			p.rest = append(p.rest, i)
			continue
		}
		if s == nil || !p.has(j, s) {
			return false
		}
		if j.Held != g.Replicas || !seating.Within(v, g, j.Seats) {
			p.rest = append(p.rest, i)
			continue
		}
		s.round = p.round
		p.placed = append(p.placed, core.Placement{Job: g.Job, Seats: j.Seats})
		stay++
	}
	if stay < len(p.holding) {
		p.drop(func(id core.JobID) bool { return p.jobs[id].round != p.round })
	}
	return true
}

// leaveAll is leave where the nodes were counted anew, or jobs were given other seats than they were told.
func (p *scored) leaveAll(v *core.View, grants []core.Grant) {
	p.placed, p.rest = p.placed[:0], p.rest[:0]
	p.drop(func(id core.JobID) bool { return !p.has(v.Job(id), p.jobs[id]) })
	for i := range grants {
		if g := &grants[i]; p.stays(v, g) {
			p.placed = append(p.placed, core.Placement{Job: g.Job, Seats: v.Jobs[g.Job].Seats})
		} else {
			p.rest = append(p.rest, i)
		}
	}
	p.drop(func(id core.JobID) bool { return p.jobs[id].round != p.round })
}

// has reports whether a job has what is known of it. One that ended has nothing.
func (p *scored) has(j *core.Job, s *seatedJob) bool {
	return j != nil && core.SameSeats(s.seats, j.Seats) && slices.Equal(s.slices, j.Slices())
}

// Standing is for ever: nothing changes while the grants and the nodes do not, unless a scorer drew for a grant before it was refused: it does so again in the next
// round, and what others are drawn then depends on it.
func (p *scored) Standing() core.Standing {
	if p.drawn {
		return core.Standing{UntilSeconds: p.now}
	}
	return core.Standing{UntilSeconds: math.Inf(1)}
}

// begin forgets the last answer, and what is left of the nodes if they are not those of before.
func (p *scored) begin(v *core.View) {
	p.round++
	p.drawn, p.now = false, v.NowSeconds
	p.rest, p.seats, p.placed, p.unseated = p.rest[:0], p.seats[:0], p.placed[:0], p.unseated[:0]
	p.look(v)
	learned := p.by == nil || p.learns && len(p.tasks) > p.known+p.known/4
	if learned {
		if p.known == 0 || len(p.tasks) > p.known+p.known/4 { // otherwise it forks one that knew so many
			p.known = len(p.tasks)
		}
		p.by = p.scorer(p.random, p.tasks[:p.known])
	}
	if learned || p.cluster != v.Cluster || p.healthChanges != v.HealthChanges || p.nodes != len(v.Cluster.Nodes) {
		p.rebuild(v)
	}
	clear(p.closed)
}

// look takes in the jobs that were submitted since the round before.
func (p *scored) look(v *core.View) {
	for ; int(p.seen) < len(v.Jobs); p.seen++ {
		if j := v.Jobs[p.seen]; j != nil && p.learns {
			t := p.task(v, j.JobSpec, core.AnyAccelerator)
			t.times(min(max(j.Requested, 1), core.MaxDevicesPerNode))
			p.tasks = append(p.tasks, t.Task)
		}
	}
}

// rebuild counts the nodes anew, all of them free. Those who hold something take it when their grants come.
func (p *scored) rebuild(v *core.View) {
	c := v.Cluster
	p.cluster, p.healthChanges, p.nodes = c, v.HealthChanges, len(c.Nodes)
	nodes := make([]score.Node, len(c.Nodes))
	for i := range c.Nodes {
		n := &c.Nodes[i]
		at := score.Node{Accelerator: n.Accelerator, Left: make([]int32, n.Devices)}
		for rest := n.Usable(); rest != 0; rest &= rest - 1 {
			at.Left[rest.First()] = score.Whole
		}
		if c.Sharing == core.Mig {
			for _, left := range at.Left {
				at.Slices = append(at.Slices, mig.At(mig.SevenG, 0)*mig.Layout(1-left/score.Whole)) // nobody's, but not usable
			}
		}
		if c.Sharing != core.Exclusive && n.DeviceMemoryGB > 0 {
			at.FixedMemory = c.Sharing == core.Mig || c.OversubscribesMemory
			at.DeviceMemory = slices.Repeat([]int64{amountOf(n.DeviceMemoryGB)}, n.Devices)
		}
		if c.CountsResources {
			at.CPU, at.Memory = amountOf(n.CPUs), amountOf(n.MemoryGB)
		}
		nodes[i] = at
	}
	p.walk = score.NewPlacer(nodes, p.by)
	for i := range c.Nodes {
		if c.Nodes[i].Health != core.Ready {
			p.walk.Close(core.NodeID(i))
		}
	}
	p.most = make(map[replicaKind][]int)
	p.on, p.left = make([]int, len(c.Accelerators)), make([]int64, len(c.Accelerators))
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Health != core.Gone {
			p.on[n.Accelerator]++
			p.left[n.Accelerator] += int64(n.Usable().Count()) * score.Whole
		}
	}
	for _, id := range p.holding {
		p.jobs[id] = nil
	}
	p.holding = p.holding[:0]
	p.closed = make([]bool, len(c.Accelerators))
}

// plenty stands for what nobody counts.
const plenty = 1 << 40

// amountOf is how much a node has, in thousandths; 0 is unknown, and plenty.
func amountOf(amount float64) int64 {
	if amount == 0 {
		return plenty
	}
	return int64(math.Floor(min(amount*1000*(1+1e-12), plenty)))
}

// asked is how much a replica asks for, in thousandths.
func asked(amount float64) int64 { return int64(math.Ceil(amount * 1000 * (1 - 1e-12))) }

// unit is a task that replicas of a job make.
type unit struct{ score.Task }

// times makes it that of n replicas on a node.
func (t *unit) times(n int) {
	t.CPU, t.Memory, t.Devices = t.CPU*int64(n), t.Memory*int64(n), int32(n)
	if t.Milli == 0 {
		t.Devices = 0
	}
}

// task is a replica of a job.
func (p *scored) task(v *core.View, j *core.JobSpec, on core.AcceleratorID) (t unit) {
	t.Devices, t.Milli = 1, score.Whole
	switch takes := j.Share == nil || j.Share.Milli > 0; {
	case v.Cluster.Sharing == core.Fractional && j.Share != nil, !takes:
		t.Milli = int32(j.Share.Milli) //nolint:gosec // at most 1000
	case v.Cluster.Sharing == core.Mig:
		t.Slice, t.Milli = score.SliceOf(j.Slice())
	}
	if v.Cluster.Sharing != core.Exclusive && t.Milli > 0 {
		t.DeviceMemory = asked(j.DeviceMemoryGB)
		if t.Slice != 0 { // a slice has its part of the memory
			t.DeviceMemory = (t.DeviceMemory + int64(t.Milli)/125 - 1) / (int64(t.Milli) / 125) * mig.Slices
		}
	}
	if v.Cluster.CountsResources {
		t.CPU, t.Memory = asked(j.CPUs), asked(j.MemoryGB)
	}
	if on != core.AnyAccelerator {
		t.Types = 1 << uint(on)
	} else if len(j.Accelerators) > 0 {
		for a := range v.Cluster.Accelerators {
			if j.Accepts(v.Cluster, core.AcceleratorID(a)) {
				t.Types |= 1 << uint(a)
			}
		}
	}
	return t
}

// seat takes new seats for a job, if there are any: on one node, or, for one that is larger than any that it can run on or that is elastic, on several, of one
// type unless it mixes them.
func (p *scored) seat(v *core.View, g *core.Grant) bool {
	j, replica := v.Jobs[g.Job], p.task(v, v.Jobs[g.Job].JobSpec, g.Accelerator)
	if p.open(v, g, &replica); replica.Devices == 0 {
		return false
	}
	if p.seatOn(v, g, replica, g.Replicas) {
		return true
	}
	most := p.mostOn(v, g, &replica)
	largest := slices.Max(most)
	if largest >= g.Replicas { // it would fit on an idle node
		if p.Spread != spreadElastic || j.MinReplicas >= g.Replicas || !p.mayHold(g, &replica, most, j.MixesTypes) {
			return false
		}
		largest = g.Replicas - 1
	}
	switch {
	case largest == 0:
		return false
	case j.MixesTypes:
		return p.seatOn(v, g, replica, largest)
	}
	for t := range most {
		if on := replica; most[t] > 0 {
			on.Types = 1 << uint(t)
			if p.seatOn(v, g, on, min(most[t], largest)) {
				return true
			}
		}
	}
	return false
}

// mostOn is how many replicas of a job an idle node of each type could have at most; 0 of types that it cannot run on. O(nodes) for each distinct replica.
func (p *scored) mostOn(v *core.View, g *core.Grant, replica *unit) []int {
	kind := replicaKind{replica.Task, asked(v.Jobs[g.Job].DeviceMemoryGB)}
	if most, known := p.most[kind]; known {
		return most
	}
	most := make([]int, len(v.Cluster.Accelerators))
	for i := range v.Cluster.Nodes {
		n := &v.Cluster.Nodes[i]
		if t := n.Accelerator; n.Health != core.Gone && replica.Types.Allows(t) && most[t] < n.Devices {
			most[t] = max(most[t], v.Cluster.SeatsOn(v.Jobs[g.Job].JobSpec, n))
		}
	}
	if len(p.most) == mostReplicas {
		clear(p.most)
	}
	p.most[kind] = most
	return most
}

// replicaKind is what decides how many replicas of a job a node could have.
type replicaKind struct {
	score.Task
	deviceMemory int64
}

// mostReplicas bounds of how many distinct replicas is remembered how many a node could have.
const mostReplicas = 1 << 11

// mayHold reports whether as many devices as a job was granted are left, of one type or of all that it mixes. Who waits is asked about in every round.
func (p *scored) mayHold(g *core.Grant, replica *unit, most []int, mixes bool) bool {
	wanted, all := int64(g.Replicas)*int64(replica.Milli), int64(0)
	for t := range most {
		if most[t] == 0 {
			continue
		}
		if all += p.left[t]; p.left[t] >= wanted {
			return true
		}
	}
	return mixes && all >= wanted
}

// seatOn is seat for one with at most so many replicas on a node.
func (p *scored) seatOn(v *core.View, g *core.Grant, replica unit, most int) bool {
	first := len(p.seats)
	for left := g.Replicas; left > 0; {
		n := min(left, most)
		seat, found := p.choose(v, replica, n, first)
		for ; !found && g.Replicas > most && n > 1; seat, found = p.choose(v, replica, n, first) {
			n--
		}
		if !found {
			break
		}
		p.seats = append(p.seats, seat)
		if left -= n; left > 0 {
			p.walk.Close(seat.Node) // no two replicas are on one device
		}
	}
	for _, s := range p.seats[first:] {
		p.walk.Open(s.Node)
	}
	if core.Replicas(p.seats[first:]) == g.Replicas && p.take(g.Job, replica, p.seats[first:], nil) {
		return true
	}
	p.drawn = p.drawn || len(p.seats) > first && v.Cluster.CountsShares() && score.Draws(p.by)
	p.seats = p.seats[:first]
	return false
}

// open leaves a task the types on which no earlier job keeps its turn, and no device where there is none. One that runs had its own turn.
func (p *scored) open(v *core.View, g *core.Grant, t *unit) {
	if v.Jobs[g.Job].State == core.Running || !slices.Contains(p.closed, true) {
		return
	}
	open := score.TypeSet(0)
	for a := range p.closed {
		if !p.closed[a] && t.Types.Allows(core.AcceleratorID(a)) {
			open |= 1 << uint(a)
		}
	}
	if t.Types = open; open == 0 {
		t.Devices = 0
	}
}

// choose finds seats for so many replicas on one node, beside those taken since there were first of them.
func (p *scored) choose(v *core.View, replica unit, n, first int) (core.Seat, bool) {
	t := &p.asked
	*t = replica
	t.times(n)
	seat, found := p.walk.Choose(&t.Task)
	if !found || seat.Devices != 0 {
		return seat, found
	}
	if p.beside(v, &seat, t, n, first) {
		return seat, true
	}
	for i := range v.Cluster.Nodes {
		if seat.Node = core.NodeID(i); p.beside(v, &seat, t, n, first) {
			return seat, true
		}
	}
	return core.Seat{}, false
}

// beside seats replicas that compute on CPUs alone on a node: each at a device, of which it takes nothing.
func (p *scored) beside(v *core.View, s *core.Seat, t *unit, n, first int) bool {
	s.Devices = v.Cluster.Nodes[s.Node].Usable().Lowest(n)
	return s.Devices.Count() == n && p.walk.Nodes()[s.Node].Fits(&t.Task) &&
		!slices.ContainsFunc(p.seats[first:], func(o core.Seat) bool { return o.Node == s.Node })
}

// byScore makes the factory of a placer that seats where a score is highest.
func byScore(info core.Info, learns bool, scorer func(r *rand.Rand, seen []score.Task) score.Scorer) core.Factory[core.Placer] {
	info.Counts, info.Sharing = true, []core.Sharing{core.Fractional, core.Mig}
	info.Description += " A job that fits on one node waits for one; a larger one, and an elastic one for which no node has room, gets as much as it can of one node after the other. " +
		"Counts shares and slices of devices, CPUs and memory. O(changed nodes × log nodes) for each new seating."
	return core.NewFactory(info, ScoredConfig{Spread: spreadElastic}, func(c ScoredConfig, s core.Settings) (core.Placer, error) {
		return &scored{ScoredConfig: c, learns: learns, scorer: scorer, random: s.Rand}, nil
	})
}
