package core

import (
	"context"
	"slices"
)

// makesRoom reports whether refused grants may take devices of later ones.
func (p *Pipeline) makesRoom() bool {
	return p.rounds.Settle.MakeRoom && p.stages.Allocation.can.Precedes()
}

// headWithRoom is the index of the first refused grant that may take devices of later ones; -1 for none. It is tried once a round, and has waited for long enough.
func (p *Pipeline) headWithRoom() int {
	s, head := &p.state, -1
	if !p.makesRoom() {
		return -1
	}
	for i := range s.unseated {
		j := s.view.Jobs[s.unseated[i].Job]
		if j.State != Waiting {
			continue
		}
		if from := s.roomFrom(j); from > s.view.NowSeconds {
			p.settler.until = min(p.settler.until, from)
			continue
		}
		p.settler.until = s.view.NowSeconds // who comes before whom changes with time
		if at := s.marks[j.ID].grant; !p.settler.tried[j.ID] && (head < 0 || at < head) {
			head = at
		}
	}
	if head >= 0 && slices.ContainsFunc(p.plan.Grants[head+1:], s.mayGiveWay) {
		return head
	}
	return -1
}

// A job waits for so many intervals for each job that it may stop, and an interval is taken to be so long at least: what it stops restarts.
const (
	intervalsEach = 3
	leastInterval = 60 // seconds
)

// patience is for how many seconds a job waits for each job that it may stop.
func (s *state) patience() float64 { return intervalsEach * max(s.view.IntervalSeconds, leastInterval) }

// roomFrom is when a job has waited for long enough to stop a job, and room may be made for it that was not there before.
func (s *state) roomFrom(j *Job) float64 {
	return max(j.waitsSince()+s.patience(), s.marks[j.ID].roomFrom)
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
	victims = r.worthIt(victims)
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

// worthIt is those who are to give way, if the job has waited for long enough for each of them; none otherwise, and it is tried again then.
func (r *roomFor) worthIt(victims []int) []int {
	s := &r.p.state
	j := s.view.Jobs[r.grants[r.head].Job]
	s.marks[j.ID].roomFrom = j.waitsSince() + float64(len(victims))*s.patience()
	if len(victims) == 0 {
		s.marks[j.ID].roomFrom = s.view.NowSeconds + s.patience()
	}
	if s.view.NowSeconds < s.marks[j.ID].roomFrom {
		return nil
	}
	return victims
}

// search finds those that give way; none where the grant finds no devices even without all of them.
func (r *roomFor) search(ctx context.Context) (victims []int, err error) {
	enough := func(n int) (bool, error) {
		err := r.seatWithout(ctx, r.later[:n])
		return r.seated(), err
	}
	many := r.fewestByCount() // are enough in the end
	few := many - 1           // are too few
	for {
		if suffices, err := enough(many); err != nil || suffices {
			if err != nil {
				return nil, err
			}
			break
		}
		if many == len(r.later) {
			return nil, nil
		}
		few, many = many, min(2*many, len(r.later))
	}
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

// fewestByCount is how many of those that may give way hold what the job lacks, counted in devices alone; 1 where parts of them are counted.
func (r *roomFor) fewestByCount() int {
	s := &r.p.state
	if s.occupancy.shares != nil || !s.occupancy.checked {
		return min(1, len(r.later))
	}
	missing := r.grants[r.head].Replicas - s.occupancy.ledger.Total()
	for n, i := range r.later {
		if missing -= s.view.Jobs[r.grants[i].Job].Held; missing <= 0 {
			return n + 1
		}
	}
	return len(r.later)
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
