package score

import (
	"github.com/quartet-sched/quartet/core"
)

// A Scorer says how good a node is for a task that fits on it. It is a pure function of both: scores are kept until the node changes.
type Scorer interface {
	// Score is 0 or more; the highest is taken, ties to the lowest node.
	Score(n *Node, t *Task) int32
	// Devices is what the task takes of the node; empty when it needs none.
	Devices(n *Node, t *Task) core.DeviceSet
}

// drawer is a Scorer that draws one of the nodes with the highest score.
type drawer interface {
	draw(n int) int
}

// Draws reports whether a scorer draws, so that what it chooses depends on how often it was asked.
func Draws(s Scorer) bool {
	_, draws := s.(drawer)
	return draws
}

// Placer walks over nodes for one task at a time: filter, score, choice of devices.
//
// It keeps the scores of each distinct task in a tree of maxima, and scores a node again when it changed since such a task was placed. A
// placement is O(changed nodes × log nodes), and allocates nothing once its kind of task is known.
type Placer struct {
	nodes   []Node
	scorer  Scorer
	drawer  drawer // scorer, if it draws
	leaves  int    // a power of two, len(nodes) or more
	shapes  map[Task]*shape
	spare   []*shape
	clock   uint64   // changes so far
	changed []uint64 // by node: the clock of its last change
	log     []int32  // the node of change c, at c modulo its length
}

// maxShapes bounds how many distinct tasks are remembered.
const maxShapes = 1 << 11

// shape is what is known of one distinct task.
type shape struct {
	seen uint64  // the clock when it was last up to date
	tree []int32 // tree[1] is the highest score of all; node i is at leaves+i; -1 where it does not fit
}

// NewPlacer places tasks on nodes, whose order decides ties. It takes them over.
func NewPlacer(nodes []Node, s Scorer) *Placer {
	p := &Placer{nodes: nodes, scorer: s, leaves: 1, shapes: map[Task]*shape{}, changed: make([]uint64, len(nodes)), log: make([]int32, max(len(nodes), 1))}
	p.drawer, _ = s.(drawer)
	for p.leaves < len(nodes) {
		p.leaves *= 2
	}
	running := make([]int32, len(nodes)*(core.MaxDevicesPerNode+1))
	for i := range nodes {
		nodes[i].digest = digest{}
		if n := &nodes[i]; n.Slices != nil {
			n.Left = make([]int32, len(n.Slices))
			for k, layout := range n.Slices {
				n.Left[k] = leftOf(layout)
				n.digest.add(sliceDigests[layout])
			}
		} else {
			for k, left := range n.Left {
				n.Left[k] = max(0, min(left, Whole))
				n.digest.add(leftDigests[n.Left[k]])
			}
		}
		nodes[i].running, running = running[:core.MaxDevicesPerNode+1], running[core.MaxDevicesPerNode+1:]
		nodes[i].measure()
	}
	return p
}

// Nodes is what is left of the nodes; it is not to be changed.
func (p *Placer) Nodes() []Node { return p.nodes }

// Choose finds a seat for a task; false when it fits on no node. Nothing is taken.
func (p *Placer) Choose(t *Task) (core.Seat, bool) {
	s := p.refreshed(t)
	best := s.tree[1]
	if best < 0 {
		return core.Seat{}, false
	}
	i := 1
	if p.drawer != nil {
		i = p.drawn(s, best)
	} else {
		for i < p.leaves {
			if i *= 2; s.tree[i] < best {
				i++
			}
		}
	}
	i -= p.leaves
	return core.Seat{Node: core.NodeID(i), Devices: p.scorer.Devices(&p.nodes[i], t)}, true
}

// drawn is the place in the tree of one of the nodes with the highest score.
func (p *Placer) drawn(s *shape, best int32) int {
	n := 0
	for _, score := range s.tree[p.leaves:] {
		if score == best {
			n++
		}
	}
	n = p.drawer.draw(n)
	for i, score := range s.tree[p.leaves:] {
		if score == best {
			if n--; n < 0 {
				return p.leaves + i
			}
		}
	}
	return p.leaves
}

// Take gives a task the seat that it was chosen for; false, and nothing is changed, where it does not fit there. Slices begin where Starts says.
func (p *Placer) Take(t *Task, seat core.Seat) bool { return p.change(t, seat, 1, nil) }

