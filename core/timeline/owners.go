package timeline

import "github.com/quartet-sched/quartet/core"

// owners counts the devices on which jobs compute, each once, however many jobs are on it.
type owners struct {
	cluster *core.Cluster
	shares  bool
	jobs    [][]int32 // by node and device; unused where no device is shared
}

// add counts a job in (1) or out (-1) of seats, and returns by how many devices more are used.
func (o *owners) add(spec *core.JobSpec, seats []core.Seat, by int32) (more int) {
	if !o.shares {
		return int(by) * core.Replicas(seats)
	}
	if o.cluster.Part(spec) == 0 {
		return 0
	}
	for _, s := range seats {
		for int(s.Node) >= len(o.jobs) {
			o.jobs = append(o.jobs, nil)
		}
		if o.jobs[s.Node] == nil {
			o.jobs[s.Node] = make([]int32, core.MaxDevicesPerNode)
		}
		for rest := s.Devices; rest != 0; rest &= rest - 1 {
			jobs := &o.jobs[s.Node][rest.First()]
			before := *jobs
			switch *jobs += by; {
			case before == 0:
				more++
			case *jobs == 0:
				more--
			}
		}
	}
	return more
}
