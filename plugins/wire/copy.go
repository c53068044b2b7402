package wire

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// Copy is a view kept up to date by updates: what a Teller tells at one end is View at the other.
type Copy struct {
	View       core.View
	Candidates []core.Candidate // with the responses told; for allocators

	started  bool
	sequence uint64
	tables   map[uint32]*core.StepTimes
}

// Apply brings the copy up to date. It reports false, and changes nothing, when the update is for another copy.
func (c *Copy) Apply(u *stagev1.ViewUpdate) (bool, error) {
	if !u.GetFull() && (!c.started || u.GetSequence() != c.sequence+1) {
		return false, nil
	}
	if u.GetFull() {
		*c = Copy{started: true, tables: map[uint32]*core.StepTimes{}}
		c.View.Cluster = &core.Cluster{Accelerators: u.GetAccelerators()}
	}
	c.sequence = u.GetSequence()
	v := &c.View
	v.NowSeconds, v.Round, v.IntervalSeconds = u.GetNowSeconds(), int(u.GetRound()), u.GetIntervalSeconds()
	if err := c.nodes(u); err != nil {
		return false, err
	}
	for _, t := range u.GetStepTimes() {
		c.tables[t.GetTable()] = &core.StepTimes{OneNode: t.GetOneNode(), ManyNodes: t.GetManyNodes()}
	}
	for _, told := range u.GetJobs() {
		if err := c.job(told); err != nil {
			return false, err
		}
	}
	for _, id := range u.GetEnded() {
		if err := c.end(core.JobID(id)); err != nil {
			return false, err
		}
	}
	v.Changed = v.Changed[:0]
	for _, id := range u.GetChanged() {
		v.Changed = append(v.Changed, core.JobID(id))
	}
	return true, nil
}

func (c *Copy) nodes(u *stagev1.ViewUpdate) error {
	cluster := c.View.Cluster
	for _, n := range u.GetNodes() {
		health := core.Health(n.GetHealth() - stagev1.Health_HEALTH_READY)
		if health > core.Down {
			return fmt.Errorf("node %d has health %v", n.GetId(), n.GetHealth())
		}
		if u.GetFull() {
			if n.GetId() != int32(len(cluster.Nodes)) || n.GetAccelerator() < 0 || int(n.GetAccelerator()) >= len(cluster.Accelerators) {
				return fmt.Errorf("node %d is out of order or of an unknown accelerator type", n.GetId())
			}
			cluster.Nodes = append(cluster.Nodes, core.Node{
				ID: core.NodeID(n.GetId()), Health: health, Name: n.GetName(), Accelerator: core.AcceleratorID(n.GetAccelerator()),
				Devices: int(n.GetDevices()), CPUs: n.GetCpus(), MemoryGB: n.GetMemoryGb(), Rack: n.GetRack(),
			})
			continue
		}
		if n.GetId() < 0 || int(n.GetId()) >= len(cluster.Nodes) {
			return fmt.Errorf("unknown node %d", n.GetId())
		}
		cluster.Nodes[n.GetId()].Health = health
	}
	if len(u.GetNodes()) > 0 {
		c.View.Devices = cluster.UsableDevices()
		c.View.HealthChanges++
	}
	return nil
}

