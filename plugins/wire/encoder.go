package wire

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// Encoder sends a view to one plugin: whole the first time, by its changes from then on. What it sends in a round grows
// with the jobs that changed, not with the jobs there are.
type Encoder struct {
	// Plain leaves out what a plugin built before ConfigureResponse.changing refuses: a node with unusable devices, or one that is
	// provisioned or gone, is sent as one that is down.
	Plain bool
	// Reports sends what jobs report, that an active job is pending again, and each reason by its name. To a plugin built before
	// ConfigureResponse.reports no report is sent, such a job is sent by a full update, and reasons by the nearest that it knows.
	Reports bool

	cluster       *core.Cluster // of the last full update; nil for none
	sequence      uint64
	cursor        int // in the changes of the view
	healthChanges int
	nodes         []nodeState
	known         []*core.JobSpec // by JobID: the specification that was sent, of a job that has not ended
	tables        map[*core.StepTimes]uint32
	truths        map[*core.Truth]uint32
	feels         map[*core.Sensitivity]uint32
	pairs         map[*core.PairTable]uint32
	measured      [][]core.Measurement // by JobID, as sent
	reported      [][]core.Series      // by JobID, as sent
	active        []bool               // by JobID: it was sent as admitted; where Reports is not set
	responses     []*core.Response     // by JobID, as sent; of those that look at them
	again         []core.JobID         // to be sent again, with their responses
	changed       []core.JobID         // scratch
}

// nodeState is what changes of a node.
type nodeState struct {
	health   stagev1.Health
	unusable core.DeviceSet
	expected float64
}

// state is what is sent of a node.
func (e *Encoder) state(n *core.Node) nodeState {
	if e.Plain && (n.Health > core.Down || n.Unusable != 0) {
		return nodeState{health: stagev1.Health_HEALTH_DOWN}
	}
	return nodeState{stagev1.Health(n.Health) + stagev1.Health_HEALTH_READY, n.Unusable, n.ExpectedSeconds}
}

// reason is why a job waits, as the plugin knows it.
func (e *Encoder) reason(r core.Reason) core.Reason {
	switch {
	case e.Plain && r == core.AwaitingNodes:
		return core.WaitingForDevices
	case e.Plain && r == core.Suspended:
		return core.PolicyDecision
	case e.Plain && r == core.Interrupted:
		return core.NodeUnavailable // Python plugins of before do not know it
	case !e.Reports && r >= core.DeadlineUnreachable:
		return core.PolicyDecision // nor do any plugins of before
	}
	return r
}

// edited reports whether nodes joined, or a job that was sent has another specification now, or is pending again and the plugin takes
// it for active for ever: then all is sent again.
func (e *Encoder) edited(v *core.View, changes []core.JobID) bool {
	if len(v.Cluster.Nodes) != len(e.nodes) {
		return true
	}
	for _, id := range changes {
		if j := v.Job(id); j != nil && int(id) < len(e.known) && e.known[id] != nil && e.known[id] != j.JobSpec {
			return true
		}
		if j := v.Job(id); j != nil && j.State == core.Pending && int(id) < len(e.active) && e.active[id] {
			return true
		}
	}
	return false
}

// SendAgain has the jobs of the last update be part of the next one, with their responses.
func (e *Encoder) SendAgain() { e.again = append(e.again, e.changed...) }

// Reset makes the next update a full one.
func (e *Encoder) Reset() { e.cluster = nil }

// Encode returns the update that brings the plugin's copy up to v. candidates are those of an allocator or a scaler, or of an admitter that looks
// at curves, to which those of the waiting jobs that it is asked about are sent too; nil for others. Both are in JobID order.
func (e *Encoder) Encode(v *core.View, candidates, waiting []core.Candidate) *stagev1.ViewUpdate {
	changes, cursor, complete := v.ChangesSince(e.cursor)
	u := &stagev1.ViewUpdate{
		Full: e.cluster != v.Cluster || !complete || e.edited(v, changes), NowSeconds: v.NowSeconds, Round: int64(v.Round), IntervalSeconds: v.IntervalSeconds,
		OnEvents: v.OnEvents, MayGrow: v.Cluster.MayGrow, HealthChanges: int64(v.HealthChanges), Submitted: int32(len(v.Jobs)), Changed: Jobs(v.Changed),
	}
	e.cursor = cursor
	e.sequence++
	u.Sequence = e.sequence
	if u.Full {
		e.begin(v, u)
		e.collectAll(v)
	} else {
		e.collect(changes, waiting)
		e.encodeHealth(v, u)
	}
	e.again = e.again[:0]
	for _, id := range e.changed {
		if j := v.Job(id); j != nil && !j.State.Ended() { // one that this round rejected is still there
			u.Jobs = append(u.Jobs, e.job(u, j, candidates, waiting))
		} else if int(id) < len(e.known) && e.known[id] != nil {
			e.forget(id)
			u.Ended = append(u.Ended, int32(id))
		}
	}
	return u
}

