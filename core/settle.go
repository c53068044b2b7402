package core

import (
	"context"
	"maps"
	"slices"
)

// Settling says what a round does about grants that find no devices: allocators count the devices of the cluster, and only the placer finds out which of them a
// job can have. With the zero value such a grant has used up its part of the count, whoever was stopped for it stays stopped, and what it would have used stays
// idle.
type Settling struct {
	// Passes is how often the allocator is asked in a round at most, each time without those that found no devices the time before; a pass that seats more
	// jobs than the one before, or after which others may find devices, does not count. 0 and 1 ask it once and leave its answer as it is.
	Passes int
	// MakeRoom lets a grant that finds no devices take those of running jobs that were granted after it, where the allocator is a Precedent.
	MakeRoom bool
	// ReserveAfterSeconds is for how long a job waits, while others pass it, before devices are reserved for it; 0 for never.
	ReserveAfterSeconds float64
}

// morePasses bounds how many passes of a round do not count.
const morePasses = 32

// settler is what a round knows about grants that found no devices.
type settler struct {
	shown    []Candidate         // whom the allocator is asked about next
	narrowed map[JobID]*Response // smaller ranges of elastic jobs, which are shown instead of their own
	refused  map[JobID]refusal   // jobs that are left out of later questions
	order    []JobID             // in which these were left out
	shapes   []Candidate         // waiting jobs that found no devices at their least number, one of each shape
	tried    map[JobID]bool      // jobs that room was looked for
	blocked  bool                // a blocking grant found no devices
	further  bool                // stages were asked again
	joint    bool                // the allocator proposes seats
	until    float64             // seconds up to which the answers so far stand, as far as what was seated of them decides
}

// refusal is a grant that found no devices.
type refusal struct {
	grant   Grant
	verdict Verdict // of the placer
}

// settle asks the allocator again while grants that found no devices keep others from some. A refused job is left out of the next question, with all waiting
// jobs like it; an elastic one is shown a smaller range, and one that runs what it holds. Behind a refused blocking grant nobody is shown who does not run.
// Finally a running job without devices goes on where nobody has them, and jobs that were left out get what is idle. Of an allocator asked once, running jobs only.
func (p *Pipeline) settle(ctx context.Context) error {
	if p.rounds.Settle.Passes < 2 {
		return nil
	}
	if len(p.state.unseated)+len(p.state.view.Reserved) == 0 {
		return nil
	}
	r, reserved := p.beginSettling(), slices.Clone(p.state.view.Reserved)
	if p.stages.Allocation.can.AskedAgain() {
		if err := p.improve(ctx); err != nil {
			return err
		}
	}
	p.takeSeated()
	p.goOnWhereTheyAre()
	if err := p.fill(ctx); err != nil {
		return err
	}
	if err := p.reserve(ctx); err != nil {
		return err
	}
	p.keepRefusals()
	if r.further && !p.leavesAllAsItWas() || !slices.Equal(reserved, p.state.view.Reserved) {
		r.until = p.state.view.NowSeconds // the next round may go on from here
	}
	p.standing.UntilSeconds = min(p.standing.UntilSeconds, r.until)
	return nil
}

// improve asks the allocator again as long as that may do better, and no more often than allowed.
func (p *Pipeline) improve(ctx context.Context) error {
	counted, seated := 1, len(p.plan.Placements)
	for pass := 1; p.mayImprove(); pass++ {
		p.settler.further = true
		if counted == p.rounds.Settle.Passes || pass == p.rounds.Settle.Passes+morePasses {
			return nil
		}
		roomy, err := p.makeRoom(ctx)
		if err != nil {
			return err
		}
		if !roomy {
			p.leaveOutRefused()
		}
		if err := p.askAgain(ctx); err != nil {
			return err
		}
		if now := len(p.plan.Placements); now > seated {
			seated = now
		} else if !slices.ContainsFunc(p.state.unseated, p.passedOver) && !p.anyOtherFits() {
			counted++
		}
	}
	return nil
}

