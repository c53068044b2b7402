package core

// holders counts the devices on which jobs compute, each once, however many jobs are on it.
type holders struct {
	devices int
	jobs    map[deviceAt]int // on each device; unused where no device is shared
	layouts layouts          // unused where devices are not divided into slices
}

// slices is who has which slices.
func (h *holders) slices() layouts {
	if h.layouts == nil {
		h.layouts = make(layouts)
	}
	return h.layouts
}

type deviceAt struct {
	node   NodeID
	device int
}

// add counts a job in (1) or out of (-1) seats, and of its slices there.
func (h *holders) add(how Sharing, j *Job, seats []Seat, starts []uint8, jobs int) {
	if how == Exclusive {
		h.devices += jobs * Replicas(seats)
		return
	}
	if j.Part() == 0 {
		return
	}
	if how == Mig {
		h.slices().toggle(j.Slice(), seats, starts)
	}
	if h.jobs == nil {
		h.jobs = make(map[deviceAt]int)
	}
	for _, s := range seats {
		for rest := s.Devices; rest != 0; rest &= rest - 1 {
			at := deviceAt{s.Node, rest.First()}
			before := h.jobs[at]
			switch h.jobs[at] += jobs; {
			case before == 0:
				h.devices++
			case before+jobs == 0:
				delete(h.jobs, at)
				h.devices--
			}
		}
	}
}
