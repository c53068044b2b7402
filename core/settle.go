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
	// Passes is how often the allocator is asked in a round at most, each time without those that found no devices the time before; 0 and 1 ask it once and
	// leave its answer as it is.
	Passes int
	// MakeRoom lets a grant that finds no devices take those of running jobs that were granted after it, where the allocator is a Precedent.
	MakeRoom bool
}

// settler is what a round knows about grants that found no devices.
type settler struct {
	shown    []Candidate         // whom the allocator is asked about next
	narrowed map[JobID]*Response // smaller ranges of elastic jobs, which are shown instead of their own
	refused  map[JobID]refusal   // jobs that are left out of later questions
	order    []JobID             // in which these were left out
	shapes   []Candidate         // waiting jobs that found no devices at their least number, one of each shape
	tried    map[JobID]bool      // jobs that room was looked for
	blocked  bool                // a blocking grant found no devices
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
	if p.rounds.Settle.Passes < 2 || len(p.state.unseated) == 0 {
		return nil
	}
	r := p.beginSettling()
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
	p.keepRefusals()
	p.standing.UntilSeconds = min(p.standing.UntilSeconds, r.until)
	return nil
}

// improve asks the allocator again as long as that may do better, and no more often than allowed.
func (p *Pipeline) improve(ctx context.Context) error {
	r := &p.settler
	for pass := 1; p.mayImprove(); pass++ {
		r.until = p.state.view.NowSeconds // the next round may go on from here
		if pass == p.rounds.Settle.Passes {
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
	}
	return nil
}

// beginSettling forgets the round before.
func (p *Pipeline) beginSettling() (r *settler) {
	r = &p.settler
	*r = settler{
		shown: append(r.shown[:0], p.state.candidates...), shapes: r.shapes[:0], order: r.order[:0], narrowed: map[JobID]*Response{},
		refused: map[JobID]refusal{}, tried: map[JobID]bool{}, blocked: p.state.blocked, until: p.standing.UntilSeconds,
	}
	return r
}

// mayImprove reports whether asking again may do better: a grant was refused, and either somebody loses devices, or some are idle while somebody could be
// granted fewer or was granted none.
func (p *Pipeline) mayImprove() bool {
	s, r := &p.state, &p.settler
	if len(s.unseated) == 0 {
		return false
	}
	if len(s.running) > s.occupancy.kept || p.headWithRoom() >= 0 {
		return true
	}
	mayGo := func(v Verdict) bool { // with fewer replicas, or without those that the placer stopped at
		return p.plan.Grants[s.marks[v.Job].grant].Replicas > s.responses[v.Job].MinReplicas || v.Reason == BlockedByEarlier && !s.blocked
	}
	return s.anyIdle(p.plan.Placements) && (len(p.plan.Grants) < len(r.shown) || slices.ContainsFunc(s.unseated, mayGo))
}

// anyIdle reports whether devices are left by placements, as far as a count shows.
func (s *state) anyIdle(placed []Placement) bool {
	if s.view.Cluster.Sharing != Exclusive {
		return true // parts of them may be
	}
	used := 0
	for i := range placed {
		used += Replicas(placed[i].Seats)
	}
	return used < s.view.Devices
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

// forgetAnswers takes back what the last grants and placements said about jobs.
func (p *Pipeline) forgetAnswers() {
	s := &p.state
	for i := range p.plan.Grants {
		m := s.marks[p.plan.Grants[i].Job]
		m.granted, m.answered, m.placed = 0, 0, 0
	}
	s.occupancy.undo(s, p.plan.Placements)
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
	if s.view.Cluster.Sharing == TimeSlice || s.occupancy.kept == len(s.running) {
		return
	}
	if !s.occupancy.checked {
		_ = s.checkPlacements(p.stages.Placement.ID, nil, nil) // the last answer grants nothing: all that runs is free
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

// fill seats those that were left out on devices that are idle in the end, unless the placer would move or stop anybody for that.
func (p *Pipeline) fill(ctx context.Context) error {
	s, r := &p.state, &p.settler
	grants, before, stays := slices.Clone(p.plan.Grants), len(p.plan.Grants), p.staying()
	for _, id := range r.order {
		if left, out := r.refused[id]; out && s.view.Jobs[id].State == Waiting && s.marks[id].granted != s.view.Round {
			grants = append(grants, left.grant)
		}
	}
	if r.blocked || len(grants) == before || !s.anyIdle(p.plan.Placements) {
		return nil
	}
	var placed []JobID
	for i := range p.plan.Placements {
		placed = append(placed, p.plan.Placements[i].Job)
	}
	if err := p.seatThese(ctx, grants); err != nil {
		return err
	}
	if p.staying() >= stays && !slices.ContainsFunc(placed, func(id JobID) bool { return s.marks[id].placed != s.view.Round }) {
		return nil
	}
	if err := p.seatThese(ctx, grants[:before]); err != nil {
		return err
	}
	p.goOnWhereTheyAre()
	return nil
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
	p.plan.Grants = grants
	if err := p.state.checkGrants(p.stages.Allocation.ID, grants); err != nil {
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
