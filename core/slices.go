package core

import "github.com/quartet-sched/quartet/core/mig"

// Where slices of devices are, on a cluster that divides them as MIG does. A seat is a set of devices, and a placer chooses these only: where the slice of
// a device begins follows from what others have of it when the job comes. So it is the same whenever the changes of a run are replayed, and no record
// and no answer of a placer needs it. A job keeps its slices for as long as it keeps all of its seats.

// Sliced is where the slices of a job begin. It is behind a pointer, since there are many jobs, and most have none.
type Sliced struct {
	Starts []uint8 // device by device, in the order of the seats; NoSlice where that is not known
}

// slicedAt is slices that begin there; nil for none.
func slicedAt(starts []uint8) *Sliced {
	if len(starts) == 0 {
		return nil
	}
	return &Sliced{starts}
}

// Slices is where the slices of the job begin, device by device in the order of its seats; nil where it has none.
func (j *Job) Slices() []uint8 {
	if j.Sliced == nil {
		return nil
	}
	return j.Sliced.Starts
}

// keepsSlices reports whether a job that gets seats has them already, and its slices with them.
func keepsSlices(j *Job, seats []Seat) bool {
	return len(j.Slices()) > 0 && j.State == Running && SameSeats(j.Seats, seats)
}

// layouts is the slices that jobs have of each device.
type layouts map[deviceAt]mig.Layout

// toggle counts slices of a job that has none of these in, and out if it has them. In which order jobs come and go makes no difference.
func (l layouts) toggle(p mig.Profile, seats []Seat, starts []uint8) {
	for _, s := range seats {
		for rest := s.Devices; rest != 0 && len(starts) > 0; rest &= rest - 1 {
			if starts[0] != NoSlice {
				at := deviceAt{s.Node, rest.First()}
				if l[at] ^= mig.At(p, int(starts[0])); l[at] == 0 {
					delete(l, at)
				}
			}
			starts = starts[1:]
		}
	}
}

// place finds slices for a job on devices, and counts them in.
func (l layouts) place(j *JobSpec, seats []Seat) []uint8 {
	if j.milli() == 0 {
		return nil
	}
	var starts []uint8
	p := j.Slice()
	for _, s := range seats {
		for rest := s.Devices; rest != 0; rest &= rest - 1 {
			at := deviceAt{s.Node, rest.First()}
			start, room := l[at].Place(p)
			if !room { // nobody checked the seats
				starts = append(starts, NoSlice)
				continue
			}
			l[at] |= mig.At(p, start)
			starts = append(starts, uint8(start))
		}
	}
	return starts
}

// slice says where the slices of the jobs begin that get seats: what others leave is free first. Nothing is counted in yet.
func (s *state) slice(changes []Change) {
	if s.sharing != Mig {
		return
	}
	l := s.holders.slices()
	toggleOld := func() {
		for i := range changes {
			if c := &changes[i]; c.Action == Stop || c.Action == Start || c.Action == Move {
				j := s.view.Jobs[c.Job]
				l.toggle(j.Slice(), j.Seats, j.Slices())
			}
		}
	}
	toggleOld()
	for i := range changes {
		if c := &changes[i]; len(c.Seats) > 0 {
			c.Slices = l.place(s.view.Jobs[c.Job].JobSpec, c.Seats)
		}
	}
	for i := range changes {
		if c := &changes[i]; len(c.Seats) > 0 {
			l.toggle(s.view.Jobs[c.Job].Slice(), c.Seats, c.Slices)
		}
	}
	toggleOld()
}

// held finds slices for a job that runs already when it is submitted, and does not count them in.
func (h *holders) held(j *Job) []uint8 {
	l := h.slices()
	starts := l.place(j.JobSpec, j.Seats)
	l.toggle(j.Slice(), j.Seats, starts)
	return starts
}

// sameShare reports whether two jobs have the same of a device.
func sameShare(a, b *JobSpec) bool {
	if a.Share == nil || b.Share == nil {
		return a.Share == b.Share
	}
	return *a.Share == *b.Share
}

// leftOf is which of the slices of a job are on seats that it has left.
func leftOf(j *Job, left []Seat) []uint8 {
	if len(j.Slices()) == 0 {
		return nil
	}
	var starts []uint8
	for _, s := range left {
		for rest := s.Devices; rest != 0; rest &= rest - 1 {
			starts = append(starts, j.SliceAt(s.Node, rest.First()))
		}
	}
	return starts
}

// SliceAt is where the slice of the job on a device begins; NoSlice where it has none.
func (j *Job) SliceAt(n NodeID, device int) uint8 {
	k := 0
	for _, s := range j.Seats {
		if s.Node == n && s.Devices&(1<<device) != 0 {
			if k += (s.Devices & FirstDevices(device)).Count(); k < len(j.Slices()) {
				return j.Slices()[k]
			}
			return NoSlice
		}
		k += s.Devices.Count()
	}
	return NoSlice
}
