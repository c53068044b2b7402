// Package inflation is the experiment by which FGD and its baselines were published: tasks arrive, and none leaves, until more is asked for
// than there is.
//
// Source: Weng et al., Beware of Fragmentation (ATC'23), section 6, and its artifact, whose draws are repeated one by one.
package inflation

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/internal/gorand"
	"github.com/quartet-sched/quartet/placement/score"
)

// Task is a task of a trace.
type Task struct {
	// Name is the name of the task in the trace.
	Name string
	score.Task
	Written string // its types, as the trace writes them
}

// Node is a node with nothing running.
type Node struct {
	// Name is the name of the node in the trace.
	Name        string
	CPU, Memory int64 // of the whole node, in the units of tasks
	// Devices is how many devices the node has.
	Devices int
	// Accelerator is the type of its devices.
	Accelerator core.AcceleratorID
}

// Trace is what the experiment is drawn from. Make it with NewTrace.
type Trace struct {
	tasks    []Task // by name
	nodes    []Node // by name
	typical  *score.Typical
	capacity int64 // thousandths of devices
	sliced   bool  // devices are divided into slices
}

// NewTrace sorts tasks and nodes by name; the lists are not changed.
func NewTrace(tasks []Task, nodes []Node, division score.Division) *Trace {
	r := &Trace{tasks: slices.Clone(tasks), nodes: slices.Clone(nodes)}
	slices.SortStableFunc(r.tasks, func(a, b Task) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(r.nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	for i := range r.nodes {
		r.capacity += int64(r.nodes[i].Devices) * score.Whole
	}
	plain, written := make([]score.Task, len(r.tasks)), make([]string, len(r.tasks))
	for i := range r.tasks {
		plain[i], written[i] = r.tasks[i].Task, r.tasks[i].Written
	}
	r.typical = score.NewTypical(plain, written, division)
	return r
}

// Capacity is the devices of all nodes, in thousandths.
func (r *Trace) Capacity() int64 { return r.capacity }

// Typical is the typical tasks of the trace.
func (r *Trace) Typical() *score.Typical { return r.typical }

// Arrival is a task that arrives.
type Arrival struct {
	// Task is the task that arrives.
	Task  *Task
	Clone int // the number of the clone; -1 for the task itself
}

// Name is the name of the task, with the number of the clone.
func (a Arrival) Name() string {
	if a.Clone < 0 {
		return a.Task.Name
	}
	return fmt.Sprintf("%s-tuned-%d", a.Task.Name, a.Clone)
}

// Draw is what a seed draws.
type Draw struct {
	trace *Trace
	// Arrivals are the tasks in the order in which they arrive.
	Arrivals []Arrival
	Nodes    []Node // in the order that decides ties
}

// watchers is how many draws the background of the source's simulator takes in between.
const watchers = 10

// Draw shuffles the tasks, adds clones of them or takes some away until they ask for so many hundredths of the devices, and orders the nodes.
// There are no clones where no task asks for any.
func (r *Trace) Draw(seed int64, percent int) *Draw {
	stream := gorand.New(seed)
	stream.Int() // the source draws a name
	d := &Draw{trace: r, Nodes: make([]Node, len(r.nodes))}
	asked, target := int64(0), r.capacity*int64(percent)/100
	for i := range r.tasks {
		t := &r.tasks[i]
		d.Arrivals = append(d.Arrivals, Arrival{t, -1})
		asked += demand(t)
	}
	stream.Shuffle(len(d.Arrivals), func(i, k int) { d.Arrivals[i], d.Arrivals[k] = d.Arrivals[k], d.Arrivals[i] })
	switch {
	case asked > target:
		for asked > target {
			i := stream.Intn(len(d.Arrivals))
			asked -= demand(d.Arrivals[i].Task)
			d.Arrivals = slices.Delete(d.Arrivals, i, i+1)
		}
	case asked > 0:
		for clone := 0; ; clone++ {
			t := &r.tasks[stream.Intn(len(r.tasks))]
			if asked+int64(t.Milli) > target { // of one device, whatever their number
				break
			}
			asked += demand(t)
			d.Arrivals = append(d.Arrivals, Arrival{t, clone})
		}
	}
	for range watchers {
		stream.Float64()
	}
	for i, place := range stream.Perm(len(r.nodes)) {
		d.Nodes[place] = r.nodes[i]
	}
	return d
}

// demand is what a task asks for, in thousandths of devices.
func demand(t *Task) int64 { return int64(t.Devices) * int64(t.Milli) }

// Curves are in percent of the devices of the cluster, by percent asked for so far. A point that no event falls on is NaN.
type Curves struct {
	Allocated, Fragments []float64 // percent of the devices that tasks have, and that are left in pieces of no use
}

// Placement is where an arrival went.
type Placement struct {
	core.Seat
	// Fits reports whether the task found room.
	Fits bool
}

// Run lets the tasks arrive, and drops those that fit nowhere. Its argument told is called for each of them, if it is not nil.
func (d *Draw) Run(s score.Scorer, told func(Arrival, Placement)) Curves {
	run := d.begin(s)
	arrived := int64(0)
	hundredth := float64(max(d.trace.capacity, 1)) / 100
	var curves curves
	for _, a := range d.Arrivals {
		seat, _, fits := run.place(a.Task)
		arrived += demand(a.Task)
		if told != nil {
			told(a, Placement{seat, fits})
		}
		curves.add(int(math.RoundToEven(float64(arrived)/hundredth)), float64(run.used)/hundredth, run.fragments/hundredth)
	}
	return curves.mean()
}

// curves sums up the events of each point.
type curves struct {
	sums   Curves
	counts []float64
}

func (c *curves) add(x int, allocated, fragments float64) {
	for len(c.counts) <= x {
		c.sums.Allocated, c.sums.Fragments, c.counts = append(c.sums.Allocated, 0), append(c.sums.Fragments, 0), append(c.counts, 0)
	}
	c.sums.Allocated[x] += cents(allocated)
	c.sums.Fragments[x] += cents(fragments)
	c.counts[x]++
}

func (c *curves) mean() Curves {
	for x, n := range c.counts {
		c.sums.Allocated[x] = cents(c.sums.Allocated[x] / n)
		c.sums.Fragments[x] = cents(c.sums.Fragments[x] / n)
	}
	return c.sums
}

// cents rounds to two digits, half to even.
func cents(x float64) float64 { return math.RoundToEven(100*x) / 100 }

// Devices writes the devices of a seat as the source does: 0-3-5.
func Devices(set core.DeviceSet) string {
	var b strings.Builder
	for rest := set; rest != 0; rest &= rest - 1 {
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		fmt.Fprint(&b, bits.TrailingZeros64(uint64(rest)))
	}
	return b.String()
}
