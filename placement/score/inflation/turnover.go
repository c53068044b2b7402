package inflation

import (
	"container/heap"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/mig"
	"github.com/quartet-sched/quartet/placement/score"
)

// Turnover is what comes of tasks that come and go, in percent.
type Turnover struct {
	Lost      float64 // of the devices asked for, those of tasks that fitted nowhere
	Allocated float64 // of all devices, on average over time
	Fragments float64 // of all devices, on average over time
}

// fillLifetimes is how many mean lifetimes pass before anything is counted: the number of tasks that stay is then within 5 % of what it comes to.
const fillLifetimes = 3

// Turnover lets tasks of the trace arrive at random, so densely that they ask for so many hundredths of the devices if all are placed, and stay for times that are drawn
// from an exponential distribution of mean 1; one that fits nowhere is lost. It counts over so many mean lifetimes, after a few in which the cluster fills. The draws are
// the seed's, and the same for every scorer.
//
// Source: this project; the published experiment lets no task leave. O(placements × tasks that arrive).
func (d *Draw) Turnover(s score.Scorer, seed int64, percent int, lifetimes float64) Turnover {
	random := core.NewRand(uint64(seed), "fill/turnover") //nolint:gosec // any bits do
	asked := int64(0)
	for i := range d.trace.tasks {
		asked += demand(&d.trace.tasks[i])
	}
	if asked == 0 || d.trace.capacity == 0 {
		return Turnover{}
	}
	rate := float64(percent) / 100 * float64(d.trace.capacity) * float64(len(d.trace.tasks)) / float64(asked)
	run := d.begin(s)
	end := fillLifetimes + lifetimes
	var sum struct{ asked, lost, used, fragments float64 }
	now := 0.0
	pass := func(to float64) {
		span := max(0, min(to, end)-max(now, fillLifetimes))
		sum.used, sum.fragments, now = sum.used+span*float64(run.used), sum.fragments+span*run.fragments, to
	}
	var leaving departures
	for {
		next := now + random.ExpFloat64()/rate
		t, life := &d.trace.tasks[random.IntN(len(d.trace.tasks))], random.ExpFloat64()
		for len(leaving) > 0 && leaving[0].at <= min(next, end) {
			one := heap.Pop(&leaving).(departure) //nolint:forcetypeassert // it holds nothing else
			pass(one.at)
			run.give(one.task, one.seat, one.starts)
		}
		if pass(next); next >= end {
			break
		}
		seat, starts, fits := run.place(t)
		if next >= fillLifetimes {
			if sum.asked += float64(demand(t)); !fits {
				sum.lost += float64(demand(t))
			}
		}
		if fits {
			heap.Push(&leaving, departure{next + life, t, seat, starts})
		}
	}
	all := float64(d.trace.capacity) / 100
	return Turnover{Lost: 100 * sum.lost / max(sum.asked, 1), Allocated: sum.used / lifetimes / all, Fragments: sum.fragments / lifetimes / all}
}

// departure is a task that leaves at a moment.
type departure struct {
	at     float64
	task   *Task
	seat   core.Seat
	starts []uint8
}

// departures is a heap of them by time.
type departures []departure

func (d departures) Len() int           { return len(d) }
func (d departures) Less(a, b int) bool { return d[a].at < d[b].at }
func (d departures) Swap(a, b int)      { d[a], d[b] = d[b], d[a] }
func (d *departures) Push(x any)        { *d = append(*d, x.(departure)) } //nolint:forcetypeassert // nothing else is pushed
func (d *departures) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// filling is the nodes of a draw while tasks are on them.
type filling struct {
	trace     *Trace
	placer    *score.Placer
	used      int64
	each      []float64 // fragments by node
	fragments float64
}

// begin is the nodes with nothing on them.
func (d *Draw) begin(s score.Scorer) *filling {
	nodes := make([]score.Node, len(d.Nodes))
	for i, n := range d.Nodes {
		nodes[i] = score.Node{CPU: n.CPU, Memory: n.Memory, Left: make([]int32, n.Devices), Accelerator: n.Accelerator}
		for k := range nodes[i].Left {
			nodes[i].Left[k] = score.Whole
		}
		if d.trace.sliced {
			nodes[i].Slices = make([]mig.Layout, n.Devices)
		}
	}
	f := &filling{trace: d.trace, placer: score.NewPlacer(nodes, s), each: make([]float64, len(nodes))}
	for i := range nodes {
		f.each[i] = d.trace.typical.Fragments(&nodes[i])
		f.fragments += f.each[i]
	}
	return f
}

// place finds a seat for a task, and takes it.
func (f *filling) place(t *Task) (seat core.Seat, starts []uint8, fits bool) {
	if seat, fits = f.placer.Choose(&t.Task); fits {
		starts = f.placer.Starts(nil, &t.Task, seat)
		f.placer.Take(&t.Task, seat)
		f.used += demand(t)
		f.count(seat.Node)
	}
	return seat, starts, fits
}

// give gives the seat of a task back.
func (f *filling) give(t *Task, seat core.Seat, starts []uint8) {
	f.placer.ReleaseSlices(&t.Task, seat, starts)
	f.used -= demand(t)
	f.count(seat.Node)
}

// count counts the fragments of a node anew.
func (f *filling) count(n core.NodeID) {
	now := f.trace.typical.Fragments(&f.placer.Nodes()[n])
	f.fragments += now - f.each[n]
	f.each[n] = now
}

// Sliced is the trace on devices that are divided into slices as MIG does: a part of a device is the smallest slice with as much compute, and a whole device the largest.
// Devices are then counted by memory slices.
func (r *Trace) Sliced(division score.Division) *Trace {
	tasks := make([]Task, len(r.tasks))
	for i, t := range r.tasks {
		if t.Devices > 0 && t.Milli > 0 {
			t.Slice, t.Milli = score.SliceOf(mig.Smallest(int(t.Milli), score.Whole))
		}
		tasks[i] = t
	}
	sliced := NewTrace(tasks, r.nodes, division)
	sliced.sliced = true
	return sliced
}
