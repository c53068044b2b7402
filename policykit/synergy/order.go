package synergy

import (
	"math"

	"github.com/quartet-sched/quartet/core"
)

// The keys of orders, by which jobs are run, the smallest first: each reads the state of a job at a moment, in seconds.

// State is what these keys read of a job.
type State struct {
	// ArrivalSeconds is when the job was submitted.
	ArrivalSeconds   float64
	RemainingSeconds float64 // at the speed that it is reckoned to have
	DurationSeconds  float64 // alone with the proportional share, from beginning to end; above 0
	// Devices is how many devices the job wants.
	Devices int
	Demand  core.Resources // of the whole job
}

// Capacity is that of the cluster.
type Capacity struct {
	// Devices is how many devices there are.
	Devices int
	core.Resources
}

// FTF is finish-time fairness: the time from arrival to the end against that alone. The job that is worst off runs first.
func FTF(s *State, now float64, of Capacity) float64 { return -MisreadFTF(s, now, of) }

// MisreadFTF runs the job first that is best off. It is a slip of the original, for its figures.
func MisreadFTF(s *State, now float64, _ Capacity) float64 {
	return (now - s.ArrivalSeconds + s.RemainingSeconds) / s.DurationSeconds
}

// DRF runs the job first whose largest part of any resource is the smallest. The part is that of the demand, whatever the job
// or its tenant has had: the division of Ghodsi et al. (NSDI'11) is the allocator drf.
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
