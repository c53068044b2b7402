package synergy

import (
	"cmp"
	"math"

	"github.com/quartet-sched/quartet/core"
)

// State is what the keys of orders read of a job.
type State struct {
	ArrivalSeconds   float64
	RemainingSeconds float64 // at the speed that it is reckoned to have: see Reckoned
	AttainedSeconds  float64 // that it ran
	DurationSeconds  float64 // alone with the proportional share, from beginning to end; above 0
	Devices          int
	Demand           core.Resources // of the whole job
}

// Capacity is that of the cluster.
type Capacity struct {
	Devices int
	core.Resources
}

// Order is a key by which jobs are run: the smallest first, equal ones by their arrival. It reads a state at a moment, in seconds.
type Order func(s *State, nowSeconds float64, of Capacity) float64

// FIFO runs jobs by arrival.
func FIFO(s *State, _ float64, _ Capacity) float64 { return s.ArrivalSeconds }

// SRTF runs the job first that has the least to run.
func SRTF(s *State, _ float64, _ Capacity) float64 { return s.RemainingSeconds }

// LAS runs the job first that has had the least device-seconds.
func LAS(s *State, _ float64, _ Capacity) float64 { return s.AttainedSeconds * float64(s.Devices) }

// FTF is finish-time fairness: the time from arrival to the end against that alone. The job that is worst off runs first.
func FTF(s *State, now float64, of Capacity) float64 { return -MisreadFTF(s, now, of) }

// MisreadFTF runs the job first that is best off. It is a slip of the original, for its figures.
func MisreadFTF(s *State, now float64, _ Capacity) float64 {
	return (now - s.ArrivalSeconds + s.RemainingSeconds) / s.DurationSeconds
}

// DRF runs the job first whose largest part of any resource is the smallest. The part is that of the demand, whatever the job
// or its tenant has had: see Filling for the division of Ghodsi et al. (NSDI'11).
func DRF(s *State, _ float64, of Capacity) float64 {
	d, c, m := s.parts(of)
	return math.Max(d, math.Max(c, m))
}

// Tetris runs the job first whose remaining seconds times the sum of its parts of the resources are the least.
func Tetris(s *State, _ float64, of Capacity) float64 {
	d, c, m := s.parts(of)
	return s.RemainingSeconds * (d + c + m)
}

// parts are those of the cluster that a job asks for; 0 of what the cluster does not count.
func (s *State) parts(of Capacity) (devices, cpus, memory float64) {
	part := func(wants, has float64) float64 {
		if has <= 0 {
			return 0
		}
		return wants / has
	}
	return part(float64(s.Devices), float64(of.Devices)), part(s.Demand.CPUs, of.CPUs), part(s.Demand.MemoryGB, of.MemoryGB)
}

// Compare orders jobs by their keys, and equal ones by arrival.
func Compare(x, y *State, xKey, yKey float64) int {
	return cmp.Or(cmp.Compare(xKey, yKey), cmp.Compare(x.ArrivalSeconds, y.ArrivalSeconds))
}

// Reckoned is the speed by which the remaining time of a job is reckoned: in mode Fair 1. In the others the original takes the
// speed of the round before for a job that ran in it, and that of its demand for one that did not.
func Reckoned(mode Mode, last, best float64) float64 {
	switch {
	case mode == Fair:
		return 1
	case last > 0:
		return last
	}
	return best
}

// Alignment scores a server for a job as Tetris does (Grandl et al., SIGCOMM'14): the sum over the resources of demand times
// what is free, both as parts of the server's capacity. The largest is the best; it is 0 or more.
func Alignment(devices int, demand core.Resources, free, capacity Server) float64 {
	part := func(wanted, left, all float64) float64 {
		if all <= 0 {
			return 0
		}
		return wanted / all * (left / all)
	}
	return part(float64(devices), float64(free.Devices), float64(capacity.Devices)) +
		part(demand.CPUs, free.CPUs, capacity.CPUs) + part(demand.MemoryGB, free.MemoryGB, capacity.MemoryGB)
}

// Combined weighs alignment a against the remaining work p of a job: a - ε p, where ε is the mean alignment by the mean work.
func Combined(alignment, work, meanAlignment, meanWork float64) float64 {
	if meanWork <= 0 {
		return alignment
	}
	return alignment - meanAlignment/meanWork*work
}

// Furthest is how many of a number of jobs, those furthest below their fair share first, Tetris chooses among with a fairness
// knob from 0 to 1: one at least.
func Furthest(jobs int, knob float64) int {
	return max(min(jobs, 1), int(math.Ceil((1-knob)*float64(jobs)-slack)))
}
