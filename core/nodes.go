package core

import (
	"fmt"
	"math"
	"slices"
)

// Nodes come and go while the pipeline runs. One that joins gets the next id, and one that left keeps its own, so that an id
// names the same machine for ever.

// takeNode takes in an event about a node.
func (s *state) takeNode(e *Event) error {
	c := s.view.Cluster
	if e.Kind == NodeAdded {
		if err := s.addNode(e); err != nil {
			return err
		}
	} else {
		if e.Node < 0 || int(e.Node) >= len(c.Nodes) {
			return fmt.Errorf("backend reported unknown node %d", e.Node)
		}
		node := &c.Nodes[e.Node]
		if node.Health == Gone {
			return nil // it had not heard of the end yet
		}
		if e.Kind == NodeRemoved {
			node.Health, node.ExpectedSeconds, s.shrunken = Gone, 0, true
			s.recount()
		} else {
			if e.Health > Provisioning {
				return fmt.Errorf("backend reported that node %q is %v, which only its removal says", node.Name, e.Health)
			}
			before := node.Usable()
			node.Health, node.Unusable = e.Health, e.Unusable&FirstDevices(node.Devices)
			s.retries.heal(node.ID, node.Usable()&^before)
			if node.Health != Provisioning {
				node.ExpectedSeconds = 0
			}
		}
	}
	s.view.HealthChanges++
	s.view.Devices = c.UsableDevices()
	return nil
}

func (s *state) addNode(e *Event) error {
	c, n := s.view.Cluster, e.Added
	if n == nil || int(e.Node) != len(c.Nodes) {
		return fmt.Errorf("backend added node %d without a description, or not as the next one, %d", e.Node, len(c.Nodes))
	}
	if n.Devices < 1 || n.Devices > MaxDevicesPerNode || n.Health > Provisioning {
		return fmt.Errorf("backend added node %q with %d devices that is %v", n.Name, n.Devices, n.Health)
	}
	if !amount(n.ExpectedSeconds) {
		return fmt.Errorf("backend added node %q that is expected at %v", n.Name, n.ExpectedSeconds)
	}
	accelerator := c.Accelerator(n.Accelerator)
	if accelerator == AnyAccelerator {
		accelerator = AcceleratorID(len(c.Accelerators))
		c.Accelerators = append(slices.Clip(c.Accelerators), n.Accelerator)
		for _, j := range s.view.Jobs {
			if j != nil {
				s.touch(j.ID) // its curves know nothing of the type
			}
		}
	}
	c.Nodes = append(slices.Clip(c.Nodes), Node{
		ID: e.Node, Name: n.Name, Accelerator: accelerator, Devices: n.Devices, CPUs: n.CPUs, MemoryGB: n.MemoryGB, DeviceMemoryGB: n.DeviceMemoryGB,
		Rack: n.Rack, Health: n.Health, Unusable: n.Unusable & FirstDevices(n.Devices), Pool: n.Pool,
	})
	if n.Health == Provisioning {
		c.Nodes[e.Node].ExpectedSeconds = n.ExpectedSeconds
	}
	s.recount()
	return nil
}

// recount has the devices counted anew, and every job that is not admitted looked at again; each job where it is bounded by more than devices.
func (s *state) recount() {
	s.devices = s.view.Cluster.Devices()
	s.capacity.byType = nil
	if s.view.Cluster.CountsShares() {
		for _, j := range s.view.Jobs {
			if j != nil {
				s.touch(j.ID)
			}
		}
		return
	}
	for _, j := range s.pending {
		s.touch(j.ID)
	}
}

