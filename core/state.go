package core

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// state is what a pipeline knows about jobs and nodes, and the buffers of one round.
type state struct {
	view       View
	pending    []*Job      // submitted, not yet admitted, by JobID
	candidates []Candidate // those of view.Active, in the same order
	applying   []Candidate // those that an admitter is asked about
	awaited    []Candidate // scratch: what a scaler is shown
	responses  []*Response // by JobID
	reports    [][]Reports // by JobID and Job.Measured, of configurations that were reported of again; shorter without
	running    []*Job      // by JobID
	reviseAt   float64     // when the elasticity is to be asked about running jobs though no event touched them
	reviewAt   float64     // when reviewers want to look again, though nothing happens, at jobs that are held back

	stale     []*Job // jobs whose response must be asked for, by JobID
	asked     []*Job // pending jobs that every admitter so far admits
	unseated  []Verdict
	suspended []*Job   // that held devices when their owners suspended them in this round
	evicted   []*Job   // that get the same devices again
	reported  []*Job   // that reported a metric since the round before
	reviewed  []Change // that finish and pause jobs in this round
	held      []*Job   // pending ones that a reviewer held back, by JobID
	blocked   bool     // a blocking grant was not seated
	recorded  bool     // the round was decided by an earlier scheduler, and nobody is asked
	changes   []Change
	report    Report
	asking    string  // id of the component that is being asked
	marks     []*mark // by JobID; nil before the submission, over after the end
	over      mark
	spare     []*mark // of jobs that ended, to use again
	lastID    uint64  // highest id of an event taken
	devices   int     // of the cluster, whatever the health of their nodes
	holders   holders
	sharing   Sharing // how devices are shared: that of the cluster, or how it was in a round that is replayed
	retries   retries
	shares    map[JobID]*JobSpec // those that ask for parts of devices, as they were submitted, until their ends
	occupancy occupancy
	idle      []int          // scratch: devices that are left by type
	together  map[int][]Seat // scratch: of the groups of a round
	missing   missing
	explained explained
	pools     pools
	shrunken  bool     // nodes left, or jobs were edited: an admitted job may be too large
	paused    bool     // a reviewer held jobs back in this round: the next one asks about them, see undecided
	outgrown  bool     // one that waits is, and no nodes may join: the next round rejects it
	capacity  Capacity // counted when the first job is looked at
	oneType   string   // id of the allocator, if it puts each job on one type
}

// mark is what this round already said about a job: a field holds when its number is that of the round.
type mark struct {
	touched, granted, answered, placed, stayed, tuned, suspended, reported, paused int
	grant, verdict, tuning                                                         int // indices into the grants, the unseated verdicts and the tunings
	replicas                                                                       int // granted

	held      bool    // a reviewer holds it back
	roomFrom  float64 // when room is to be made for it: it was tried before
	nodesTold bool    // the job knows which devices it misses
	expected  float64 // when nodes come, as its last verdict said
}

func (s *state) init(c *Cluster, o RoundOptions) {
	s.sharing = c.Sharing
	s.view = View{IntervalSeconds: o.IntervalSeconds, OnEvents: o.OnEvents, Cluster: c, Devices: c.UsableDevices(), unpinned: true}
	s.report.View, s.devices, s.reviseAt, s.reviewAt, s.pools.again = &s.view, c.Devices(), math.Inf(1), math.Inf(1), math.Inf(1)
	s.retries = retries{failedOn: map[JobID][]Seat{}, notBefore: map[JobID]float64{}, next: math.Inf(1)}
}

// decideBy takes in who decides: it counts the devices that a job can have at once under an allocator, and reports whether deadlines
// are promised, and what tiers are guaranteed.
func (s *state) decideBy(stages *Stages) {
	c := &stages.Allocation
	s.askGuarantees(c.can.Guarantor)
	s.askPromises(stages)
	s.capacity.OneType, s.oneType = c.OneType, ""
	if c.OneType {
		s.oneType = c.ID
	}
}

