package local

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/agent"
	"github.com/quartet-sched/quartet/core/backend/local/keeper"
)

// part is the compute that each replica of a job has of its device, in thousandths: all of it, unless the cluster divides devices.
func (b *Backend) part(j *job) int {
	return int(math.Round(b.cluster.Part(&j.Spec) * core.WholeDevice))
}

// occupancy is what runs have whose processes may be there, of devices by their names, and of nodes. Decisions count the same by core.Shares, but for
// the runs that they end: those have what they have until they are gone.
type occupancy struct {
	b       *Backend
	devices map[string]taken
	nodes   map[core.NodeID]amounts // where the cluster counts them
	node    map[string]core.NodeID  // of a device, where the cluster counts what nodes have
}

// taken is what jobs have of a device.
type taken struct {
	owners, milli int
	memoryGB      float64
}

// amounts are what jobs have of a node, or want of it.
type amounts struct{ cpus, memoryGB float64 }

func (b *Backend) newOccupancy() *occupancy {
	o := &occupancy{b: b, devices: map[string]taken{}}
	if !b.cluster.CountsResources {
		return o
	}
	o.nodes, o.node = map[core.NodeID]amounts{}, map[string]core.NodeID{}
	for id, names := range b.devices.names {
		for _, name := range names {
			if before, known := o.node[name]; !known || b.health[before] == core.Gone { // a node that is gone left its devices to another
				o.node[name] = core.NodeID(id)
			}
		}
	}
	return o
}

// add counts a job in that has these devices.
func (o *occupancy) add(j *job, names []string) {
	milli := o.b.part(j)
	for _, name := range names {
		if milli > 0 {
			d := o.devices[name]
			if !o.b.cluster.OversubscribesMemory {
				d.memoryGB += j.Spec.DeviceMemoryGB
			}
			o.devices[name] = taken{d.owners + 1, d.milli + milli, d.memoryGB}
		}
		if id, known := o.node[name]; known {
			n := o.nodes[id]
			o.nodes[id] = amounts{n.cpus + j.Spec.CPUs, n.memoryGB + j.Spec.MemoryGB}
		}
	}
}

// fits reports whether a job can have seats.
func (o *occupancy) fits(j *job, seats []core.Seat) bool {
	milli, c := o.b.part(j), o.b.cluster
	for _, seat := range seats {
		n := new(core.Node) // one that joined, and the pipeline was not told of, is short of nothing
		if int(seat.Node) < len(c.Nodes) {
			n = &c.Nodes[seat.Node]
		}
		for _, device := range seat.Devices.List() {
			if milli > 0 && !o.room(o.devices[o.b.devices.names[seat.Node][device]], j, milli, n) {
				return false
			}
		}
		if c.CountsResources {
			replicas, has := float64(seat.Devices.Count()), o.nodes[seat.Node]
			if exceeds(has.cpus+replicas*j.Spec.CPUs, n.CPUs) || exceeds(has.memoryGB+replicas*j.Spec.MemoryGB, n.MemoryGB) {
				return false
			}
		}
	}
	return true
}

// room reports whether a replica can have its part of a device beside those that are on it.
func (o *occupancy) room(d taken, j *job, milli int, n *core.Node) bool {
	c := o.b.cluster
	switch {
	case c.Sharing != core.Exclusive && exceeds(d.memoryGB+j.Spec.DeviceMemoryGB, n.DeviceMemoryGB):
		return false
	case c.Sharing == core.TimeSlice:
		return d.owners < c.MaxOwners
	default:
		return d.milli+milli <= core.WholeDevice
	}
}

// exceeds reports whether jobs want more than there is; 0 is for as much as anybody wants. Who decides rounds what a job asks for up, and what there
// is down: nothing that fits there is refused here.
func exceeds(wanted, has float64) bool { return has > 0 && wanted > has*(1+1e-9) }

// parted is what a replica is told of its device and its part of it. One that has the whole device to itself is told the device alone, and one that has
// nothing of it sees none.
func (b *Backend) parted(j *job, device string) (told []string) {
	milli := b.part(j)
	switch {
	case milli == 0:
		told = []string{visibleDevices + "=", agent.ShareVariable + "=0"}
	default:
		told = []string{visibleDevices + "=" + device}
		divided := milli < core.WholeDevice
		if divided {
			told = append(told, agent.ShareVariable+"="+strconv.Itoa(milli))
		}
		if divided || b.cluster.Sharing == core.TimeSlice {
			if j.Spec.DeviceMemoryGB > 0 {
				told = append(told, agent.DeviceMemoryVariable+"="+decimal(j.Spec.DeviceMemoryGB))
			}
			told = append(told, b.mps.parted(milli, j.Spec.DeviceMemoryGB, device)...)
		}
	}
	if b.cluster.CountsResources {
		if j.Spec.CPUs > 0 {
			told = append(told, agent.CPUsVariable+"="+decimal(j.Spec.CPUs))
		}
		if j.Spec.MemoryGB > 0 {
			told = append(told, agent.MemoryVariable+"="+decimal(j.Spec.MemoryGB))
		}
	}
	return told
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// checkLimits tells, where CPUs and memory are counted, when nothing holds jobs to theirs.
func (b *Backend) checkLimits() {
	if !b.cluster.CountsResources || b.config.Limits == keeper.LimitsRequired { // each run fails then, and says so
		return
	}
	why := "backend.config.limits is off"
	if b.config.Limits != limitsOff {
		err := keeper.CheckLimits()
		if err == nil {
			return
		}
		why = err.Error()
	}
	b.unlimited = true
	b.log.Warn("jobs know how many CPUs and how much memory are theirs, but nothing enforces these limits", "reason", why)
}

// mps is the folder in which clients of NVIDIA's Multi-Process Service find its control daemon, if one runs: it is never started here. Its server holds
// processes to their parts, by variables in their environment.
type mps string

const (
	mpsFolder  = "/tmp/nvidia-mps"
	mpsPipes   = "CUDA_MPS_PIPE_DIRECTORY"
	mpsThreads = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
	mpsMemory  = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
)

// mpsOf is the folder that the scheduler's own environment names, or the usual one.
func mpsOf(lookup func(string) (string, bool)) mps {
	if folder, set := lookup(mpsPipes); set && filepath.IsAbs(folder) {
		return mps(folder)
	}
	return mpsFolder
}

// parted is what the service reads of a process that has a part of a device, none where there is no service for it. A part is told in whole percents of
// the device's threads, rounded up; memory as that of the only device that the process sees.
func (m mps) parted(milli int, memoryGB float64, device string) (told []string) {
	if !strings.HasPrefix(device, "GPU-") && !strings.HasPrefix(device, "MIG-") {
		return nil // a number stands for a device that nobody looked at
	}
	if info, err := os.Stat(string(m)); err != nil || !info.IsDir() {
		return nil
	}
	told = []string{mpsPipes + "=" + string(m)}
	if milli < core.WholeDevice {
		told = append(told, mpsThreads+"="+strconv.Itoa((milli+9)/10))
	}
	if mb := int(math.Ceil(memoryGB * 1024)); mb > 0 {
		told = append(told, mpsMemory+"=0="+strconv.Itoa(mb)+"M")
	}
	return told
}