// hold gives a job that was there before what it has behind it when it is submitted, and what it holds.
func (s *state) hold(j *Job, e *Event) error {
	h := e.Held
	if err := s.checkSeats(j, h.Seats); err != nil {
		return err
	}
	for _, number := range [...]float64{h.LastChange, h.Executed, h.Attained, e.Progress, e.Rate, e.FromSeconds} {
		if !amount(number) {
			return fmt.Errorf("backend submitted job %q as having had %v", j.Name, number)
		}
	}
	if h.Resources != nil && !h.Resources.sane() {
		return fmt.Errorf("backend submitted job %q as having %v CPUs and %v GB for a replica", j.Name, h.Resources.CPUs, h.Resources.MemoryGB)
	}
	if running := len(h.Seats) > 0; !amount(h.FirstStart) && (running || !math.IsNaN(h.FirstStart)) {
		return fmt.Errorf("backend submitted job %q as having started at %v", j.Name, h.FirstStart)
	}
	if j.Tuning = h.Tuning; !j.Tuning.Equal(Tuning{}) {
		j.Tuning.Job = j.ID
	}
	if len(j.Tuning.BatchByReplica) != Replicas(h.Seats) {
		j.Tuning.BatchByReplica = nil
	}
	j.AsOfSeconds, j.Executed, j.Attained = e.AtSeconds, h.Executed, h.Attained
	j.Progress, j.ProgressRate, j.ProgressAsOf = e.Progress, e.Rate, e.FromSeconds
	j.FirstStart, j.LastChange, j.Restarts, j.Preemptions = h.FirstStart, h.LastChange, h.Restarts, h.Preemptions
	j.Measured, j.Gradients = slices.Clone(h.Measured), h.Gradients
	if len(h.Seats) == 0 {
		s.pending = insertJob(s.pending, j)
		return nil
	}
	s.admit(j)
	s.view.Waiting--
	j.State, j.Seats, j.Held, j.Resources = Running, slices.Clone(h.Seats), Replicas(h.Seats), h.Resources
	if s.sharing == Mig {
		j.Sliced = slicedAt(s.holders.held(j))
	}
	s.holders.add(s.sharing, j, j.Seats, j.Slices(), 1)
	s.running = insertJob(s.running, j)
	s.occupancy.current = false
	return nil
}

// shrink takes some of a job's devices away at a moment. What it runs with may be less than its owner allows: the stages then
// give it more, or stop it.
func (s *state) shrink(j *Job, e *Event) error {
	if j.State != Running {
		return nil // it was stopped meanwhile
	}
	if len(e.Seats) == 0 {
		return fmt.Errorf("backend reported %v of job %q that has nothing left", e.Kind, j.Name)
	}
	for _, seat := range e.Seats {
		if !slices.ContainsFunc(j.Seats, func(had Seat) bool {
			return had.Node == seat.Node && seat.Devices != 0 && seat.Devices&^had.Devices == 0
		}) {
			return fmt.Errorf("backend reported %v of job %q to %s, which is no part of %s", e.Kind, j.Name, s.describeSeats(e.Seats), s.describeSeats(j.Seats))
		}
	}
	var lost []Seat
	if e.Cause.blames() {
		lost = SeatsWithout(j.Seats, e.Seats)
	}
	s.retries.blame(j, e, lost)
	j.settle(e.AtSeconds)
	left := Replicas(e.Seats)
	kept := leftOf(j, e.Seats)
	s.holders.add(s.sharing, j, j.Seats, j.Slices(), -1)
	s.holders.add(s.sharing, j, e.Seats, kept, 1)
	s.occupancy.current, j.Sliced = false, slicedAt(kept)
	j.Seats, j.Held, j.LastChange, j.Tuning.BatchByReplica = slices.Clone(e.Seats), left, e.AtSeconds, nil
	j.Progress, j.ProgressRate, j.ProgressAsOf, j.StepsLeft = e.Progress, e.Rate, e.FromSeconds, e.StepsLeft
	return nil
}