// askGuarantees takes in what tiers are guaranteed: the usual where an allocator tells nothing. One who takes over from a plugin may guarantee
// something else.
func (s *state) askGuarantees(g Guarantor) {
	s.report.Guarantees = UsualGuarantees()
	if g != nil {
		s.report.Guarantees = g.Guarantees()
	}
}

// askPromises takes in whether deadlines are promised. One who takes over from a plugin may not do what that did.
func (s *state) askPromises(stages *Stages) {
	s.report.Promises = false
	for i := range stages.Admission {
		if stages.Admission[i].can.Promises() {
			s.report.Promises = true
			return
		}
	}
}

// observe brings the state up to the moment of the round.
func (s *state) observe(seen Observation) error {
	v := &s.view
	if seen.NowSeconds < v.NowSeconds {
		return fmt.Errorf("round %d: backend went back in time from %v to %v s", v.Round+1, v.NowSeconds, seen.NowSeconds)
	}
	v.Round++
	v.NowSeconds = seen.NowSeconds
	v.Changed = v.Changed[:0]
	s.report.Events = s.skipKnown(seen.Events)
	s.report.Ended, s.report.Verdicts = s.report.Ended[:0], s.report.Verdicts[:0]
	s.suspended, s.reported, s.paused, s.reviewAt = s.suspended[:0], s.reported[:0], false, math.Inf(1)
	for i := range s.report.Events {
		if err := s.take(&s.report.Events[i]); err != nil {
			return fmt.Errorf("round %d: %w", v.Round, err)
		}
	}
	how := v.Cluster.Sharing
	if s.report.Repeated = seen.Decided != nil; s.report.Repeated && seen.Decided.Sharing != nil {
		how = *seen.Decided.Sharing
	}
	if how != s.sharing {
		s.divide(how)
	}
	s.reviewRetries()
	s.touchRevised()
	s.restale()
	s.forgetEnded()
	return nil
}

// touchRevised touches the running jobs when the moment has come that the elasticity named.
func (s *state) touchRevised() {
	if s.view.NowSeconds >= s.reviseAt {
		for _, j := range s.running {
			s.touch(j.ID)
		}
	}
	s.reviseAt = math.Inf(1)
}

// restale lists the jobs that changed and those whose response must be asked for.
func (s *state) restale() {
	v := &s.view
	slices.Sort(v.Changed)
	s.stale = s.stale[:0]
	for _, id := range v.Changed {
		if j := v.Jobs[id]; j != nil && !j.State.Ended() {
			s.stale = append(s.stale, j)
		}
	}
}

// skipKnown leaves out the events that were reported before.
func (s *state) skipKnown(events []Event) []Event {
	fresh := events
	for i := range events {
		switch id := events[i].ID; {
		case id == 0 || id > s.lastID:
			s.lastID = max(s.lastID, id)
			if len(fresh) < len(events) {
				fresh = append(fresh, events[i])
			}
		case len(fresh) == len(events):
			fresh = slices.Clip(events[:i]) // the buffer is the backend's
		}
	}
	return fresh
}

// take brings the state up to date with one event.
func (s *state) take(e *Event) error {
	switch e.Kind {
	case JobSubmitted:
		return s.takeSubmission(e)
	case NodeChanged, NodeAdded, NodeRemoved:
		return s.takeNode(e)
	}
	if !s.submitted(e.Job) {
		return fmt.Errorf("backend reported %v of unknown job %d", e.Kind, e.Job)
	}
	j := s.view.Job(e.Job)
	if j == nil || j.State.Ended() { // it had not heard of the end yet
		return nil
	}
	if err := e.check(j); err != nil {
		return err
	}
	s.touch(e.Job)
	return s.takeJob(j, e)
}