// collectAll makes changed every job that has not ended.
func (e *Encoder) collectAll(v *core.View) {
	e.changed = e.changed[:0]
	for id, j := range v.Jobs {
		if j != nil && !j.State.Ended() {
			e.changed = append(e.changed, core.JobID(id))
		}
	}
}

// collect makes changed the jobs to send in an update that is not full: those that changed, those to be sent again, and waiting ones
// whose response was not sent yet, because they were asked about before, or not asked about when they changed.
func (e *Encoder) collect(changes []core.JobID, waiting []core.Candidate) {
	e.changed = append(append(e.changed[:0], changes...), e.again...)
	for i := range waiting {
		if !e.sent(waiting[i].Response) {
			e.changed = append(e.changed, waiting[i].ID)
		}
	}
	slices.Sort(e.changed)
	e.changed = slices.Compact(e.changed)
}

// forget drops what was sent of a job that ended.
func (e *Encoder) forget(id core.JobID) {
	e.known[id] = nil
	if int(id) < len(e.measured) {
		e.measured[id] = nil
	}
	if int(id) < len(e.reported) {
		e.reported[id] = nil
	}
	if int(id) < len(e.active) {
		e.active[id] = false
	}
	if int(id) < len(e.responses) {
		e.responses[id] = nil
	}
}

// begin makes u a full update.
func (e *Encoder) begin(v *core.View, u *stagev1.ViewUpdate) {
	e.cluster, e.healthChanges = v.Cluster, v.HealthChanges
	e.tables, e.truths = map[*core.StepTimes]uint32{}, map[*core.Truth]uint32{}
	e.feels, e.pairs = map[*core.Sensitivity]uint32{}, map[*core.PairTable]uint32{}
	clear(e.measured)
	clear(e.reported)
	clear(e.active)
	clear(e.known)
	clear(e.responses)
	e.nodes = e.nodes[:0]
	c := v.Cluster
	u.Accelerators, u.Pools = c.Accelerators, poolsTo(c.Pools)
	u.Sharing, u.MaxOwners = stagev1.Sharing(c.Sharing), int32(c.MaxOwners)
	u.OversubscribesMemory, u.CountsResources = c.OversubscribesMemory, c.CountsResources
	for i := range v.Cluster.Nodes {
		n := &v.Cluster.Nodes[i]
		now := e.state(n)
		e.nodes = append(e.nodes, now)
		u.Nodes = append(u.Nodes, &stagev1.Node{
			Id: int32(n.ID), Health: now.health, Unusable: uint64(now.unusable), Name: n.Name, Accelerator: int32(n.Accelerator),
			Devices: int32(n.Devices), Cpus: n.CPUs, MemoryGb: n.MemoryGB, Rack: n.Rack,
			Pool: n.Pool, ExpectedSeconds: now.expected, DeviceMemoryGb: n.DeviceMemoryGB,
		})
	}
}

func (e *Encoder) encodeHealth(v *core.View, u *stagev1.ViewUpdate) {
	if e.healthChanges == v.HealthChanges {
		return
	}
	e.healthChanges = v.HealthChanges
	for i := range v.Cluster.Nodes {
		n := &v.Cluster.Nodes[i]
		if now := e.state(n); now != e.nodes[i] {
			e.nodes[i] = now
			u.Nodes = append(u.Nodes, &stagev1.Node{Id: int32(n.ID), Health: now.health, Unusable: uint64(now.unusable), ExpectedSeconds: now.expected})
		}
	}
}

