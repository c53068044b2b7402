package wire

import (
	"fmt"
	"math"
	"slices"

	"github.com/quartet-sched/quartet/core"
	stagev1 "github.com/quartet-sched/quartet/plugins/proto/quartet/stage/v1"
)

// Seats.

func seatsTo(seats []core.Seat) []*stagev1.Seat {
	m := make([]*stagev1.Seat, 0, len(seats))
	for _, s := range seats {
		m = append(m, &stagev1.Seat{Node: int32(s.Node), Devices: uint64(s.Devices)})
	}
	return m
}

func seatsFrom(m []*stagev1.Seat) []core.Seat {
	if len(m) == 0 {
		return nil
	}
	seats := make([]core.Seat, 0, len(m))
	for _, s := range m {
		seats = append(seats, core.Seat{Node: core.NodeID(s.GetNode()), Devices: core.DeviceSet(s.GetDevices())})
	}
	return seats
}

// Grants.

func grantTo(g core.Grant) *stagev1.Grant {
	return &stagev1.Grant{
		Job: int32(g.Job), Accelerator: int32(g.Accelerator), Replicas: int32(g.Replicas), Blocking: g.Blocking,
		Proposed: seatsTo(g.Proposed), Group: int32(min(max(g.Group, math.MinInt32), math.MaxInt32)),
	}
}

func grantFrom(g *stagev1.Grant) core.Grant {
	return core.Grant{
		Job: core.JobID(g.GetJob()), Accelerator: acceleratorFrom(g.GetAccelerator()), Replicas: int(g.GetReplicas()),
		Blocking: g.GetBlocking(), Proposed: seatsFrom(g.GetProposed()), Group: int(g.GetGroup()),
	}
}

// acceleratorFrom keeps a type that is out of range out of range.
func acceleratorFrom(m int32) core.AcceleratorID {
	return core.AcceleratorID(min(max(m, math.MinInt16), math.MaxInt16))
}

func equalGrants(a, b *core.Grant) bool {
	return a.Job == b.Job && a.Accelerator == b.Accelerator && a.Replicas == b.Replicas && a.Blocking == b.Blocking &&
		a.Group == b.Group && core.SameSeats(a.Proposed, b.Proposed)
}

// NewGrantSender encodes lists of grants.
func NewGrantSender() *Sender[core.Grant] {
	return &Sender[core.Grant]{
		Job:   func(g *core.Grant) core.JobID { return g.Job },
		Equal: equalGrants,
		Clone: func(g core.Grant) core.Grant { g.Proposed = slices.Clone(g.Proposed); return g },
	}
}

// Placements.

func placementTo(p core.Placement) *stagev1.Placement {
	return &stagev1.Placement{Job: int32(p.Job), Seats: seatsTo(p.Seats), Evicted: p.Evicted, Resources: resourcesTo(p.Resources)}
}

func placementFrom(p *stagev1.Placement) core.Placement {
	return core.Placement{
		Job: core.JobID(p.GetJob()), Seats: seatsFrom(p.GetSeats()), Evicted: p.GetEvicted(), Resources: resourcesFrom(p.GetResources()),
	}
}

// NewPlacementSender encodes lists of placements.
func NewPlacementSender() *Sender[core.Placement] {
	return &Sender[core.Placement]{
		Job: func(p *core.Placement) core.JobID { return p.Job },
		Equal: func(a, b *core.Placement) bool {
			return a.Job == b.Job && a.Evicted == b.Evicted && core.SameSeats(a.Seats, b.Seats) && core.SameResources(a.Resources, b.Resources)
		},
		Clone: func(p core.Placement) core.Placement {
			p.Seats = slices.Clone(p.Seats)
			if p.Resources != nil {
				each := *p.Resources
				p.Resources = &each
			}
			return p
		},
	}
}

// Verdicts.

func verdictTo(v core.Verdict) *stagev1.Verdict {
	return &stagev1.Verdict{
		Job: int32(v.Job), Code: stagev1.Code(v.Code) + stagev1.Code_CODE_ADMIT, Reason: v.Reason.String(),
		Wanted: v.Wanted, Available: v.Available, Unit: v.Unit, Message: v.Message,
		ExpectedSeconds: v.ExpectedSeconds,
	}
}

func verdictFrom(v *stagev1.Verdict) (core.Verdict, error) {
	if v.GetCode() < stagev1.Code_CODE_ADMIT || v.GetCode() > stagev1.Code_CODE_END {
		return core.Verdict{}, fmt.Errorf("verdict for job %d has unknown code %v", v.GetJob(), v.GetCode())
	}
	reason, known := core.ParseReason(v.GetReason())
	if !known {
		return core.Verdict{}, fmt.Errorf("verdict for job %d has unknown reason %q; %s",
			v.GetJob(), v.GetReason(), core.SuggestHint(v.GetReason(), "reasons", core.Reasons()))
	}
	return core.Verdict{
		Job: core.JobID(v.GetJob()), Code: core.Code(v.GetCode() - stagev1.Code_CODE_ADMIT), Reason: reason,
		Wanted: v.GetWanted(), Available: v.GetAvailable(), Unit: v.GetUnit(), Message: v.GetMessage(),
		ExpectedSeconds: v.GetExpectedSeconds(),
	}, nil
}

