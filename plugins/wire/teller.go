package wire

import (
	"cmp"
	"slices"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// Teller tells a view to one plugin: whole the first time, by its changes from then on. What it tells in a round grows
// with the jobs that changed, not with the jobs there are.
type Teller struct {
	told          *core.Cluster // of the last full update; nil for none
	sequence      uint64
	cursor        int // in the changes of the view
	healthChanges int
	health        []core.Health
	known         []bool // by JobID: the specification was told, and the job has not ended
	tables        map[*core.StepTimes]uint32
	truths        map[*core.Truth]uint32
	measured      [][]core.Measurement // by JobID, as told
	responses     []*core.Response     // by JobID, as told; allocators only
	changed       []core.JobID         // scratch
}

// Reset makes the next update a full one.
func (t *Teller) Reset() { t.told = nil }

// Tell returns the update that brings the plugin's copy up to v. candidates are those of an allocator, nil for others.
func (t *Teller) Tell(v *core.View, candidates []core.Candidate) *stagev1.ViewUpdate {
	changes, cursor, complete := v.ChangesSince(t.cursor)
	u := &stagev1.ViewUpdate{
		Full: t.told != v.Cluster || !complete, NowSeconds: v.NowSeconds, Round: int64(v.Round), IntervalSeconds: v.IntervalSeconds,
		OnEvents: v.OnEvents, HealthChanges: int64(v.HealthChanges), Submitted: int32(len(v.Jobs)), Changed: Jobs(v.Changed),
	}
	t.cursor = cursor
	t.sequence++
	u.Sequence = t.sequence
	t.changed = t.changed[:0]
	if u.Full {
		t.begin(v, u)
		for id, j := range v.Jobs {
			if j != nil && !j.State.Ended() {
				t.changed = append(t.changed, core.JobID(id))
			}
		}
	} else {
		t.changed = append(t.changed, changes...)
		slices.Sort(t.changed)
		t.changed = slices.Compact(t.changed)
		t.tellHealth(v, u)
	}
	for _, id := range t.changed {
		if j := v.Job(id); j != nil && !j.State.Ended() { // one that this round rejected is still there
			u.Jobs = append(u.Jobs, t.job(u, j, candidates))
		} else if int(id) < len(t.known) && t.known[id] {
			t.known[id] = false
			if int(id) < len(t.measured) {
				t.measured[id] = nil
			}
			u.Ended = append(u.Ended, int32(id))
			if int(id) < len(t.responses) {
				t.responses[id] = nil
			}
		}
	}
	return u
}

// begin makes u a full update.
func (t *Teller) begin(v *core.View, u *stagev1.ViewUpdate) {
	t.told, t.healthChanges = v.Cluster, v.HealthChanges
	t.tables, t.truths = map[*core.StepTimes]uint32{}, map[*core.Truth]uint32{}
	clear(t.measured)
	clear(t.known)
	clear(t.responses)
	t.health = t.health[:0]
	u.Accelerators = v.Cluster.Accelerators
	for i := range v.Cluster.Nodes {
		n := &v.Cluster.Nodes[i]
		t.health = append(t.health, n.Health)
		u.Nodes = append(u.Nodes, &stagev1.Node{
			Id: int32(n.ID), Health: healthTo(n.Health), Name: n.Name, Accelerator: int32(n.Accelerator),
			Devices: int32(n.Devices), Cpus: n.CPUs, MemoryGb: n.MemoryGB, Rack: n.Rack,
		})
	}
}

func (t *Teller) tellHealth(v *core.View, u *stagev1.ViewUpdate) {
	if t.healthChanges == v.HealthChanges {
		return
	}
	t.healthChanges = v.HealthChanges
	for i := range v.Cluster.Nodes {
		if n := &v.Cluster.Nodes[i]; n.Health != t.health[i] {
			t.health[i] = n.Health
			u.Nodes = append(u.Nodes, &stagev1.Node{Id: int32(n.ID), Health: healthTo(n.Health)})
		}
	}
}

func (t *Teller) job(u *stagev1.ViewUpdate, j *core.Job, candidates []core.Candidate) *stagev1.Job {
	told := &stagev1.Job{
		Id: int32(j.ID), State: stagev1.JobState(j.State) + stagev1.JobState_JOB_STATE_PENDING, WaitingReason: j.WaitingReason.String(),
		Seats: seatsTo(j.Seats), AsOfSeconds: j.AsOfSeconds, ExecutedSeconds: j.Executed, AttainedDeviceSeconds: j.Attained,
		Progress: j.Progress, ProgressRate: j.ProgressRate, ProgressAsOfSeconds: j.ProgressAsOf, StepsLeft: j.StepsLeft,
		FirstStartSeconds: j.FirstStart, LastChangeSeconds: j.LastChange, Restarts: int32(j.Restarts), Preemptions: int32(j.Preemptions),
	}
	if !j.Tuning.Equal(core.Tuning{}) {
		told.Tuning = tuningTo(j.Tuning)
	}
	for int(j.ID) >= len(t.known) {
		t.known = append(t.known, false)
	}
	if !t.known[j.ID] {
		t.known[j.ID] = true
		told.Spec = t.spec(u, j.JobSpec)
	}
	t.tellMeasured(told, j)
	at, found := slices.BinarySearchFunc(candidates, j.ID, func(c core.Candidate, id core.JobID) int { return cmp.Compare(c.ID, id) })
	if found {
		told.Response = t.response(candidates[at].Response)
	}
	return told
}

// tellMeasured tells what the job measured since it was told last, and what later reports corrected.
func (t *Teller) tellMeasured(told *stagev1.Job, j *core.Job) {
	if len(j.Measured) == 0 && j.Gradients == (core.Gradients{}) {
		return
	}
	for int(j.ID) >= len(t.measured) {
		t.measured = append(t.measured, nil)
	}
	last := t.measured[j.ID]
	var news []core.Measurement
	for i, m := range j.Measured {
		if i >= len(last) || last[i] != m {
			news = append(news, m)
		}
	}
	told.Measured = measurementsTo(news)
	told.Gradients = gradientsTo(j.Gradients)
	if len(news) > 0 {
		t.measured[j.ID] = append(last[:0], j.Measured...)
	}
}

func (t *Teller) spec(u *stagev1.ViewUpdate, s *core.JobSpec) *stagev1.JobSpec {
	told := &stagev1.JobSpec{
		Name: s.Name, Tenant: s.Tenant, Application: s.Application, Weight: s.Weight, SubmitSeconds: s.SubmitSeconds,
		Requested: int32(s.Requested), MinReplicas: int32(s.MinReplicas), MaxReplicas: int32(s.MaxReplicas),
		Accelerators: s.Accelerators, MixesTypes: s.MixesTypes, Cpus: s.CPUs, MemoryGb: s.MemoryGB, Command: s.Command, TotalWork: s.TotalWork, Pinned: s.Pinned,
	}
	if b := s.Batch; b != (core.BatchSpec{}) {
		told.Batch = &stagev1.BatchSpec{
			Requested: int64(b.Requested), Initial: int64(b.Initial), Max: int64(b.Max),
			MinPerDevice: int64(b.MinPerDevice), MaxPerDevice: int64(b.MaxPerDevice),
		}
	}
	for _, on := range s.BatchByType {
		told.BatchByType = append(told.BatchByType, &stagev1.TypeBatch{
			Accelerator: on.Accelerator, MinPerDevice: int64(on.MinPerDevice), MaxPerDevice: int64(on.MaxPerDevice),
		})
	}
	if s.Truth != nil {
		if t.truths[s.Truth] == 0 {
			t.truths[s.Truth] = uint32(len(t.truths)) + 1
			u.Truths = append(u.Truths, &stagev1.Truth{
				Table: t.truths[s.Truth], Measurements: measurementsTo(s.Truth.Measurements), Gradients: gradientsTo(s.Truth.Gradients),
			})
		}
		told.Truth = t.truths[s.Truth]
	}
	if s.StepTimes == nil {
		return told
	}
	if t.tables[s.StepTimes] == 0 {
		t.tables[s.StepTimes] = uint32(len(t.tables)) + 1
		u.StepTimes = append(u.StepTimes, stepTimesTo(t.tables[s.StepTimes], s.StepTimes))
	}
	told.StepTimes = t.tables[s.StepTimes]
	return told
}

// response tells a response when it is another than that told last, without the curves when they are the same.
func (t *Teller) response(r *core.Response) *stagev1.Response {
	for int(r.Job) >= len(t.responses) {
		t.responses = append(t.responses, nil)
	}
	last := t.responses[r.Job]
	if last == nil {
		kept := *r
		kept.Curves, kept.Unlike = cloneCurves(r.Curves), cloneUnlike(r.Unlike)
		t.responses[r.Job] = &kept
		return responseTo(r)
	}
	if !sameCurves(last.Curves, r.Curves) || !sameUnlike(last.Unlike, r.Unlike) {
		last.Curves, last.Unlike = cloneCurves(r.Curves), cloneUnlike(r.Unlike)
	} else if last.MinReplicas == r.MinReplicas && last.MaxReplicas == r.MaxReplicas && sameFloat(last.RemainingWork, r.RemainingWork) {
		return nil
	} else {
		last.MinReplicas, last.MaxReplicas, last.RemainingWork = r.MinReplicas, r.MaxReplicas, r.RemainingWork
		told := responseTo(&core.Response{Job: r.Job, MinReplicas: r.MinReplicas, MaxReplicas: r.MaxReplicas, RemainingWork: r.RemainingWork})
		told.SameCurves = true
		return told
	}
	last.MinReplicas, last.MaxReplicas, last.RemainingWork = r.MinReplicas, r.MaxReplicas, r.RemainingWork
	return responseTo(r)
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

func cloneUnlike(u *core.UnlikeRates) *core.UnlikeRates {
	if u == nil {
		return nil
	}
	return &core.UnlikeRates{Alone: slices.Clone(u.Alone), SyncSeconds: slices.Clone(u.SyncSeconds)}
}

func sameUnlike(a, b *core.UnlikeRates) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.EqualFunc(a.Alone, b.Alone, sameFloat) && slices.EqualFunc(a.SyncSeconds, b.SyncSeconds, sameFloat)
}

func sameFloat(a, b float64) bool { return a == b || a != a && b != b }

func healthTo(h core.Health) stagev1.Health { return stagev1.Health(h) + stagev1.Health_HEALTH_READY }
