package wire

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// Copy is a view kept up to date by updates: what an Encoder sends at one end is View at the other.
type Copy struct {
	View       core.View        // View as it was at the last update.
	Candidates []core.Candidate // Candidates are the active jobs, with their responses where these were sent.

	started  bool
	sequence uint64
	tables   map[uint32]*core.StepTimes
	truths   map[uint32]*core.Truth
	feels    map[uint32]*core.Sensitivity
	pairs    map[uint32]*core.PairTable
	pending  map[core.JobID]*core.Response // of the jobs that are not admitted yet
}

// Apply brings the copy up to date. It returns false, and changes nothing, when the update is for another copy.
func (c *Copy) Apply(u *stagev1.ViewUpdate) (bool, error) {
	if !u.GetFull() && (!c.started || u.GetSequence() != c.sequence+1) {
		return false, nil
	}
	if u.GetFull() {
		c.begin(u)
	}
	c.sequence = u.GetSequence()
	v := &c.View
	v.NowSeconds, v.Round, v.IntervalSeconds = u.GetNowSeconds(), int(u.GetRound()), u.GetIntervalSeconds()
	v.Cluster.MayGrow = u.GetMayGrow()
	v.OnEvents, v.HealthChanges = u.GetOnEvents(), int(u.GetHealthChanges())
	if err := c.nodes(u); err != nil {
		return false, err
	}
	c.addTables(u)
	if err := c.jobs(u); err != nil {
		return false, err
	}
	return true, nil
}

// begin forgets the copy, and takes the cluster of a full update but for its nodes.
func (c *Copy) begin(u *stagev1.ViewUpdate) {
	v := c.View // with its journal: whoever saw the jobs of before is to look at all
	for _, id := range v.Active {
		v.NoteChange(id)
	}
	v.Jobs, v.Active, v.Waiting, v.Changed = nil, nil, 0, nil
	*c = Copy{
		View: v, started: true, tables: map[uint32]*core.StepTimes{}, truths: map[uint32]*core.Truth{}, feels: map[uint32]*core.Sensitivity{},
		pairs: map[uint32]*core.PairTable{}, pending: map[core.JobID]*core.Response{},
	}
	c.View.Cluster = &core.Cluster{
		Accelerators: u.GetAccelerators(), Pools: poolsFrom(u.GetPools()), Sharing: sharingFrom(u.GetSharing()), MaxOwners: int(u.GetMaxOwners()),
		OversubscribesMemory: u.GetOversubscribesMemory(), CountsResources: u.GetCountsResources(),
	}
}

// addTables keeps the tables that specifications refer to by their numbers.
func (c *Copy) addTables(u *stagev1.ViewUpdate) {
	for _, t := range u.GetStepTimes() {
		c.tables[t.GetTable()] = stepTimesFrom(t)
	}
	for _, t := range u.GetTruths() {
		c.truths[t.GetTable()] = &core.Truth{Measurements: measurementsFrom(t.GetMeasurements()), Gradients: gradientsFrom(t.GetGradients()), Steps: batchStepsFrom(t.GetSteps())}
	}
	for _, t := range u.GetSensitivities() {
		c.feels[t.GetTable()] = sensitivityFrom(t)
	}
	for _, t := range u.GetPairs() {
		c.pairs[t.GetTable()] = pairsFrom(t)
	}
}

// jobs applies what an update says of jobs: those submitted, changed, ended, and touched by an event.
func (c *Copy) jobs(u *stagev1.ViewUpdate) error {
	if err := c.submit(u.GetSubmitted()); err != nil {
		return err
	}
	for _, m := range u.GetJobs() {
		if err := c.job(m); err != nil {
			return err
		}
	}
	for _, id := range u.GetEnded() {
		if err := c.end(core.JobID(id)); err != nil {
			return err
		}
	}
	v := &c.View
	v.Changed = v.Changed[:0]
	for _, id := range u.GetChanged() {
		v.Changed = append(v.Changed, core.JobID(id))
	}
	return nil
}

func (c *Copy) nodes(u *stagev1.ViewUpdate) error {
	cluster := c.View.Cluster
	for i := range cluster.Pools {
		if p := &cluster.Pools[i]; p.Accelerator < 0 || int(p.Accelerator) >= len(cluster.Accelerators) {
			return fmt.Errorf("pool %q has unknown accelerator type %d", p.Name, p.Accelerator)
		}
	}
	if len(u.GetNodes()) == 0 {
		return nil
	}
	for _, n := range u.GetNodes() {
		if n.GetHealth() < stagev1.Health_HEALTH_READY || n.GetHealth() > stagev1.Health_HEALTH_GONE {
			return fmt.Errorf("node %d has health %v", n.GetId(), n.GetHealth())
		}
		if u.GetFull() {
			if err := c.addNode(n); err != nil {
				return err
			}
		}
		if n.GetId() < 0 || int(n.GetId()) >= len(cluster.Nodes) {
			return fmt.Errorf("unknown node %d", n.GetId())
		}
		node := &cluster.Nodes[n.GetId()]
		node.Health = core.Health(n.GetHealth() - stagev1.Health_HEALTH_READY)
		node.Unusable = core.DeviceSet(n.GetUnusable()) & core.FirstDevices(node.Devices)
		node.ExpectedSeconds = n.GetExpectedSeconds()
	}
	c.View.Devices = cluster.UsableDevices()
	return nil
}