// passedOver reports whether a placer did not look for devices because of a job before, though the allocation has nobody wait behind that.
func (p *Pipeline) passedOver(v Verdict) bool {
	return v.Reason == BlockedByEarlier && !p.state.blocked
}

// beginSettling forgets the round before.
func (p *Pipeline) beginSettling() (r *settler) {
	r = &p.settler
	*r = settler{
		shown: append(r.shown[:0], p.state.eligible()...), shapes: r.shapes[:0], order: r.order[:0], narrowed: map[JobID]*Response{},
		joint:   slices.ContainsFunc(p.plan.Grants, func(g Grant) bool { return len(g.Proposed) > 0 }),
		refused: map[JobID]refusal{}, tried: map[JobID]bool{}, blocked: p.state.blocked, until: p.standing.UntilSeconds,
	}
	return r
}

// mayImprove reports whether asking again may do better: a grant was refused, and either somebody loses devices, or some are idle while somebody could be
// granted fewer or was granted none.
func (p *Pipeline) mayImprove() bool {
	s := &p.state
	if len(s.unseated) == 0 {
		return false
	}
	if len(s.running) > s.occupancy.kept || p.headWithRoom() >= 0 {
		return true
	}
	mayGo := func(v Verdict) bool { // with fewer replicas, or without those that the placer stopped at
		return p.plan.Grants[s.marks[v.Job].grant].Replicas > s.responses[v.Job].MinReplicas || p.passedOver(v)
	}
	return s.anyIdle(p.plan.Placements) && (p.anyOtherFits() || slices.ContainsFunc(s.unseated, mayGo))
}

// anyOtherFits reports whether a job that was granted nothing, and is like none that found no devices, may find some, as far as a count of what is idle shows.
func (p *Pipeline) anyOtherFits() bool {
	s, r := &p.state, &p.settler
	s.countIdle()
	for i := range r.shown {
		if c := &r.shown[i]; c.State == Waiting && s.marks[c.ID].granted != s.view.Round && !r.knows(c) && s.mayFit(c, c.Response.MinReplicas) {
			return true
		}
	}
	return false
}

// countIdle counts the devices that are left, by type, where nothing else is counted.
func (s *state) countIdle() {
	s.idle = append(s.idle[:0], make([]int, len(s.view.Cluster.Accelerators))...)
	if s.occupancy.shares != nil {
		return
	}
	for i := range s.view.Cluster.Nodes {
		n := NodeID(i)
		s.idle[s.view.Cluster.Nodes[i].Accelerator] += (s.occupancy.ledger.FreeDevices(n) &^ s.view.ReservedOn(n)).Count()
	}
}

// mayFit reports whether what countIdle counted may be enough for so many replicas of a job: it is not where it reports false.
func (s *state) mayFit(c *Candidate, replicas int) bool {
	cluster, all := s.view.Cluster, 0
	if of := s.occupancy.shares; of != nil {
		for i := range cluster.Nodes {
			n := &cluster.Nodes[i]
			if !c.Accepts(cluster, n.Accelerator) || !of.FitsAt(c.JobSpec, n.ID, 1) {
				continue
			}
			for device := range n.Devices {
				if of.FitsOn(c.JobSpec, n.ID, device) {
					if all++; all >= replicas {
						return true
					}
				}
			}
		}
		return false
	}
	for t, n := range s.idle {
		if n > 0 && c.Accepts(cluster, AcceleratorID(t)) {
			if all += n; n >= replicas || c.MixesTypes && all >= replicas {
				return true
			}
		}
	}
	return false
}

// anyIdle reports whether devices are left by placements, as far as a count shows.
func (s *state) anyIdle(placed []Placement) bool {
	if s.view.Cluster.Sharing != Exclusive {
		return true // parts of them may be
	}
	left := s.view.Devices
	for i := range placed {
		left -= Replicas(placed[i].Seats)
	}
	for _, r := range s.view.Reserved {
		left -= (r.Devices & s.occupancy.ledger.FreeDevices(r.Node)).Count()
	}
	return left > 0
}