func (c *Copy) job(told *stagev1.Job) error {
	v := &c.View
	id := core.JobID(told.GetId())
	j := v.Job(id)
	if j == nil {
		if told.GetSpec() == nil || id < 0 {
			return fmt.Errorf("job %d is told without its specification", id)
		}
		for int(id) >= len(v.Jobs) {
			v.Jobs = append(v.Jobs, nil)
		}
		j = core.NewJob(c.spec(id, told.GetSpec()))
		v.Jobs[id] = j
	}
	c.count(j, -1)
	state := core.JobState(told.GetState() - stagev1.JobState_JOB_STATE_PENDING)
	reason, known := core.ParseReason(told.GetWaitingReason())
	if state.Ended() || !known {
		return fmt.Errorf("job %d is told in state %v for reason %q", id, told.GetState(), told.GetWaitingReason())
	}
	j.State, j.WaitingReason = state, reason
	j.Seats = seatsFrom(told.GetSeats())
	j.Held = core.Replicas(j.Seats)
	j.Tuning = core.Tuning{}
	if told.GetTuning() != nil {
		j.Tuning = tuningFrom(told.GetTuning())
	}
	j.AsOfSeconds, j.Executed, j.Attained = told.GetAsOfSeconds(), told.GetExecutedSeconds(), told.GetAttainedDeviceSeconds()
	j.Progress, j.ProgressRate, j.ProgressAsOf = told.GetProgress(), told.GetProgressRate(), told.GetProgressAsOfSeconds()
	j.StepsLeft, j.FirstStart, j.LastChange = told.GetStepsLeft(), told.GetFirstStartSeconds(), told.GetLastChangeSeconds()
	j.Restarts, j.Preemptions = int(told.GetRestarts()), int(told.GetPreemptions())
	c.count(j, +1)
	c.respond(j, told.GetResponse())
	return nil
}

// count enters a job into, or takes it out of, what the view counts. An admitted job stays active until it ends.
func (c *Copy) count(j *core.Job, by int) {
	if j.State == core.Waiting {
		c.View.Waiting += by
	}
	at, found := slices.BinarySearch(c.View.Active, j.ID)
	if j.State == core.Pending || found {
		return
	}
	c.View.Active = slices.Insert(c.View.Active, at, j.ID)
	c.Candidates = slices.Insert(c.Candidates, at, core.Candidate{Job: j})
}

func (c *Copy) respond(j *core.Job, told *stagev1.Response) {
	if told == nil {
		return
	}
	at, found := slices.BinarySearchFunc(c.Candidates, j.ID, func(c core.Candidate, id core.JobID) int { return cmp.Compare(c.ID, id) })
	if !found {
		return
	}
	heard := responseFrom(told)
	if last := c.Candidates[at].Response; last != nil && told.GetSameCurves() {
		heard.Curves = last.Curves
	}
	c.Candidates[at].Response = &heard
}

func (c *Copy) end(id core.JobID) error {
	j := c.View.Job(id)
	if j == nil {
		return fmt.Errorf("unknown job %d ended", id)
	}
	if j.State == core.Waiting {
		c.View.Waiting--
	}
	if at, found := slices.BinarySearch(c.View.Active, id); found {
		c.View.Active = slices.Delete(c.View.Active, at, at+1)
		c.Candidates = slices.Delete(c.Candidates, at, at+1)
	}
	c.View.Jobs[id] = nil
	return nil
}

func (c *Copy) spec(id core.JobID, s *stagev1.JobSpec) *core.JobSpec {
	spec := &core.JobSpec{
		ID: id, Name: s.GetName(), Tenant: s.GetTenant(), Application: s.GetApplication(), Weight: s.GetWeight(),
		SubmitSeconds: s.GetSubmitSeconds(), Requested: int(s.GetRequested()), MinReplicas: int(s.GetMinReplicas()),
		MaxReplicas: int(s.GetMaxReplicas()), Accelerators: s.GetAccelerators(), CPUs: s.GetCpus(), MemoryGB: s.GetMemoryGb(),
		Command: s.GetCommand(), TotalWork: s.GetTotalWork(), StepTimes: c.tables[s.GetStepTimes()],
	}
	if b := s.GetBatch(); b != nil {
		spec.Batch = core.BatchSpec{
			Requested: int(b.GetRequested()), Initial: int(b.GetInitial()), Max: int(b.GetMax()),
			MinPerDevice: int(b.GetMinPerDevice()), MaxPerDevice: int(b.GetMaxPerDevice()),
		}
	}
	return spec
}
