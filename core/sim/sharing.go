package sim

import (
	"context"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/interference"
	"github.com/quartet-sched/quartet/core/workload"
)

// sharing is who computes on which device of a cluster whose jobs share devices.
type sharing struct {
	model   interference.Model
	cluster *core.Cluster
	on      map[deviceAt][]*simJob // by JobID
	changed []*simJob              // whose neighbours are not those of before, some more than once
	others  []*core.JobSpec        // scratch
	beside  []*simJob              // scratch
}

// withMemory tells a model how much memory devices have, if it asks: by accelerator type the least that a node or a pool of it tells.
func withMemory(m interference.Model, c *core.Cluster) interference.Model {
	g, is := m.(interference.Guarantee)
	if !is || g.Spill == 0 {
		return m
	}
	g.DeviceMemoryGB = map[string]float64{}
	of := func(t core.AcceleratorID, gigabytes float64) {
		name := c.Accelerators[t]
		if known := g.DeviceMemoryGB[name]; gigabytes > 0 && (known == 0 || gigabytes < known) {
			g.DeviceMemoryGB[name] = gigabytes
		}
	}
	for i := range c.Nodes {
		of(c.Nodes[i].Accelerator, c.Nodes[i].DeviceMemoryGB)
	}
	for i := range c.Pools {
		of(c.Pools[i].Accelerator, c.Pools[i].DeviceMemoryGB)
	}
	return g
}

type deviceAt struct {
	node   core.NodeID
	device int
}

// devicesOf calls do for each device that a job computes on.
func devicesOf(j *simJob, do func(deviceAt)) {
	if j.onCPUs {
		return
	}
	for _, seat := range j.seats {
		for rest := seat.Devices; rest != 0; rest &= rest - 1 {
			do(deviceAt{seat.Node, rest.First()})
		}
	}
}

// join counts a job in on its devices.
func (h *sharing) join(j *simJob) {
	devicesOf(j, func(at deviceAt) {
		h.changed = append(h.changed, h.on[at]...)
		i, _ := slices.BinarySearchFunc(h.on[at], j, compareJobs)
		h.on[at] = slices.Insert(h.on[at], i, j)
	})
	h.changed = append(h.changed, j)
}

// part counts a job out of its devices.
func (h *sharing) part(j *simJob) {
	devicesOf(j, func(at deviceAt) {
		i, _ := slices.BinarySearchFunc(h.on[at], j, compareJobs)
		h.on[at] = slices.Delete(h.on[at], i, i+1)
		h.changed = append(h.changed, h.on[at]...)
	})
	j.slowed = 0
}

// rate is the part of its rate alone that a job has beside its neighbours: a gang is as fast as its slowest replica.
func (h *sharing) rate(j *simJob) float64 {
	slowest, shares := 0.0, false
	devicesOf(j, func(at deviceAt) {
		if len(h.on[at]) < 2 {
			return
		}
		h.others = h.others[:0]
		for _, o := range h.on[at] {
			if o != j {
				h.others = append(h.others, &o.Spec)
			}
		}
		accelerator := h.cluster.Accelerators[h.cluster.Nodes[at.node].Accelerator]
		if rate := h.model.Rate(&j.Spec, h.others, accelerator); !shares || rate < slowest {
			slowest, shares = rate, true
		}
	})
	if !shares {
		return 1
	}
	return slowest
}

// readPairs reads the pairs of the user's own, and has them be what is known of the jobs.
func (s *Simulator) readPairs(ctx context.Context) error {
	c := &s.config.CoLocation
	if c.Model != byTable || c.Table == "" {
		return nil
	}
	pairs, file, err := workload.ReadPairs(ctx, c.Table)
	if err != nil {
		return err
	}
	s.filesRead = append(s.filesRead, core.FileRead{Path: file.Path, SHA256: file.SHA256})
	s.jobs.workload = slices.Clone(s.jobs.workload)
	for i := range s.jobs.workload {
		s.jobs.workload[i].Spec.Pairs = pairs
	}
	return nil
}

// PairsMeasured reports whether jobs are as fast as a table of pairs says, and whether it, or what the workload brings, knows any two of them.
func (s *Simulator) PairsMeasured() (byPairs, known bool) {
	jobs := make([]*core.JobSpec, len(s.jobs.workload))
	for i := range s.jobs.workload {
		jobs[i] = &s.jobs.workload[i].Spec
	}
	return s.config.CoLocation.Model == byTable, knowsAny(jobs, s.devices.cluster.Accelerators)
}

// knowsAny reports whether some two of the jobs were measured on one of the accelerator types, each as its own table has it. O(jobs), and quadratic in how many
// applications with different replicas there are.
func knowsAny(jobs []*core.JobSpec, accelerators []string) bool {
	type kind struct {
		application string
		replicas    int
	}
	seen := map[kind]int{}
	var kinds []*core.JobSpec
	for _, j := range jobs {
		of := kind{j.Application, j.Requested}
		if j.Pairs.Empty() || seen[of] > 1 { // a job is a pair with another of its kind
			continue
		}
		kinds, seen[of] = append(kinds, j), seen[of]+1
		for _, o := range kinds[:len(kinds)-1] {
			for _, accelerator := range accelerators {
				if _, known := j.Pairs.Part(accelerator, j, o); known {
					return true
				}
			}
		}
	}
	return false
}

// interfere slows down those whose neighbours are not those of before, has them pause where a publication does, and tells.
func (s *Simulator) interfere(now float64, tell *[]core.Event) {
	h := s.devices.sharing
	slices.SortFunc(h.changed, compareJobs)
	for _, j := range slices.Compact(h.changed) {
		if j.seats == nil {
			continue
		}
		slowed, pauses := 1-h.rate(j), s.config.Publication.Overhead == everyChange && s.config.CoLocation.Model != guaranteed
		if slowed != j.slowed || pauses {
			s.advance(j, now)
			if j.slowed = slowed; pauses {
				j.pausedUntil = max(now, j.runsFrom) + s.together(j)
			}
			s.schedule(j)
			*tell = append(*tell, j.progressed(now))
		}
	}
	h.changed = h.changed[:0]
}