// NewVerdictSender encodes lists of verdicts.
func NewVerdictSender() *Sender[core.Verdict] {
	return &Sender[core.Verdict]{
		Job:   func(v *core.Verdict) core.JobID { return v.Job },
		Equal: func(a, b *core.Verdict) bool { return *a == *b },
		Clone: func(v core.Verdict) core.Verdict { return v },
	}
}

// NewJobSender encodes lists of jobs.
func NewJobSender() *Sender[core.JobID] {
	return &Sender[core.JobID]{
		Job:   func(id *core.JobID) core.JobID { return *id },
		Equal: func(a, b *core.JobID) bool { return *a == *b },
		Clone: func(id core.JobID) core.JobID { return id },
	}
}

// Responses.

func responseTo(r *core.Response) *stagev1.Response {
	m := &stagev1.Response{
		Job: int32(r.Job), MinReplicas: int32(r.MinReplicas), MaxReplicas: int32(r.MaxReplicas), RemainingWork: r.RemainingWork,
		Alone: r.SingleDeviceRate,
	}
	for _, c := range r.Curves {
		m.Curves = append(m.Curves, &stagev1.Curve{OneNode: c.OneNode, ManyNodes: c.ManyNodes})
	}
	if r.MixedTypes != nil {
		m.Unlike = &stagev1.UnlikeRates{Alone: r.MixedTypes.SingleDeviceRates, SyncSeconds: r.MixedTypes.SyncSeconds}
	}
	return m
}

func responseFrom(r *stagev1.Response) core.Response {
	response := core.Response{
		Job: core.JobID(r.GetJob()), MinReplicas: int(r.GetMinReplicas()), MaxReplicas: int(r.GetMaxReplicas()),
		RemainingWork: r.GetRemainingWork(), SingleDeviceRate: r.GetAlone(),
	}
	for _, c := range r.GetCurves() {
		response.Curves = append(response.Curves, core.Curve{OneNode: c.GetOneNode(), ManyNodes: c.GetManyNodes()})
	}
	if u := r.GetUnlike(); u != nil {
		response.MixedTypes = &core.MixedTypeRates{SingleDeviceRates: u.GetAlone(), SyncSeconds: u.GetSyncSeconds()}
	}
	return response
}

// Tunings.

func tuningTo(t core.Tuning) *stagev1.Tuning {
	return &stagev1.Tuning{
		Job: int32(t.Job), BatchPerDevice: int64(t.BatchPerDevice), AccumulationSteps: int64(t.AccumulationSteps),
		LearningRateFactor: t.LearningRateFactor,
		BatchByReplica:     each(t.BatchByReplica, func(n int) int64 { return int64(n) }),
	}
}

func tuningFrom(t *stagev1.Tuning) core.Tuning {
	return core.Tuning{
		Job: core.JobID(t.GetJob()), BatchPerDevice: int(t.GetBatchPerDevice()), AccumulationSteps: int(t.GetAccumulationSteps()),
		LearningRateFactor: t.GetLearningRateFactor(),
		BatchByReplica:     each(t.GetBatchByReplica(), func(n int64) int { return int(n) }),
	}
}

// Measurements.

func measurementsTo(measured []core.Measurement) []*stagev1.Measurement {
	return each(measured, func(m core.Measurement) *stagev1.Measurement {
		return &stagev1.Measurement{
			Accelerator: m.Accelerator, Nodes: int32(m.Nodes), Replicas: int32(m.Replicas), PerDevice: int64(m.PerDevice), PassSeconds: m.PassSeconds, StepSeconds: m.StepSeconds,
			Count: int64(m.Count), Spread: m.Spread,
		}
	})
}

func measurementsFrom(list []*stagev1.Measurement) []core.Measurement {
	return each(list, func(m *stagev1.Measurement) core.Measurement {
		return core.Measurement{
			Accelerator: m.GetAccelerator(), Nodes: int(m.GetNodes()), Replicas: int(m.GetReplicas()), PerDevice: int(m.GetPerDevice()), PassSeconds: m.GetPassSeconds(), StepSeconds: m.GetStepSeconds(),
			Count: int(m.GetCount()), Spread: m.GetSpread(),
		}
	})
}

func gradientsTo(g core.Gradients) *stagev1.Gradients {
	return &stagev1.Gradients{Square: g.SquaredNorm, Variance: g.Variance}
}

