package placement

import (
	"slices"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/placement/score"
	"github.com/quartet-sched/quartet/policykit/seating"
)

// seatedJob is what a job has, as the walk knows it.
type seatedJob struct {
	seats  []core.Seat
	slices []uint8    // where they begin, device by device
	unit   score.Task // of a replica
	round  int        // in which it was granted last
	at     int        // in holding
}

// stays reports whether a job goes on with what it holds, and takes that if it is not taken yet.
func (p *scored) stays(v *core.View, g *core.Grant) bool {
	j := v.Jobs[g.Job]
	if j.Held != g.Replicas || j.Held == 0 || !seating.Within(v, g, j.Seats) {
		return false
	}
	if s := p.held(g.Job); s != nil {
		s.round = p.round
		return true
	}
	for _, s := range j.Seats { // one that takes nothing of its devices may have lost them all the same
		if s.Devices&^v.Cluster.Nodes[s.Node].Usable() != 0 {
			return false
		}
	}
	return p.take(g.Job, p.task(v, j.JobSpec, core.AnyAccelerator), j.Seats, j.Slices())
}

// drop gives back what those of the holding jobs have that it is true of.
func (p *scored) drop(of func(core.JobID) bool) {
	for _, id := range slices.Backward(p.holding) { // who is released gives his place to the last one, who was looked at
		if of(id) {
			p.release(id)
		}
	}
}

func (p *scored) held(id core.JobID) *seatedJob {
	if int(id) >= len(p.jobs) {
		return nil
	}
	return p.jobs[id]
}

// take notes that a job has seats, if they are free, with slices that begin there; nil for wherever they are placed.
func (p *scored) take(id core.JobID, replica unit, seats []core.Seat, starts []uint8) bool {
	var taken []uint8
	for i, s := range seats {
		t := replica
		t.times(s.Devices.Count())
		own := starts[min(len(taken), len(starts)):min(len(taken)+s.Devices.Count(), len(starts))]
		before := len(taken)
		if len(own) < s.Devices.Count() || slices.Contains(own, core.NoSlice) {
			own = nil
		}
		if p.free(s, &t) {
			if taken = append(taken, own...); own == nil {
				taken = p.walk.Starts(taken, &t.Task, t.taken(s))
			}
			if p.occupy(&t, s, taken[before:]) {
				continue
			}
		}
		p.untake(replica, seats[:i], taken[:before])
		return false
	}
	for int(id) >= len(p.jobs) {
		p.jobs = append(p.jobs, nil)
	}
	p.jobs[id] = &seatedJob{seats: slices.Clone(seats), slices: taken, unit: replica.Task, round: p.round, at: len(p.holding)}
	p.holding = append(p.holding, id)
	return true
}

// free reports whether a task can have just these devices.
func (p *scored) free(s core.Seat, t *unit) bool {
	n := &p.walk.Nodes()[s.Node]
	if s.Devices&^p.cluster.Nodes[s.Node].Usable() != 0 || !n.Fits(&t.Task) {
		return false // also for one that takes nothing of its devices
	}
	for rest := s.Devices; t.Milli > 0 && rest != 0; rest &= rest - 1 {
		if n.Left[rest.First()] < t.Milli {
			return false
		}
	}
	return true
}

// untake gives seats back, with the slices that begin there.
func (p *scored) untake(replica unit, seats []core.Seat, starts []uint8) {
	for _, s := range seats {
		t := replica
		t.times(s.Devices.Count())
		own := starts[:min(s.Devices.Count(), len(starts))]
		starts = starts[len(own):]
		p.walk.ReleaseSlices(&t.Task, t.taken(s), own)
		p.left[p.walk.Nodes()[s.Node].Accelerator] += int64(t.Devices) * int64(t.Milli)
	}
}

// occupy takes a seat, with the slices that begin there; false, and it takes nothing, where they cannot.
func (p *scored) occupy(t *unit, s core.Seat, starts []uint8) bool {
	if !p.walk.TakeSlices(&t.Task, t.taken(s), starts) {
		return false
	}
	p.left[p.walk.Nodes()[s.Node].Accelerator] -= int64(t.Devices) * int64(t.Milli)
	return true
}

// taken is what a task takes of a seat: of the devices nothing, if it computes on CPUs alone.
func (t *unit) taken(s core.Seat) core.Seat {
	if t.Devices == 0 {
		s.Devices = 0
	}
	return s
}

// release gives back what a job had.
func (p *scored) release(id core.JobID) {
	s := p.jobs[id]
	p.untake(unit{s.unit}, s.seats, s.slices)
	p.jobs[id] = nil
	last := p.holding[len(p.holding)-1]
	p.holding = p.holding[:len(p.holding)-1]
	if last != id {
		p.holding[s.at] = last
		p.jobs[last].at = s.at
	}
}
