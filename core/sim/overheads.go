package sim

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/workload"
)

// applicationOverheads are the pauses of single applications, those for the most devices first.
type applicationOverheads map[string][]ApplicationOverhead

func newApplicationOverheads(list []ApplicationOverhead) applicationOverheads {
	of := make(applicationOverheads, len(list))
	for _, o := range list {
		of[o.Application] = append(of[o.Application], o)
	}
	for _, steps := range of {
		slices.SortFunc(steps, func(a, b ApplicationOverhead) int { return cmp.Compare(b.Devices, a.Devices) })
	}
	return of
}

// overheadOf is how many seconds a job pauses at a start or move.
func (s *Simulator) overheadOf(j *workload.Job) float64 {
	for _, o := range s.overheads[j.Spec.Application] {
		if j.Spec.Requested >= o.Devices {
			return o.Overhead.Seconds()
		}
	}
	return s.config.RestartOverhead.Seconds()
}

// together is the overheads of a job and of all that share its devices, in seconds; its own alone where nobody pauses for another.
func (s *Simulator) together(j *simJob) (seconds float64) {
	if s.sharing == nil || s.config.CoLocation.Model == guaranteed {
		return j.overhead
	}
	for _, o := range s.sharing.company(j) {
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
	for _, j := range s.running {
		s.advance(j, now)
		j.pausedUntil = max(now, j.runsFrom) + s.together(j)
		s.schedule(j)
		*tell = append(*tell, j.progressed(now))
	}
}