// leaveOutRefused decides whom the allocator is asked about next: those of before without the refused ones.
func (p *Pipeline) leaveOutRefused() {
	s, r := &p.state, &p.settler
	r.blocked = r.blocked || s.blocked
	for i := range s.unseated {
		v := &s.unseated[i]
		n := p.narrower(v)
		if n != nil {
			r.narrowed[v.Job] = n
			continue
		}
		waits := s.view.Jobs[v.Job].State == Waiting
		if waits && v.Reason == BlockedByEarlier && !s.blocked && i > 0 {
			continue // by one that is left out
		}
		p.leaveOut(*v)
		if c := s.candidate(v.Job); waits && v.By == p.stages.Placement.ID && !r.knows(c) { // others like it may be where it cannot
			r.shapes = append(r.shapes, *c)
		}
	}
	r.shown = slices.DeleteFunc(r.shown, p.hides)
	for i := range r.shown {
		if n := r.narrowed[r.shown[i].ID]; n != nil {
			r.shown[i].Response = n
		}
	}
}

// hides reports whether a candidate is not shown any more.
func (p *Pipeline) hides(c Candidate) bool {
	s, r := &p.state, &p.settler
	_, out := r.refused[c.ID]
	stays := c.State == Running || s.marks[c.ID].placed == s.view.Round
	return out || !stays && (s.blocked || r.narrowed[c.ID] == nil && r.knows(&c))
}

// knows reports whether a job like this one found no devices.
func (r *settler) knows(c *Candidate) bool {
	return slices.ContainsFunc(r.shapes, func(o Candidate) bool { return sameShape(c, &o) })
}

// leaveOut leaves a job out of all later questions of the round.
func (p *Pipeline) leaveOut(v Verdict) {
	grant := p.plan.Grants[p.state.marks[v.Job].grant]
	grant.Proposed, grant.Group = nil, 0 // they are of an answer that is over
	p.settler.refused[v.Job] = refusal{grant: grant, verdict: v}
	p.settler.order = append(p.settler.order, v.Job)
}

// narrower is a smaller range for a refused job: what it holds, if it runs; fewer replicas than it was granted, if it can do with fewer and nobody waits behind
// it. nil for none.
func (p *Pipeline) narrower(v *Verdict) *Response {
	s, r := &p.state, &p.settler
	j, granted := s.view.Jobs[v.Job], p.plan.Grants[s.marks[v.Job].grant].Replicas
	now := s.responses[v.Job]
	if n := r.narrowed[v.Job]; n != nil {
		now = n
	}
	n := *now
	switch {
	case j.State == Running:
		if granted == j.Held || j.Held < now.MinReplicas || j.Held > now.MaxReplicas || !s.usable(j.Seats) {
			return nil
		}
		n.MinReplicas, n.MaxReplicas = j.Held, j.Held
	case granted > now.MinReplicas && !s.blocked:
		n.MaxReplicas = max(now.MinReplicas, granted/2)
		if left := int(v.Available); v.Unit == "devices" && v.Reason == WaitingForDevices && left >= now.MinReplicas && left < granted {
			n.MaxReplicas = left
		}
	default:
		return nil
	}
	return &n
}

// askAgain asks the allocator about those that are shown, and the placer about what it grants.
func (p *Pipeline) askAgain(ctx context.Context) error {
	p.takeSeated()
	p.forgetAnswers()
	if err := p.allocateTo(ctx, p.settler.shown); err != nil {
		return err
	}
	return p.seat(ctx)
}

// forgetAnswers takes back what the last grants and placements said about jobs. Where that would have started somebody, a placer that draws has drawn.
func (p *Pipeline) forgetAnswers() {
	s := &p.state
	if s.starts(p.plan.Placements) {
		p.settler.until = s.view.NowSeconds
	}
	for i := range p.plan.Grants {
		m := s.marks[p.plan.Grants[i].Job]
		m.granted, m.answered, m.placed = 0, 0, 0
	}
	s.occupancy.undo(s, p.plan.Placements)
}

