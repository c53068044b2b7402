package antman

import (
	"context"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// Config configures New.
type Config struct {
	// Opportunistic is how many opportunistic jobs may be on a device.
	Opportunistic int `config:"opportunistic_per_device" doc:"how many opportunistic jobs may be on a device at most, with or without a guaranteed one; of cluster.max_owners one is always left for that" min:"1" max:"63"`
	// Loads says how full devices are: counted by the jobs on them, or summed as in the simulator of Muri.
	Loads string `config:"loads" doc:"how full devices are, of which opportunistic jobs take the emptiest: counted, by the jobs on them now; summed, by a running sum, 0.9 for an opportunistic and 0.1 for a guaranteed job, in which rounding errors stay and decide between devices that are alike, as in the simulator of Muri; for reproductions" enum:"counted|summed"`
	// Keeps says where a guaranteed job starts that fitted nowhere: on any node, or only on the first that it kept.
	Keeps string `config:"keeps" doc:"where a guaranteed job starts that fitted nowhere: any, on the first node with enough that no job before it keeps; first, only on the node that it keeps, which it chose first, as in the simulator of Muri; for reproductions" enum:"any|first"`
}

// How loads are known.
const (
	loadsCounted = "counted"
	loadsSummed  = "summed"
)

// Where a guaranteed job may start that keeps a node.
const (
	keepsAny   = "any"
	keepsFirst = "first"
)

// New seats guaranteed jobs without regard to the others, and opportunistic ones, those of best effort, on devices of guaranteed jobs or idle ones.
//
// A guaranteed job has devices without another guaranteed one. It goes to the first node with enough of them. One that finds no such node keeps the node with
// most of them to itself until it fits there, or on another that no job before it keeps (keeps); a job larger than a node keeps idle nodes, one by one, until they are enough.
// No guaranteed job submitted later gets a node that is kept; opportunistic ones use it meanwhile. Of two jobs the earlier takes what the later one keeps, if it can start then:
// with keeps first only if both are larger than a node.
//
// What opportunistic jobs do changes no seats of guaranteed ones within a round. But it causes rounds: a node that is kept may then be given on sooner or later than
// without them. Pinned opportunistic jobs, and those that keep their turn, hold what they have, memory included.
//
// An opportunistic job goes to the devices with the fewest opportunistic jobs on them, of these to those without a guaranteed job, then to the lowest, on as
// many nodes as that takes. It is put off its devices where the memory or the owners of a device do not suffice for a guaranteed job and for it. Where no
// devices are shared, it has idle ones until a guaranteed job needs them. Pinned jobs stay, of whatever class.
//
// Source: Xiao et al., AntMan (OSDI 2020), and its imitation in the simulator of Muri (SIGCOMM 2022): which node is kept, and which devices opportunistic jobs get, follow from
// that one's answers by job. Deviations: nodes need not be alike; memory is counted. Here who shares is no group of the
// allocation's, for jobs of unlike size share: of a group, one job is seated. O(devices) a round, and for each job that is seated anew, or is the first to
// ask in vain for so many devices with so much memory, O(nodes) if it is guaranteed, with the devices of those nodes that have enough, and O(devices × log devices) if it is
// opportunistic. All others that wait cost a look at what is remembered. 10,000 that wait for 4,096 full devices take 1 ms (BenchmarkAntMan).
func New() core.Factory[core.Placer] {
	return core.NewFactory(core.Info{
		Type:    "antman",
		Sharing: []core.Sharing{core.TimeSlice},
		Packs:   true,
		Summary: "guaranteed jobs as if alone, opportunistic ones beside them",
		Description: "A guaranteed job has devices without another guaranteed one, on the first node with enough, and keeps a node to itself until it fits. Opportunistic jobs, those of best effort, go to " +
			"devices with the fewest opportunistic jobs, idle ones first, and yield where memory or owners do not suffice. O(devices + waiting jobs + jobs that ask for different things × nodes) a round.",
		Source: "Xiao et al., AntMan, OSDI'20, and its imitation in the simulator of Muri",
	}, Config{Opportunistic: 1, Loads: loadsCounted, Keeps: keepsAny}, func(c Config, _ core.Settings) (core.Placer, error) {
		return &antMan{Config: c}, nil
	})
}

// antMan knows whose each device is.
type antMan struct {
	seating.Seater
	Config
	shares  core.Shares
	alone   bool             // nobody shares
	most    int              // opportunistic jobs on a device
	owned   []core.DeviceSet // by node: devices of guaranteed jobs
	lent    []core.DeviceSet // by node: devices of opportunistic jobs that run, where nobody shares
	vacant  []int            // by accelerator type: devices that no guaranteed job has
	spare   []int            // by accelerator type: devices that can have another opportunistic job
	hosts   []int            // by node: its first device among beside
	beside  []int            // by device: opportunistic jobs on it
	keeper  []core.JobID     // by node: the guaranteed job that keeps it; nobody for none
	firm    []bool           // by node: it was kept in this round already, by a job that comes before those that are yet to be seated
	whole   []bool           // by node: it is kept for a job that is larger than a node
	open    []bool           // by grant: it is yet to be answered
	wait    map[core.JobID]bool
	sums    []float64                  // by device, of those in on; with loadsSummed
	on      map[core.JobID]antManShare // what jobs had after the last round; with loadsSummed
	left    []core.JobID               // scratch
	choices []antManDevice             // scratch
	nodes   []core.NodeID              // scratch
	memory  []float64                  // scratch: of devices

	largestOf, allOf []int // by accelerator type: devices of the largest node that may be placed on, and of all
	keeps            map[core.JobID]antManKeeping
	in               []bool             // scratch: a pool
	inVain           map[antManAsk]bool // what nobody found in this round who kept no node: what is left only grows less until a node is kept no more
	remembers        bool               // nothing but what antManAsk has decides whether a device suits a job
	forgetful        bool               // of a test: it looks again whoever asked before
}

// antManKeeping is how many nodes a job keeps, and which, of one; -1 where that is not known.
type antManKeeping struct {
	nodes int
	node  core.NodeID
}

// antManAsk is what a job looks for.
type antManAsk struct {
	what     antManStep
	on       core.AcceleratorID // AnyAccelerator for several types
	replicas int
	memoryGB float64 // of each device
	free     bool    // it takes nothing of its devices
}

// antManStep is for what somebody looks at the nodes.
type antManStep uint8

const (
	toTake antManStep = iota
	toReserve
	toJoin
)

const nobody core.JobID = -1

// antManDevice is a device that an opportunistic job could have.
type antManDevice struct {
	load   float64 // less is better
	node   core.NodeID
	device int
}

// KeepsReserved is false: it knows itself which devices are free.
func (*antMan) KeepsReserved() bool { return false }

func (p *antMan) Place(_ context.Context, v *core.View, grants []core.Grant) (core.Seating, error) {
	p.prepare(v, grants)
	for i := range grants {
		if v.Jobs[grants[i].Job].Pinned {
			p.stay(v, grants, i)
		}
	}
	for i := range grants {
		if !p.open[i] {
			p.refuseGroup(v, grants, i)
		}
	}
	owners := func(i int) bool { return !v.Jobs[grants[i].Job].BestEffort }
	others := func(i int) bool { return !owners(i) }
	if slices.ContainsFunc(grants, func(g core.Grant) bool { return g.Blocking && v.Jobs[g.Job].BestEffort }) {
		// The turn that an opportunistic job keeps is kept from guaranteed ones behind it, too.
		p.stayAll(v, grants, owners)
		p.stayAll(v, grants, others)
		p.expect(grants)
		p.seatAll(v, grants, func(int) bool { return true })
		return p.Seating(), nil
	}
	p.stayAll(v, grants, owners)
	p.lend(v, grants)
	p.expect(grants)
	p.seatAll(v, grants, owners)
	p.stayAll(v, grants, others)
	p.seatAll(v, grants, others)
	return p.Seating(), nil
}

// Standing is for ever, as that of every seater, unless somebody was refused: he may have room in the next round, for nodes that are kept change.
func (p *antMan) Standing() core.Standing {
	s := p.Seater.Standing()
	if len(p.Unseated) > 0 {
		s.UntilSeconds = 0
	}
	return s
}

// prepare makes all devices of ready nodes nobody's, and forgets the last answer but for the nodes that are kept.
func (p *antMan) prepare(v *core.View, grants []core.Grant) {
	p.Begin(v)
	p.shares.Reset(v.Cluster)
	c := v.Cluster
	p.alone = c.Sharing != core.TimeSlice || c.MaxOwners < 2
	p.most = 1
	if !p.alone {
		p.most = min(p.Opportunistic, c.MaxOwners-1)
	}
	p.owned, p.lent, p.firm = zeroed(p.owned, len(c.Nodes)), zeroed(p.lent, len(c.Nodes)), zeroed(p.firm, len(c.Nodes))
	for len(p.keeper) < len(c.Nodes) {
		p.keeper, p.whole = append(p.keeper, nobody), append(p.whole, false)
	}
	p.hosts = p.hosts[:0]
	p.remembers = !p.forgetful && (c.Sharing == core.TimeSlice || c.Sharing == core.Exclusive)
	clear(p.inVain)
	if p.keeps == nil {
		p.keeps, p.inVain = make(map[core.JobID]antManKeeping), make(map[antManAsk]bool)
	}
	p.largestOf, p.allOf = zeroed(p.largestOf, len(c.Accelerators)), zeroed(p.allOf, len(c.Accelerators))
	devices := 0
	p.vacant, p.spare = zeroed(p.vacant, len(c.Accelerators)), zeroed(p.spare, len(c.Accelerators))
	for i := range c.Nodes {
		t, usable := c.Nodes[i].Accelerator, p.shares.Usable(core.NodeID(i)).Count()
		p.vacant[t], p.spare[t] = p.vacant[t]+usable, p.spare[t]+usable
		p.largestOf[t], p.allOf[t] = max(p.largestOf[t], usable), p.allOf[t]+usable
		p.hosts = append(p.hosts, devices)
		devices += c.Nodes[i].Devices
	}
	p.beside, p.open = zeroed(p.beside, devices), zeroed(p.open, len(grants))
	for i := range p.open {
		p.open[i] = true
	}
	if p.Loads == loadsSummed {
		p.subtract(v, devices)
	}
}

// zeroed is a list of n zeros, in the memory of an old one if that suffices.
func zeroed[T any](list []T, n int) []T {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// lend notes the devices of opportunistic jobs that run, which guaranteed ones take last where nobody shares.
func (p *antMan) lend(v *core.View, grants []core.Grant) {
	for i := range grants {
		if j := v.Jobs[grants[i].Job]; p.alone && p.open[i] && j.BestEffort {
			for _, s := range j.Seats {
				p.lent[s.Node] |= s.Devices
			}
		}
	}
}

// expect lets go of the nodes that are kept by jobs that are not to be seated any more.
func (p *antMan) expect(grants []core.Grant) {
	if len(p.keeps) == 0 {
		return
	}
	if p.wait == nil {
		p.wait = make(map[core.JobID]bool)
	}
	clear(p.wait)
	for i := range grants {
		if id := grants[i].Job; p.open[i] && p.keeps[id].nodes > 0 {
			p.wait[id] = true
		}
	}
	for n, j := range p.keeper {
		if !p.wait[j] {
			p.keepFor(core.NodeID(n), nobody)
		}
	}
}

// keepFor has a node be kept by a job, or by nobody.
func (p *antMan) keepFor(n core.NodeID, id core.JobID) {
	before := p.keeper[n]
	if before == id {
		return
	}
	if before != nobody {
		k := p.keeps[before]
		if k = (antManKeeping{k.nodes - 1, -1}); k.nodes == 0 {
			delete(p.keeps, before)
		} else {
			p.keeps[before] = k
		}
		clear(p.inVain)
	}
	if p.keeper[n] = id; id != nobody {
		k := antManKeeping{p.keeps[id].nodes + 1, n}
		if k.nodes > 1 {
			k.node = -1
		}
		p.keeps[id] = k
	}
}

// isInVain reports whether somebody who asked for the same as a job found nothing, and which question that was.
func (p *antMan) isInVain(j *core.Job, g *core.Grant, in pool, what antManStep) (ask antManAsk, vain bool) {
	ask = antManAsk{what, in.only, g.Replicas, j.DeviceMemoryGB, j.Share != nil && j.Share.Milli == 0}
	return ask, p.remembers && in.only != core.AnyAccelerator && p.inVain[ask]
}

func (p *antMan) stayAll(v *core.View, grants []core.Grant, who func(int) bool) {
	for i := range grants {
		if p.open[i] && who(i) {
			p.stay(v, grants, i)
			if !p.open[i] {
				p.refuseGroup(v, grants, i)
			}
		}
	}
}

// stay leaves a job where it is, if that is what is granted and nobody has a better right.
func (p *antMan) stay(v *core.View, grants []core.Grant, i int) {
	g := &grants[i]
	j := v.Jobs[g.Job]
	if j.Held != g.Replicas || j.Held == 0 || !seating.Within(v, g, j.Seats) || !j.Pinned && !p.may(j) || !p.shares.Occupy(j.JobSpec, j.Seats) {
		return
	}
	p.Keep(v, g)
	p.settle(v, grants, i, j.Seats)
}

// may reports whether there is room for the class of a job on its devices.
func (p *antMan) may(j *core.Job) bool {
	for _, s := range j.Seats {
		if !j.BestEffort && p.owned[s.Node]&s.Devices != 0 {
			return false
		}
		for rest := s.Devices; rest != 0 && j.BestEffort; rest &= rest - 1 {
			if p.beside[p.hosts[s.Node]+rest.First()] >= p.most {
				return false
			}
		}
	}
	return true
}

// settle counts a job in on seats that are its own now.
func (p *antMan) settle(v *core.View, grants []core.Grant, i int, seats []core.Seat) {
	p.open[i] = false
	if p.Loads == loadsSummed {
		share := antManShare{seats, 0.1}
		if v.Jobs[grants[i].Job].BestEffort {
			share.part = 0.9
		}
		p.sum(grants[i].Job, share)
	}
	for _, s := range seats {
		t, usable := v.Cluster.Nodes[s.Node].Accelerator, p.shares.Usable(s.Node)
		if !v.Jobs[grants[i].Job].BestEffort {
			p.vacant[t] -= (s.Devices & usable &^ p.owned[s.Node]).Count()
			p.Free[v.Cluster.Nodes[s.Node].Accelerator] -= (s.Devices &^ p.owned[s.Node]).Count()
			p.owned[s.Node] |= s.Devices
			continue
		}
		for rest := s.Devices; rest != 0; rest &= rest - 1 {
			of := &p.beside[p.hosts[s.Node]+rest.First()]
			if *of++; *of == p.most && usable&(1<<rest.First()) != 0 {
				p.spare[t]--
			}
		}
	}
}

// refuseGroup refuses the others of the group of a job that is seated.
func (p *antMan) refuseGroup(v *core.View, grants []core.Grant, i int) {
	if grants[i].Group == 0 {
		return
	}
	for k := range grants {
		if g := &grants[k]; p.open[k] && g.Group == grants[i].Group {
			p.open[k] = false
			p.Refuse(v, g, false)
			p.Unseated[len(p.Unseated)-1].Message = "one job of a group is seated: here classes say who shares"
		}
	}
}

func (p *antMan) seatAll(v *core.View, grants []core.Grant, who func(int) bool) {
	for i := range grants {
		if !p.open[i] || !who(i) {
			continue
		}
		g, first := &grants[i], len(p.Seats)
		seated := false
		if v.Jobs[g.Job].BestEffort {
			seated = p.eachPool(v, g, func(in pool) bool { return p.joinOthers(v, g, in) })
		} else {
			seated = p.own(v, g)
		}
		if !seated {
			p.open[i] = false
			p.Refuse(v, g, false)
			p.explain(v, g, &p.Unseated[len(p.Unseated)-1])
			p.Close(v, g)
			continue
		}
		p.open[i] = false
		seats := p.Seats[first:len(p.Seats):len(p.Seats)]
		p.shares.Occupy(v.Jobs[g.Job].JobSpec, seats)
		p.Placed = append(p.Placed, core.Placement{Job: g.Job, Seats: seats})
		p.settle(v, grants, i, seats)
		p.refuseGroup(v, grants, i)
	}
}

// explain tells an opportunistic job how many devices have room for another one, and anybody whom they have room for that their memory is short.
func (p *antMan) explain(v *core.View, g *core.Grant, verdict *core.Verdict) {
	j := v.Jobs[g.Job]
	if j.BestEffort && !p.alone && verdict.Reason != core.AcceleratorMissing && verdict.Reason != core.BlockedByEarlier {
		room := 0
		for t := range p.spare {
			if p.Open(v, g, core.AcceleratorID(t)) {
				room = max(room, p.spare[t])
			}
		}
		if verdict.Reason, verdict.Available = core.WaitingForDevices, float64(room); room >= g.Replicas {
			verdict.Reason = core.Fragmented
		}
	}
	if j.DeviceMemoryGB > 0 && v.Cluster.Sharing != core.Exclusive {
		p.eachPool(v, g, func(in pool) bool {
			memory, short := p.memoryFor(v, g, in)
			if short {
				seating.BlameDeviceMemory(verdict, j.DeviceMemoryGB, memory)
			}
			return short
		})
	}
}

// memoryFor is the memory that is left at most of enough devices of a pool that have everything else that a job needs of them, and whether there are such devices.
func (p *antMan) memoryFor(v *core.View, g *core.Grant, in pool) (gigabytes float64, found bool) {
	j := v.Jobs[g.Job]
	if j.BestEffort && among(p.spare, in) < g.Replicas || !j.BestEffort && among(p.vacant, in) < g.Replicas {
		return 0, false
	}
	light := *j.JobSpec
	light.DeviceMemoryGB = 0
	largest := p.largest(in)
	kept := p.Keeps == keepsFirst && slices.ContainsFunc(p.keeper, func(k core.JobID) bool { return k == g.Job })
	p.memory = p.memory[:0]
	for i := range v.Cluster.Nodes {
		n, first := core.NodeID(i), len(p.memory)
		if !in.types[v.Cluster.Nodes[i].Accelerator] || !j.BestEffort && (!p.mayTake(g, n) || kept && p.keeper[n] != g.Job) {
			continue
		}
		for rest := p.shares.Usable(n); rest != 0; rest &= rest - 1 {
			d := rest.First()
			taken := p.owned[n]&(1<<d) != 0
			if j.BestEffort {
				taken = p.beside[p.hosts[i]+d] >= p.most
			}
			if !taken && p.shares.FitsOn(&light, n, d) {
				p.memory = append(p.memory, p.shares.DeviceMemoryLeft(n, d))
			}
		}
		switch {
		case j.BestEffort: // on as many nodes as it takes
		case g.Replicas > largest: // on idle nodes
			if len(p.memory)-first < p.shares.Usable(n).Count() {
				p.memory = p.memory[:first]
			}
		default:
			if len(p.memory) >= g.Replicas {
				gigabytes, found = max(gigabytes, seating.Least(p.memory, g.Replicas)), true
			}
			p.memory = p.memory[:0]
		}
	}
	if len(p.memory) >= g.Replicas {
		gigabytes, found = seating.Least(p.memory, g.Replicas), true
	}
	return gigabytes, found && gigabytes < j.DeviceMemoryGB
}
