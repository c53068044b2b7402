package metrics

import (
	"bufio"
	"slices"
	"strconv"

	"github.com/quartet-sched/quartet/core"
)

const acceleratorsHeader = "job,accelerator,device_seconds,seconds,starts\n"

// tenure is what a job held of one accelerator type.
type tenure struct {
	accelerator    core.AcceleratorID
	held           int32 // devices, now, of each the part of the holder
	starts         int32
	seconds        float64
	deviceSeconds  float64
	before         float64 // of those, what it had when it was submitted
	replicaSeconds float64 // as if it had all of each device
}

// holder is what a job held, of every type it ran on.
type holder struct {
	tenures []tenure // in the order in which it got the types
	since   float64  // moment up to which the tenures are counted
	part    float64  // that it has of each device
	first   core.AcceleratorID
}

// typeBooks say which jobs held devices of which type, for how long. They follow events and changes only, so that a
// round costs nothing for the jobs on which nothing happened.
type typeBooks struct {
	holders []holder // by JobID
}

// follow enters what happened up to a round, then what the round changed.
func (b *typeBooks) follow(r *core.Report) {
	for i := range r.Events {
		switch e := &r.Events[i]; e.Kind {
		case core.JobFinished, core.JobFailed, core.JobCancelled, core.JobInterrupted:
			b.release(e.Job, e.AtSeconds)
		case core.JobSubmitted:
			if e.Held != nil {
				b.takeOver(e, r.View.Cluster, partOf(r.View, e.Job, e.Spec))
			}
		case core.JobShrunk:
			if int(e.Job) < len(b.holders) && b.holders[e.Job].holds() {
				b.hold(e.Job, e.Seats, r.View.Cluster, b.holders[e.Job].part, e.AtSeconds)
			}
		case core.JobChanged:
			if e.Spec.Suspended {
				b.release(e.Job, r.View.NowSeconds)
			} else if int(e.Job) < len(b.holders) {
				h := &b.holders[e.Job]
				if part := partOf(r.View, e.Job, e.Spec); part != h.part {
					h.count(r.View.NowSeconds)
					h.part = part
				}
			}
		}
	}
	if r.Resumed != nil { // by others, who may share devices in another way
		for _, j := range r.View.Jobs {
			if j != nil && int(j.ID) < len(b.holders) && b.holders[j.ID].part != j.Part() {
				b.holders[j.ID].count(r.View.NowSeconds)
				b.holders[j.ID].part = j.Part()
			}
		}
	}
	for i := range r.Changes {
		switch change := &r.Changes[i]; change.Action {
		case core.Stop, core.Finish, core.Pause:
			b.release(change.Job, r.View.NowSeconds)
		case core.Start, core.Move:
			b.seat(change.Job, change.Seats, r.View.Cluster, partOf(r.View, change.Job, nil), r.View.NowSeconds)
		}
	}
}

// release ends what a job holds at a moment; nothing when it holds nothing.
func (b *typeBooks) release(id core.JobID, now float64) {
	if int(id) >= len(b.holders) {
		return
	}
	h := &b.holders[id]
	h.count(now)
	for i := range h.tenures {
		h.tenures[i].held = 0
	}
}

// count brings the tenures up to a moment.
func (h *holder) count(now float64) {
	for i := range h.tenures {
		if t := &h.tenures[i]; t.held > 0 {
			t.seconds += now - h.since
			t.deviceSeconds += (now - h.since) * float64(t.held) * h.part
			t.replicaSeconds += (now - h.since) * float64(t.held)
		}
	}
	h.since = now
}

// holds reports whether a job holds devices.
func (h *holder) holds() bool {
	return slices.ContainsFunc(h.tenures, func(t tenure) bool { return t.held > 0 })
}

// takeOver enters a job that runs already. What it had of devices before is divided as those are that it has.
func (b *typeBooks) takeOver(e *core.Event, c *core.Cluster, part float64) {
	b.seat(e.Job, e.Held.Seats, c, part, e.AtSeconds)
	tenures, all := b.tenures(e.Job), float64(core.Replicas(e.Held.Seats))
	for i := range tenures {
		t := &tenures[i]
		t.seconds = e.Held.Executed
		t.before = e.Held.Attained * float64(t.held) / all
		t.deviceSeconds = t.before
		if t.replicaSeconds = t.before / part; part == 0 {
			t.replicaSeconds = t.seconds * float64(t.held)
		}
	}
}

// seat replaces what a job holds, by a start or a move.
func (b *typeBooks) seat(id core.JobID, seats []core.Seat, c *core.Cluster, part, now float64) {
	for int(id) >= len(b.holders) {
		b.holders = append(b.holders, holder{})
	}
	begins := len(b.holders[id].tenures) == 0
	b.hold(id, seats, c, part, now)
	h := &b.holders[id]
	most := int32(0)
	for i := range h.tenures {
		t := &h.tenures[i]
		if t.held == 0 {
			continue
		}
		t.starts++
		if begins && t.held > most {
			h.first, most = t.accelerator, t.held
		}
	}
}

// hold replaces what a job holds, by a part of each device of these seats.
func (b *typeBooks) hold(id core.JobID, seats []core.Seat, c *core.Cluster, part, now float64) {
	b.release(id, now)
	h := &b.holders[id]
	h.part = part
	for _, s := range seats {
		h.of(c.Nodes[s.Node].Accelerator).held += int32(s.Devices.Count())
	}
}

