package timeline

import (
	"bufio"
	"cmp"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

const usageHeader = "at_s,devices_ready,devices_used,running,waiting,pending,demand,efficiency,goodput"

// step is by how much the use of the cluster changes at a moment.
type step struct {
	at          float64
	ready, used int
	counts
	training            int     // devices of jobs that train
	efficiency, goodput float64 // summed over these devices, and over their jobs
	nodes, pool         int     // nodes to pay for, and of a change whose
}

// usageBooks are the use of the cluster as a step function.
type usageBooks struct {
	out     *bufio.Writer
	ready   []int  // devices that may be placed on, by NodeID
	devices []int  // all of them
	steps   []step // of the round
	is      step   // the use since its moment
	written step   // the last row; at is -1 before the first

	pools    []string  // by NodeID: the pool of each
	spending *spending // nil where there are no pools
}

func newUsageBooks(w *bufio.Writer, c *core.Cluster) *usageBooks {
	u := &usageBooks{out: w, spending: newSpending(c)}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		u.ready, u.devices, u.pools = append(u.ready, n.Usable().Count()), append(u.devices, n.Devices), append(u.pools, n.Pool)
	}
	u.is.ready, u.written.at = c.UsableDevices(), -1
	if u.spending != nil {
		u.is.nodes = u.spending.count()
	}
	return u
}

func (u *usageBooks) setHealth(id core.NodeID, h core.Health, unusable core.DeviceSet, at float64) {
	n := core.Node{Devices: u.devices[id], Health: h, Unusable: unusable}
	ready := n.Usable().Count()
	if more := ready - u.ready[id]; more != 0 {
		u.add(step{at: at, ready: more})
	}
	u.ready[id] = ready
	if u.spending == nil {
		return
	}
	if pool, more := u.spending.observe(id, u.pools[id], h); pool >= 0 {
		u.add(step{at: at, nodes: more, pool: pool})
	}
}

// addNode takes in a node that joined, unless it was there when the run began.
func (u *usageBooks) addNode(e *core.Event) {
	if int(e.Node) == len(u.ready) {
		u.ready, u.devices, u.pools = append(u.ready, 0), append(u.devices, e.Added.Devices), append(u.pools, e.Added.Pool)
		u.setHealth(e.Node, e.Added.Health, e.Added.Unusable, e.AtSeconds)
	}
}

func (u *usageBooks) add(s step) { u.steps = append(u.steps, s) }

// flush writes the rows of the moments before the present one, to which the next round may add.
func (u *usageBooks) flush(now float64) error {
	byTime := func(a, b step) int { return cmp.Compare(a.at, b.at) }
	if !slices.IsSortedFunc(u.steps, byTime) { // in most rounds it is
		slices.SortStableFunc(u.steps, byTime)
	}
	for i := range u.steps {
		if err := u.take(&u.steps[i]); err != nil {
			return err
		}
	}
	u.steps = u.steps[:0]
	if now > u.is.at {
		return u.write(now)
	}
	return nil
}

func (u *usageBooks) take(s *step) error {
	if s.at > u.is.at {
		if err := u.write(s.at); err != nil {
			return err
		}
	}
	is := &u.is
	is.ready += s.ready
	is.used += s.used
	is.pending += s.pending
	is.waiting += s.waiting
	is.running += s.running
	is.demand += s.demand
	if s.nodes != 0 {
		is.nodes += s.nodes
		u.spending.add(s.pool, s.nodes)
	}
	if is.training += s.training; is.training == 0 {
		is.efficiency, is.goodput = 0, 0 // what rounding left
		return nil
	}
	is.efficiency += s.efficiency
	is.goodput += s.goodput
	return nil
}

// write writes the use since its moment if it differs from the last row, and goes on to a later moment.
func (u *usageBooks) write(next float64) error {
	is := u.is
	u.is.at = next
	last := u.written
	last.at = is.at
	if u.written.at < 0 || is != last {
		if err := u.row(is); err != nil {
			return err
		}
	}
	if u.spending != nil {
		u.spending.pay(is.at, next)
	}
	return nil
}

func (u *usageBooks) row(is step) error {
	u.written = is
	b := metrics.AppendNumber(u.out.AvailableBuffer(), is.at)
	for _, n := range [...]int{is.ready, is.used, is.running, is.waiting, is.pending, is.demand} {
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(n), 10)
	}
	for _, sum := range [...]float64{is.efficiency, is.goodput} {
		b = append(b, ',')
		if is.training > 0 {
			b = appendRounded(b, sum/float64(is.training))
		}
	}
	if u.spending != nil {
		b = strconv.AppendInt(append(b, ','), int64(is.nodes), 10)
		b = appendRounded(append(b, ','), u.spending.cost)
	}
	_, err := u.out.Write(append(b, '\n'))
	return err
}

// appendRounded appends a number to nine digits: sums that grow and shrink with every job are not exact beyond.
func appendRounded(b []byte, x float64) []byte {
	short := strconv.AppendFloat(nil, x, 'g', 9, 64)
	rounded, err := strconv.ParseFloat(string(short), 64)
	if err != nil {
		return b
	}
	return metrics.AppendNumber(b, rounded)
}

// finish writes what is left, and a last row at the end of the run.
func (u *usageBooks) finish(end float64) error {
	if err := u.flush(end); err != nil {
		return err
	}
	return u.row(u.is)
}
