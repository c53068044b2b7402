package sim

import (
	"github.com/quartet-sched/quartet/core"
)

// devices are the nodes of a cluster with what is on them.
type devices struct {
	cluster  *core.Cluster // as it is
	known    *core.Cluster // as the pipeline knows it
	nodes    nodeEvents
	grows    bool     // nodes may join about which nothing is known
	sharing  *sharing // nil where no device is shared
	slicing  *slicing // nil where devices are not divided into slices
	spanning []int    // by node: number of jobs that span nodes and hold devices there; nil without interference
}

// span counts a job in or out of the nodes it spans.
func (s *Simulator) span(j *simJob, by int) {
	if s.config.Interference == 0 || len(j.seats) < 2 {
		return
	}
	if missing := len(s.devices.cluster.Nodes) - len(s.devices.spanning); missing > 0 {
		s.devices.spanning = append(s.devices.spanning, make([]int, missing)...)
	}
	for _, seat := range j.seats {
		s.devices.spanning[seat.Node] += by
	}
}

// disturb applies interference, and tells those whose rate it changed: every job that spans nodes is slowed down while
// another one shares one of its nodes.
func (s *Simulator) disturb(now float64, tell *[]core.Event) {
	if s.devices.sharing != nil {
		s.interfere(now, tell)
	}
	if s.config.Interference == 0 {
		return
	}
	for _, j := range s.jobs.running {
		disturbed := false
		if len(j.seats) > 1 {
			for _, seat := range j.seats {
				disturbed = disturbed || s.devices.spanning[seat.Node] > 1
			}
		}
		if disturbed != j.disturbed {
			s.advance(j, now)
			j.disturbed = disturbed
			s.schedule(j)
			*tell = append(*tell, j.progressed(now))
		}
	}
}