// takeJob brings a job that has not ended up to date with an event that was checked.
func (s *state) takeJob(j *Job, e *Event) error {
	switch e.Kind {
	case JobProgressed:
		j.Progress, j.ProgressRate, j.ProgressAsOf, j.StepsLeft = e.Progress, e.Rate, e.FromSeconds, e.StepsLeft
	case JobMeasured:
		j.Gradients = e.Gradients
		s.measure(j, e.Measurement)
	case JobReported:
		j.report(e.Metric, Point{Step: e.Step, Value: e.Value, AtSeconds: e.AtSeconds})
		if m := s.marks[e.Job]; m.reported != s.view.Round {
			m.reported, s.reported = s.view.Round, append(s.reported, j)
		}
	case JobInterrupted:
		s.retries.blame(j, e, e.Seats)
		s.release(j, e.AtSeconds)
		if e.Cause.preempts() {
			j.Preemptions++
		}
		j.Progress, j.ProgressRate, j.ProgressAsOf, j.StepsLeft = e.Progress, 0, e.AtSeconds, e.StepsLeft
		j.WaitingReason = e.Cause.Reason()
	case JobFinished, JobFailed, JobCancelled:
		s.takeEnd(j, e)
	case JobStarting, JobStarted:
		j.Starting = e.Kind == JobStarting && j.State == Running
	case JobShrunk:
		return s.shrink(j, e)
	case JobChanged:
		return s.change(j, e)
	}
	return nil
}

// takeSubmission adds a job, which waits unless the event says that it was there before.
func (s *state) takeSubmission(e *Event) error {
	v := &s.view
	if e.Spec == nil || e.Spec.ID != e.Job || e.Job < 0 || s.submitted(e.Job) {
		return fmt.Errorf("backend submitted job %d without a specification of its own", e.Job)
	}
	for int(e.Job) >= len(v.Jobs) {
		v.Jobs = append(v.Jobs, nil)
		s.responses = append(s.responses, nil)
		s.marks = append(s.marks, nil)
	}
	s.marks[e.Job] = s.newMark()
	s.keepShare(e.Spec)
	j := NewJob(s.served(e.Spec))
	j.StepsLeft = e.StepsLeft
	v.unpinned = v.unpinned && !j.Pinned
	v.Jobs[e.Job] = j
	s.touch(e.Job)
	if e.Held != nil {
		return s.hold(j, e)
	}
	s.pending = insertJob(s.pending, j)
	return nil
}

// takeEnd ends a job, with the progress that the event tells or, where it finished by itself, all of its work.
func (s *state) takeEnd(j *Job, e *Event) {
	s.release(j, e.AtSeconds)
	s.end(j, endState(e.Kind), e.AtSeconds)
	j.Progress, j.ProgressRate = e.Progress, 0
	switch {
	case e.Kind != JobFinished:
	case e.Early != NoReason:
		j.WaitingReason = e.Early
	case j.TotalWork > 0:
		j.Progress = j.TotalWork
	}
}

// keepShare keeps what a job asks for that asks for parts of devices.
func (s *state) keepShare(spec *JobSpec) {
	if spec.Share == nil {
		delete(s.shares, spec.ID)
		return
	}
	if s.shares == nil {
		s.shares = make(map[JobID]*JobSpec)
	}
	s.shares[spec.ID] = spec
}

// newMark is a blank mark, that of a job that ended if there is one.
func (s *state) newMark() *mark {
	last := len(s.spare) - 1
	if last < 0 {
		return new(mark)
	}
	m := s.spare[last]
	s.spare = s.spare[:last]
	*m = mark{}
	return m
}

// submitted reports whether there ever was such a job.
func (s *state) submitted(id JobID) bool {
	return id >= 0 && int(id) < len(s.marks) && s.marks[id] != nil
}

// endState is the state in which an event leaves a job that it ends.
func endState(k EventKind) JobState {
	switch k {
	case JobFinished:
		return Completed
	case JobCancelled:
		return Cancelled
	default:
		return Failed
	}
}

// touch notes that something about a job changed since the round before.
func (s *state) touch(id JobID) {
	s.view.journal.add(id)
	if m := s.marks[id]; m.touched != s.view.Round {
		m.touched = s.view.Round
		s.view.Changed = append(s.view.Changed, id)
	}
}

