package core

import (
	"context"
	"slices"
)

// headWithRoom is the index of the first refused grant that may take devices of later ones; -1 for none. It is tried once a round, and has waited an interval.
func (p *Pipeline) headWithRoom() int {
	s, head := &p.state, -1
	if !p.rounds.Settle.MakeRoom || !p.stages.Allocation.can.Precedes() {
		return -1
	}
	for i := range s.unseated {
		j := s.view.Jobs[s.unseated[i].Job]
		if j.State != Waiting {
			continue
		}
		p.settler.until = s.view.NowSeconds // who comes before whom changes with time, and whether it has waited
		if at := s.marks[j.ID].grant; !p.settler.tried[j.ID] && s.waited(j) && (head < 0 || at < head) {
			head = at
		}
	}
	if head >= 0 && slices.ContainsFunc(p.plan.Grants[head+1:], s.mayGiveWay) {
		return head
	}
	return -1
}

// leastWait is for how many seconds a job waits before room is made for it, where rounds follow sooner.
const leastWait = 60

// waited reports whether a job has waited for an interval at least.
func (s *state) waited(j *Job) bool {
	return s.view.NowSeconds-j.waitsSince() >= max(s.view.IntervalSeconds, leastWait)
}

// mayGiveWay reports whether a grant is one to a running job that may lose its devices.
func (s *state) mayGiveWay(g Grant) bool {
	j := s.view.Jobs[g.Job]
	return j.State == Running && !j.Pinned
}

// makeRoom seats the first refused job on devices of running jobs granted after it, of as few as possible, the last first. It reports whether it found them.
func (p *Pipeline) makeRoom(ctx context.Context) (found bool, err error) {
	head := p.headWithRoom()
	if head < 0 {
		return false, nil
	}
	r := roomFor{p: p, grants: slices.Clone(p.plan.Grants), head: head}
	p.settler.tried[r.grants[head].Job] = true
	for i := len(r.grants) - 1; i > head; i-- {
		if p.state.mayGiveWay(r.grants[i]) {
			r.later = append(r.later, i)
		}
	}
	victims, err := r.search(ctx)
	if err != nil {
		return false, err
	}
	if err := r.seatWithout(ctx, victims); err != nil {
		return false, err
	}
	for _, i := range victims {
		j := p.state.view.Jobs[r.grants[i].Job]
		p.settler.refused[j.ID] = refusal{
			grant:   Grant{Job: j.ID, Accelerator: AnyAccelerator, Replicas: r.grants[i].Replicas},
			verdict: Verdict{Job: j.ID, Code: Defer, Reason: WaitingForDevices, By: p.stages.Placement.ID},
		}
	}
	p.settler.shown = slices.DeleteFunc(p.settler.shown, func(c Candidate) bool {
		_, out := p.settler.refused[c.ID]
		return out
	})
	return len(victims) > 0, nil
}

// roomFor is the search for the running jobs that give way to a grant.
type roomFor struct {
	p      *Pipeline
	grants []Grant
	head   int   // index of the grant that found no devices
	later  []int // indices of those that may give way, the last grant first
}

// search finds those that give way; none where the grant finds no devices even without all of them.
func (r *roomFor) search(ctx context.Context) (victims []int, err error) {
	enough := func(n int) (bool, error) {
		err := r.seatWithout(ctx, r.later[:n])
		return r.seated(), err
	}
	if all, err := enough(len(r.later)); err != nil || !all {
		return nil, err
	}
	few, many := 0, len(r.later) // few are too few, many are enough
	for few+1 < many {
		middle := (few + many) / 2
		suffices, err := enough(middle)
		if err != nil {
			return nil, err
		}
		if suffices {
			many = middle
		} else {
			few = middle
		}
	}
	if _, err := enough(many); err != nil {
		return nil, err
	}
	if needed := r.inTheWay(r.later[:many]); len(needed) < many {
		if err := r.seatWithout(ctx, needed); err != nil || r.seated() {
			return needed, err
		}
	}
	return r.later[:many], nil
}

// seatWithout asks the placer about all grants but some.
func (r *roomFor) seatWithout(ctx context.Context, without []int) error {
	without = slices.Sorted(slices.Values(without))
	var grants []Grant
	for i := range r.grants {
		if _, out := slices.BinarySearch(without, i); !out {
			grants = append(grants, r.grants[i])
		}
	}
	return r.p.seatThese(ctx, grants)
}

// seated reports whether the grant found devices.
func (r *roomFor) seated() bool {
	return r.p.state.marks[r.grants[r.head].Job].placed == r.p.state.view.Round
}

// inTheWay are those of the running jobs at these indices on whose devices the grant is seated.
func (r *roomFor) inTheWay(later []int) (needed []int) {
	s := &r.p.state
	taken := map[NodeID]DeviceSet{}
	for i := range r.p.plan.Placements {
		if at := &r.p.plan.Placements[i]; at.Job == r.grants[r.head].Job {
			for _, seat := range at.Seats {
				taken[seat.Node] |= seat.Devices
			}
		}
	}
	for _, i := range later {
		if slices.ContainsFunc(s.view.Jobs[r.grants[i].Job].Seats, func(seat Seat) bool { return taken[seat.Node]&seat.Devices != 0 }) {
			needed = append(needed, i)
		}
	}
	return needed
}
