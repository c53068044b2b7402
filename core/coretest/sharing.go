package coretest

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/mig"
)

// mostOwners is how many jobs a device has at most, where jobs take turns.
const mostOwners = 4

// isOf reports whether S, the stage of a suite, is this one: a policy may be of several.
func isOf[Stage, S any]() bool {
	_, is := any((*S)(nil)).(*Stage)
	return is
}

// ways are those in which jobs share devices in the worlds that a policy meets. Exclusive is for CPUs and memory alone.
func (s *subject[S]) ways() []core.Sharing {
	known := s.factory.Sharing
	switch {
	case isOf[core.Placer, S]():
		return append([]core.Sharing{core.Exclusive}, known...)
	case isOf[core.Allocator, S]() && len(known) > 0:
		return known
	}
	return []core.Sharing{core.Exclusive, core.Fractional, core.TimeSlice, core.Mig}
}

// drawSharing draws whether and how jobs share what nodes have: always where the option asks for it, and now and then where nobody asked. Allocators then meet
// no shared devices, for what they say of how long an answer stands may hold for whole ones only; nor do placers meet groups. A policy in another process may be of a time
// before there was any of this.
func (s *subject[S]) drawSharing(w *world, needs []core.Capability) {
	places := isOf[core.Placer, S]()
	counts := !places || s.factory.Counts
	ways := s.ways()
	if !s.options.sharing {
		switch {
		case s.options.elsewhere || isOf[core.ClusterScaler, S]():
			return
		case isOf[core.Allocator, S]():
			ways = []core.Sharing{core.Exclusive}
		case places:
			ways = slices.DeleteFunc(ways, func(way core.Sharing) bool { return way == core.TimeSlice })
		}
		if intRange(0, 2).Draw(w.t, "shares") > 0 {
			return
		}
	}
	way := sampledFrom(ways).Draw(w.t, "sharing")
	w.share(way, counts && (way == core.Exclusive || anyBool().Draw(w.t, "resources are counted")))
	if way == core.TimeSlice && slices.Contains(needs, core.CapabilityPairRates) {
		w.drawPairs()
	}
}

// share has the jobs of a world share devices in a way, or CPUs and memory, or both. It is called before the pipeline sees the cluster.
func (w *world) share(way core.Sharing, counts bool) {
	c, t := w.cluster, w.t
	w.shares, c.Sharing, c.CountsResources = true, way, counts
	if way == core.TimeSlice {
		c.MaxOwners, c.OversubscribesMemory = intRange(1, mostOwners).Draw(t, "owners of a device"), intRange(0, 3).Draw(t, "oversubscribes memory") == 0
	}
	for range c.Accelerators {
		w.deviceMemory = append(w.deviceMemory, sampledFrom([]float64{0, 16, 40.5}).Draw(t, "device memory"))
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.DeviceMemoryGB = w.deviceMemory[n.Accelerator]
		if counts && way != core.TimeSlice { // there, jobs are seated by devices and their memory alone
			n.CPUs, n.MemoryGB = sampledFrom([]float64{0, 3, 24, 64}).Draw(t, "CPUs"), sampledFrom([]float64{0, 20.5, 500}).Draw(t, "memory")
		}
	}
	for i := range c.Pools {
		c.Pools[i].DeviceMemoryGB = w.deviceMemory[c.Pools[i].Accelerator]
	}
	w.view = &core.View{Cluster: cloneCluster(c)}
}

// drawAsked draws what the replicas of a job ask for beside devices, and what the job is like beside others. Few draws differ, so that some jobs are alike.
func (w *world) drawAsked(s *core.JobSpec) {
	t := w.t
	s.Share = drawShare(t, w.cluster.Sharing)
	owners := 1.0
	if w.cluster.Sharing == core.TimeSlice {
		owners = mostOwners // each has CPUs and memory of its own
	}
	s.CPUs = sampledFrom([]float64{0, 0, 1, 10.0 / 3, 8}).Draw(t, "asks CPUs") / owners
	s.MemoryGB = sampledFrom([]float64{0, 0, 0.1, 30}).Draw(t, "asks memory") / owners
	s.DeviceMemoryGB = sampledFrom([]float64{0, 2.5, 6, 10, 17}).Draw(t, "asks memory of a device")
	s.Utilisation = sampledFrom([]float64{0, 0.2, 0.6, 1}).Draw(t, "utilisation")
	s.SlowdownTolerance = sampledFrom([]float64{0, 0.3}).Draw(t, "tolerance")
	s.Iteration = sampledFrom([]core.Iteration{
		{}, {Load: 4}, {Compute: 3, Sync: 1}, {Load: 1, Compute: 1, Sync: 1}, {Load: 2, Compute: 5, Measured: 6.5}, {Measured: 3},
	}).Draw(t, "stages")
	if anyBool().Draw(t, "sensitive") {
		s.Sensitivity = &core.Sensitivity{
			Base: core.Resources{CPUs: 3, MemoryGB: 62.5}, Speedup: float64Range(1, 3).Draw(t, "speed-up"),
			Ideal: core.Resources{CPUs: sampledFrom([]float64{1, 3, 7, 12, 100}).Draw(t, "ideal CPUs"), MemoryGB: sampledFrom([]float64{1, 62.5, 125, 1e4}).Draw(t, "ideal memory")},
		}
	}
}

// drawShare is what a replica has of a device: thousandths, nothing, or all of it; a profile, too, where devices are divided into slices.
func drawShare(t *T, way core.Sharing) *core.Share {
	whole := 3
	if way == core.Mig {
		whole = 7
	}
	switch intRange(0, whole).Draw(t, "share") {
	case 0:
		return nil
	case 1:
		return &core.Share{}
	case 2:
		return &core.Share{Milli: sampledFrom([]int{1, 250, 500, core.WholeDevice}).Draw(t, "thousandths")}
	case 3:
		return &core.Share{Milli: intRange(1, core.WholeDevice).Draw(t, "any thousandths")}
	}
	return &core.Share{Milli: core.WholeDevice, Profile: mig.Of(sampledFrom(mig.Profiles()).Draw(t, "profile")).Name}
}