func gradientsFrom(m *stagev1.Gradients) core.Gradients {
	return core.Gradients{SquaredNorm: m.GetSquare(), Variance: m.GetVariance()}
}

func batchStepsTo(steps []core.BatchSteps) []*stagev1.BatchSteps {
	var m []*stagev1.BatchSteps
	for _, s := range steps {
		m = append(m, &stagev1.BatchSteps{Batch: int64(s.Batch), Steps: s.Steps})
	}
	return m
}

func batchStepsFrom(m []*stagev1.BatchSteps) []core.BatchSteps {
	var steps []core.BatchSteps
	for _, s := range m {
		steps = append(steps, core.BatchSteps{Batch: int(s.GetBatch()), Steps: s.GetSteps()})
	}
	return steps
}

// Step times.

func stepTimesTo(table uint32, t *core.StepTimes) *stagev1.StepTimes {
	m := &stagev1.StepTimes{Table: table, OneNode: t.OneNode, ManyNodes: t.ManyNodes}
	for _, on := range t.Types {
		m.Types = append(m.Types, &stagev1.TypeTimes{Accelerator: on.Accelerator, OneNode: on.OneNode, ManyNodes: on.ManyNodes})
	}
	if u := t.MixedTypes; u != nil {
		m.Unlike = &stagev1.UnlikeTimes{SyncSeconds: u.SyncSeconds}
		for _, alone := range u.SingleDeviceTimes {
			m.Unlike.Alone = append(m.Unlike.Alone, &stagev1.AloneTime{Accelerator: alone.Accelerator, Seconds: alone.Seconds})
		}
	}
	return m
}

func stepTimesFrom(m *stagev1.StepTimes) *core.StepTimes {
	t := &core.StepTimes{OneNode: m.GetOneNode(), ManyNodes: m.GetManyNodes()}
	for _, on := range m.GetTypes() {
		t.Types = append(t.Types, core.TypeTimes{Accelerator: on.GetAccelerator(), OneNode: on.GetOneNode(), ManyNodes: on.GetManyNodes()})
	}
	if u := m.GetUnlike(); u != nil {
		t.MixedTypes = &core.MixedTypeTimes{SyncSeconds: u.GetSyncSeconds()}
		for _, alone := range u.GetAlone() {
			t.MixedTypes.SingleDeviceTimes = append(t.MixedTypes.SingleDeviceTimes, core.SingleDeviceTime{Accelerator: alone.GetAccelerator(), Seconds: alone.GetSeconds()})
		}
	}
	return t
}

// Many of them.

// Grants converts grants for the wire.
func Grants(grants []core.Grant) []*stagev1.Grant { return each(grants, grantTo) }

// GrantsFrom converts grants from the wire.
func GrantsFrom(m []*stagev1.Grant) []core.Grant { return each(m, grantFrom) }

// Placements converts placements for the wire.
func Placements(placements []core.Placement) []*stagev1.Placement {
	return each(placements, placementTo)
}

// PlacementsFrom converts placements from the wire.
func PlacementsFrom(m []*stagev1.Placement) []core.Placement { return each(m, placementFrom) }

// Verdicts converts verdicts for the wire.
func Verdicts(verdicts []core.Verdict) []*stagev1.Verdict { return each(verdicts, verdictTo) }

// VerdictsFrom converts verdicts from the wire, and refuses codes and reasons that are on no list.
func VerdictsFrom(m []*stagev1.Verdict) ([]core.Verdict, error) {
	verdicts := make([]core.Verdict, 0, len(m))
	for _, t := range m {
		v, err := verdictFrom(t)
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

// Responses converts responses for the wire.
func Responses(responses []core.Response) []*stagev1.Response {
	m := make([]*stagev1.Response, 0, len(responses))
	for i := range responses {
		m = append(m, responseTo(&responses[i]))
	}
	return m
}

// ResponsesFrom converts responses from the wire.
func ResponsesFrom(m []*stagev1.Response) []core.Response { return each(m, responseFrom) }

// Tunings converts tunings for the wire.
func Tunings(tunings []core.Tuning) []*stagev1.Tuning { return each(tunings, tuningTo) }

// TuningsFrom converts tunings from the wire.
func TuningsFrom(m []*stagev1.Tuning) []core.Tuning { return each(m, tuningFrom) }

// Jobs converts job identifiers for the wire.
func Jobs(ids []core.JobID) []int32 { return each(ids, func(id core.JobID) int32 { return int32(id) }) }

// JobsFrom converts job identifiers from the wire.
func JobsFrom(m []int32) []core.JobID {
	return each(m, func(id int32) core.JobID { return core.JobID(id) })
}

func each[A, B any](list []A, convert func(A) B) []B {
	converted := make([]B, 0, len(list))
	for _, x := range list {
		converted = append(converted, convert(x))
	}
	return converted
}