func (e *Encoder) job(u *stagev1.ViewUpdate, j *core.Job, candidates, waiting []core.Candidate) *stagev1.Job {
	m := &stagev1.Job{
		Id: int32(j.ID), State: stagev1.JobState(j.State) + stagev1.JobState_JOB_STATE_PENDING, WaitingReason: e.reason(j.WaitingReason).String(),
		Seats: seatsTo(j.Seats), AsOfSeconds: j.AsOfSeconds, ExecutedSeconds: j.Executed, AttainedDeviceSeconds: j.Attained,
		Progress: j.Progress, ProgressRate: j.ProgressRate, ProgressAsOfSeconds: j.ProgressAsOf, StepsLeft: j.StepsLeft,
		FirstStartSeconds: j.FirstStart, LastChangeSeconds: j.LastChange, Restarts: int32(j.Restarts), Preemptions: int32(j.Preemptions),
		Starting: j.Starting && !e.Plain, Slices: j.Slices(), Resources: resourcesTo(j.Resources),
	}
	if !j.Tuning.Equal(core.Tuning{}) {
		m.Tuning = tuningTo(j.Tuning)
	}
	for int(j.ID) >= len(e.known) {
		e.known = append(e.known, nil)
	}
	if e.known[j.ID] == nil {
		e.known[j.ID] = j.JobSpec
		m.Spec = e.spec(u, j.JobSpec)
	}
	e.encodeMeasured(m, j)
	e.encodeReported(m, j)
	if !e.Reports {
		for int(j.ID) >= len(e.active) {
			e.active = append(e.active, false)
		}
		e.active[j.ID] = j.State != core.Pending
	}
	for _, jobs := range [...][]core.Candidate{candidates, waiting} {
		if at, found := slices.BinarySearchFunc(jobs, j.ID, func(c core.Candidate, id core.JobID) int { return cmp.Compare(c.ID, id) }); found {
			m.Response = e.response(jobs[at].Response)
		}
	}
	return m
}

// encodeMeasured encodes what the job measured since it was sent last, and what later reports corrected.
func (e *Encoder) encodeMeasured(m *stagev1.Job, j *core.Job) {
	if len(j.Measured) == 0 && j.Gradients == (core.Gradients{}) {
		return
	}
	for int(j.ID) >= len(e.measured) {
		e.measured = append(e.measured, nil)
	}
	last := e.measured[j.ID]
	var news []core.Measurement
	for i, r := range j.Measured {
		if i >= len(last) || last[i] != r {
			news = append(news, r)
		}
	}
	m.Measured = measurementsTo(news)
	m.Gradients = gradientsTo(j.Gradients)
	if len(news) > 0 {
		e.measured[j.ID] = append(last[:0], j.Measured...)
	}
}

func (e *Encoder) spec(u *stagev1.ViewUpdate, s *core.JobSpec) *stagev1.JobSpec {
	m := &stagev1.JobSpec{
		Name: s.Name, Tenant: s.Tenant, Application: s.Application, Weight: s.Weight, SubmitSeconds: s.SubmitSeconds,
		Requested: int32(s.Requested), MinReplicas: int32(s.MinReplicas), MaxReplicas: int32(s.MaxReplicas),
		Accelerators: s.Accelerators, MixesTypes: s.MixesTypes, Cpus: s.CPUs, MemoryGb: s.MemoryGB, Command: s.Command, TotalWork: s.TotalWork, Pinned: s.Pinned,
		Suspended: s.Suspended && !e.Plain, DeadlineSeconds: s.DeadlineSeconds, BestEffort: s.BestEffort, Tier: s.Tier,
		Share: shareTo(s.Share), Utilisation: s.Utilisation, DeviceMemoryGb: s.DeviceMemoryGB, SlowdownTolerance: s.SlowdownTolerance,
		Iteration: iterationTo(s.Iteration), Experiment: s.Experiment,
	}
	if b := s.Batch; b != (core.BatchSpec{}) {
		m.Batch = &stagev1.BatchSpec{
			Requested: int64(b.Requested), Initial: int64(b.Initial), Max: int64(b.Max),
			MinPerDevice: int64(b.MinPerDevice), MaxPerDevice: int64(b.MaxPerDevice),
		}
	}
	for _, on := range s.BatchByType {
		m.BatchByType = append(m.BatchByType, &stagev1.TypeBatch{
			Accelerator: on.Accelerator, MinPerDevice: int64(on.MinPerDevice), MaxPerDevice: int64(on.MaxPerDevice),
		})
	}
	e.sharing(u, m, s)
	if s.Truth != nil {
		if e.truths[s.Truth] == 0 {
			e.truths[s.Truth] = uint32(len(e.truths)) + 1
			u.Truths = append(u.Truths, &stagev1.Truth{
				Table: e.truths[s.Truth], Measurements: measurementsTo(s.Truth.Measurements), Gradients: gradientsTo(s.Truth.Gradients),
				Steps: batchStepsTo(s.Truth.Steps),
			})
		}
		m.Truth = e.truths[s.Truth]
	}
	if s.StepTimes == nil {
		return m
	}
	if e.tables[s.StepTimes] == 0 {
		e.tables[s.StepTimes] = uint32(len(e.tables)) + 1
		u.StepTimes = append(u.StepTimes, stepTimesTo(e.tables[s.StepTimes], s.StepTimes))
	}
	m.StepTimes = e.tables[s.StepTimes]
	return m
}