// Release takes back what Take gave, of a task without slices; false, and nothing is changed, where that cannot have been.
func (p *Placer) Release(t *Task, seat core.Seat) bool { return p.change(t, seat, -1, nil) }

// TakeSlices is Take with slices that begin there, device by device, as Starts gives them.
func (p *Placer) TakeSlices(t *Task, seat core.Seat, starts []uint8) bool {
	return p.change(t, seat, 1, starts)
}

// ReleaseSlices takes back what Take or TakeSlices gave, with slices that begin there.
func (p *Placer) ReleaseSlices(t *Task, seat core.Seat, starts []uint8) bool {
	return p.change(t, seat, -1, starts)
}

// Starts appends where the slices of a task would begin on the devices of a seat: by mig.Layout.Place.
func (p *Placer) Starts(starts []uint8, t *Task, seat core.Seat) []uint8 {
	if t.Slice == 0 {
		return starts
	}
	for rest := seat.Devices; rest != 0; rest &= rest - 1 {
		start, _ := p.nodes[seat.Node].Slices[rest.First()].Place(t.Slice.profile())
		starts = append(starts, uint8(start)) //nolint:gosec // 0..7
	}
	return starts
}

func (p *Placer) change(t *Task, seat core.Seat, by int32, starts []uint8) bool {
	if seat.Node < 0 || int(seat.Node) >= len(p.nodes) || !p.nodes[seat.Node].change(t, seat.Devices, by, starts) {
		return false
	}
	p.touch(seat.Node)
	return true
}

// Close keeps tasks off a node, and Open lets them on it again; those that run there stay.
func (p *Placer) Close(n core.NodeID) { p.setClosed(n, true) }

// Open undoes Close.
func (p *Placer) Open(n core.NodeID) { p.setClosed(n, false) }

func (p *Placer) setClosed(n core.NodeID, closed bool) {
	if p.nodes[n].closed != closed {
		p.nodes[n].closed = closed
		p.touch(n)
	}
}

func (p *Placer) touch(n core.NodeID) {
	p.log[p.clock%uint64(len(p.log))] = int32(n)
	p.clock++
	p.changed[n] = p.clock
}

// refreshed is the scores of a task as the nodes are now.
func (p *Placer) refreshed(t *Task) *shape {
	s, known := p.shapes[*t]
	switch missed := p.clock; {
	case !known:
		s = p.add(*t)
		for i := range p.nodes {
			s.tree[p.leaves+i] = p.score(i, t)
		}
		for i := p.leaves - 1; i > 0; i-- {
			s.tree[i] = max(s.tree[2*i], s.tree[2*i+1])
		}
	case missed-s.seen > uint64(len(p.log)):
		for i := range p.nodes {
			if p.changed[i] > s.seen {
				p.rescore(s, i, t)
			}
		}
	default:
		for c := s.seen; c < p.clock; c++ {
			if i := int(p.log[c%uint64(len(p.log))]); p.changed[i] == c+1 { // not again later
				p.rescore(s, i, t)
			}
		}
	}
	s.seen = p.clock
	return s
}

// add makes room for another distinct task; when too many are known, all are forgotten.
func (p *Placer) add(t Task) *shape {
	if len(p.shapes) >= maxShapes {
		for _, s := range p.shapes { // in any order: they are alike when they are used again
			p.spare = append(p.spare, s)
		}
		clear(p.shapes)
	}
	s := &shape{}
	if last := len(p.spare) - 1; last >= 0 {
		s, p.spare = p.spare[last], p.spare[:last]
	} else {
		s.tree = make([]int32, 2*p.leaves)
		for i := range s.tree {
			s.tree[i] = -1
		}
	}
	p.shapes[t] = s
	return s
}

func (p *Placer) score(i int, t *Task) int32 {
	if n := &p.nodes[i]; n.Fits(t) {
		return p.scorer.Score(n, t)
	}
	return -1
}

func (p *Placer) rescore(s *shape, i int, t *Task) {
	score := p.score(i, t)
	i += p.leaves
	for s.tree[i] != score {
		s.tree[i] = score
		if i /= 2; i == 0 {
			return
		}
		score = max(s.tree[2*i], s.tree[2*i+1])
	}
}
