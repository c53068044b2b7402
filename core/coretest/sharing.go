package coretest

import (
	"pgregory.net/rapid"

	"github.com/quartet-sched/quartet/core"
)

// The most that a replica asks for, so that each device of the largest node can have one: whoever seats jobs on whole devices breaks no rule.
const (
	mostCPUs           = 8
	mostMemoryGB       = 32
	mostDeviceMemoryGB = 16
	mostOwners         = 4 // of a device, where jobs take turns
)

// drawSharing draws how the devices of the cluster are shared. It is called before the pipeline sees the cluster.
func (w *world) drawSharing() {
	c := w.cluster
	w.sharing = true
	c.Sharing = rapid.SampledFrom([]core.Sharing{core.Exclusive, core.Fractional, core.TimeSlice}).Draw(w.t, "sharing")
	if c.Sharing == core.TimeSlice {
		c.MaxOwners, c.OversubscribesMemory = rapid.IntRange(1, mostOwners).Draw(w.t, "owners of a device"), rapid.Bool().Draw(w.t, "memory is oversubscribed")
	}
	c.CountsResources = rapid.Bool().Draw(w.t, "resources are counted")
	memory := rapid.SampledFrom([]float64{0, mostDeviceMemoryGB, 40.5}).Draw(w.t, "memory of devices")
	for i := range c.Nodes {
		c.Nodes[i].DeviceMemoryGB = memory
	}
	for i := range c.Pools {
		c.Pools[i].DeviceMemoryGB = memory
	}
	w.view = &core.View{Cluster: cloneCluster(c)}
}

// drawAsked draws what the replicas of a job ask for beside devices.
func (w *world) drawAsked(s *core.JobSpec) {
	t := w.t
	if rapid.Bool().Draw(t, "asks for a part") {
		s.Share = &core.Share{Milli: rapid.SampledFrom([]int{0, 1, 250, 500, 1000}).Draw(t, "thousandths")}
	}
	owners := 1.0
	if w.cluster.Sharing == core.TimeSlice {
		owners = mostOwners // each has CPUs and memory of its own
	}
	s.CPUs = rapid.SampledFrom([]float64{0, 0.5, mostCPUs}).Draw(t, "CPUs") / owners
	s.MemoryGB = rapid.SampledFrom([]float64{0, 0.25, mostMemoryGB}).Draw(t, "memory") / owners
	s.DeviceMemoryGB = rapid.SampledFrom([]float64{0, 2.5, mostDeviceMemoryGB}).Draw(t, "memory of a device")
	s.Utilisation = rapid.SampledFrom([]float64{0, 0.4, 1}).Draw(t, "utilisation")
	s.SlowdownTolerance = rapid.SampledFrom([]float64{0, 0.2}).Draw(t, "tolerance")
	if rapid.Bool().Draw(t, "iteration") {
		s.Iteration = core.Iteration{Load: 0.5, Compute: rapid.SampledFrom([]float64{0, 2}).Draw(t, "compute"), Sync: 0.25}
	}
}