// starts reports whether a waiting job is among those placed.
func (s *state) starts(placed []Placement) bool {
	return slices.ContainsFunc(placed, func(at Placement) bool { return s.view.Jobs[at.Job].State == Waiting })
}

// takeSeated judges the condition of the allocator's last answer by what was seated of it.
func (p *Pipeline) takeSeated() {
	s, r := &p.state, &p.settler
	for i := range s.unseated {
		if s.marks[s.unseated[i].Job].grant < p.standing.IfSeated {
			r.until = s.view.NowSeconds
		}
	}
	r.until = min(r.until, p.standing.UntilSeconds)
	p.standing.IfSeated = 0
}

// goOnWhereTheyAre leaves jobs that run and found no devices, or were granted none, where they are, if nobody has their devices.
func (p *Pipeline) goOnWhereTheyAre() {
	s := &p.state
	if !s.occupancy.checked {
		_ = s.checkPlacements(p.stages.Placement.ID, nil, nil) // the last answer grants nothing: all that runs is free
	}
	if s.view.Cluster.Sharing == TimeSlice || s.occupancy.kept == len(s.running) {
		return
	}
	p.plan.Grants, p.plan.Placements = slices.Clone(p.plan.Grants), slices.Clone(p.plan.Placements) // they are the stages'
	for _, j := range s.running {
		if p.goesOn(j) {
			p.settler.until = s.view.NowSeconds
		}
	}
}

// goesOn seats a running job without a placement where it is, if its devices are there to be taken.
func (p *Pipeline) goesOn(j *Job) bool {
	s := &p.state
	m, within := s.marks[j.ID], s.responses[j.ID]
	if m.placed == s.view.Round || !s.usable(j.Seats) || j.Held < within.MinReplicas || j.Held > within.MaxReplicas {
		return false
	}
	at := Placement{Job: j.ID, Seats: j.Seats, Resources: j.Resources}
	if !s.occupancy.occupy(j, &at) {
		return false
	}
	grant := Grant{Job: j.ID, Accelerator: AnyAccelerator, Replicas: j.Held}
	if m.granted == s.view.Round {
		p.plan.Grants[m.grant] = grant
	} else {
		m.granted, m.grant = s.view.Round, len(p.plan.Grants)
		p.plan.Grants = append(p.plan.Grants, grant)
	}
	m.replicas, m.answered, m.placed = j.Held, s.view.Round, s.view.Round
	p.plan.Placements = append(p.plan.Placements, at)
	s.occupancy.kept++
	delete(p.settler.refused, j.ID)
	return true
}

// fill seats those that were left out on devices that are idle in the end, and the job for which what is idle is reserved, unless the placer would move or stop
// anybody for that.
func (p *Pipeline) fill(ctx context.Context) error {
	before, stays := p.plan.Grants, p.staying()
	grants := p.leftOutThatMayFit()
	if len(grants) == 0 {
		return nil
	}
	var placed []JobID
	for i := range p.plan.Placements {
		placed = append(placed, p.plan.Placements[i].Job)
	}
	before, p.settler.further = slices.Clone(before), true
	if err := p.seatThese(ctx, slices.Concat(before, grants)); err != nil {
		return err
	}
	if p.staying() >= stays && !slices.ContainsFunc(placed, func(id JobID) bool { return p.state.marks[id].placed != p.state.view.Round }) {
		return nil
	}
	if err := p.seatThese(ctx, before); err != nil {
		return err
	}
	p.goOnWhereTheyAre()
	return nil
}