// of is the tenure of a type, begun when there is none.
func (h *holder) of(accelerator core.AcceleratorID) *tenure {
	for i := range h.tenures {
		if h.tenures[i].accelerator == accelerator {
			return &h.tenures[i]
		}
	}
	h.tenures = append(h.tenures, tenure{accelerator: accelerator})
	return &h.tenures[len(h.tenures)-1]
}

// finish ends the books of a job that did not end. One that holds nothing may have lost it in a round that was not
// completed, and so was never told of.
func (b *typeBooks) finish(j *core.Job, endSeconds float64) {
	if j.Held == 0 {
		endSeconds = j.LastChange
	}
	b.release(j.ID, endSeconds)
}

// clone copies the books of the given jobs deeply; the others' must not change.
func (b *typeBooks) clone(jobs []*core.Job) *typeBooks {
	if b == nil {
		return nil
	}
	copied := &typeBooks{holders: slices.Clone(b.holders)}
	for _, j := range jobs {
		if int(j.ID) < len(copied.holders) {
			h := &copied.holders[j.ID]
			h.tenures = slices.Clone(h.tenures)
		}
	}
	return copied
}

// tenures of a job; none when it never held devices.
func (b *typeBooks) tenures(id core.JobID) []tenure {
	if int(id) >= len(b.holders) {
		return nil
	}
	return b.holders[id].tenures
}

// replicaSeconds is the seconds with devices of a job, times the replicas that it had.
func (b *typeBooks) replicaSeconds(id core.JobID) (sum float64) {
	for _, t := range b.tenures(id) {
		sum += t.replicaSeconds
	}
	return sum
}

// write writes the rows of a job, in the order of the cluster's types.
func (b *typeBooks) write(w *bufio.Writer, id core.JobID, c *core.Cluster) error {
	tenures := b.tenures(id)
	for accelerator, name := range c.Accelerators {
		for i := range tenures {
			t := &tenures[i]
			if int(t.accelerator) != accelerator {
				continue
			}
			row := strconv.AppendInt(w.AvailableBuffer(), int64(id), 10)
			row = append(row, ',')
			row = AppendCell(row, name)
			row = append(row, ',')
			row = AppendNumber(row, t.deviceSeconds)
			row = append(row, ',')
			row = AppendNumber(row, t.seconds)
			row = append(row, ',')
			row = strconv.AppendInt(row, int64(t.starts), 10)
			if _, err := w.Write(append(row, '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}

// devicesByType counts the devices of every type, whatever the health of their nodes that are not gone.
func devicesByType(c *core.Cluster) []int {
	devices := make([]int, len(c.Accelerators))
	for i := range c.Nodes {
		if t := int(c.Nodes[i].Accelerator); t < len(devices) && c.Nodes[i].Health != core.Gone {
			devices[t] += c.Nodes[i].Devices
		}
	}
	return devices
}

// mixesTypes reports whether the cluster has devices of more than one type.
func mixesTypes(c *core.Cluster) bool {
	for i := range c.Nodes {
		if c.Nodes[i].Accelerator != c.Nodes[0].Accelerator {
			return true
		}
	}
	return false
}

// acceleratorUse sums up the books by type, from one moment to another; nil when the cluster has but one.
func (c *Collector) acceleratorUse(from, to float64) []AcceleratorUse {
	if c.types == nil || !mixesTypes(c.cluster) {
		return nil
	}
	use := make([]AcceleratorUse, len(c.cluster.Accelerators))
	waited, bound := make([]average, len(use)), make([]average, len(use))
	devices := devicesByType(c.cluster)
	for t, now := range devices {
		use[t].Accelerator, use[t].Devices = c.cluster.Accelerators[t], c.capacity.most(now, core.AcceleratorID(t))
	}
	for i := range c.records {
		r := &c.records[i]
		if r.spec == nil || r.outcome == rejected {
			continue
		}
		only, isBound := onlyType(r.spec, c.cluster, use)
		if isBound {
			use[only].BoundJobs++
		}
		if !r.started() {
			continue
		}
		if isBound {
			bound[only].add(r.queueing())
		}
		tenures := c.types.tenures(r.spec.ID)
		for _, held := range tenures {
			u := &use[held.accelerator]
			u.DeviceSeconds += Number(held.deviceSeconds - held.before)
			u.Jobs++
			u.Starts += int(held.starts)
		}
		if len(tenures) > 0 {
			first := c.types.holders[r.spec.ID].first
			use[first].FirstJobs++
			waited[first].add(r.queueing())
		}
	}
	for t := range use {
		u := &use[t]
		u.GPUHours = u.DeviceSeconds / 3600
		u.UtilizationRatio = unknown
		if Number(to - from).Known() {
			u.UtilizationRatio = u.DeviceSeconds / Number(c.capacity.seconds(devices[t], core.AcceleratorID(t), from, to))
		}
		u.QueueingSecondsMean, u.BoundQueueingSecondsMean = waited[t].mean(), bound[t].mean()
	}
	return use
}

// onlyType is the one type of the cluster that a job can run on, when it is bound to one.
func onlyType(spec *core.JobSpec, c *core.Cluster, use []AcceleratorUse) (only core.AcceleratorID, bound bool) {
	for t := range use {
		if use[t].Devices == 0 || !spec.Accepts(c, core.AcceleratorID(t)) {
			continue
		}
		if bound {
			return 0, false
		}
		only, bound = core.AcceleratorID(t), true
	}
	return only, bound
}

// average of numbers in the order they are added.
type average struct {
	sum   float64
	count int
}

func (a *average) add(x float64) {
	a.sum += x
	a.count++
}

func (a *average) mean() Number { return Number(a.sum / float64(a.count)) }