// sharing encodes what a job gains from CPUs and memory, and what it keeps beside another.
func (e *Encoder) sharing(u *stagev1.ViewUpdate, m *stagev1.JobSpec, s *core.JobSpec) {
	if s.Sensitivity != nil {
		if e.feels[s.Sensitivity] == 0 {
			e.feels[s.Sensitivity] = uint32(len(e.feels)) + 1
			u.Sensitivities = append(u.Sensitivities, sensitivityTo(e.feels[s.Sensitivity], s.Sensitivity))
		}
		m.Sensitivity = e.feels[s.Sensitivity]
	}
	if s.Pairs != nil {
		if e.pairs[s.Pairs] == 0 {
			e.pairs[s.Pairs] = uint32(len(e.pairs)) + 1
			u.Pairs = append(u.Pairs, pairsTo(e.pairs[s.Pairs], s.Pairs))
		}
		m.Pairs = e.pairs[s.Pairs]
	}
}

// response encodes a response when it differs from the one sent last, without the curves when they are the same.
func (e *Encoder) response(r *core.Response) *stagev1.Response {
	for int(r.Job) >= len(e.responses) {
		e.responses = append(e.responses, nil)
	}
	last := e.responses[r.Job]
	if last == nil {
		kept := *r
		kept.Curves, kept.MixedTypes = cloneCurves(r.Curves), cloneUnlike(r.MixedTypes)
		e.responses[r.Job] = &kept
		return responseTo(r)
	}
	if !sameCurves(last.Curves, r.Curves) || !sameUnlike(last.MixedTypes, r.MixedTypes) {
		last.Curves, last.MixedTypes = cloneCurves(r.Curves), cloneUnlike(r.MixedTypes)
	} else if sameRange(last, r) {
		return nil
	} else {
		last.MinReplicas, last.MaxReplicas, last.RemainingWork, last.SingleDeviceRate = r.MinReplicas, r.MaxReplicas, r.RemainingWork, r.SingleDeviceRate
		m := responseTo(&core.Response{Job: r.Job, MinReplicas: r.MinReplicas, MaxReplicas: r.MaxReplicas, RemainingWork: r.RemainingWork, SingleDeviceRate: r.SingleDeviceRate})
		m.SameCurves = true
		return m
	}
	last.MinReplicas, last.MaxReplicas, last.RemainingWork, last.SingleDeviceRate = r.MinReplicas, r.MaxReplicas, r.RemainingWork, r.SingleDeviceRate
	return responseTo(r)
}

// sent reports whether a response is the one sent last.
func (e *Encoder) sent(r *core.Response) bool {
	if int(r.Job) >= len(e.responses) || e.responses[r.Job] == nil {
		return false
	}
	last := e.responses[r.Job]
	return sameRange(last, r) && sameCurves(last.Curves, r.Curves) && sameUnlike(last.MixedTypes, r.MixedTypes)
}

// sameRange reports whether two responses are equal but for curves.
func sameRange(a, b *core.Response) bool {
	return a.MinReplicas == b.MinReplicas && a.MaxReplicas == b.MaxReplicas && sameFloat(a.RemainingWork, b.RemainingWork) && a.SingleDeviceRate == b.SingleDeviceRate
}

func cloneCurves(curves []core.Curve) []core.Curve {
	cloned := make([]core.Curve, 0, len(curves))
	for _, c := range curves {
		cloned = append(cloned, core.Curve{OneNode: slices.Clone(c.OneNode), ManyNodes: slices.Clone(c.ManyNodes)})
	}
	return cloned
}

func sameCurves(a, b []core.Curve) bool {
	return slices.EqualFunc(a, b, func(a, b core.Curve) bool {
		return slices.EqualFunc(a.OneNode, b.OneNode, sameFloat) && slices.EqualFunc(a.ManyNodes, b.ManyNodes, sameFloat)
	})
}

func cloneUnlike(u *core.MixedTypeRates) *core.MixedTypeRates {
	if u == nil {
		return nil
	}
	return &core.MixedTypeRates{SingleDeviceRates: slices.Clone(u.SingleDeviceRates), SyncSeconds: slices.Clone(u.SyncSeconds)}
}

func sameUnlike(a, b *core.MixedTypeRates) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.SingleDeviceRates, b.SingleDeviceRates, sameFloat) && slices.EqualFunc(a.SyncSeconds, b.SyncSeconds, sameFloat)
}

func sameFloat(a, b float64) bool { return a == b || a != a && b != b }