// leftOutThatMayFit are the grants of waiting jobs that were left out, and may find devices, as far as a count of what is idle shows.
func (p *Pipeline) leftOutThatMayFit() (grants []Grant) {
	s, r := &p.state, &p.settler
	if r.blocked {
		return nil
	}
	s.countIdle()
	waits := func(id JobID) bool { return s.view.Jobs[id].State == Waiting && s.marks[id].granted != s.view.Round }
	head := JobID(-1)
	if of := s.view.Reserved; len(of) > 0 && waits(of[0].Job) && s.allIdle(of) {
		within := s.candidate(of[0].Job).Response // it may be another since
		if n := min(reservedDevices(of), within.MaxReplicas); n >= within.MinReplicas {
			head = of[0].Job
			grants = append(grants, Grant{Job: head, Accelerator: AnyAccelerator, Replicas: n})
		}
	}
	for _, id := range r.order {
		if left, out := r.refused[id]; out && id != head && waits(id) && s.mayFit(s.candidate(id), left.grant.Replicas) {
			grants = append(grants, left.grant)
		}
	}
	return grants
}

// leavesAllAsItWas reports whether the last answer starts, moves and stops nobody: asked the same while the answers stand, a round settles in the same way.
func (p *Pipeline) leavesAllAsItWas() bool {
	n := p.staying()
	return n == len(p.plan.Placements) && n == len(p.state.running)
}

// staying is how many running jobs the last answer leaves where they are.
func (p *Pipeline) staying() (n int) {
	for i := range p.plan.Placements {
		if at := &p.plan.Placements[i]; !at.Evicted && SameSeats(p.state.view.Jobs[at.Job].Seats, at.Seats) {
			n++
		}
	}
	return n
}

// seatThese asks the placer about other grants in the place of the last ones.
func (p *Pipeline) seatThese(ctx context.Context, grants []Grant) error {
	p.forgetAnswers()
	p.plan.Grants = p.state.reservedFirst(grants)
	if err := p.state.checkGrants(p.stages.Allocation.ID, p.plan.Grants); err != nil {
		return err
	}
	return p.seat(ctx)
}

// keepRefusals adds to the last answer the jobs that were left out of its question: each has its grant and the verdict of the placer.
func (p *Pipeline) keepRefusals() {
	s, r := &p.state, &p.settler
	s.blocked = s.blocked || r.blocked
	unseated := make([]Verdict, 0, len(s.unseated)+len(r.refused))
	for _, v := range s.unseated {
		if m := s.marks[v.Job]; m.placed != s.view.Round {
			m.verdict = len(unseated)
			unseated = append(unseated, v)
		}
	}
	grants := slices.Clip(p.plan.Grants)
	for _, id := range slices.Sorted(maps.Keys(r.refused)) {
		m, left := s.marks[id], r.refused[id]
		if m.granted == s.view.Round {
			continue
		}
		m.granted, m.answered, m.replicas = s.view.Round, s.view.Round, left.grant.Replicas
		m.grant, m.verdict = len(grants), len(unseated)
		grants, unseated = append(grants, left.grant), append(unseated, left.verdict)
	}
	p.plan.Grants, s.unseated = grants, unseated
}

// candidate is that of an admitted job.
func (s *state) candidate(id JobID) *Candidate {
	at, _ := slices.BinarySearch(s.view.Active, id)
	return &s.candidates[at]
}

// sameShape reports whether two waiting jobs find devices or do not find them alike: they ask for the same of the same types.
func sameShape(a, b *Candidate) bool {
	j, k := a.JobSpec, b.JobSpec
	return a.Response.MinReplicas == b.Response.MinReplicas && a.Response.MaxReplicas == b.Response.MaxReplicas && j.Requested == k.Requested &&
		j.CPUs == k.CPUs && j.MemoryGB == k.MemoryGB && j.DeviceMemoryGB == k.DeviceMemoryGB && j.MixesTypes == k.MixesTypes &&
		j.Application == k.Application && j.Utilisation == k.Utilisation && j.Tier == k.Tier && j.BestEffort == k.BestEffort && j.Sensitivity == k.Sensitivity &&
		sameShare(j, k) && slices.Equal(j.Accelerators, k.Accelerators)
}