// change takes in that its owner edited a job.
func (s *state) change(j *Job, e *Event) error {
	n := e.Spec
	if n == nil || n.ID != j.ID || n.Name != j.Name {
		return fmt.Errorf("backend reported %v of job %q without its specification", e.Kind, j.Name)
	}
	s.keepShare(n)
	n = s.served(n)
	if n.MinReplicas < 1 || n.MinReplicas > n.MaxReplicas {
		return fmt.Errorf("backend reported %v of job %q to run on %d to %d replicas", e.Kind, j.Name, n.MinReplicas, n.MaxReplicas)
	}
	if s.sharing == Mig && j.State == Running && !sameShare(j.JobSpec, n) { // a slice stays as large as it is while it has an owner
		kept := *n
		kept.Share, n = j.Share, &kept
	}
	if !sameShare(j.JobSpec, n) { // what it had until now stays
		j.settle(s.view.NowSeconds)
	}
	s.holders.add(s.sharing, j, j.Seats, j.Slices(), -1)
	j.JobSpec, s.shrunken = n, true
	s.holders.add(s.sharing, j, j.Seats, j.Slices(), 1)
	s.occupancy.current = s.occupancy.current && s.occupancy.shares == nil // what it takes may be more or less
	s.view.unpinned = s.view.unpinned && !j.Pinned
	if !j.Suspended || j.State == Pending {
		return nil
	}
	if j.State == Running {
		s.letGo(j)
		s.suspended, s.marks[j.ID].suspended = append(s.suspended, j), s.view.Round
	}
	s.withdraw(j)
	return nil
}

// withdraw makes an admitted job without devices one that waits for admission again.
func (s *state) withdraw(j *Job) {
	j.State = Pending
	s.view.Waiting--
	if at, found := slices.BinarySearch(s.view.Active, j.ID); found {
		s.view.Active = slices.Delete(s.view.Active, at, at+1)
		s.candidates = slices.Delete(s.candidates, at, at+1)
	}
	s.pending = insertJob(s.pending, j)
}

// holdBack tells a job that its owner suspended so.
func (s *state) holdBack(j *Job, v Verdict) {
	v.Job, v.Code, v.By = j.ID, Defer, "pipeline"
	if j.WaitingReason != v.Reason || s.expectsOther(&v) {
		j.WaitingReason = v.Reason
		s.view.journal.add(j.ID)
		s.reportVerdict(v)
	}
}

// checkSeats refuses seats that no node of the cluster has, that overlap on one, or on which other jobs leave no room.
func (s *state) checkSeats(j *Job, seats []Seat) error {
	for _, seat := range seats {
		for rest := seat.Devices; rest != 0; rest &= rest - 1 {
			if other := s.inTheWay(j, seat.Node, rest&-rest); other != nil {
				return fmt.Errorf("backend submitted job %q as running on devices of job %q", j.Name, other.Name)
			}
		}
	}
	for i, seat := range seats {
		if seat.Node < 0 || int(seat.Node) >= len(s.view.Cluster.Nodes) || seat.Devices == 0 ||
			seat.Devices&^FirstDevices(s.view.Cluster.Nodes[seat.Node].Devices) != 0 ||
			slices.ContainsFunc(seats[:i], func(o Seat) bool { return o.Node == seat.Node && o.Devices&seat.Devices != 0 }) {
			return fmt.Errorf("backend submitted job %q as running on %s", j.Name, s.describeSeats(seats))
		}
	}
	return nil
}

// inTheWay is the last of the running jobs that leave a job no room on a device; nil when there is room. O(running jobs).
func (s *state) inTheWay(j *Job, node NodeID, device DeviceSet) (last *Job) {
	c := s.view.Cluster
	milli, owners := j.milli(), 1
	if milli == 0 {
		return nil // it takes nothing of the device
	}
	for _, other := range s.running {
		takes := other.milli()
		if takes > 0 && slices.ContainsFunc(other.Seats, func(had Seat) bool { return had.Node == node && had.Devices&device != 0 }) {
			milli, owners, last = milli+takes, owners+1, other
		}
	}
	if c.Sharing == Fractional && milli <= WholeDevice || c.Sharing == TimeSlice && owners <= c.MaxOwners {
		return nil
	}
	return last
}