func (c *Copy) addNode(n *stagev1.Node) error {
	cluster := c.View.Cluster
	switch {
	case n.GetId() != int32(len(cluster.Nodes)):
		return fmt.Errorf("node %d is out of order", n.GetId())
	case n.GetAccelerator() < 0 || int(n.GetAccelerator()) >= min(len(cluster.Accelerators), math.MaxInt16):
		return fmt.Errorf("node %d has unknown accelerator type %d", n.GetId(), n.GetAccelerator())
	case n.GetDevices() < 1 || n.GetDevices() > core.MaxDevicesPerNode:
		return fmt.Errorf("node %d has %d devices", n.GetId(), n.GetDevices())
	}
	cluster.Nodes = append(cluster.Nodes, core.Node{
		ID: core.NodeID(n.GetId()), Name: n.GetName(), Accelerator: core.AcceleratorID(n.GetAccelerator()),
		Devices: int(n.GetDevices()), CPUs: n.GetCpus(), MemoryGB: n.GetMemoryGb(), Rack: n.GetRack(),
		Pool: n.GetPool(), DeviceMemoryGB: n.GetDeviceMemoryGb(),
	})
	return nil
}

// maxJobs bounds what a stray number can cost in memory.
const maxJobs = 1 << 24

// submit makes room for the jobs submitted so far.
func (c *Copy) submit(jobs int32) error {
	if jobs > maxJobs {
		return fmt.Errorf("%d jobs are more than the %d that a view may hold", jobs, maxJobs)
	}
	if missing := int(jobs) - len(c.View.Jobs); missing > 0 {
		c.View.Jobs = append(c.View.Jobs, make([]*core.Job, missing)...)
	}
	return nil
}

func (c *Copy) job(m *stagev1.Job) error {
	j, err := c.named(m)
	if err != nil {
		return err
	}
	if m.GetState() < stagev1.JobState_JOB_STATE_PENDING || m.GetState() > stagev1.JobState_JOB_STATE_RUNNING {
		return fmt.Errorf("job %d is sent in state %v", j.ID, m.GetState())
	}
	reason, known := core.ParseReason(m.GetWaitingReason())
	if !known {
		return fmt.Errorf("job %d waits for unknown reason %q", j.ID, m.GetWaitingReason())
	}
	for _, s := range m.GetSeats() {
		if s.GetNode() < 0 || int(s.GetNode()) >= len(c.View.Cluster.Nodes) {
			return fmt.Errorf("job %d holds devices on unknown node %d", j.ID, s.GetNode())
		}
	}
	state := core.JobState(m.GetState() - stagev1.JobState_JOB_STATE_PENDING)
	c.View.NoteChange(j.ID)
	c.count(j, -1)
	j.State, j.WaitingReason = state, reason
	j.Seats = seatsFrom(m.GetSeats())
	j.Held = core.Replicas(j.Seats)
	j.Tuning = core.Tuning{}
	if m.GetTuning() != nil {
		j.Tuning = tuningFrom(m.GetTuning())
	}
	j.AsOfSeconds, j.Executed, j.Attained = m.GetAsOfSeconds(), m.GetExecutedSeconds(), m.GetAttainedDeviceSeconds()
	j.Progress, j.ProgressRate, j.ProgressAsOf = m.GetProgress(), m.GetProgressRate(), m.GetProgressAsOfSeconds()
	for _, r := range measurementsFrom(m.GetMeasured()) {
		if at := slices.IndexFunc(j.Measured, r.SameConfiguration); at >= 0 {
			j.Measured[at] = r // corrected
		} else {
			j.Measured = append(j.Measured, r)
		}
	}
	if m.GetGradients() != nil {
		j.Gradients = gradientsFrom(m.GetGradients())
	}
	j.StepsLeft, j.FirstStart, j.LastChange = m.GetStepsLeft(), m.GetFirstStartSeconds(), m.GetLastChangeSeconds()
	j.Restarts, j.Preemptions = int(m.GetRestarts()), int(m.GetPreemptions())
	j.Starting, j.Sliced, j.Resources = m.GetStarting(), slicedFrom(m.GetSlices()), resourcesFrom(m.GetResources())
	if err := c.reported(j, m.GetReported()); err != nil {
		return err
	}
	c.count(j, +1)
	c.respond(j, m.GetResponse())
	return nil
}

// named is the job that a message is about, a new one if it comes with its specification.
func (c *Copy) named(m *stagev1.Job) (*core.Job, error) {
	v, id := &c.View, core.JobID(m.GetId())
	if j := v.Job(id); j != nil {
		return j, nil
	}
	if m.GetSpec() == nil || id < 0 || int(id) >= len(v.Jobs) {
		return nil, fmt.Errorf("job %d is sent without its specification, or was not submitted", id)
	}
	v.Jobs[id] = core.NewJob(c.spec(id, m.GetSpec()))
	return v.Jobs[id], nil
}

