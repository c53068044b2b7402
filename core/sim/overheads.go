package sim

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// overheadOf returns how many seconds a job pauses at a start or move.
func (s *Simulator) overheadOf(j *workload.Job) float64 {
	return s.config.PauseOf(j.Spec.Application, j.Spec.Requested).Seconds()
}

// together is the overheads of a job and of all that share its devices, in seconds; its own alone where nobody pauses for another.
func (s *Simulator) together(j *simJob) (seconds float64) {
	if s.devices.sharing == nil || s.config.CoLocation.Model == guaranteed {
		return j.overhead
	}
	for _, o := range s.devices.sharing.company(j) {
		seconds += o.overhead
	}
	return seconds
}

// company is a job and all that share its devices, by JobID. It lasts until the next call.
func (h *sharing) company(j *simJob) []*simJob {
	h.beside = append(h.beside[:0], j)
	devicesOf(j, func(at deviceAt) {
		for _, o := range h.on[at] {
			if !slices.Contains(h.beside, o) {
				h.beside = append(h.beside, o)
			}
		}
	})
	slices.SortFunc(h.beside, compareJobs)
	return h.beside
}

// pauseForRound lets all that run pause from this round on, as the simulator of Muri does, and tells.
func (s *Simulator) pauseForRound(now float64, tell *[]core.Event) {
	if s.config.Publication.Overhead != everyRound {
		return
	}
	for _, j := range s.jobs.running {
		s.advance(j, now)
		j.pausedUntil = max(now, j.runsFrom) + s.together(j)
		s.schedule(j)
		*tell = append(*tell, j.progressed(now))
	}
}
