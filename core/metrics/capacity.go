package metrics

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
)

// capacity is the devices that are there over time, whatever the health of their nodes, by how they changed. Devices come and
// go with their nodes.
type capacity struct {
	steps []capacityStep // in the order in which they were told
	gone  []core.NodeID
}

// capacityStep is by how many devices of a type there are more from a moment on.
type capacityStep struct {
	at          float64
	accelerator core.AcceleratorID
	devices     int
}

// follow enters the nodes that joined or left up to a round.
func (k *capacity) follow(r *core.Report) {
	for i := range r.Events {
		e := &r.Events[i]
		if e.Kind != core.NodeAdded && e.Kind != core.NodeRemoved {
			continue
		}
		n := &r.View.Cluster.Nodes[e.Node]
		devices := n.Devices
		if e.Kind == core.NodeRemoved {
			if slices.Contains(k.gone, n.ID) { // told twice
				continue
			}
			k.gone = append(k.gone, n.ID)
			devices = -devices
		}
		k.steps = append(k.steps, capacityStep{e.AtSeconds, n.Accelerator, devices})
	}
}

// seconds are the device-seconds of a type from one moment to another, when there are so many devices now.
func (k *capacity) seconds(now int, accelerator core.AcceleratorID, from, to float64) float64 {
	sum := float64(now) * (to - from)
	for _, s := range k.steps {
		if s.accelerator == accelerator {
			sum -= float64(s.devices) * (min(max(s.at, from), to) - from)
		}
	}
	return sum
}

// total are the device-seconds of all types together.
func (k *capacity) total(now []int, from, to float64) float64 {
	devices, sum := 0, 0.0
	for t, n := range now {
		devices += n
		sum += k.seconds(n, core.AcceleratorID(t), from, to)
	}
	if len(k.steps) == 0 {
		return float64(devices) * (to - from)
	}
	return sum
}

// mean is how many devices of each type there are on average from one moment to another, and of all together, when there are
// so many now.
func (k *capacity) mean(now []int, from, to float64) (byType []float64, total float64) {
	byType = make([]float64, len(now))
	for t, devices := range now {
		byType[t] = float64(devices)
		if len(k.steps) > 0 {
			byType[t] = k.seconds(devices, core.AcceleratorID(t), from, to) / (to - from)
		}
		total += byType[t]
	}
	return byType, total
}

// most is the largest number of devices of a type that there ever were at once, when there are so many now.
func (k *capacity) most(now int, accelerator core.AcceleratorID) int {
	most := now
	steps := slices.Clone(k.steps)
	slices.SortStableFunc(steps, func(a, b capacityStep) int { return cmp.Compare(a.at, b.at) })
	for _, s := range slices.Backward(steps) {
		if s.accelerator == accelerator {
			now -= s.devices
			most = max(most, now)
		}
	}
	return most
}