// release takes a job's devices away at a moment.
func (s *state) release(j *Job, at float64) {
	if j.State != Running {
		return
	}
	j.settle(at)
	j.LastChange = at
	s.holders.add(s.sharing, j, j.Seats, j.Slices(), -1)
	s.occupancy.release(j)
	j.Seats, j.Sliced, j.Held, j.State, j.Starting, j.Resources = nil, nil, 0, Waiting, false, nil
	s.view.Waiting++
	s.running = removeJob(s.running, j)
}

func (s *state) end(j *Job, state JobState, at float64) {
	if j.State == Waiting {
		s.view.Waiting--
	}
	j.State, j.FinishSeconds = state, at
	s.view.journal.add(j.ID)
	s.report.Ended = append(s.report.Ended, j)
}

// forgetEnded drops ended jobs from every list but the report's.
func (s *state) forgetEnded() {
	if len(s.report.Ended) == 0 {
		return
	}
	slices.SortFunc(s.report.Ended, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	for _, j := range s.report.Ended {
		if m := s.marks[j.ID]; m != &s.over {
			s.spare = append(s.spare, m)
		}
		s.view.Jobs[j.ID], s.responses[j.ID], s.marks[j.ID] = nil, nil, &s.over
		s.forgetReports(j.ID)
		delete(s.shares, j.ID)
		s.retries.forget(j.ID)
	}
	s.pending = slices.DeleteFunc(s.pending, func(j *Job) bool { return j.State.Ended() })
	s.held = slices.DeleteFunc(s.held, func(j *Job) bool { return j.State.Ended() })
	left, from := 0, 0 // those up to from were looked at, and left of them are there
	keep := func(to int) {
		copy(s.candidates[left:], s.candidates[from:to])
		left += copy(s.view.Active[left:], s.view.Active[from:to])
	}
	for _, j := range s.report.Ended {
		if at, found := slices.BinarySearch(s.view.Active, j.ID); found && at >= from {
			keep(at)
			from = at + 1
		}
	}
	keep(len(s.view.Active))
	clear(s.candidates[left:])
	s.view.Active, s.candidates = s.view.Active[:left], s.candidates[:left]
}

// rejectImpossible ends the pending jobs that the cluster could not run even when empty, and lists the others to ask
// the admitters about. A job is looked at when its response is new.
func (s *state) rejectImpossible() {
	s.asked = s.asked[:0]
	s.countCapacity()
	ended := len(s.report.Ended)
	for _, j := range s.pending {
		if j.Suspended {
			s.holdBack(j, Verdict{Reason: Suspended})
			continue
		}
		if s.marks[j.ID].paused == s.view.Round {
			continue
		}
		if s.marks[j.ID].touched == s.view.Round || j.WaitingReason == AwaitingNodes {
			need := s.responses[j.ID].MinReplicas
			if capacity, widest := s.capacity.For(s.view.Cluster, j.JobSpec); need > capacity {
				s.rejectFor(j, need, capacity, widest)
				continue
			}
		}
		s.asked = append(s.asked, j)
	}
	if len(s.report.Ended) > ended {
		s.forgetEnded()
	}
}

// rejectOutgrown ends the admitted jobs without devices that became too large for the cluster, where no nodes may join.
func (s *state) rejectOutgrown() {
	if !s.shrunken || s.view.Cluster.MayGrow || s.view.Waiting == 0 {
		return
	}
	s.countCapacity()
	ended := len(s.report.Ended)
	for i := range s.candidates {
		j := s.candidates[i].Job
		if need := s.responses[j.ID].MinReplicas; j.State == Waiting {
			if capacity, widest := s.capacity.For(s.view.Cluster, j.JobSpec); need > capacity {
				s.rejectFor(j, need, capacity, widest)
			}
		}
	}
	if len(s.report.Ended) > ended {
		s.forgetEnded()
	}
}

// countCapacity counts the devices of the cluster when nodes joined or left since the last time.
func (s *state) countCapacity() {
	if s.capacity.byType == nil {
		s.capacity.Count(s.view.Cluster)
	}
}

// rejectFor rejects a job that needs more devices than the cluster has for it, or than its widest type has where the
// allocator mixes none. It holds the job back where nodes may join.
func (s *state) rejectFor(j *Job, need, capacity int, widest AcceleratorID) {
	v := Verdict{
		Job: j.ID, Code: Reject, Reason: ExceedsCluster, By: "pipeline",
		Wanted: float64(need), Available: float64(capacity), Unit: "devices",
	}
	switch {
	case capacity == 0 && !s.hasTypeFor(j):
		v.Reason = AcceleratorMissing
	case s.view.Cluster.CountsShares():
		s.explainShares(&v, j.JobSpec)
	case j.MixesTypes && s.capacity.OneType:
		v.By, v.Message = s.oneType, NotMixed(s.oneType, s.view.Cluster.Accelerators[widest])
	}
	if c := s.view.Cluster; c.MayGrow && len(c.Pools) == 0 { // of pools the capacity is what they may have
		v.Reason, v.Message = AwaitingNodes, ""
		s.expect(j, &v)
		s.holdBack(j, v)
		return
	}
	s.reject(j, v)
}

// explainShares tells of a rejected job what it is that too few nodes have, where more than whole devices is counted.
func (s *state) explainShares(v *Verdict, spec *JobSpec) {
	if lack := s.view.Cluster.MissingResource(spec); lack.What != "" {
		v.Wanted, v.Available, v.Unit, v.Message = lack.Wanted, lack.Available, lack.Unit, lack.message()
		return
	}
	if counted := s.view.Cluster.Counted(spec); counted != "" {
		v.Unit, v.Message = "replicas", "no more find "+counted+" that each asks for on idle nodes"
	}
}

// hasTypeFor reports whether some node is of a type that a job can run on.
func (s *state) hasTypeFor(j *Job) bool {
	devices, _, _ := widestOf(s.view.Cluster, j.JobSpec, s.capacity.byType, (*JobSpec).Accepts)
	return devices > 0
}

func (s *state) reject(j *Job, v Verdict) {
	j.WaitingReason = v.Reason
	s.reportVerdict(v)
	s.end(j, Rejected, s.view.NowSeconds)
}

// admitRest admits those jobs that no admitter held back.
func (s *state) admitRest() {
	for _, j := range s.asked {
		s.admit(j)
	}
	s.pending = slices.DeleteFunc(s.pending, func(j *Job) bool { return j.State != Pending })
}

// admit makes a pending job a candidate. It is still listed as pending.
func (s *state) admit(j *Job) {
	j.State = Waiting
	s.letOn(j)
	s.view.Waiting++
	j.WaitingReason = NoReason
	s.view.journal.add(j.ID)
	if s.responses[j.ID] == nil {
		s.responses[j.ID] = new(Response) // filled in before anybody sees it
	}
	c := Candidate{Job: j, Response: s.responses[j.ID]}
	at, _ := slices.BinarySearch(s.view.Active, j.ID)
	s.view.Active = slices.Insert(s.view.Active, at, j.ID)
	s.candidates = slices.Insert(s.candidates, at, c)
}

func (s *state) malfunction(component, call string, err error) error {
	return fmt.Errorf("round %d: component %q: %s: %w", s.view.Round, component, call, err)
}

func compareJobs(a, b *Job) int { return cmp.Compare(a.ID, b.ID) }

func insertJob(jobs []*Job, j *Job) []*Job {
	at, _ := slices.BinarySearchFunc(jobs, j, compareJobs)
	return slices.Insert(jobs, at, j)
}

func removeJob(jobs []*Job, j *Job) []*Job {
	if at, found := slices.BinarySearchFunc(jobs, j, compareJobs); found {
		return slices.Delete(jobs, at, at+1)
	}
	return jobs
}
