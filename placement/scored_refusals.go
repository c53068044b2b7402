package placement

import (
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// refuse answers a grant with the reason why it has no seats.
func (p *scored) refuse(v *core.View, g *core.Grant) {
	j := v.Jobs[g.Job]
	whole := p.task(v, j.JobSpec, g.Accelerator)
	each, left, message := int64(whole.Milli), p.left, ""
	if each == 0 { // of devices it needs no part, only to be at them
		each, left, message = score.Whole, p.seatsOf(v), "it takes nothing of devices, and each of its replicas is seated at one"
	}
	reason, wanted, available, open := core.AcceleratorMissing, int64(g.Replicas)*each, int64(0), int64(0)
	for t := range v.Cluster.Accelerators {
		if p.on[t] == 0 || !seating.Eligible(v, j, g, core.AcceleratorID(t)) {
			continue
		}
		reason, available = core.WaitingForDevices, max(available, left[t])
		if !p.closed[t] || j.State == core.Running {
			open = max(open, left[t])
		}
	}
	if reason == core.WaitingForDevices && available >= wanted {
		reason = core.Fragmented
		if open < wanted || open == 0 {
			reason = core.BlockedByEarlier
		}
	}
	p.unseated = append(p.unseated, core.Verdict{
		Job: g.Job, Code: core.Defer, Reason: reason, Wanted: float64(wanted) / score.Whole, Available: float64(available) / score.Whole, Unit: "devices",
		Message: message,
	})
	if reason != core.Fragmented || j.WaitingReason == reason { // it is told once
		return
	}
	if verdict := &p.unseated[len(p.unseated)-1]; !p.blameDeviceMemory(v, g, verdict) && v.Cluster.CountsResources {
		p.blame(v, g, verdict)
	}
}

// seatsOf is the devices by type that may be placed on, taken or not, in thousandths.
func (p *scored) seatsOf(v *core.View) []int64 {
	seats := make([]int64, len(v.Cluster.Accelerators))
	for i := range v.Cluster.Nodes {
		n := &v.Cluster.Nodes[i]
		seats[n.Accelerator] += int64(n.Usable().Count()) * score.Whole
	}
	return seats
}

// blameDeviceMemory tells a job that fits on one node what is short if that is the memory of devices: some node has all the rest. It reports whether that is so.
func (p *scored) blameDeviceMemory(v *core.View, g *core.Grant, verdict *core.Verdict) bool {
	t := p.task(v, v.Jobs[g.Job].JobSpec, g.Accelerator)
	if t.DeviceMemory == 0 || g.Replicas > core.MaxDevicesPerNode {
		return false
	}
	p.open(v, g, &t)
	t.times(g.Replicas)
	rest := t.Task
	rest.DeviceMemory = 0
	best := int64(-1)
	nodes := p.walk.Nodes()
	for i := range nodes {
		if n := &nodes[i]; n.DeviceMemory != nil && n.Fits(&rest) {
			p.memory = p.memory[:0]
			for d, left := range n.Left {
				if left >= t.Milli {
					p.memory = append(p.memory, n.DeviceMemory[d])
				}
			}
			best = max(best, seating.Least(p.memory, g.Replicas))
		}
	}
	if best < 0 {
		return false
	}
	if t.Slice != 0 { // of a slice
		best = best * int64(t.Milli) / score.Whole
	}
	seating.BlameDeviceMemory(verdict, v.Jobs[g.Job].DeviceMemoryGB, float64(best)/1000)
	return true
}

// blame tells a job that there are devices for what else is short: of CPUs and memory the one of which more is missing, on the nodes that have a device for it.
// Neither is where there is enough of both, on too many nodes.
func (p *scored) blame(v *core.View, g *core.Grant, verdict *core.Verdict) {
	replica := p.task(v, v.Jobs[g.Job].JobSpec, g.Accelerator)
	p.open(v, g, &replica)
	var left core.Resources
	nodes := p.walk.Nodes()
	for i := range nodes {
		if n := &nodes[i]; v.Cluster.Nodes[i].Health == core.Ready && replica.Types.Allows(n.Accelerator) && n.HasDevice(replica.Milli) {
			left = left.Plus(core.Resources{CPUs: float64(n.CPU), MemoryGB: float64(n.Memory)}.Times(1.0 / 1000))
		}
	}
	blameResources(verdict, left, core.Resources{CPUs: float64(replica.CPU), MemoryGB: float64(replica.Memory)}.Times(float64(g.Replicas)/1000))
}