// count enters a job into, or takes it out of, what the view counts. An admitted job stays active until it ends, or is held back: its
// response is then kept.
func (c *Copy) count(j *core.Job, by int) {
	if j.State == core.Waiting {
		c.View.Waiting += by
	}
	at, found := slices.BinarySearch(c.View.Active, j.ID)
	if j.State == core.Pending && found {
		if response := c.Candidates[at].Response; response != nil {
			c.pending[j.ID] = response
		}
		c.View.Active = slices.Delete(c.View.Active, at, at+1)
		c.Candidates = slices.Delete(c.Candidates, at, at+1)
	}
	if j.State == core.Pending || found {
		return
	}
	c.View.Active = slices.Insert(c.View.Active, at, j.ID)
	c.Candidates = slices.Insert(c.Candidates, at, core.Candidate{Job: j, Response: c.pending[j.ID]})
	delete(c.pending, j.ID)
}

// Candidate returns a job, admitted or not, with its response if one was sent.
func (c *Copy) Candidate(j *core.Job) core.Candidate {
	if at, found := c.find(j.ID); found {
		return c.Candidates[at]
	}
	return core.Candidate{Job: j, Response: c.pending[j.ID]}
}

// Shown returns the jobs that a scaler sees: the active ones, and those that are not admitted for want of nodes, by JobID.
func (c *Copy) Shown() []core.Candidate {
	if len(c.pending) == 0 {
		return c.Candidates
	}
	shown := slices.Clone(c.Candidates)
	for id, response := range c.pending {
		if j := c.View.Job(id); j != nil && j.WaitingReason == core.AwaitingNodes {
			shown = append(shown, core.Candidate{Job: j, Response: response})
		}
	}
	slices.SortFunc(shown, func(a, b core.Candidate) int { return cmp.Compare(a.ID, b.ID) })
	return shown
}

func (c *Copy) find(id core.JobID) (at int, found bool) {
	return slices.BinarySearchFunc(c.Candidates, id, func(c core.Candidate, id core.JobID) int { return cmp.Compare(c.ID, id) })
}

func (c *Copy) respond(j *core.Job, m *stagev1.Response) {
	if m == nil {
		return
	}
	at, found := c.find(j.ID)
	last := c.pending[j.ID]
	if found {
		last = c.Candidates[at].Response
	}
	response := responseFrom(m)
	if last != nil && m.GetSameCurves() {
		response.Curves, response.MixedTypes = last.Curves, last.MixedTypes
	}
	if found {
		c.Candidates[at].Response = &response
	} else {
		c.pending[j.ID] = &response
	}
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
	delete(c.pending, id)
	c.View.NoteChange(id)
	c.View.Jobs[id] = nil
	return nil
}

func (c *Copy) spec(id core.JobID, s *stagev1.JobSpec) *core.JobSpec {
	spec := &core.JobSpec{
		ID: id, Name: s.GetName(), Tenant: s.GetTenant(), Application: s.GetApplication(), Weight: s.GetWeight(),
		SubmitSeconds: s.GetSubmitSeconds(), Requested: int(s.GetRequested()), MinReplicas: int(s.GetMinReplicas()),
		MaxReplicas: int(s.GetMaxReplicas()), Accelerators: s.GetAccelerators(), MixesTypes: s.GetMixesTypes(), CPUs: s.GetCpus(), MemoryGB: s.GetMemoryGb(),
		Command: s.GetCommand(), TotalWork: s.GetTotalWork(), StepTimes: c.tables[s.GetStepTimes()], Truth: c.truths[s.GetTruth()],
		Pinned: s.GetPinned(), Suspended: s.GetSuspended(), DeadlineSeconds: s.GetDeadlineSeconds(), BestEffort: s.GetBestEffort(),
		Tier: s.GetTier(), Share: shareFrom(s.GetShare()), Utilisation: s.GetUtilisation(), DeviceMemoryGB: s.GetDeviceMemoryGb(),
		SlowdownTolerance: s.GetSlowdownTolerance(), Iteration: iterationFrom(s.GetIteration()),
		Sensitivity: c.feels[s.GetSensitivity()], Pairs: c.pairs[s.GetPairs()], Experiment: s.GetExperiment(),
	}
	if b := s.GetBatch(); b != nil {
		spec.Batch = core.BatchSpec{
			Requested: int(b.GetRequested()), Initial: int(b.GetInitial()), Max: int(b.GetMax()),
			MinPerDevice: int(b.GetMinPerDevice()), MaxPerDevice: int(b.GetMaxPerDevice()),
		}
	}
	for _, on := range s.GetBatchByType() {
		spec.BatchByType = append(spec.BatchByType, core.TypeBatch{
			Accelerator: on.GetAccelerator(), MinPerDevice: int(on.GetMinPerDevice()), MaxPerDevice: int(on.GetMaxPerDevice()),
		})
	}
	return spec
}
